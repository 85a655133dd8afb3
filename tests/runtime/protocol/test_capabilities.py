"""What peers declare, what calls to them need, and what servers offer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol import capabilities as module
from mcpgen.runtime.protocol.capabilities import CLIENT_CAPABILITIES, Peer, client_peer, offers
from mcpgen.runtime.protocol.missing_capabilities import missing_capabilities, missing_task_capability
from mcpgen.runtime.protocol.newest import NEWEST

if TYPE_CHECKING:
    from collections.abc import Mapping

LABELS = [each.label for each in REVISIONS]
FROM_ELICITATION = LABELS[LABELS.index("2025-06-18") :]
FROM_MODES = LABELS[LABELS.index("2025-11-25") :]
MODELS = bindings(NEWEST).models


def client(revision: str, capabilities: bytes = b"{}") -> Peer:
    return client_peer(revision, Raw(capabilities), UNSET)


# --- who is at the other end


def test_a_peer_is_described_in_the_terms_of_the_newest_revision() -> None:
    assert MODELS.Implementation is module.models.Implementation  # type: ignore[attr-defined]  # what it imports


def test_a_peer_has_what_it_wrote_and_what_that_is_in_the_newest_revision() -> None:
    written = Raw(b'{"roots":{"listChanged":true},"tasks":{"list":{}},"sampling":{"tools":{}},"x":1}')
    peer = client_peer("2025-11-25", written, Raw(b'{"name":"c","version":"1","title":"C"}'))

    assert ("2025-11-25", "handshake") == (peer.revision, peer.era)
    assert MODELS.Implementation(name="c", version="1", title="C") == peer.info
    assert {} == peer.capabilities.roots
    assert MODELS.ClientCapabilitiesSampling(tools={}) == peer.capabilities.sampling
    assert {"roots": {"listChanged": True}, "tasks": {"list": {}}, "sampling": {"tools": {}}, "x": 1} == peer.declared


@pytest.mark.parametrize("revision", LABELS)
def test_a_peer_that_declares_nothing_can_do_nothing(revision: str) -> None:
    peer = client_peer(revision, UNSET, UNSET)

    assert MODELS.ClientCapabilities() == peer.capabilities
    assert {} == peer.declared
    assert peer.info is None


def test_what_a_revision_does_not_define_is_not_declared_in_it() -> None:
    peer = client("2024-11-05", b'{"elicitation":{},"roots":{}}')

    assert UNSET is peer.capabilities.elicitation
    assert {} == peer.capabilities.roots


@pytest.mark.spec("2026-07-28", "basic/index#meta")
@pytest.mark.parametrize("revision", LABELS)
@pytest.mark.parametrize(
    ("capabilities", "place"),
    [
        (b"5", "ClientCapabilities"),
        (b'{"roots":5}', "/roots"),
        (b'{"experimental":{"a":1}}', "/experimental"),
        (b"{", "ClientCapabilities"),
        (
            b'{"sampling":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
            "clientInfo and capabilities have more than 65536 bytes",
        ),
    ],
    ids=["number", "roots", "experimental", "truncated", "deep"],
)
def test_capabilities_that_the_revision_does_not_allow_are_refused(
    revision: str, capabilities: bytes, place: str
) -> None:
    """2026-07-28, basic/index, "_meta": clientCapabilities is a ClientCapabilities; malformed ones are -32602."""
    with pytest.raises(RequestError, match=place) as caught:
        client(revision, capabilities)

    assert -32602 == caught.value.code
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("revision", LABELS)
def test_a_name_that_the_revision_does_not_allow_is_refused(revision: str) -> None:
    with pytest.raises(RequestError, match="Implementation"):
        client_peer(revision, UNSET, Raw(b'{"name":"c"}'))


def test_a_peer_that_says_the_same_again_is_the_same() -> None:
    said = b'{"roots":{}}'

    assert client("2025-11-25", said) is client("2025-11-25", bytes(bytearray(said)))
    assert client("2025-11-25", said) is not client("2025-06-18", said)


def test_a_peer_that_says_too_much_is_not_remembered() -> None:
    said = b'{"experimental":{"a":{"x":"' + b"x" * 5000 + b'"}}}'
    before = module._cached_client_peer.cache_info().currsize

    assert client("2025-11-25", said) == client("2025-11-25", said)
    assert before == module._cached_client_peer.cache_info().currsize


def test_nobody_can_change_what_a_peer_declared() -> None:
    with pytest.raises(TypeError):
        client("2025-11-25").declared["roots"] = {}  # type: ignore[index]  # that is what is tested


# --- what calls need


@pytest.mark.spec("2026-07-28", "client/roots#implementation-guidelines", "e623bc1d")
@pytest.mark.spec("2024-11-05", "client/roots#capabilities")
@pytest.mark.spec("2025-11-25", "client/roots#capabilities")
@pytest.mark.spec("2026-07-28", "client/roots#capabilities")
@pytest.mark.parametrize("revision", LABELS)
def test_roots_are_asked_for_where_they_are_declared(revision: str) -> None:
    """Every revision, client/roots, "Capabilities": clients that support roots MUST declare it."""
    assert {"roots": {}} == missing_capabilities(client(revision), "roots/list", {})
    assert missing_capabilities(client(revision, b'{"roots":{}}'), "roots/list", {}) is None


@pytest.mark.spec("2024-11-05", "client/sampling#capabilities")
@pytest.mark.spec("2025-11-25", "client/sampling#capabilities")
@pytest.mark.spec("2026-07-28", "client/sampling#capabilities")
@pytest.mark.parametrize("revision", LABELS)
def test_a_model_is_sampled_where_that_is_declared(revision: str) -> None:
    """Every revision, client/sampling, "Capabilities": clients that support sampling MUST declare it."""
    assert {"sampling": {}} == missing_capabilities(client(revision), "sampling/createMessage", {"messages": []})
    assert (
        missing_capabilities(client(revision, b'{"sampling":{}}'), "sampling/createMessage", {"includeContext": "none"})
        is None
    )


@pytest.mark.spec("2025-11-25", "client/sampling#tools-in-sampling")
@pytest.mark.spec("2026-07-28", "client/sampling#tools-in-sampling", "cb8493c1")
@pytest.mark.parametrize("revision", FROM_MODES)
@pytest.mark.parametrize("params", [{"tools": []}, {"toolChoice": {"mode": "auto"}}])
def test_tools_are_given_to_a_model_where_that_is_declared(revision: str, params: dict[str, object]) -> None:
    """2025-11-25, client/sampling: no tool-enabled requests to clients that have not declared sampling.tools."""
    expected: dict[str, object] = {"sampling": {"tools": {}}}

    assert expected == missing_capabilities(client(revision), "sampling/createMessage", params)
    assert expected == missing_capabilities(
        client(revision, b'{"sampling":{"context":{}}}'), "sampling/createMessage", params
    )
    assert (
        missing_capabilities(client(revision, b'{"sampling":{"tools":{}}}'), "sampling/createMessage", params) is None
    )


@pytest.mark.spec("2025-11-25", "client/sampling#capabilities")
@pytest.mark.spec("2026-07-28", "client/sampling#capabilities")
@pytest.mark.parametrize("revision", FROM_MODES)
@pytest.mark.parametrize("context", ["thisServer", "allServers"])
def test_the_context_of_servers_is_included_where_that_is_declared(revision: str, context: str) -> None:
    """2025-11-25, client/sampling, "Capabilities": SHOULD NOT be used unless the client declares sampling.context."""
    params = {"includeContext": context}

    assert {"sampling": {"context": {}}} == missing_capabilities(
        client(revision, b'{"sampling":{}}'), "sampling/createMessage", params
    )
    assert (
        missing_capabilities(client(revision, b'{"sampling":{"context":{}}}'), "sampling/createMessage", params) is None
    )


@pytest.mark.spec("2024-11-05", "client/sampling#capabilities")
@pytest.mark.parametrize("revision", LABELS[: LABELS.index("2025-11-25")])
def test_context_needs_no_more_than_sampling_where_no_more_can_be_declared(revision: str) -> None:
    """2024-11-05 to 2025-06-18, client/sampling, "Capabilities": there is nothing inside of it."""
    params = {"includeContext": "allServers"}

    assert missing_capabilities(client(revision, b'{"sampling":{}}'), "sampling/createMessage", params) is None
    assert {"sampling": {}} == missing_capabilities(client(revision), "sampling/createMessage", params)


@pytest.mark.spec("2025-06-18", "client/elicitation#capabilities")
@pytest.mark.parametrize("revision", FROM_ELICITATION)
def test_a_user_is_asked_where_that_is_declared(revision: str) -> None:
    """2025-06-18 and later, client/elicitation, "Capabilities": clients that support elicitation MUST declare it."""
    found = missing_capabilities(client(revision), "elicitation/create", {"message": ""})

    assert found is not None
    assert ["elicitation"] == list(found)


@pytest.mark.spec("2025-11-25", "client/elicitation#capabilities")
@pytest.mark.spec("2026-07-28", "client/elicitation#capabilities")
@pytest.mark.parametrize("revision", FROM_MODES)
@pytest.mark.parametrize(
    ("declared", "form", "url"),
    [
        (b'{"elicitation":{}}', True, False),
        (b'{"elicitation":{"form":{}}}', True, False),
        (b'{"elicitation":{"url":{}}}', False, True),
        (b'{"elicitation":{"form":{},"url":{}}}', True, True),
        (b'{"elicitation":{"x-unknown":{}}}', True, False),
    ],
)
def test_a_user_is_asked_in_a_mode_that_is_declared(revision: str, declared: bytes, *, form: bool, url: bool) -> None:
    """2025-11-25, client/elicitation, "Capabilities": an empty object means form mode; other modes MUST NOT be sent."""
    peer = client(revision, declared)
    of_form: dict[str, object] = {"elicitation": {"form": {}}}
    of_url: dict[str, object] = {"elicitation": {"url": {}}}

    assert (None if form else of_form) == missing_capabilities(peer, "elicitation/create", {"message": ""})
    assert (None if form else of_form) == missing_capabilities(
        peer, "elicitation/create", {"mode": "form", "message": ""}
    )
    assert (None if url else of_url) == missing_capabilities(
        peer, "elicitation/create", {"mode": "url", "message": "", "url": ""}
    )


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#client-capabilities")
@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create"])
def test_a_request_runs_as_a_task_where_that_is_declared(method: str) -> None:
    """2025-11-25, basic/utilities/tasks, "Capability Negotiation": a request type that is not listed has no tasks."""
    first, second = method.split("/")
    able = f'{{"sampling":{{}},"elicitation":{{}},"tasks":{{"requests":{{"{first}":{{"{second}":{{}}}}}}}}}}'
    expected: dict[str, object] = {"tasks": {"requests": {first: {second: {}}}}}

    unable = client("2025-11-25", b'{"sampling":{},"elicitation":{},"tasks":{}}')
    assert missing_task_capability(client("2025-11-25", able.encode()), method) is None
    assert expected == missing_task_capability(unable, method)
    assert missing_capabilities(unable, method, {"task": {}}) is None  # a receiver ignores it


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#client-capabilities")
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("tasks/get", {"tasks": {}}),
        ("tasks/result", {"tasks": {}}),
        ("tasks/list", {"tasks": {"list": {}}}),
        ("tasks/cancel", {"tasks": {"cancel": {}}}),
    ],
)
def test_tasks_are_asked_about_where_that_is_declared(method: str, expected: dict[str, object]) -> None:
    """2025-11-25, basic/utilities/tasks, "Capability Negotiation": tasks.list and tasks.cancel control those."""
    assert expected == missing_capabilities(client("2025-11-25"), method, {})
    assert missing_capabilities(client("2025-11-25", b'{"tasks":{"list":{},"cancel":{}}}'), method, {}) is None


@pytest.mark.parametrize("revision", LABELS)
def test_a_ping_needs_nothing(revision: str) -> None:
    assert missing_capabilities(client(revision), "ping", {}) is None


def test_all_that_a_request_lacks_is_named_at_once() -> None:
    expected = {"sampling": {"tools": {}, "context": {}}}
    params: Mapping[str, object] = {"tools": [], "includeContext": "allServers"}

    assert expected == missing_capabilities(client("2025-11-25"), "sampling/createMessage", params)


@pytest.mark.spec("2026-07-28", "schema#missingrequiredclientcapabilityerror")
@pytest.mark.parametrize("params", [{"mode": "url"}, {"message": ""}])
def test_what_is_lacking_is_what_an_error_of_2026_07_28_lists(params: dict[str, object]) -> None:
    """2026-07-28, schema, MissingRequiredClientCapabilityError: requiredCapabilities is a ClientCapabilities."""
    found = missing_capabilities(client("2026-07-28"), "elicitation/create", params)

    assert MODELS.ClientCapabilities() != msgspec.convert(found, MODELS.ClientCapabilities)


# --- what servers offer

EVERYTHING: dict[str, object] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
    "tasks": {"list": {}, "cancel": {}},
}
LITTLE: dict[str, object] = {"prompts": {}, "resources": {"subscribe": False}, "tools": {"listChanged": False}}


@pytest.mark.parametrize("revision", LABELS)
def test_a_server_that_declares_everything_offers_all_there_is(revision: str) -> None:
    methods = bindings(revision).methods
    names = [*methods.CLIENT_REQUESTS, *methods.SERVER_NOTIFICATIONS]

    assert [] == [name for name in names if not offers(EVERYTHING, revision, name)]


@pytest.mark.spec("2024-11-05", "server/resources#capabilities")
@pytest.mark.spec("2025-11-25", "server/resources#capabilities")
@pytest.mark.spec("2025-11-25", "server/utilities/logging#capabilities")
@pytest.mark.parametrize("revision", LABELS)
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("tools/list", True),
        ("tools/call", True),
        ("prompts/get", True),
        ("resources/read", True),
        ("resources/subscribe", False),
        ("resources/unsubscribe", False),
        ("logging/setLevel", False),
        ("notifications/message", False),
        ("notifications/resources/updated", False),
        ("notifications/resources/list_changed", False),
        ("notifications/prompts/list_changed", False),
        ("notifications/tools/list_changed", False),
    ],
)
def test_a_server_offers_what_it_declares(revision: str, method: str, *, expected: bool) -> None:
    """2024-11-05 and later, server/resources, "Capabilities": subscribe and listChanged are optional features."""
    methods = bindings(revision).methods
    exists = method in methods.CLIENT_REQUESTS or method in methods.SERVER_NOTIFICATIONS

    assert (expected and exists) == offers(LITTLE, revision, method)


@pytest.mark.parametrize("revision", LABELS)
def test_a_server_that_declares_nothing_still_says_how_far_it_is(revision: str) -> None:
    assert offers({}, revision, "notifications/progress")
    assert offers({}, revision, "notifications/cancelled")
    assert not offers({}, revision, "tools/list")


@pytest.mark.spec("2024-11-05", "server/utilities/completion")
@pytest.mark.spec("2025-03-26", "server/utilities/completion#capabilities")
def test_completions_are_declared_since_there_is_a_capability_for_them() -> None:
    """2025-03-26, server/utilities/completion, "Capabilities": MUST be declared; 2024-11-05 has no such thing."""
    assert offers({}, "2024-11-05", "completion/complete")
    assert [False] * 4 == [offers({}, revision, "completion/complete") for revision in LABELS[1:]]


@pytest.mark.parametrize("method", ["tasks/get", "roots/list", "resources/subscribe", "ping", "x", ""])
def test_a_method_that_the_revision_does_not_have_is_not_offered(method: str) -> None:
    assert not offers(EVERYTHING, "2026-07-28", method)


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#server-capabilities")
def test_a_server_with_tasks_need_not_list_them() -> None:
    """2025-11-25, basic/utilities/tasks, "Server Capabilities": tasks.list and tasks.cancel stand for themselves."""
    declared: dict[str, object] = {"tasks": {"requests": {"tools": {"call": {}}}}}

    assert offers(declared, "2025-11-25", "tasks/get")
    assert offers(declared, "2025-11-25", "notifications/tasks/status")
    assert not offers(declared, "2025-11-25", "tasks/list")
    assert not offers(declared, "2025-11-25", "tasks/cancel")


@pytest.mark.parametrize("revision", LABELS)
def test_every_request_of_a_server_but_ping_needs_a_capability(revision: str) -> None:
    methods = bindings(revision).methods
    requests = {*methods.SERVER_REQUESTS, *methods.INPUT_REQUESTS}

    assert requests - {"ping"} <= set(CLIENT_CAPABILITIES)
