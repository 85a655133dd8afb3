"""What a review of the client has found, each so that it does not come back."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, Process, connect
from mcpgen.generated.v2025_11_25 import methods as methods_2025_11_25
from mcpgen.runtime.client import deadlines
from mcpgen.runtime.client.deadlines import Deadlines
from mcpgen.runtime.client.pending_request import PendingRequest
from mcpgen.runtime.errors import (
    InvalidPayload,
    InvalidStructuredContent,
    McpgenError,
    NoCommonRevision,
    RequestError,
    RequestRefused,
    RequestTimedOut,
    TransportClosed,
    UnsupportedByPeer,
    UsageError,
)
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.transports.errors import ServerExited
from tests.patience import PATIENCE_SECONDS
from tests.specification.client.scripted_server import discovered, on_both_loops, opened, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen.runtime.limits import ClientLimits as Limits
    from mcpgen.runtime.transports.interfaces import Channel, Endpoint

pytestmark = pytest.mark.anyio

OLD, NEW = "2025-11-25", "2026-07-28"
FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def pages(*names: str) -> dict[str, object]:
    return {
        "elicitations": [
            {"mode": "url", "message": "In.", "url": f"https://example.com/{each}", "elicitationId": each}
            for each in names
        ]
    }


# --- closing


@on_both_loops
@pytest.mark.parametrize("kind", ["request", "notification"])
async def test_a_handler_may_close_its_own_client(kind: str) -> None:
    async def close(_: object, context: Any) -> None:
        await context.client.close()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with opened(OLD, elicit=close, log=close) as own:
            if kind == "request":
                own.wire.say({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": FORM})
            else:
                own.wire.tell("notifications/message", level="info", data="x")
            await own.wire.left()
            await own.client.close()

            assert own.wire.is_left


async def test_what_comes_while_a_client_closes_is_not_handled() -> None:
    heard: list[object] = []
    async with opened(OLD, log=lambda params, _: heard.append(params)) as own:
        own.client._engine.connection.end(TransportClosed("closed"))
        own.wire.tell("notifications/message", level="info", data="x")

        assert [] == await own.wire.rest()
    assert [] == heard


@on_both_loops
async def test_the_error_of_a_closed_client_does_not_grow_with_each_call() -> None:
    async with opened(OLD) as own:
        own.wire.hang_up()
        await own.wire.left()
        for _ in range(3):
            with pytest.raises(TransportClosed):
                await own.client.call_tool("x")

        assert own.client._engine.session.failure.__traceback__ is None


@on_both_loops
async def test_a_transport_that_fails_tells_whoever_connects() -> None:
    logging.getLogger("mcpgen.session").disabled = True
    try:
        with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(TransportClosed, match="broke"):
            await connect(_Broken(), revisions=[OLD])
    finally:
        logging.getLogger("mcpgen.session").disabled = False


class _Broken:
    identity = None
    description = "a transport that fails"
    is_full = False
    stderr = ""

    @asynccontextmanager
    async def open(self, _: Limits) -> AsyncGenerator[Channel]:
        yield self

    def write(self, message: bytes) -> None:
        del message

    async def drain(self) -> None:
        """Return at once."""

    async def run(self, _: Endpoint) -> None:
        raise OSError("it broke")

    async def close_reason(self) -> TransportClosed:
        return TransportClosed("it is gone")


# --- asking


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("argument", [object(), "\ud800"], ids=["object", "surrogate"])
async def test_arguments_that_are_no_json_are_explained_and_not_sent(revision: str, argument: object) -> None:
    async with opened(revision) as own:
        with pytest.raises(UsageError):
            await own.client.call_tool("x", {"a": argument})

        assert [] == await own.wire.rest()


async def test_that_roots_have_changed_is_not_told_by_any_way_if_that_was_not_declared() -> None:
    async with opened(OLD, native_revision=OLD) as own:
        with pytest.raises(UsageError):
            await own.client.notify(methods_2025_11_25.ROOTS_LIST_CHANGED)

        assert [] == await own.wire.rest()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (methods_2025_11_25.SET_LEVEL, {}),
        (methods_2025_11_25.SET_LEVEL, {"level": "nonsense"}),
        (methods_2025_11_25.SUBSCRIBE, {}),
        (methods_2025_11_25.UNSUBSCRIBE, {"uri": 5}),
    ],
)
async def test_what_the_client_does_itself_is_checked_as_what_it_sends(method: Any, params: object) -> None:
    async with opened(NEW, native_revision=OLD) as own:
        with pytest.raises(InvalidPayload):
            await own.client.request(method, params)

        assert [] == await own.wire.rest()


async def test_a_log_level_is_not_asked_of_a_server_that_does_not_log() -> None:
    async with opened(NEW, native_revision=OLD, can={"tools": {}}) as own:
        with pytest.raises(UnsupportedByPeer):
            await own.client.request(methods_2025_11_25.SET_LEVEL, {"level": "info"})


async def test_a_resource_is_subscribed_to_again_when_its_stream_has_ended() -> None:
    async with opened(NEW, native_revision=OLD) as own:
        for _ in range(2):
            errand, asked = await own.asked(own.client.request(methods_2025_11_25.SUBSCRIBE, {"uri": "a:b"}))
            own.wire.tell(
                "notifications/subscriptions/acknowledged",
                _meta={SUBSCRIPTION: asked["id"]},
                notifications={"resourceSubscriptions": ["a:b"]},
            )
            await errand.outcome()
            own.wire.result(asked, {"resultType": "complete", "_meta": {SUBSCRIPTION: asked["id"]}})

        assert "subscriptions/listen" == asked["method"]


# --- time


async def test_progress_during_a_pause_gives_no_more_time_than_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(deadlines, "_clock", lambda: now)
    session: Any = type("Session", (), {"pending": {}, "limits": ClientLimits(), "cancel": lambda *_: None})()
    clock = Deadlines(session)
    event: Any = type("Event", (), {"set": lambda _: None})()
    call = session.pending[1] = PendingRequest(1, "tools/call", event, 2)
    clock.start(call, 10, 100)
    clock.pause()
    now = 50.0
    clock.extend(call)
    now = 60.0
    clock.resume()
    now = 69.0
    clock._expire()

    assert not call.is_done

    now = 70.0
    clock._expire()

    assert call.is_done


@on_both_loops
async def test_whoever_waited_in_all_too_long_is_told_how_long_that_was() -> None:
    async with opened(OLD, limits=ClientLimits(max_call_seconds=1)) as own:
        errand, asked = await own.asked(own.client.call_tool("x", on_progress=lambda *_: None, timeout_seconds=0.8))
        for number in range(100):
            own.wire.tell(
                "notifications/progress", progressToken=asked["params"]["_meta"]["progressToken"], progress=number
            )
            if errand.is_over:
                break
            await anyio.sleep(0.05)
        with pytest.raises(RequestTimedOut) as caught:
            await errand.outcome()

        assert 1 == caught.value.seconds


# --- what a server wants to know


async def test_a_page_that_is_declined_with_the_word_accept_is_declined() -> None:
    def decline(*_: object) -> models.ElicitResult:
        return models.ElicitResult(action="decline", content={"why": "accept"})

    async with opened(OLD, elicit_url=decline) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.error(asked, -32042, data=pages("a"))
        with pytest.raises(RequestRefused):
            await errand.outcome()

        assert [] == await own.wire.rest()


async def test_nobody_is_asked_twice_to_visit_the_same_page() -> None:
    visited: list[str] = []

    def visit(params: models.ElicitRequestURLParams, _: object) -> models.ElicitResult:
        visited.append(params.url)
        return models.ElicitResult(action="accept")

    async with opened(OLD, elicit_url=visit) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.error(asked, -32042, data=pages("a", "a"))
        own.wire.error(await own.wire.hear("tools/call"), -32042, data=pages("a", "b"))
        own.wire.error(await own.wire.hear("tools/call"), -32042, data=pages("b"))
        with pytest.raises(RequestRefused):
            await errand.outcome()

        assert ["https://example.com/a", "https://example.com/b"] == visited


async def test_a_handler_that_cancels_itself_is_one_that_fails() -> None:
    async def give_up(*_: object) -> None:
        raise asyncio.CancelledError

    asked_by = {"method": "elicitation/create", "params": FORM}
    async with opened(NEW, elicit=give_up) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, {"resultType": "input_required", "inputRequests": {"k": asked_by}})
        with pytest.raises(RequestError):
            await errand.outcome()
    async with opened(OLD, elicit=give_up) as own:
        answer = await own.wire.ask(5, "elicitation/create", FORM)

        assert (5, -32603) == (answer["id"], answer["error"]["code"])
        assert not own.client._engine.connection.requests.open


async def test_a_key_of_a_question_is_escaped_where_it_is_pointed_at() -> None:
    async with opened(NEW) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, {"resultType": "input_required", "inputRequests": {"a/b~c": {"method": "roots/list"}}})
        with pytest.raises(InvalidPayload) as caught:
            await errand.outcome()

        assert "/inputRequests/a~1b~0c" == caught.value.pointer


# --- listening


@on_both_loops
async def test_only_one_task_waits_for_changes_and_another_is_told() -> None:
    async with opened(OLD) as own, own.client.listen(tools=True) as changes:
        first = own.start(anext(changes))
        await own.wire.rest()
        with pytest.raises(UsageError):
            await anext(changes)
        own.wire.tell("notifications/tools/list_changed")

        assert "tools" == (await first.outcome()).kind


async def test_a_block_of_changes_is_entered_once() -> None:
    async with opened(OLD) as own, own.client.listen(tools=True) as changes:
        with pytest.raises(UsageError):
            await changes.__aenter__()


async def test_a_stream_does_not_tell_what_it_was_not_asked() -> None:
    async with opened(NEW) as own:

        async def listen() -> list[object]:
            async with own.client.listen(tools=True) as changes:
                return [await anext(changes)]

        errand, asked = await own.asked(listen())
        meta = {SUBSCRIPTION: asked["id"]}
        own.wire.tell("notifications/subscriptions/acknowledged", _meta=meta, notifications={"toolsListChanged": True})
        for method, params in (("prompts/list_changed", {}), ("resources/updated", {"uri": "a:b"})):
            frame = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": {"_meta": meta, **params}}
            own.wire.say(frame)
        own.wire.tell("notifications/tools/list_changed", _meta=meta)

        assert ["tools"] == [each.kind for each in await errand.outcome()]


async def test_a_stream_is_acknowledged_whatever_unknown_keys_have() -> None:
    async with opened(NEW) as own:

        async def listen() -> bool:
            async with own.client.listen(tools=True) as changes:
                return changes.acknowledged.tools_list_changed

        errand, asked = await own.asked(listen())
        members = f'"_meta":{{"{SUBSCRIPTION}":{asked["id"]}}},"notifications":{{"toolsListChanged":true}},"x":1e400'
        method = "notifications/subscriptions/acknowledged"
        own.wire.say(f'{{"jsonrpc":"2.0","method":"{method}","params":{{{members}}}}}'.encode())

        assert await errand.outcome()


# --- connecting


async def test_a_server_that_was_greeted_after_the_question_is_not_greeted_twice() -> None:
    async with scripted() as (connecting, wire):
        wire.result(await wire.hear("server/discover"), discovered(supportedVersions=[OLD]))
        wire.result(await wire.hear("initialize"), {"protocolVersion": OLD, "capabilities": 5})
        with pytest.raises(InvalidPayload):
            await connecting.outcome()

        assert [] == await wire.rest()


@pytest.mark.parametrize(
    "options",
    [
        {"roots": 5},
        {"structured": "sometimes"},
        {"capabilities": {"sampling": 5}},
        {"capabilities": {"sampling": {}}},
        {"capabilities": {"elicitation": {}}, "sample": print},
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_started(options: Any) -> None:
    with pytest.raises(UsageError):
        connect("true", **options)


def test_a_transport_is_an_instance() -> None:
    target: Any = Process
    with pytest.raises(UsageError, match="such as Process, not the class Process"):
        connect(target)


async def test_what_is_declared_on_top_takes_nothing_away() -> None:
    async with opened(
        OLD, elicit=print, elicit_url=print, roots=list, capabilities={"elicitation": {"form": {}}, "roots": {}}
    ) as own:
        assert {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}} == own.capabilities


# --- errors


@pytest.mark.parametrize(
    "error",
    [
        InvalidPayload(revision="r", pointer="/p", what="w", reason="y"),
        InvalidStructuredContent(revision="r", pointer="", tool="t", reason="x", result={}),
        NoCommonRevision(offered=["a"], supported=["b"]),
        RequestRefused("tools/call", RequestError(1, "m", {"a": 1})),
        RequestTimedOut("tools/call", 3),
        ServerExited(command="c", status=1, stderr="s"),
        UnsupportedByPeer(revision="r", what="w", reason="x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_be_copied_and_sent_to_another_process(error: McpgenError) -> None:
    for each in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 (our own)
        assert (type(error), str(error), vars(error)) == (type(each), str(each), vars(each))


def test_the_message_of_an_error_does_not_steer_a_terminal() -> None:
    assert "\x1b" not in str(RequestRefused("tools/call", RequestError(1, "no\x1b[2J")))
