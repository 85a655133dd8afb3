"""What a server tells without wanting an answer, handed to the handlers that implement it."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpgen import RequestRefused
from mcpgen.generated import registry
from tests.specification.citation import LABELS, everywhere, since, spec, with_handshakes
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

TOLD = {
    "logging_message": ("notifications/message", {"level": "info", "data": {"a": 1}}),
    "tool_list_changed": ("notifications/tools/list_changed", {}),
    "prompt_list_changed": ("notifications/prompts/list_changed", {}),
    "resource_list_changed": ("notifications/resources/list_changed", {}),
    "resource_updated": ("notifications/resources/updated", {"uri": "a:b"}),
    "cancelled": ("notifications/cancelled", {"requestId": 99, "reason": "late"}),
    "progress": ("notifications/progress", {"progressToken": "nobody's", "progress": 1, "total": 2.5}),
}


def listening(native_revision: str, *names: str) -> tuple[Any, list[Any]]:
    """Return handlers of *home* that note what they are told, and their notes."""
    told: list[Any] = []

    async def note(own: Any, params: Any, context: Any) -> None:
        del own
        told.append((context.method, params))

    base = registry.revision(native_revision).bindings().client.ClientHandlers
    return type("Handlers", (base,), dict.fromkeys(names, note))(), told


@spec("2024-11-05", "basic/messages#notifications")
@spec("2025-11-25", "basic/index#notifications")
@with_handshakes
@pytest.mark.parametrize("native_revision", LABELS)
@pytest.mark.parametrize("name", TOLD)
async def test_handlers_of_every_home_are_told_what_a_server_tells_in_a_session(
    name: str, native_revision: str, revision: str
) -> None:
    handlers, told = listening(native_revision, name)
    method, params = TOLD[name]
    async with opened(revision, native_revision=native_revision, handlers=handlers) as own:
        own.wire.tell(method, **params)

        assert [] == await own.wire.rest()

    assert [method] == [each for each, _ in told]


@spec("2026-07-28", "basic/transports/stdio#receiving-messages")
@pytest.mark.parametrize("native_revision", LABELS)
@pytest.mark.parametrize("name", ["logging_message", "progress"])
async def test_handlers_of_every_home_are_told_what_a_server_tells_about_requests(
    name: str, native_revision: str
) -> None:
    handlers, told = listening(native_revision, name)
    method, params = TOLD[name]
    async with opened(LABELS[-1], native_revision=native_revision, handlers=handlers) as own:
        own.wire.tell(method, **params)

        assert [] == await own.wire.rest()

    assert [method] == [each for each, _ in told]


def visiting() -> tuple[Any, list[Any]]:
    """Return handlers that accept each URL and note which elicitations are completed, and their notes."""
    handlers, told = listening("2025-11-25", "elicitation_complete")

    async def accept(own: Any, params: Any, context: Any) -> Any:
        del own, params, context
        return registry.revision("2025-11-25").bindings().models.ElicitResult(action="accept")

    return type("Handlers", (type(handlers),), {"elicit": accept})(), told


PAGE = {"mode": "url", "message": "In.", "url": "https://example.com/in", "elicitationId": "e1"}


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "4ea2c8ef")
@on_both_loops
async def test_that_a_page_was_visited_is_told_once_and_other_pages_are_ignored() -> None:
    handlers, told = visiting()
    options = {"native_revision": "2025-11-25", "handlers": handlers, "capabilities": {"elicitation": {"url": {}}}}
    async with opened("2025-11-25", **options) as own:
        own.wire.tell("notifications/elicitation/complete", elicitationId="e1")  # not asked for yet
        assert {"action": "accept"} == (await own.wire.ask("s1", "elicitation/create", PAGE))["result"]
        for identity in ("unknown", "e1", "e1"):
            own.wire.tell("notifications/elicitation/complete", elicitationId=identity)

        assert [] == await own.wire.rest()

    assert ["e1"] == [params.elicitation_id for _, params in told]


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "4ea2c8ef")
async def test_pages_that_an_error_lists_are_known() -> None:
    handlers, told = visiting()
    async with opened("2025-11-25", native_revision="2025-11-25", handlers=handlers) as own:
        call = registry.revision("2025-11-25").bindings().methods.CALL_TOOL
        errand, asked = await own.asked(own.client.request(call, call.params(name="x")))
        own.wire.error(asked, -32042, data={"elicitations": [PAGE]})  # the client has not declared the mode
        with pytest.raises(RequestRefused):
            await errand.outcome()
        for identity in ("e2", "e1"):
            own.wire.tell("notifications/elicitation/complete", elicitationId=identity)

        assert [] == await own.wire.rest()

    assert ["e1"] == [params.elicitation_id for _, params in told]


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation")
@everywhere
async def test_that_a_page_was_visited_may_be_told_to_who_does_not_want_to_know(revision: str) -> None:
    async with opened(revision) as own:
        own.wire.tell("notifications/elicitation/complete", elicitationId="unknown")

        assert [] == await own.wire.rest()
        assert [] == (await own.answered(own.client.call_tool("x"), complete(revision, content=[]))).content


@spec("2025-11-25", "basic/utilities/progress#progress-flow")
@pytest.mark.parametrize("revision", since("2025-03-26"))
@on_both_loops
async def test_a_handler_of_progress_is_told_beside_the_caller(revision: str) -> None:
    handlers, told = listening(LABELS[-1], "progress")
    seen: list[Any] = []
    async with opened(revision, handlers=handlers) as own:
        _, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *given: seen.append(given)))
        token = asked["params"]["_meta"]["progressToken"]
        own.wire.tell("notifications/progress", progressToken=token, progress=1, message="half")
        await own.wire.rest()

    assert [(1, None, "half")] == seen
    assert [("half", token)] == [(params.message, params.progress_token) for _, params in told]


@spec("2025-11-25", "basic/utilities/cancellation#implementation-notes")
async def test_the_reason_of_a_cancellation_is_logged_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcpgen.session")
    never = anyio.Event()

    async def elicit(*_: Any) -> Any:
        await never.wait()

    async with opened("2025-11-25", elicit=elicit) as own:
        form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        own.wire.say({"jsonrpc": "2.0", "id": "s1", "method": "elicitation/create", "params": form})
        own.wire.tell("notifications/cancelled", requestId="unknown", reason="none of yours")
        own.wire.tell("notifications/cancelled", requestId="s1", reason="the user\x1b[2J left")

        assert [] == await own.wire.rest()

    assert ["the server cancels its request or the stream 's1': the user\\x1b[2J left"] == [
        each.getMessage() for each in caplog.records if each.name == "mcpgen.session"
    ]
