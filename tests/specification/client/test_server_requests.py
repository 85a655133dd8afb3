"""What a server asks of a client with which it has a session, and what it is answered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, RequestError
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import since, spec, with_handshakes, without_handshakes
from tests.specification.client.scripted_server import PATIENCE_SECONDS, on_both_loops, opened

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

FORMS = pytest.mark.parametrize("revision", since("2025-06-18", "2026-07-28"))
PAGES = pytest.mark.parametrize("revision", since("2025-11-25", "2026-07-28"))

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = {"message": "Who?", "requestedSchema": SCHEMA}
PAGE = {"mode": "url", "message": "Sign in.", "url": "https://example.com/in", "elicitationId": "e1"}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}], "maxTokens": 10}


def accept(params: Any, _: Any) -> models.ElicitResult:
    return models.ElicitResult(action="accept", content={"name": params.message})


def agree(params: Any, _: Any) -> models.ElicitResult:
    assert params.url.startswith("https")

    return models.ElicitResult(action="accept")


def sample(params: Any, _: Any) -> models.CreateMessageResult:
    text = models.TextContent(text=f"{params.messages[0].content.text} Because.")
    return models.CreateMessageResult(role="assistant", content=text, model="m", stop_reason="endTurn")


# --- answers


@spec("2024-11-05", "client/roots#listing-roots")
@spec("2025-11-25", "client/roots#listing-roots")
@with_handshakes
@on_both_loops
async def test_roots_are_listed(revision: str) -> None:
    roots = [models.Root(uri="file:///a", name="A"), models.Root(uri="file:///b")]
    async with opened(revision, roots=roots) as own:
        said = await own.wire.ask("s1", "roots/list")

    assert {
        "jsonrpc": "2.0",
        "id": "s1",
        "result": {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]},
    } == said


@spec("2024-11-05", "client/roots#listing-roots")
@spec("2025-11-25", "client/roots#listing-roots")
@with_handshakes
@pytest.mark.parametrize("is_async", [False, True])
async def test_roots_that_change_are_listed_anew(*, is_async: bool, revision: str) -> None:
    found: list[models.Root] = []

    async def later(_: Any) -> list[models.Root]:
        return found

    async with opened(revision, roots=later if is_async else lambda _: found) as own:
        assert {"roots": []} == (await own.wire.ask(1, "roots/list"))["result"]

        found.append(models.Root(uri="file:///a"))

        assert {"roots": [{"uri": "file:///a"}]} == (await own.wire.ask(2, "roots/list"))["result"]


@spec("2024-11-05", "client/sampling#creating-messages")
@spec("2025-11-25", "client/sampling#creating-messages")
@with_handshakes
@on_both_loops
async def test_a_model_is_asked(revision: str) -> None:
    async with opened(revision, sample=sample) as own:
        said = await own.wire.ask(1, "sampling/createMessage", SAMPLE)

    assert {
        "role": "assistant",
        "content": {"type": "text", "text": "Why? Because."},
        "model": "m",
        "stopReason": "endTurn",
    } == said["result"]


@spec("2025-11-25", "client/sampling#sampling-with-tools")
@PAGES
async def test_a_model_is_asked_with_tools_if_that_is_declared(revision: str) -> None:
    def use(params: Any, _: Any) -> models.CreateMessageResult:
        call = models.ToolUseContent(id="t1", name=params.tools[0].name, input={"city": "Paris"})
        return models.CreateMessageResult(role="assistant", content=[call], model="m", stop_reason="toolUse")

    tools = [{"name": "weather", "inputSchema": {"type": "object"}}]
    async with opened(revision, sample=use, capabilities={"sampling": {"tools": {}}}) as own:
        said = await own.wire.ask(1, "sampling/createMessage", {**SAMPLE, "tools": tools})

    call = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}}
    assert {"role": "assistant", "content": [call], "model": "m", "stopReason": "toolUse"} == said["result"]


@spec("2025-06-18", "client/elicitation#creating-elicitation-requests")
@spec("2025-11-25", "client/elicitation#form-mode-elicitation-requests")
@FORMS
@on_both_loops
async def test_a_form_is_filled_in(revision: str) -> None:
    async with opened(revision, elicit=accept) as own:
        said = await own.wire.ask(1, "elicitation/create", FORM)

    assert {"action": "accept", "content": {"name": "Who?"}} == said["result"]


@spec("2025-06-18", "client/elicitation#response-actions")
@spec("2025-11-25", "client/elicitation#response-actions")
@FORMS
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_may_be_refused(action: Any, revision: str) -> None:
    async with opened(revision, elicit=lambda *_: models.ElicitResult(action=action)) as own:
        said = await own.wire.ask(1, "elicitation/create", FORM)

    assert {"action": action} == said["result"]


@spec("2025-11-25", "client/elicitation#elicitation-requests", "ea746a2e")
@PAGES
@pytest.mark.parametrize("mode", [{}, {"mode": "form"}], ids=str)
async def test_an_elicitation_without_a_mode_is_a_form(mode: Any, revision: str) -> None:
    async with opened(revision, elicit=accept, elicit_url=agree) as own:
        said = await own.wire.ask(1, "elicitation/create", {**FORM, **mode})

    assert {"action": "accept", "content": {"name": "Who?"}} == said["result"]


@spec("2025-11-25", "client/elicitation#url-mode-elicitation-requests")
@PAGES
@on_both_loops
async def test_a_page_is_visited(revision: str) -> None:
    async with opened(revision, elicit_url=agree) as own:
        said = await own.wire.ask(1, "elicitation/create", PAGE)

    assert {"action": "accept"} == said["result"]


@spec("2024-11-05", "basic/utilities/ping#behavior-requirements")
@spec("2025-11-25", "basic/utilities/ping#behavior-requirements")
@with_handshakes
@on_both_loops
async def test_a_ping_is_answered_while_other_things_wait(revision: str) -> None:
    async def wait(_: Any) -> Any:
        await anyio.sleep_forever()

    async with opened(revision, roots=wait, limits=ClientLimits(max_in_flight=1)) as own:
        await own.asked(own.client.call_tool("slow"))
        own.wire.say({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})

        assert {"jsonrpc": "2.0", "id": 7, "result": {}} == await own.wire.ask(7, "ping")


@spec("2024-11-05", "basic/utilities/ping#message-format")
@spec("2025-11-25", "basic/utilities/ping#message-format")
@with_handshakes
async def test_the_client_pings_too(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.ping())
        assert not errand.is_over

        own.wire.result(asked, {})
        await errand.outcome()

    assert {"jsonrpc": "2.0", "id": asked["id"], "method": "ping"} == asked


@spec("2025-06-18", "basic/index#responses", "d2bdc721")
@spec("2024-11-05", "basic/messages#responses", "71c9eb41")
@spec("2025-11-25", "basic/index#responses")
@with_handshakes
@pytest.mark.parametrize("identity", [0, -1, 2**53 - 1, "", "s", "1"])
async def test_an_answer_has_the_id_of_its_request(identity: int | str, revision: str) -> None:
    async with opened(revision, roots=[]) as own:
        said = await own.wire.ask(identity, "roots/list")

    assert (identity, {"roots": []}) == (said["id"], said["result"])


@spec("2024-11-05", "basic/messages#requests")
@spec("2025-11-25", "basic/index#requests")
@with_handshakes
@on_both_loops
async def test_requests_of_the_server_are_answered_at_the_same_time(revision: str) -> None:
    gate = anyio.Event()

    async def slow(params: Any, context: Any) -> Any:
        await gate.wait()
        return sample(params, context)

    async with opened(revision, roots=[], sample=slow) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": SAMPLE})
        assert 2 == (await own.wire.ask(2, "roots/list"))["id"]

        gate.set()

        assert 1 == (await own.wire.hear())["id"]


@spec("2024-11-05", "basic/messages#requests")
@spec("2025-11-25", "basic/index#requests")
@with_handshakes
async def test_an_id_of_the_server_may_be_one_of_ours(revision: str) -> None:
    async with opened(revision, roots=[]) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        said = await own.wire.ask(asked["id"], "roots/list")
        assert {"roots": []} == said["result"]

        own.wire.result(asked, {"content": []})

        assert [] == (await errand.outcome()).content


@spec("2025-11-25", "basic/lifecycle#capability-negotiation")
@with_handshakes
async def test_a_handler_knows_who_asks_and_may_ask_back(revision: str) -> None:
    found = []

    async def roots(context: Any) -> list[models.Root]:
        found.append((context.peer.revision, context.peer.info.name, context.method))
        await context.client.ping()
        return []

    async with opened(revision, roots=roots) as own:
        asked = await own.wire.ask(1, "roots/list")
        assert "ping" == asked["method"]

        own.wire.result(asked, {})

        assert {"roots": []} == (await own.wire.hear())["result"]

    assert [(revision, "played", "roots/list")] == found


# --- refusals


@spec("2024-11-05", "client/roots#error-handling")
@spec("2025-11-25", "client/roots#error-handling", "ccf8f6e9")
@spec("2025-11-25", "basic/lifecycle#operation", "fd7099db")
@with_handshakes
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("roots/list", None),
        ("sampling/createMessage", SAMPLE),
        ("elicitation/create", FORM),
        ("tasks/list", None),
        ("tools/list", None),
        ("no/such", {}),
        ("initialize", {}),
    ],
)
async def test_what_the_client_has_not_declared_is_not_answered(method: str, params: Any, revision: str) -> None:
    async with opened(revision) as own:
        said = await own.wire.ask(1, method, params)

    assert (1, -32601) == (said["id"], said["error"]["code"])


@spec("2025-11-25", "client/elicitation#error-handling", "460b38a8")
@PAGES
@pytest.mark.parametrize(("options", "params"), [({"elicit": accept}, PAGE), ({"elicit_url": agree}, FORM)])
async def test_a_mode_that_the_client_has_not_declared_is_an_invalid_param(
    options: Any, params: Any, revision: str
) -> None:
    async with opened(revision, **options) as own:
        said = await own.wire.ask(1, "elicitation/create", params)

    assert -32602 == said["error"]["code"]


@spec("2025-06-18", "client/elicitation#capabilities")
@pytest.mark.parametrize("revision", ["2025-06-18"])
async def test_a_page_that_cannot_be_declared_makes_no_elicitation(revision: str) -> None:
    async with opened(revision, elicit_url=agree) as own:
        said = await own.wire.ask(1, "elicitation/create", FORM)

    assert -32601 == said["error"]["code"]


@spec("2025-11-25", "schema#createmessagerequestparams", "3ee07d69")
@spec("2025-11-25", "client/sampling#capabilities")
@PAGES
@pytest.mark.parametrize(
    "more", [{"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}, {"toolChoice": {"mode": "auto"}}], ids=str
)
async def test_sampling_with_tools_that_the_client_has_not_declared_is_refused(more: Any, revision: str) -> None:
    async with opened(revision, sample=sample) as own:
        said = await own.wire.ask(1, "sampling/createMessage", {**SAMPLE, **more})

    assert -32602 == said["error"]["code"]


@spec("2024-11-05", "basic/messages#responses")
@spec("2025-11-25", "basic/index#error-responses")
@with_handshakes
@pytest.mark.parametrize(
    "params",
    [{}, {"messages": 5, "maxTokens": 10}, {"messages": [], "maxTokens": "many"}, {"messages": [{"role": "nobody"}]}],
    ids=str,
)
async def test_params_that_the_revision_does_not_allow_are_refused(params: Any, revision: str) -> None:
    async with opened(revision, sample=sample) as own:
        said = await own.wire.ask(1, "sampling/createMessage", params)

    assert -32602 == said["error"]["code"]


@spec("2024-11-05", "client/sampling#error-handling", "157b4739")
@spec("2025-11-25", "client/sampling#error-handling")
@with_handshakes
@on_both_loops
async def test_an_error_that_a_handler_raises_is_the_answer(revision: str) -> None:
    def refuse(*_: Any) -> Any:
        raise RequestError(-1, "User rejected sampling request", {"why": "busy"})

    async with opened(revision, sample=refuse) as own:
        said = await own.wire.ask(1, "sampling/createMessage", SAMPLE)

    assert {"code": -1, "message": "User rejected sampling request", "data": {"why": "busy"}} == said["error"]


@spec("2024-11-05", "client/roots#error-handling")
@spec("2025-11-25", "client/roots#error-handling", "e581c4ea")
@with_handshakes
@pytest.mark.parametrize("failure", [ValueError("hunter2"), KeyError("hunter2"), TimeoutError("hunter2")], ids=repr)
@on_both_loops
async def test_a_handler_that_fails_is_an_internal_error_that_says_nothing_of_itself(
    failure: Exception, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Any) -> Any:
        raise failure

    async with opened(revision, roots=fail) as own:
        said = await own.wire.ask(1, "roots/list")

        assert -32603 == said["error"]["code"]
        assert {"roots": []} != (await own.wire.ask(2, "ping"))["result"]

    assert b"hunter2" not in b"".join(own.wire.raw)
    assert "hunter2" in caplog.text


@spec("2024-11-05", "client/roots#error-handling")
@spec("2025-11-25", "client/roots#error-handling")
@with_handshakes
@pytest.mark.parametrize("result", [None, 5, [1], ["file:///a"], [{"uri": 5}]], ids=str)
async def test_a_handler_that_returns_nonsense_is_an_internal_error(result: Any, revision: str) -> None:
    async with opened(revision, roots=lambda _: result) as own:
        said = await own.wire.ask(1, "roots/list")

    assert -32603 == said["error"]["code"]


@spec("2024-11-05", "client/sampling#error-handling")
@spec("2025-11-25", "client/sampling#error-handling")
@with_handshakes
@pytest.mark.parametrize("result", [None, 5, {}, models.ElicitResult(action="accept")], ids=repr)
async def test_a_model_that_says_nonsense_is_an_internal_error(result: Any, revision: str) -> None:
    async with opened(revision, sample=lambda *_: result) as own:
        said = await own.wire.ask(1, "sampling/createMessage", SAMPLE)

    assert -32603 == said["error"]["code"]


@spec("2024-11-05", "client/sampling#error-handling")
@spec("2025-11-25", "client/sampling#error-handling")
@with_handshakes
@pytest.mark.parametrize("data", [object(), float("nan"), {"a": {1, object()}}], ids=["object", "nan", "set"])
async def test_an_error_that_is_no_json_is_an_internal_error(data: Any, revision: str) -> None:
    def refuse(*_: Any) -> Any:
        raise RequestError(-1, "no", data)

    async with opened(revision, sample=refuse) as own:
        said = await own.wire.ask(1, "sampling/createMessage", SAMPLE)

    assert said["error"]["code"] in (-32603, -1)


@spec("2024-11-05", "client/sampling#error-handling")
@spec("2025-11-25", "client/sampling#error-handling")
@with_handshakes
async def test_an_error_that_a_handler_of_the_servers_own_revision_raises_is_the_answer(revision: str) -> None:
    async def refuse(own: Any, params: Any, context: Any) -> Any:
        del own, params, context
        raise RequestError(-1, "User rejected sampling request")

    base = registry.revision(revision).bindings().client.ClientHandlers
    handlers = type("Handlers", (base,), {"create_message": refuse})()
    async with opened(revision, native_revision=revision, handlers=handlers) as own:
        said = await own.wire.ask(1, "sampling/createMessage", SAMPLE)

    assert {"code": -1, "message": "User rejected sampling request"} == said["error"]


@spec("2024-11-05", "basic/messages#requests")
@spec("2025-11-25", "basic/index#requests")
@with_handshakes
async def test_a_second_request_with_the_id_of_an_open_one_is_refused(revision: str) -> None:
    gate = anyio.Event()

    async def slow(_: Any) -> list[models.Root]:
        await gate.wait()
        return []

    async with opened(revision, roots=slow) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        said = await own.wire.ask(1, "roots/list")
        assert -32600 == said["error"]["code"]

        gate.set()

        assert {"roots": []} == (await own.wire.hear())["result"]


@spec("2025-11-25", "client/elicitation#security-considerations")
@FORMS
async def test_more_requests_at_once_than_the_client_wants_are_refused(revision: str) -> None:
    async def wait(*_: Any) -> Any:
        await anyio.sleep_forever()

    async with opened(revision, elicit=wait, limits=ClientLimits(max_in_flight=2)) as own:
        for number in (1, 2):
            own.wire.say({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": FORM})
        said = await own.wire.ask(3, "elicitation/create", FORM)

    assert (3, -32603) == (said["id"], said["error"]["code"])


# --- what servers give up


@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements", "656f0d9e", "adc15f31")
@spec("2025-11-25", "basic/utilities/cancellation#implementation-notes", "907183e6")
@with_handshakes
@on_both_loops
@pytest.mark.parametrize("request_id", [1, 1.0], ids=["1", "1.0, which is the same integer"])
async def test_a_request_that_the_server_cancels_is_given_up_and_not_answered(
    request_id: float, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpgen.session")
    waiting, given_up = anyio.Event(), anyio.Event()

    async def wait(_: Any) -> Any:
        waiting.set()
        try:
            await anyio.sleep_forever()
        finally:
            given_up.set()

    async with opened(revision, roots=wait) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        with anyio.fail_after(PATIENCE_SECONDS):
            await waiting.wait()
            own.wire.tell("notifications/cancelled", requestId=request_id, reason="late")
            await given_up.wait()

        assert [] == await own.wire.rest()
        assert "the server cancels its request or the stream 1: late" in caplog.messages


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_handshakes
@on_both_loops
async def test_a_request_is_not_answered_if_its_cancellation_is_read_with_it(revision: str) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with opened(revision, roots=[]) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, cancel)

        assert [] == await own.wire.rest()


@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_handshakes
@on_both_loops
async def test_what_a_handler_returns_after_it_was_cancelled_is_not_sent(revision: str) -> None:
    async def stubborn(_: Any) -> list[models.Root]:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return []
        return []

    async with opened(revision, roots=stubborn) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        assert [] == await own.wire.rest()

        own.wire.tell("notifications/cancelled", requestId=1)

        assert [] == await own.wire.rest()


@spec("2024-11-05", "basic/utilities/cancellation#behavior-requirements")
@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_handshakes
async def test_what_was_cancelled_does_not_answer_what_has_its_id_afterwards(revision: str) -> None:
    gates = [anyio.Event(), anyio.Event()]
    answers = iter(zip(gates, "ab", strict=True))

    async def stubborn(_: Any) -> list[models.Root]:
        gate, name = next(answers)
        try:
            await gate.wait()
        except anyio.get_cancelled_exc_class():
            await gate.wait()
        return [models.Root(uri=f"file:///{name}")]

    async with opened(revision, roots=stubborn) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        await own.wire.rest()
        own.wire.tell("notifications/cancelled", requestId=1)
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        await own.wire.rest()
        gates[0].set()
        assert [] == await own.wire.rest()

        gates[1].set()

        assert {"roots": [{"uri": "file:///b"}]} == (await own.wire.hear())["result"]


@spec("2024-11-05", "basic/utilities/cancellation#error-handling")
@spec("2025-11-25", "basic/utilities/cancellation#error-handling", "2aff49c1")
@with_handshakes
@pytest.mark.parametrize("params", [{"requestId": 99}, {"requestId": "1"}, {"requestId": None}, {}], ids=str)
async def test_a_cancellation_of_nothing_is_ignored(params: Any, revision: str) -> None:
    gate = anyio.Event()

    async def slow(_: Any) -> list[models.Root]:
        await gate.wait()
        return []

    async with opened(revision, roots=slow) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        own.wire.tell("notifications/cancelled", **params)
        gate.set()

        assert (1, {"roots": []}) == ((said := await own.wire.hear())["id"], said["result"])


@spec("2025-11-25", "basic/utilities/cancellation#behavior-requirements")
@with_handshakes
async def test_a_server_does_not_cancel_what_the_client_asks(revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.tell("notifications/cancelled", requestId=asked["id"])
        await own.wire.rest()
        assert not errand.is_over

        own.wire.result(asked, {"content": []})

        assert [] == (await errand.outcome()).content


# --- without a session


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "d5bcfc3f")
@spec("2026-07-28", "basic/transports/stdio#sending-messages", "b2f3502d")
@spec("2026-07-28", "basic/transports/stdio#receiving-messages")
@without_handshakes
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("roots/list", None),
        ("ping", None),
        ("elicitation/create", FORM),
        ("no/such", {}),
        ("sampling/createMessage", 5),
    ],
)
@on_both_loops
async def test_requests_of_a_server_without_sessions_are_not_answered(method: str, params: Any, revision: str) -> None:
    called: list[Any] = []
    function: Callable[..., Any] = lambda *given: called.append(given)  # noqa: E731 (one for many)
    async with opened(revision, elicit=function, roots=function, sample=function) as own:
        more = {} if params is None else {"params": params}
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": method, **more})

        assert [] == await own.wire.rest()

    assert [] == called


@spec("2026-07-28", "basic/transports/stdio#receiving-messages")
@without_handshakes
async def test_the_client_goes_on_after_a_request_that_it_did_not_want(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(revision) as own:
        own.wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        result = {"resultType": "complete", "content": []}

        assert [] == (await own.answered(own.client.call_tool("x"), result)).content

    assert [
        "the server sent the request roots/list, but its revision does not allow requests of a server; it is ignored"
    ] == [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@spec("2025-11-25", "schema#elicitrequesturlparams", "c38b218f")
@pytest.mark.parametrize("identity", ["", " \u00e4=\n", "null", "0"])
async def test_the_id_of_an_elicitation_reaches_the_handler_as_it_came(identity: str) -> None:
    bindings = registry.revision("2025-11-25").bindings()
    seen: list[str] = []

    class Handlers(bindings.client.ClientHandlers):  # type: ignore[misc, name-defined]
        async def elicit(self, params: Any, context: Any, /) -> Any:
            del context
            seen.append(params.elicitation_id)
            return bindings.models.ElicitResult(action="decline")

    declared = {"elicitation": {"url": {}}}
    async with opened("2025-11-25", native_revision="2025-11-25", handlers=Handlers(), capabilities=declared) as own:
        await own.wire.ask(1, "elicitation/create", {**PAGE, "elicitationId": identity})

    assert [identity] == seen
