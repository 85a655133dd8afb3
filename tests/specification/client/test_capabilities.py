"""What the client declares: what its functions or handlers do, in the terms of each revision, and nothing else."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from mcpgen import Server, UnsupportedByPeer, UsageError, connect
from mcpgen.generated import registry
from mcpgen.runtime.api import connect_options
from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import LABELS, everywhere, since, spec, without_handshakes
from tests.specification.client.scripted_server import META, opened

pytestmark = pytest.mark.anyio


def answer(*_: Any) -> Any:
    raise NotImplementedError


FORMS = since("2025-06-18")
PAGES = since("2025-11-25")


def elicitation(revision: str, modes: dict[str, Any]) -> dict[str, Any]:
    """Return what is declared of *modes*: before there were any, forms were all there was."""
    if revision in PAGES:
        return {"elicitation": modes}
    return {"elicitation": {}} if revision in FORMS and "form" in modes else {}


@spec("2024-11-05", "basic/lifecycle#capability-negotiation")
@spec("2025-11-25", "basic/lifecycle#capability-negotiation")
@spec("2026-07-28", "basic/index#meta")
@everywhere
async def test_a_client_that_answers_nothing_declares_nothing(revision: str) -> None:
    async with opened(revision, log=answer) as own:
        assert {} == own.capabilities


@spec("2024-11-05", "client/roots#capabilities")
@spec("2025-11-25", "client/roots#capabilities", "67138588")
@spec("2026-07-28", "client/roots#capabilities", "5b343b1f")
@everywhere
async def test_roots_that_never_change_are_declared_so(revision: str) -> None:
    async with opened(revision, roots=[models.Root(uri="file:///a")]) as own:
        assert {"roots": {}} == own.capabilities


@spec("2024-11-05", "client/roots#capabilities")
@spec("2025-11-25", "client/roots#capabilities")
@spec("2026-07-28", "client/roots#capabilities")
@everywhere
async def test_roots_that_may_change_are_declared_so_where_changes_are_told(revision: str) -> None:
    async with opened(revision, roots=lambda _: []) as own:
        assert {"roots": {} if revision == LABELS[-1] else {"listChanged": True}} == own.capabilities


@spec("2024-11-05", "client/roots#capabilities")
@spec("2025-11-25", "client/roots#capabilities")
@spec("2026-07-28", "client/roots#capabilities")
@everywhere
@pytest.mark.parametrize("native_revision", LABELS)
async def test_handlers_of_any_home_declare_that_their_roots_change_where_that_is_told(
    native_revision: str, revision: str
) -> None:
    async def list_roots(own: Any, params: Any, context: Any) -> Any:
        raise NotImplementedError

    base = registry.revision(native_revision).bindings().client.ClientHandlers
    handlers = type("Handlers", (base,), {"list_roots": list_roots})()
    async with opened(
        revision, native_revision=native_revision, handlers=handlers, capabilities={"roots": {"listChanged": True}}
    ) as own:
        assert {"roots": {} if revision == LABELS[-1] else {"listChanged": True}} == own.capabilities


@spec("2024-11-05", "client/sampling#capabilities")
@spec("2025-11-25", "client/sampling#capabilities", "0c891a20")
@spec("2026-07-28", "client/sampling#capabilities", "8c604780")
@everywhere
async def test_sampling_is_declared_without_tools(revision: str) -> None:
    async with opened(revision, sample=answer) as own:
        assert {"sampling": {}} == own.capabilities


@spec("2026-07-28", "client/sampling#tools-in-sampling", "17466750")
@spec("2024-11-05", "client/sampling#capabilities")
@spec("2025-11-25", "client/sampling#capabilities")
@spec("2026-07-28", "client/sampling#capabilities")
@everywhere
async def test_tools_for_sampling_are_declared_on_request_where_there_are_any(revision: str) -> None:
    async with opened(revision, sample=answer, capabilities={"sampling": {"tools": {}}}) as own:
        assert {"sampling": {"tools": {}} if revision in PAGES else {}} == own.capabilities


@spec("2025-06-18", "client/elicitation#capabilities")
@spec("2025-11-25", "client/elicitation#capabilities", "905ff6fd")
@spec("2026-07-28", "client/elicitation#capabilities", "7d6be109", "2946d2ac")
@everywhere
@pytest.mark.parametrize(
    ("options", "modes"),
    [
        ({"elicit": answer}, {"form": {}}),
        ({"elicit_url": answer}, {"url": {}}),
        ({"elicit": answer, "elicit_url": answer}, {"form": {}, "url": {}}),
    ],
    ids=["form", "url", "both"],
)
async def test_the_modes_of_elicitation_are_declared_where_there_are_any(
    options: dict[str, Any], modes: dict[str, Any], revision: str
) -> None:
    async with opened(revision, **options) as own:
        assert elicitation(revision, modes) == own.capabilities


@spec("2025-11-25", "client/elicitation#capabilities", "7d6be109")
@spec("2026-07-28", "client/elicitation#capabilities", "7d6be109")
@pytest.mark.parametrize(
    ("options", "modes", "missing"),
    [
        (
            {"elicit": answer},
            {"url": {}},
            "`capabilities` declares elicitation.url, which needs a function; pass `elicit_url`",
        ),
        (
            {"elicit_url": answer},
            {"form": {}},
            "`capabilities` declares elicitation.form, which needs a function; pass `elicit`",
        ),
        ({}, {"form": {}, "url": {}}, "`capabilities` declares elicitation.form"),
        ({}, {}, "the capability elicitation is declared, but there is no handler of elicitation/create"),
    ],
    ids=["url", "form", "both", "none"],
)
async def test_a_mode_of_elicitation_is_declared_only_with_its_function(
    options: dict[str, Any], modes: dict[str, Any], missing: str
) -> None:
    with pytest.raises(UsageError, match=missing):
        await connect(Server("tests"), **options, capabilities={"elicitation": modes})


@spec("2025-11-25", "basic/utilities/tasks#capabilities", "b7a66ce6")
@pytest.mark.parametrize(
    ("tasks", "method"), [({}, "tasks/get"), ({"list": {}}, "tasks/list"), ({"cancel": {}}, "tasks/cancel")]
)
async def test_tasks_of_a_client_are_declared_only_with_their_handlers(tasks: dict[str, Any], method: str) -> None:
    base = registry.revision("2025-11-25").bindings().client.ClientHandlers
    names = {
        "tasks/get": "get_task",
        "tasks/result": "get_task_payload",
        "tasks/list": "list_tasks",
        "tasks/cancel": "cancel_task",
    }

    async def handler(own: Any, params: Any, context: Any) -> Any:
        raise NotImplementedError

    handlers = type("Handlers", (base,), {name: handler for each, name in names.items() if each != method})()

    with pytest.raises(UsageError, match=f"is declared, but there is no handler of {method}"):
        await connect(Server("tests"), native_revision="2025-11-25", handlers=handlers, capabilities={"tasks": tasks})


@spec("2025-11-25", "basic/lifecycle#initialization", "4bfe9e80")
@spec("2025-11-25", "basic/lifecycle#capability-negotiation")
@spec("2026-07-28", "basic/index#meta")
@everywhere
async def test_everything_at_once_is_the_sum_of_its_parts(revision: str) -> None:
    more = {"experimental": {"x": {}}}
    async with opened(
        revision, elicit=answer, elicit_url=answer, sample=answer, roots=[], log=answer, capabilities=more
    ) as own:
        found = elicitation(revision, {"form": {}, "url": {}})

        assert {"roots": {}, "sampling": {}, **more, **found} == own.capabilities


@spec("2026-07-28", "basic/versioning#extension-negotiation")
@everywhere
async def test_extensions_are_declared_where_there_are_any(revision: str) -> None:
    more = {"extensions": {"com.example/x": {"y": 1}}}
    async with opened(revision, capabilities=more) as own:
        assert (more if revision == LABELS[-1] else {}) == own.capabilities


@spec("2024-11-05", "basic/lifecycle#capability-negotiation")
@spec("2025-11-25", "basic/lifecycle#capability-negotiation")
@spec("2026-07-28", "basic/index#meta")
@pytest.mark.parametrize(
    ("revision", "name", "capability"),
    [
        *((each, "list_roots", "roots") for each in LABELS),
        *((each, "create_message", "sampling") for each in LABELS),
        *((each, "elicit", "elicitation") for each in FORMS),
    ],
)
async def test_handlers_declare_what_they_implement(revision: str, name: str, capability: str) -> None:
    base = registry.revision(revision).bindings().client.ClientHandlers

    async def handler(own: Any, params: Any, context: Any) -> Any:
        raise NotImplementedError

    handlers = type("Handlers", (base,), {name: handler})()
    async with opened(revision, native_revision=revision, handlers=handlers) as own:
        assert {capability: {}} == own.capabilities


@spec("2024-11-05", "basic/lifecycle#capability-negotiation")
@spec("2025-11-25", "basic/lifecycle#capability-negotiation")
@spec("2026-07-28", "basic/index#meta")
@everywhere
@pytest.mark.parametrize("native_revision", LABELS)
async def test_handlers_that_implement_nothing_declare_nothing_to_anybody(native_revision: str, revision: str) -> None:
    async with opened(revision, native_revision=native_revision) as own:
        assert {} == own.capabilities


@spec("2024-11-05", "basic/lifecycle#initialization")
@spec("2025-06-18", "basic/lifecycle#initialization")
@spec("2025-11-25", "basic/lifecycle#initialization", "b2c87217")
@spec("2026-07-28", "basic/index#meta")
@everywhere
async def test_a_client_names_itself_with_what_the_revision_knows(revision: str) -> None:
    async with opened(revision, name="tests", version="7", title="Tests") as own:
        title = {"title": "Tests"} if revision in FORMS else {}

        assert {"name": "tests", "version": "7", **title} == own.info


@spec("2026-07-28", "changelog#major-changes", "e18d1aa3")
@spec("2026-07-28", "schema#requestmetaobject", "1034330d")
@spec("2026-07-28", "basic/patterns/mrtr", "1031f1f8")
@spec("2026-07-28", "server/prompts", "727a069e")
@spec("2026-07-28", "server/resources", "37c61b04")
@spec("2026-07-28", "server/tools", "15f7d706")
@spec("2026-07-28", "server/utilities/completion", "17f812b9")
@spec("2026-07-28", "server/utilities/pagination", "9963e3a8")
@spec("2026-07-28", "basic/index#meta", "37457641", "dd696404")
@spec("2026-07-28", "basic/transports/stdio#request-metadata")
@without_handshakes
async def test_every_request_without_a_session_says_who_asks(revision: str) -> None:
    async with opened(revision, roots=[], name="tests", version="7") as own:
        client, ref = own.client, models.PromptReference(name="p")
        for work in (
            client.call_tool("x"),
            client.read_resource("a:b"),
            client.get_prompt("p"),
            client.complete(ref, "a", ""),
            client.list_tools(),
            client.list_prompts(cursor="c"),
            client.list_resources(),
            client.list_resource_templates(),
            client.ping(),
            client.request_json("tools/list"),
            client.request_json("tools/list", {"_meta": {"com.example/x": 1}}),
            client.listen(tools=True).__aenter__(),
        ):
            _, asked = await own.asked(work)

            meta = asked["params"]["_meta"]
            meta.pop("com.example/x", None)
            assert {
                META + "protocolVersion": revision,
                META + "clientInfo": {"name": "tests", "version": "7"},
                META + "clientCapabilities": {"roots": {}},
            } == meta


@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation")
@everywhere
async def test_metadata_of_the_caller_goes_with_a_request(revision: str) -> None:
    async with opened(revision) as own:
        _, asked = await own.asked(own.client.call_tool("x", meta={"com.example/x": {"y": 1}}))

    assert {"y": 1} == asked["params"]["_meta"]["com.example/x"]


DECLARABLE = ("tools", "prompts", "resources", "logging", "completions")
CAPABILITIES = pytest.mark.parametrize(
    ("capability", "call"),
    [
        ("tools", lambda client: client.call_tool("x")),
        ("tools", lambda client: client.list_tools()),
        ("prompts", lambda client: client.list_prompts()),
        ("prompts", lambda client: client.get_prompt("x")),
        ("resources", lambda client: client.list_resources()),
        ("resources", lambda client: client.list_resource_templates()),
        ("resources", lambda client: client.read_resource("a:b")),
        ("logging", lambda client: client.set_log_level("info")),
        ("completions", lambda client: client.complete(models.PromptReference(name="p"), "a", "")),
    ],
)


async def check_sent(own: Any, capability: str, call: Any) -> None:
    if capability == "logging" and own.client.era == "stateless":
        await call(own.client)  # the level is sent with each request from now on
    else:
        await own.asked(call(own.client))


@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation", "fd7099db")
@spec("2026-07-28", "server/discover#discoverresult")
@everywhere
@CAPABILITIES
async def test_what_the_server_has_not_declared_is_not_asked_of_it_where_that_is_forbidden(
    capability: str, call: Any, revision: str
) -> None:
    can = {key: {} for key in DECLARABLE if key != capability}
    async with opened(revision, can=can) as own:
        is_request = capability != "logging" or own.client.era == "handshake"
        if revision not in ("2025-06-18", "2025-11-25") and is_request:
            await own.asked(call(own.client))
            return
        with pytest.raises(UnsupportedByPeer, match='pass undeclared="ask" to connect'):
            await call(own.client)

        assert [] == await own.wire.rest()


@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2026-07-28", "server/discover#discoverresult")
@everywhere
@CAPABILITIES
@pytest.mark.parametrize("options", [{"undeclared": "refuse"}, {"strict": True}], ids=str)
async def test_what_the_server_has_not_declared_is_not_asked_of_it_on_request(
    options: dict[str, Any], capability: str, call: Any, revision: str
) -> None:
    can = {key: {} for key in DECLARABLE if key != capability}
    async with opened(revision, can=can, **options) as own:
        if (capability, revision) == ("completions", LABELS[0]):  # it came before its capability
            await own.asked(call(own.client))
            return
        with pytest.raises(UnsupportedByPeer, match="has not declared"):
            await call(own.client)

        assert [] == await own.wire.rest()


@spec("2024-11-05", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2026-07-28", "server/discover#discoverresult")
@everywhere
@CAPABILITIES
@pytest.mark.parametrize("strict", [False, True])
async def test_what_the_server_has_not_declared_is_asked_of_it_on_request(
    strict: bool,  # noqa: FBT001 (a case)
    capability: str,
    call: Any,
    revision: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    can = {key: {} for key in DECLARABLE if key != capability}
    is_forbidden = revision in ("2025-06-18", "2025-11-25")
    with pytest.raises(AssertionError, match="has not declared") if is_forbidden else nullcontext():  # the recorder
        async with opened(revision, can=can, undeclared="ask", strict=strict) as own:
            await check_sent(own, capability, call)

    is_older_than_its_capability = (capability, revision) == ("completions", LABELS[0])
    assert is_older_than_its_capability or any("is sent anyway" in each for each in caplog.messages)


@spec("2026-07-28", "basic/versioning#extension-negotiation", "3c7bc6e8")
@spec("2026-07-28", "schema#clientcapabilities", "5c09033f")
@pytest.mark.parametrize("name", ["noprefix", "/x", "1a.b/x", "a..b/x", "a-/x", "a.b/", "a.b/-x", "a.b/x y", "a.b/x/y"])
async def test_an_extension_whose_identifier_has_no_valid_prefix_and_name_is_not_declared(name: str) -> None:
    for native_revision in LABELS:
        with pytest.raises(UsageError, match="is not the identifier of an extension"):
            connect("server", native_revision=native_revision, capabilities={"extensions": {name: {}}})
    with pytest.raises(UsageError, match="is not the identifier of an extension"):
        connect("server", extensions=[name])


@spec("2025-11-25", "basic/lifecycle#operation")
@pytest.mark.parametrize("options", [{"undeclared": "never"}, {"strict": "yes"}], ids=str)
async def test_a_wrong_option_of_reading_is_reported(options: Any) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        connect("server", **options)


@spec("2024-11-05", "client/roots#root-list-changes")
@spec("2025-11-25", "client/roots#root-list-changes", "de3fa91f")
@everywhere
async def test_that_roots_have_changed_is_told_where_it_is_heard(revision: str) -> None:
    async with opened(revision, roots=lambda _: []) as own:
        await own.client.roots_changed()

        told = [{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]
        assert ([] if revision == LABELS[-1] else told) == await own.wire.rest()


@spec("2024-11-05", "client/roots#root-list-changes")
@spec("2025-11-25", "client/roots#root-list-changes")
@pytest.mark.parametrize("revision", LABELS[:-1])
@pytest.mark.parametrize("options", [{}, {"roots": []}], ids=str)
async def test_that_roots_have_changed_is_not_told_by_who_has_not_declared_it(
    options: dict[str, Any], revision: str
) -> None:
    async with opened(revision, **options) as own:
        with pytest.raises(UsageError, match="function"):
            await own.client.roots_changed()

        assert [] == await own.wire.rest()


@spec("2026-07-28", "deprecated", "4cf4ae83")
def test_a_developer_is_warned_once_of_the_deprecated_features_of_a_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcpgen.client")
    monkeypatch.setattr(connect_options, "_warned", set())
    connect(Server("s"), roots=[], sample=answer)

    assert [] == caplog.messages

    monkeypatch.setattr(connect_options, "sys", SimpleNamespace(flags=SimpleNamespace(dev_mode=True)))
    for _ in range(2):
        connect(Server("s"), roots=[], sample=answer, elicit=answer)

    assert ["roots", "sampling"] == [each.split()[2] for each in caplog.messages]
