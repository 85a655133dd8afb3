"""Payloads between a peer's bytes and home's values: each method, between all revisions, in both directions."""

from __future__ import annotations

import gc
import json
import logging
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import UNSET, Raw, UnsetType

from mcpgen.generated.registry import REVISIONS
from mcpgen.generated.v2024_11_05 import models as oldest
from mcpgen.generated.v2025_11_25 import models as older
from mcpgen.generated.v2026_07_28 import models
from mcpgen.runtime.adapt import Loss, route
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, McpgenError, UnknownMethod, UnknownRevision
from mcpgen.runtime.protocol import payload_codec
from mcpgen.runtime.protocol.codec import Codec, codec
from mcpgen.runtime.protocol.messages import ErrorResponse
from tests.adapters.subjects import Payloads, Subject, payloads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LABELS = [each.label for each in REVISIONS]
NEWEST = LABELS[-1]
PAIRS = [(native_revision, peer) for native_revision in LABELS for peer in LABELS]
MOST = 40  # instances of each payload; `tests/adapters` is what adapters are tested with

REVISION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
STATELESS = f'{{"name":"echo","arguments":{{"text":"hi"}},"_meta":{{"{REVISION}":"{NEWEST}","{CAPABILITIES}":{{}}}}}}'


def read(data: bytes | UnsetType) -> Any:
    return UNSET if data is UNSET else json.loads(data)


# --- each method, between all pairs of revisions


def is_arriving(subject: Subject) -> bool:
    """Whether a server reads it: what clients ask and tell, and what they answer."""
    return (subject.sender == "client") is (subject.part != "result")


def part_of(made: Codec, subject: Subject) -> Callable[[Any], Any]:
    """Return what a server reads or writes *subject* with."""
    match subject.part, subject.sender:
        case "notification", "client":
            return made.incoming_notification(subject.name).params
        case "notification", _:
            return made.outgoing_notification(subject.name).params
        case part, "client":
            request = made.incoming_request(subject.name)
            return request.params if part == "params" else request.result
        case part, _:
            ask = made.outgoing_request(subject.name)
            return ask.params if part == "params" else ask.result


def common(native_revision: str, peer: str, *, arriving: bool) -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
    """Yield the payloads that both revisions have, and what a server does with each."""
    made = Codec(native_revision, peer)
    for subject in payloads(peer if arriving else native_revision).schemas:
        if subject.part in ("params", "result", "notification") and arriving is is_arriving(subject):
            try:
                yield subject, part_of(made, subject)
            except (AdaptationError, UnknownMethod):
                assert native_revision != peer


def adapted(source: str, target: str, subject: Subject, value: Any) -> Any:
    """Return what the adapters make of *value*, or the error that they raise."""
    way = route(source, target, subject.name, subject.part, sender=subject.sender or None)  # type: ignore[arg-type]  # no definition
    try:
        return way.adapt(value).value
    except AdaptationError as error:
        return error


def outcome(take: Callable[[Any], Any], value: Any) -> Any:
    """Return what *take* makes of *value*, or the error that it raises where a revision cannot express it."""
    try:
        return take(value)
    except AdaptationError as error:
        return error


def types(label: str, subject: Subject) -> Callable[[bytes], Any]:
    """Return how the bindings of *label* decode *subject*, an answer with a task included."""
    decoders = route(label, label, subject.name, subject.part, sender=subject.sender or None).payload.decoders  # type: ignore[arg-type]  # no definition

    def decode(data: bytes) -> Any:
        for each in decoders[:-1]:
            try:
                return each(data)
            except msgspec.ValidationError:
                pass
        return decoders[-1](data)

    return decode


def handed_in(made: Payloads, subject: Subject) -> Iterator[tuple[Any, Any]]:
    """Yield values of *subject* as handlers have them, and the same as JSON, without the keys that nobody knows."""
    for value in made.instances(subject)[:MOST]:
        typed = types(made.revision, subject)(msgspec.json.encode(value))
        yield typed, msgspec.to_builtins(typed)


@pytest.mark.parametrize(("native_revision", "peer"), PAIRS)
@pytest.mark.slow
def test_whatever_a_client_may_send_arrives_as_home_has_it(native_revision: str, peer: str) -> None:
    seen = 0
    for subject, take in common(native_revision, peer, arriving=True):
        decode = types(native_revision, subject)
        for value in payloads(peer).instances(subject)[:MOST]:
            expected = adapted(peer, native_revision, subject, value)
            found = outcome(take, Raw(msgspec.json.encode(value)))
            if isinstance(found, AdaptationError):
                assert str(expected) == str(found), (subject, value)
                continue
            seen += 1

            assert decode(msgspec.json.encode(expected)) == found, (subject, value)
    assert seen


@pytest.fixture
def types_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send values that are made of types alone: their texts are not base64, URIs and so on (`test_sent_values`)."""
    monkeypatch.setattr(payload_codec, "sent_value_fault", lambda _: None)
    monkeypatch.setattr(payload_codec, "_may_be_any_text", lambda _: False)


@pytest.mark.parametrize(("native_revision", "peer"), PAIRS)
@pytest.mark.slow
@pytest.mark.usefixtures("types_alone")
def test_whatever_a_server_may_send_arrives_as_the_client_knows_it(native_revision: str, peer: str) -> None:
    seen = 0
    for subject, give in common(native_revision, peer, arriving=False):
        for typed, value in handed_in(payloads(native_revision), subject):
            expected = adapted(native_revision, peer, subject, value)
            written = outcome(give, typed)
            if isinstance(written, AdaptationError):
                assert str(expected) == str(written), (subject, value)
                continue
            found = read(written)
            seen += 1

            assert expected == found, (subject, value)
            assert payloads(peer).plain.accepts(subject.key, found), (subject, value)
    assert seen


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.usefixtures("types_alone")
@pytest.mark.slow
def test_what_one_side_writes_the_other_reads_as_it_was(label: str) -> None:
    """Both sides of each message within a revision: requests, results, questions, answers and notifications."""
    server, client = Codec(label, label), Codec(label, label, "client")
    for subject in payloads(label).schemas:
        if subject.part not in ("params", "result", "notification"):
            continue
        ours = part_of(server, subject)
        theirs = part_of(
            client, Subject(subject.part, subject.name, "client" if subject.sender == "server" else "server")
        )
        write, take = (theirs, ours) if is_arriving(subject) else (ours, theirs)
        for typed, _ in handed_in(payloads(label), subject):
            assert typed == take(Raw(write(typed))), subject


@pytest.mark.parametrize(("native_revision", "peer"), PAIRS)
@pytest.mark.slow
def test_whatever_the_revision_of_a_client_forbids_is_refused_with_the_place(native_revision: str, peer: str) -> None:
    pointed = 0
    for subject, take in common(native_revision, peer, arriving=True):
        for value in [*payloads(peer).mutants(subject)][:MOST]:
            with pytest.raises(InvalidPayload) as caught:
                take(Raw(msgspec.json.encode(value)))

            assert peer == caught.value.revision
            pointed += bool(caught.value.pointer)
    assert pointed


@pytest.mark.parametrize(("native_revision", "peer"), PAIRS)
@pytest.mark.slow
def test_whatever_home_forbids_is_not_sent(native_revision: str, peer: str) -> None:
    for subject, give in common(native_revision, peer, arriving=False):
        for value in [*payloads(native_revision).mutants(subject)][:MOST]:
            with pytest.raises(InvalidPayload) as caught:
                give(value)

            assert native_revision == caught.value.revision


# --- params


def test_params_of_the_home_revision_are_just_decoded() -> None:
    expected = models.CallToolRequestParams(
        name="echo", arguments={"text": "hi"}, meta={REVISION: "2026-07-28", CAPABILITIES: {}}
    )

    assert expected == codec(NEWEST, NEWEST).incoming_request("tools/call").params(Raw(STATELESS.encode()))


@pytest.mark.parametrize("peer", LABELS[:-1])
def test_what_a_session_knows_is_put_into_each_request(peer: str) -> None:
    meta: dict[str, object] = {
        CAPABILITIES: {"roots": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    }
    raw = Raw(b'{"name":"echo","_meta":{"progressToken":1,"x":2}}')
    found = codec(NEWEST, peer).incoming_request("tools/call").params(raw, meta)

    assert {**meta, REVISION: "2026-07-28", "progressToken": 1, "x": 2} == found.meta


def test_what_a_session_knows_replaces_what_a_request_claims() -> None:
    raw = Raw(STATELESS.replace('Capabilities":{}', 'Capabilities":{"sampling":{}}').encode())
    found = codec(NEWEST, NEWEST).incoming_request("tools/call").params(raw, {CAPABILITIES: {"roots": {}}})

    assert {"roots": {}} == found.meta[CAPABILITIES]


@pytest.mark.spec("2025-11-25", "server/tools#listing-tools")
@pytest.mark.parametrize("peer", LABELS[:-1])
def test_params_that_are_absent_arrive_empty(peer: str) -> None:
    """2024-11-05 to 2025-11-25, schema, PaginatedRequest: params are optional."""
    assert models.PaginatedRequestParams(meta={REVISION: "2026-07-28", CAPABILITIES: {}}) == codec(
        NEWEST, peer
    ).incoming_request("tools/list").params(UNSET)


@pytest.mark.spec("2026-07-28", "basic/index#meta")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover"])
def test_params_that_are_required_cannot_be_absent(method: str) -> None:
    """2026-07-28, basic/index, "_meta": every request carries required fields in params._meta."""
    with pytest.raises(InvalidPayload) as caught:
        codec(NEWEST, NEWEST).incoming_request(method).params(UNSET)

    assert f"the params of {method}" == caught.value.what


def test_params_are_judged_by_the_revision_of_the_peer_even_if_home_is_more_lenient() -> None:
    raw = Raw(b'{"requestId":null,"reason":"r"}')
    with pytest.raises(InvalidPayload) as caught:
        codec("2025-11-25", "2024-11-05").incoming_notification("notifications/cancelled").params(raw)

    assert ("2024-11-05", "/requestId") == (caught.value.revision, caught.value.pointer)


def test_a_key_that_nobody_defines_is_kept_where_home_keeps_it() -> None:
    raw = Raw(b'{"_meta":{"com.example/a":[1,{"b":null}]}}')
    found = codec(NEWEST, "2024-11-05").incoming_request("tools/list").params(raw)

    assert [1, {"b": None}] == found.meta["com.example/a"]


@pytest.mark.parametrize("peer", LABELS)
@pytest.mark.parametrize(
    "spoilt",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"name":"\xff"}',
        b'{"name":"\\ud800"}',
        b'{"name":"x"} x',
        b'{"name":"x","_meta":{"x":1e999}}',
        b'{"name":"x","_meta":{"x":"' + b"x" * 5_000 + b'","y":1e999}}',
        b'{"name":"x","_meta":{"x":' + b"9" * 10_000 + b"}}",
        b'{"name":"x","arguments":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"name":"x","unknown":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    ],
    ids=lambda spoilt: repr(spoilt[:28]),
)
def test_what_is_no_json_or_too_deep_is_an_invalid_payload(peer: str, spoilt: bytes) -> None:
    with pytest.raises(InvalidPayload) as caught:
        codec(NEWEST, peer).incoming_request("tools/call").params(Raw(spoilt))

    assert peer == caught.value.revision
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("native_revision", [NEWEST, "2024-11-05"])
@pytest.mark.parametrize("peer", LABELS)
def test_no_depth_of_nesting_makes_a_traceback(native_revision: str, peer: str) -> None:
    request = codec(native_revision, peer).incoming_request("tools/call")
    for depth in (10, *range(900, 1010, 3), 100_000):
        for nested in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            try:
                request.params(Raw(STATELESS.replace('"hi"', nested).encode()))
            except InvalidPayload as error:
                assert "deep" in error.reason  # noqa: PT017 (whether it is raised depends on the interpreter)
            else:
                assert depth < 100_000


# --- results


def test_a_result_of_the_home_revision_is_just_encoded() -> None:
    result = models.CallToolResult(content=[models.TextContent(text="hi")])

    assert b'{"content":[{"type":"text","text":"hi"}],"resultType":"complete"}' == codec(
        NEWEST, NEWEST
    ).incoming_request("tools/call").result(result)


@pytest.mark.parametrize("peer", LABELS[:-1])
def test_a_result_for_an_older_peer_has_nothing_that_it_does_not_know(peer: str) -> None:
    result = models.CallToolResult(content=[models.TextContent(text="hi")])

    assert b'{"content":[{"type":"text","text":"hi"}]}' == codec(NEWEST, peer).incoming_request("tools/call").result(
        result
    )


def test_a_result_may_be_a_dict() -> None:
    assert b'{"content":[],"resultType":"complete","x":1}' == codec(NEWEST, NEWEST).incoming_request(
        "tools/call"
    ).result({"content": [], "resultType": "complete", "x": 1})


@pytest.mark.parametrize("peer", ["2024-11-05", NEWEST])
@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({"content": 5, "resultType": "complete"}, ""),
        (object(), ""),
        ({"content": [object()]}, "/content/0"),
        ({"content": [], "resultType": "complete", "x": "\ud800"}, "/x"),
        ({"content": [], "resultType": "complete", "x": Raw(b"{")}, ""),
        (models.Tool(name="x", input_schema={"type": "object"}), ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_that_is_none_is_not_sent(peer: str, wrong: object, pointer: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        codec(NEWEST, peer).incoming_request("tools/call").result(wrong)

    assert (NEWEST, pointer) == (caught.value.revision, caught.value.pointer)


def test_a_result_that_says_something_else_than_complete_is_not_sent_and_its_type_is_named() -> None:
    with pytest.raises(InvalidPayload, match=r"at /resultType: the value must be `complete` in every CallToolResult$"):
        codec(NEWEST, NEWEST).incoming_request("tools/call").result(
            models.CallToolResult(content=[], result_type="done")
        )


def test_a_result_of_another_revision_is_checked_as_what_it_looks_like_and_its_type_is_named() -> None:
    with pytest.raises(
        InvalidPayload,
        match=r"the value has the type mcpgen\.generated\.v2024_11_05\.models\.CallToolResult; use a type of ",
    ):
        codec(NEWEST, NEWEST).incoming_request("tools/call").result(
            oldest.CallToolResult(content=[])
        )  # has no resultType


@pytest.mark.parametrize("peer", LABELS)
def test_a_result_that_never_ends_is_not_sent(peer: str) -> None:
    deep: dict[str, Any] = {}
    deep["a"] = deep
    with pytest.raises(InvalidPayload, match="deep"):
        codec(NEWEST, peer).incoming_request("tools/call").result(
            models.CallToolResult(content=[], structured_content=deep)
        )


def test_a_type_of_home_that_holds_something_wrong_is_found_when_a_step_trips_over_it() -> None:
    request = Codec(NEWEST, "2024-11-05").incoming_request("tools/call")
    request.result(models.CallToolResult(content=[]))  # from now on the type is believed
    for wrong in ([5], Raw(b"[")):
        with pytest.raises(InvalidPayload) as caught:
            request.result(models.CallToolResult(content=wrong))  # type: ignore[arg-type]  # that is what is tested

        assert NEWEST == caught.value.revision


def test_a_number_that_nobody_looks_at_may_be_out_of_range_only_where_nobody_does() -> None:
    raw = Raw(b'{"name":"x","unknown":1e999}')
    assert "x" == codec("2024-11-05", "2024-11-05").incoming_request("tools/call").params(raw).name

    with pytest.raises(InvalidPayload, match="out of range"):
        codec(NEWEST, "2024-11-05").incoming_request("tools/call").params(raw)


def test_what_a_session_knows_has_to_be_valid_at_home() -> None:
    with pytest.raises(InvalidPayload) as caught:
        codec(NEWEST, "2024-11-05").incoming_request("tools/list").params(UNSET, {CAPABILITIES: 5})

    assert (NEWEST, f"/_meta/{CAPABILITIES.replace('/', '~1')}") == (caught.value.revision, caught.value.pointer)


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
@pytest.mark.parametrize("peer", LABELS[:-1])
def test_a_result_that_asks_for_input_has_no_meaning_for_an_older_peer(peer: str) -> None:
    """2026-07-28, basic/patterns/mrtr, "InputRequiredResult": before, servers asked by requests of their own."""
    result = models.InputRequiredResult(request_state="s")
    with pytest.raises(AdaptationError) as caught:
        codec(NEWEST, peer).incoming_request("tools/call").result(result)

    assert "input" == caught.value.service
    assert b'{"requestState":"s","resultType":"input_required"}' == msgspec.json.encode(
        msgspec.json.decode(codec(NEWEST, NEWEST).incoming_request("tools/call").result(result)), order="sorted"
    )


# --- errors


@pytest.mark.spec("2026-07-28", "basic/index#error-codes", "abc8e876")
@pytest.mark.spec("2026-07-28", "server/resources#error-handling", "99167c29")
@pytest.mark.spec("2025-11-25", "server/resources#error-handling")
@pytest.mark.parametrize(("peer", "code"), [*((label, b"-32002") for label in LABELS[:-1]), (NEWEST, b"-32602")])
def test_a_resource_that_is_not_there_has_the_code_of_the_peer(peer: str, code: bytes) -> None:
    """2026-07-28, server/resources, "Error Handling": -32602, where earlier revisions said -32002."""
    assert b'{"code":' + code + b',"message":"m","data":{"uri":"x:y"}}' == codec(NEWEST, peer).incoming_request(
        "resources/read"
    ).error(-32602, "m", {"uri": "x:y"})


def test_an_error_need_not_have_data_and_may_have_null() -> None:
    request = codec(NEWEST, "2025-06-18").incoming_request("tools/call")

    assert b'{"code":-32602,"message":"m"}' == request.error(-32602, "m")
    assert b'{"code":-32602,"message":"m","data":null}' == request.error(-32602, "m", None)


@pytest.mark.parametrize("peer", ["2024-11-05", NEWEST])
def test_data_of_an_error_that_is_no_json_is_not_sent(peer: str) -> None:
    with pytest.raises(InvalidPayload, match="an error of tools/call"):
        codec(NEWEST, peer).incoming_request("tools/call").error(-32602, "m", object())


@pytest.mark.spec("2025-11-25", "client/sampling#error-handling")
@pytest.mark.parametrize("peer", LABELS[:-1])
def test_an_error_that_a_client_answers_arrives_as_home_has_it(peer: str) -> None:
    """2025-11-25, client/sampling, "Error Handling": -1 if the user rejected the request."""
    error = b'{"code":-1.0,"message":"User rejected sampling request","data":{"a":[1]}}'
    response = ErrorResponse(1, -1, "User rejected sampling request", Raw(error))
    found = codec(NEWEST, peer).outgoing_request("sampling/createMessage").error(response)

    assert (-1, "User rejected sampling request", {"a": [1]}) == (found.code, found.message, found.data)


@pytest.mark.parametrize(
    ("native_revision", "peer"), [("2025-11-25", "2025-11-25"), (NEWEST, "2024-11-05"), ("2025-11-25", NEWEST)]
)
def test_an_error_whose_data_cannot_be_read_is_told_without(native_revision: str, peer: str) -> None:
    deep = b'{"code":5,"message":"m","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for error in (deep, b'{"code":5,"message":"m"}'):
        found = (
            codec(native_revision, peer)
            .outgoing_request("sampling/createMessage")
            .error(ErrorResponse(1, 5, "m", Raw(error)))
        )

        assert (5, "m", UNSET) == (found.code, found.message, found.data)


# --- asking


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#inputrequests")
def test_what_is_asked_inside_a_result_is_asked_like_anything_else() -> None:
    """2026-07-28, basic/patterns/mrtr, "InputRequests": elicitation, sampling and roots."""
    ask = codec(NEWEST, NEWEST).outgoing_request("elicitation/create")
    params = models.ElicitRequestFormParams(message="m", requested_schema={"type": "object", "properties": {}})

    assert {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}} == {
        "mode": "form",
        **read(ask.params(params)),
    }
    assert models.ElicitResult(action="decline") == ask.result(Raw(b'{"action":"decline"}'))
    assert UNSET is codec(NEWEST, NEWEST).outgoing_request("roots/list").params(UNSET)


@pytest.mark.spec("2025-06-18", "client/elicitation#creating-elicitation-requests")
@pytest.mark.parametrize(("native_revision", "peer"), PAIRS)
def test_roots_are_asked_for_without_params(native_revision: str, peer: str) -> None:
    ask = codec(native_revision, peer).outgoing_request("roots/list")

    assert UNSET is ask.params(UNSET)
    assert "file:///a" == ask.result(Raw(b'{"roots":[{"uri":"file:///a"}]}')).roots[0].uri


def test_a_question_that_needs_params_is_not_sent_without() -> None:
    for peer in LABELS:
        with pytest.raises(InvalidPayload):
            codec(NEWEST, peer).outgoing_request("sampling/createMessage").params(UNSET)


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#creating-tasks")
def test_a_question_may_be_answered_with_a_task() -> None:
    """2025-11-25, basic/utilities/tasks, "Creating Tasks": a task-augmented request gets a CreateTaskResult."""
    task = {"taskId": "t", "status": "working", "createdAt": "c", "lastUpdatedAt": "c", "ttl": None}
    found = (
        codec("2025-11-25", "2025-11-25")
        .outgoing_request("sampling/createMessage")
        .result(Raw(json.dumps({"task": task}).encode()))
    )

    assert isinstance(found, older.CreateTaskResult)


def test_an_answer_that_fits_nothing_is_refused_as_what_it_should_have_been() -> None:
    with pytest.raises(InvalidPayload, match="the result of sampling/createMessage") as caught:
        codec(NEWEST, "2025-11-25").outgoing_request("sampling/createMessage").result(
            Raw(b'{"role":"user","content":[]}')
        )

    assert "2025-11-25" == caught.value.revision


# --- notifications


@pytest.mark.parametrize(("native_revision", "peer"), PAIRS)
def test_a_notification_without_params_stays_without(native_revision: str, peer: str) -> None:
    assert UNSET is codec(native_revision, peer).outgoing_notification("notifications/tools/list_changed").params(UNSET)


@pytest.mark.parametrize("peer", LABELS)
def test_progress_tells_an_older_client_no_more_than_it_knows(peer: str) -> None:
    params = models.ProgressNotificationParams(progress_token="t", progress=1, message="m")  # noqa: S106 (no secret)
    found = read(codec(NEWEST, peer).outgoing_notification("notifications/progress").params(params))

    assert {"progressToken": "t", "progress": 1, **({} if peer == "2024-11-05" else {"message": "m"})} == found


def test_a_cancellation_arrives_as_home_has_it() -> None:
    raw = Raw(b'{"requestId":7,"reason":"r"}')

    assert models.CancelledNotificationParams(request_id=7, reason="r") == codec(
        NEWEST, "2024-11-05"
    ).incoming_notification("notifications/cancelled").params(raw)


# --- what there is, and what is not


def test_a_codec_is_made_once_for_all_peers_of_a_revision() -> None:
    assert codec(NEWEST, "2024-11-05") is codec(NEWEST, "2024-11-05")
    assert codec(NEWEST, "2024-11-05") is not codec("2024-11-05", NEWEST)
    assert codec(NEWEST, NEWEST).incoming_request("tools/call") is codec(NEWEST, NEWEST).incoming_request("tools/call")


def test_a_revision_without_bindings_has_no_codec() -> None:
    for native_revision, peer in ((NEWEST, "x"), ("x", NEWEST)):
        with pytest.raises(UnknownRevision):
            codec(native_revision, peer)


def test_a_method_that_the_peer_does_not_have_is_unknown_and_leaves_no_trace() -> None:
    made = Codec(NEWEST, "2025-11-25")
    for number in range(100):
        with pytest.raises(UnknownMethod):
            made.incoming_request(f"x/{number}")

    assert not made._refused
    assert not made._incoming_requests


@pytest.mark.parametrize(
    ("native_revision", "peer", "take", "service"),
    [
        (NEWEST, "2025-11-25", lambda made: made.incoming_request("logging/setLevel"), "log_level"),
        (NEWEST, "2025-11-25", lambda made: made.incoming_request("resources/subscribe"), "subscriptions"),
        (NEWEST, "2025-11-25", lambda made: made.incoming_request("initialize"), "negotiation"),
        (NEWEST, "2025-11-25", lambda made: made.incoming_request("tasks/get"), "tasks"),
        ("2025-11-25", NEWEST, lambda made: made.incoming_request("server/discover"), "negotiation"),
        ("2025-11-25", NEWEST, lambda made: made.incoming_request("subscriptions/listen"), "subscriptions"),
        (NEWEST, "2024-11-05", lambda made: made.outgoing_request("elicitation/create"), "input"),
        (NEWEST, "2025-11-25", lambda made: made.incoming_notification("notifications/roots/list_changed"), "roots"),
        (
            NEWEST,
            "2025-11-25",
            lambda made: made.outgoing_notification("notifications/subscriptions/acknowledged"),
            "subscriptions",
        ),
    ],
)
def test_what_cannot_be_expressed_is_known_before_anything_is_sent(
    native_revision: str, peer: str, take: Callable[[Codec], object], service: str
) -> None:
    made = Codec(native_revision, peer)
    for _ in range(3):
        with pytest.raises(AdaptationError) as caught:
            take(made)

        assert service == caught.value.service
    assert 1 == len(made._refused)


def test_an_error_that_is_remembered_keeps_no_traceback() -> None:
    made = Codec(NEWEST, "2025-11-25")
    for _ in range(2):
        with pytest.raises(McpgenError):
            made.incoming_request("initialize")

    assert all(error.__traceback__ is None for error in made._refused.values())


def test_definitions_cross_too() -> None:
    value: dict[str, Any] = {"tools": {"listChanged": True}, "extensions": {"a/b": {}}, "completions": {}}

    assert {"tools": {"listChanged": True}} == codec(NEWEST, "2024-11-05").definition("ServerCapabilities", value)
    assert value == codec(NEWEST, NEWEST).definition("ServerCapabilities", value)


def test_a_client_is_the_other_side_of_the_same() -> None:
    made = Codec(NEWEST, "2025-11-25", "client")
    params = models.CallToolRequestParams(name="x", meta={REVISION: "2026-07-28", CAPABILITIES: {}})

    assert {"name": "x"} == {
        key: each for key, each in read(made.outgoing_request("tools/call").params(params)).items() if key != "_meta"
    }
    assert models.CallToolResult(content=[]) == made.outgoing_request("tools/call").result(Raw(b'{"content":[]}'))
    assert b'{"roots":[]}' == made.incoming_request("roots/list").result(models.ListRootsResult(roots=[]))
    assert bindings(NEWEST).models.NotificationParams() == made.incoming_notification(
        "notifications/tools/list_changed"
    ).params(UNSET)


# --- losses


def test_whoever_wants_to_know_is_told_what_was_lost() -> None:
    told: list[tuple[str, tuple[Loss, ...]]] = []
    made = Codec(NEWEST, "2025-03-26", on_losses=lambda what, losses: told.append((what, losses)))
    made.incoming_request("tools/list").result(
        models.ListToolsResult(
            tools=[models.Tool(name="x", title="X", input_schema={"type": "object"})], ttl_ms=1, cache_scope="private"
        )
    )
    made.definition("Implementation", {"name": "x", "title": "X", "version": "1"})

    assert ["the result of tools/list", "Implementation"] == [what for what, _ in told]
    assert "/tools/0/title" in [each.pointer for each in told[0][1]]
    assert ["/title"] == [each.pointer for each in told[1][1]]


def test_what_a_session_makes_good_is_no_loss() -> None:
    told: list[tuple[str, tuple[Loss, ...]]] = []
    made = Codec(NEWEST, "2025-11-25", on_losses=lambda what, losses: told.append((what, losses)))
    made.incoming_request("tools/call").params(Raw(b'{"name":"x","task":{}}'), {CAPABILITIES: {}})
    made.incoming_request("tools/call").params(Raw(b'{"name":"x"}'))

    assert [["/task"], [f"/_meta/{CAPABILITIES.replace('/', '~1')}"]] == [
        [each.pointer for each in losses] for _, losses in told
    ]


def test_losses_are_logged_for_whoever_debugs(caplog: pytest.LogCaptureFixture) -> None:
    request = Codec(NEWEST, "2025-11-25").incoming_request("tools/call")
    request.params(Raw(b'{"name":"x"}'))
    assert [] == caplog.messages

    with caplog.at_level(logging.DEBUG, "mcpgen.losses"):
        request.params(Raw(b'{"name":"x"}'))

    assert 1 == len(caplog.messages)
    assert "the params of tools/call: defaulted at /_meta/" in caplog.messages[0]


# --- memory


@pytest.mark.parametrize(
    ("method", "part", "invalid"),
    [
        ("tools/call", "params", b'{"name":"echo","arguments":"%s"}'),
        ("elicitation/create", "result", b'{"action":"%s"}'),
    ],
)
def test_an_invalid_payload_is_freed_at_once(method: str, part: str, invalid: bytes) -> None:
    made = codec(NEWEST, "2025-11-25")
    read_part = made.incoming_request(method).params if part == "params" else made.outgoing_request(method).result

    def refuse() -> None:
        with pytest.raises(InvalidPayload):
            read_part(Raw(invalid % (b"x" * 100_000)))

    refuse()  # what is made once is there then
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        refuse()
        gc.collect()
        left = [type(each).__name__ for each in gc.garbage if isinstance(each, BaseException | FrameType)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    assert left == []
