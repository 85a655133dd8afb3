"""What a client makes a server keep is charged until it is freed, and bounded by a limit that the error names."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Context, Limits, MemoryTaskStore, RequestError, Server, connect
from mcpgen.generated import v2025_11_25 as bindings
from mcpgen.runtime.protocol.message_size import memory_bytes
from mcpgen.runtime.server import ledger
from mcpgen.runtime.server.exchange import Exchange
from mcpgen.runtime.server.ledger import HANDLER_BYTES
from mcpgen.runtime.transports.spawner import open_spawner
from tests.harness.server_wire import Wire, connected

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.json_costs import JsonCosts

pytestmark = pytest.mark.anyio

NEW, OLD = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
FORM: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ignoring_cancellation(gate: anyio.Event) -> None:
    """Wait for *gate*; ignore the first cancellation, and not the one at the end of a test that fails."""
    with suppress(asyncio.CancelledError):
        await gate.wait()
    if not gate.is_set():
        await gate.wait()


def made(**limits: Any) -> Server:
    """Return a server with tools that wait, and a resource."""
    server = Server("kept", version="1", limits=Limits(**limits))

    @server.tool
    async def wait(text: str = "") -> str:
        await anyio.sleep_forever()
        return text

    @server.tool
    async def echo() -> str:
        return ""

    @server.tool
    async def stubborn() -> str:
        gate = gates.setdefault("gate", anyio.Event())
        await ignoring_cancellation(gate)
        return "at last"

    @server.tool
    async def ask(ctx: Context, text: str = "") -> str:
        return (await ctx.elicit(text or "Who?", FORM)).action

    @server.resource("note://{+name}")
    async def note(name: str) -> str:
        return name

    return server


gates: dict[str, anyio.Event] = {}


@pytest.fixture(autouse=True)
def _no_gates() -> None:
    gates.clear()


def message(method: str, identity: object = None, **params: Any) -> bytes:
    members: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(members if identity is None else {**members, "id": identity}).encode()


def call(identity: object, tool: str, *, new: bool = True, more: dict[str, Any] | None = None, **given: Any) -> bytes:
    meta = {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {"elicitation": {}}}
    params = {"name": tool, "arguments": given, **({"_meta": meta} if new else {}), **(more or {})}
    return message("tools/call", identity, **params)


async def shake_hands(wire: Wire, **capabilities: object) -> None:
    info = {"name": "c", "version": "1"}
    begin = message("initialize", 0, protocolVersion=OLD, capabilities=capabilities, clientInfo=info)
    await wire.say(begin)
    await wire.say(message("notifications/initialized"))


def kept(server: Server, kind: Any = "open requests") -> int:
    return server._engine.ledger.by_kind().get(kind, 0)


# --- open requests


@pytest.mark.parametrize("new", [True, False])
async def test_a_request_is_charged_until_its_handler_has_ended_although_it_was_cancelled(*, new: bool) -> None:
    server = made()
    async with connected(server) as wire:
        await shake_hands(wire)
        await wire.say(call(1, "stubborn", new=new))

        assert HANDLER_BYTES < kept(server) < 2 * HANDLER_BYTES

        assert [] == await wire.say(message("notifications/cancelled", requestId=1))

        assert kept(server) > HANDLER_BYTES, "the handler still runs"
        assert wire.connection.session.held_bytes == kept(server)

        gates["gate"].set()
        await wire.rest()

        assert kept(server) == 0


async def test_a_request_costs_what_its_decoded_values_take() -> None:
    server = made()
    async with connected(server) as wire:
        rows = [[] for _ in range(9_000)]
        await wire.say(call(1, "wait", more={"extra": rows}))

        assert kept(server) > 9_000 * 100, "an empty list takes about a hundred bytes, not the three in the message"


async def test_requests_above_the_bytes_in_flight_are_refused_and_one_alone_is_not() -> None:
    server = made(max_in_flight_bytes=20_000)
    async with connected(server) as wire:
        assert [] == await wire.say(call(1, "wait", text="x" * 30_000))
        (refused,) = await wire.say(call(2, "wait"))

        assert "(max_in_flight_bytes)" in refused["error"]["message"]

        wire.send(message("notifications/cancelled", requestId=1))
        await wire.rest()

        assert [] == await wire.say(call(3, "wait"))


async def test_a_long_id_is_charged() -> None:
    server = made()
    async with connected(server) as wire:
        await wire.say(call(1, "wait"))
        one = kept(server)
        await wire.say(call("\U0001f600" * 1000, "wait"))

        assert kept(server) >= 2 * one + 4000


# --- parked requests


def retry(identity: int, demand: Any) -> bytes:
    """Return the retry of a call of `ask` that a server has answered with *demand*."""
    answers = {each: {"action": "accept", "content": {"name": "Ada"}} for each in demand["result"]["inputRequests"]}
    more = {"requestState": demand["result"]["requestState"], "inputResponses": answers}
    return call(identity, "ask", more=more)


@pytest.mark.parametrize(
    "limits", [{"max_waiting": 8}, {"max_waiting_bytes": 8 * 2 * HANDLER_BYTES}], ids=["count", "bytes"]
)
async def test_the_owner_with_the_most_parked_calls_makes_room_for_another(limits: dict[str, int]) -> None:
    server = made(**limits)
    async with server.running(), open_spawner() as spawner:
        one, other = Wire(server, spawner), Wire(server, spawner)
        one.connection.session.owner, other.connection.session.owner = "a", "b"
        demands = [(await one.say(call(n, "ask")))[0] for n in range(20)]
        parked = [each for each in demands if "result" in each]
        refused = [each["error"]["message"] for each in demands if "error" in each]

        assert 6 <= len(parked) <= 12
        assert all("(max_waiting, max_waiting_bytes)" in each for each in refused)

        (demand,) = await other.say(call(1, "ask"))
        (displaced,) = await one.say(retry(30, parked[0]))
        (still,) = await one.say(retry(31, parked[1]))
        (served,) = await other.say(retry(2, demand))

        assert displaced["error"]["data"] == {"reason": "displaced"}
        assert "make room" in displaced["error"]["message"]
        assert "(max_waiting, max_waiting_bytes, max_threads)" in displaced["error"]["message"]
        assert [each["result"]["content"][0]["text"] for each in (still, served)] == ["accept", "accept"]

        one.connection.close()
        other.connection.close()
    server._engine.parked._clock = lambda: float("inf")  # what was answered is kept for repeated retries
    server._engine.parked.expire()

    assert server._engine.ledger.kept_bytes == 0


async def test_a_parked_call_is_charged_once_and_until_its_handler_has_ended() -> None:
    server = made(max_waiting=2)
    stopped, gate = [], anyio.Event()

    @server.tool
    async def cling(ctx: Context) -> str:
        try:
            await ctx.elicit("Who?", FORM)
        finally:
            stopped.append(1)
            await ignoring_cancellation(gate)
        return "clung"

    async with server.running(), open_spawner() as spawner:
        one, other = Wire(server, spawner), Wire(server, spawner)
        one.connection.session.owner, other.connection.session.owner = "a", "b"
        await one.say(call(1, "cling"), call(2, "cling"))
        before = kept(server, "parked requests")

        assert kept(server) == 0
        assert HANDLER_BYTES * 2 < before

        await other.say(call(1, "ask"))
        after = kept(server, "parked requests")

        assert stopped
        assert after > before, "the handler that gives way has not ended"

        gate.set()
        await other.rest()

        assert kept(server, "parked requests") < after
        one.connection.close()
        other.connection.close()
    assert server._engine.ledger.kept_bytes == 0


async def test_a_retry_moves_the_charge_back_to_the_open_requests() -> None:
    server = made()
    gate = anyio.Event()

    @server.tool
    async def work(ctx: Context) -> str:
        await ctx.elicit("Go on?", FORM)
        await gate.wait()
        return "done"

    async with connected(server) as wire:
        (demand,) = await wire.say(call(1, "work"))
        parked = kept(server, "parked requests")
        answers = {each: {"action": "accept"} for each in demand["result"]["inputRequests"]}
        more = {"requestState": demand["result"]["requestState"], "inputResponses": answers}
        await wire.say(call(2, "work", more=more))

        assert kept(server) > HANDLER_BYTES
        assert kept(server, "parked requests") < parked / 3

        gate.set()
        (done,) = await wire.rest()

        assert done["result"]["content"][0]["text"] == "done"
        assert kept(server) == 0


# --- sessions


async def test_a_session_keeps_no_more_uris_than_its_bytes_allow() -> None:
    server = made(max_session_bytes=20_000)
    async with connected(server) as wire:
        await shake_hands(wire)
        said = [
            (await wire.say(message("resources/subscribe", n, uri=f"note://{n}-{'u' * 3000}")))[0] for n in range(1, 9)
        ]
        refused = [each["error"]["message"] for each in said if "error" in each]

        assert 2 <= len(refused) <= 6
        assert all("(max_session_bytes)" in each for each in refused)
        assert wire.connection.session.kept_bytes == kept(server, "sessions") <= 20_000

        for number in range(1, 9):
            await wire.say(message("resources/unsubscribe", 10 + number, uri=f"note://{number}-{'u' * 3000}"))

        assert kept(server, "sessions") < 6000, "the client's declaration"


async def test_the_filters_of_streams_are_charged_until_they_end() -> None:
    server = made(max_session_bytes=20_000)
    meta = {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {}}
    async with connected(server) as wire:
        said = []
        for number in range(1, 6):
            wanted = {"resourceSubscriptions": [f"note://{number}-{'u' * 4500}"]}
            said += await wire.say(message("subscriptions/listen", number, _meta=meta, notifications=wanted))
        refused = [each["error"]["message"] for each in said if "error" in each]

        assert len(refused) == 1
        assert "(max_session_bytes)" in refused[0]
        assert kept(server, "sessions") > 16_000
        assert kept(server) > 4 * 500

        for number in range(1, 6):
            await wire.say(message("notifications/cancelled", requestId=number))

        assert kept(server, "sessions") == kept(server) == 0


async def test_a_declaration_that_costs_more_than_a_session_may_is_refused() -> None:
    server = made(max_session_bytes=20_000)
    async with connected(server) as wire:
        info = {"name": "c", "version": "1"}
        large = {"experimental": {"x": {"text": "x" * 10_000}}}
        begin = message("initialize", 1, protocolVersion=OLD, capabilities=large, clientInfo=info)
        (refused,) = await wire.say(begin)

        assert "(max_session_bytes)" in refused["error"]["message"]
        assert kept(server, "sessions") == 0


# --- messages that wait


class SlowWire(Wire):
    """A wire whose client reads nothing until it is told to."""

    def __init__(self, server: Server, spawner: Any) -> None:
        super().__init__(server, spawner)
        self.reads = anyio.Event()
        self.reads.set()

    @property
    def is_full(self) -> bool:  # type: ignore[override]
        return not self.reads.is_set()

    async def drain(self) -> None:
        await self.reads.wait()


async def test_changes_wait_only_for_resources_that_the_client_is_subscribed_to() -> None:
    server = made()
    async with server.running(), open_spawner() as spawner:
        wire = SlowWire(server, spawner)
        server._engine.add(wire.connection)
        await shake_hands(wire)
        await wire.say(message("resources/subscribe", 1, uri="note://mine"))
        wire.reads = anyio.Event()
        for number in range(100):
            await server.resource_updated(f"note://{number}-{'u' * 10_000}")
            await server.resource_updated("note://mine")

        assert 0 < kept(server, "messages") < 1000

        wire.reads.set()
        said = await wire.rest()

        assert ["note://mine"] == [each["params"]["uri"] for each in said if "uri" in each.get("params", {})]
        assert kept(server, "messages") == 0
        wire.connection.close()
        await wire.rest()


async def test_requests_to_the_client_are_charged_while_they_wait() -> None:
    server = made(max_in_flight_bytes=40_000)
    async with connected(server) as wire:
        await shake_hands(wire, elicitation={})
        said = []
        for number in range(1, 5):
            said += await wire.say(call(number, "ask", new=False, text="x" * 2500))
        refused = [each for each in said if "method" not in each]

        assert refused
        assert all("max_in_flight_bytes" in str(each) for each in refused)
        assert kept(server) > 2 * 3 * 2500

        for each in [each for each in said if "method" in each]:
            answer = {"jsonrpc": "2.0", "id": each["id"], "result": {"action": "decline"}}
            await wire.say(json.dumps(answer).encode())

        assert kept(server) == 0


async def test_handlers_of_notifications_are_charged_and_bounded() -> None:
    begun: list[int] = []
    gate = anyio.Event()

    class Handlers(bindings.ServerHandlers[Context]):
        async def roots_list_changed(self, params: Any, context: Context, /) -> None:
            begun.append(1)
            await gate.wait()

    server = Server("n", version="1", handlers=Handlers(), limits=Limits(max_in_flight_bytes=40_000))
    async with connected(server) as wire:
        await shake_hands(wire, roots={"listChanged": True})
        for _ in range(10):
            await wire.say(message("notifications/roots/list_changed", _meta={"text": "x" * 4000}))

        assert 2 <= len(begun) <= 4
        assert kept(server) > len(begun) * (4000 + HANDLER_BYTES)

        gate.set()
        await wire.rest()

        assert kept(server) == 0


async def test_a_refused_request_to_the_client_raises_an_error_that_names_the_limit() -> None:
    server = made(max_in_flight=1)
    failures: list[str] = []

    @server.tool
    async def both(ctx: Context) -> str:
        async def one() -> None:
            try:
                await ctx.elicit("Who?", FORM)
            except RequestError as error:
                failures.append(error.message)

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        return "done"

    async with connected(server) as wire:
        await shake_hands(wire, elicitation={})
        (asked,) = await wire.say(call(1, "both", new=False))

        assert len(failures) == 1
        assert "max_in_flight" in failures[0]

        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
        await wire.say(json.dumps(answer).encode())


@pytest.mark.parametrize("new", [False, True])
async def test_one_large_request_to_the_client_is_not_called_too_many(*, new: bool) -> None:
    server = made(max_in_flight_bytes=100_000, max_waiting_bytes=100_000)
    failures: list[str] = []

    @server.tool
    async def long(ctx: Context) -> str:
        try:
            await ctx.elicit("Who?" * 20_000, FORM)
        except RequestError as error:
            failures.append(error.message)
        return "done"

    async with connected(server) as wire:
        if not new:
            await shake_hands(wire, elicitation={})
        await wire.say(call(1, "long", new=new))

        (said,) = failures
        assert "would keep too many bytes" in said
        assert said.endswith("; ask the client for less at once, or try again later")


@pytest.mark.parametrize(
    "end",
    [
        "refused",
        "caught",
        "failed",
        "failed in a group",
        "group failed",
        "exited",
        "cancelled",
        "group cancelled",
        "answered",
    ],
)
@pytest.mark.slow
async def test_what_has_ended_is_freed_without_a_garbage_collection(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("mcpgen"), "propagate", False)  # pytest keeps what is logged
    server = made(max_waiting=1)

    @server.tool
    async def fail() -> str:
        try:
            return str(int("x"))
        except ValueError as error:
            raise RequestError(7, "outer") from error

    @server.tool
    async def catch(ctx: Context) -> str:
        with suppress(RequestError):
            await ctx.elicit("Who?", FORM)
        return "caught"

    @server.tool
    async def fail_in_group() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fail)

    @server.tool
    async def fail_with_group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(600))
            raise ValueError("mine")

    @server.tool
    async def leave() -> None:
        raise SystemExit(2)

    @server.tool
    async def wait_in_group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(600))

    async with connected(server) as wire:
        frames = {
            "refused": [call(2, "ask")],  # for there is no room to wait
            "caught": [call(2, "catch")],
            "failed": [call(2, "fail")],
            "failed in a group": [call(2, "fail_in_group")],
            "group failed": [call(2, "fail_with_group")],
            "exited": [call(2, "leave")],
            "cancelled": [call(2, "wait"), message("notifications/cancelled", requestId=2)],
            "group cancelled": [call(2, "wait_in_group"), message("notifications/cancelled", requestId=2)],
            "answered": [call(2, "echo")],
        }[end]
        await wire.say(call(1, "ask"))
        for each in frames * 2:  # what is made once is there then
            await wire.say(each)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for each in frames:
                await wire.say(each)
            gc.collect()
            frames_left = {each.f_code.co_name for each in gc.garbage if isinstance(each, FrameType)}
            left = [each for each in gc.garbage if isinstance(each, Exchange)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()

        assert left == []
        assert not frames_left & {"fail", "fail_in_group", "fail_with_group", "leave", "wait_in_group"}


@pytest.mark.slow
async def test_what_a_notification_handler_was_given_is_freed_without_a_garbage_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("mcpgen"), "propagate", False)  # pytest keeps what is logged

    class Handlers(bindings.ServerHandlers[Context]):
        async def progress(self, params: bindings.ProgressNotificationParams, context: Context, /) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(600))
                raise ValueError("mine")

    async with connected(Server("t", version="1", handlers=Handlers())) as wire:
        await shake_hands(wire)
        frame = message("notifications/progress", progressToken=1, progress=1)
        await wire.say(frame)  # what is made once is there then
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await wire.say(frame)
            gc.collect()
            left = {each.f_code.co_name for each in gc.garbage if isinstance(each, FrameType)}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()

        assert "progress" not in left


async def test_the_ledger_counts_the_tasks_of_a_store() -> None:
    store = MemoryTaskStore()

    class Handlers(bindings.ServerHandlers[Context]):
        def task_support(self, name: str) -> str:
            return "optional"

        async def call_tool(
            self, params: bindings.CallToolRequestParams, context: Context, /
        ) -> bindings.CallToolResult:
            return bindings.CallToolResult(content=[bindings.TextContent(text="x" * 5000)])

    server = Server("t", version="1", handlers=Handlers(), tasks=store)
    async with connected(server) as wire:
        await shake_hands(wire)
        await wire.say(call(1, "bake", new=False, more={"task": {}}))

        assert store.count == 1
        assert kept(server, "tasks") == store.kept_bytes > 5000


async def test_a_client_that_does_not_read_gets_no_results_made_in_advance() -> None:
    made_results: list[int] = []
    server = Server("m", version="1")

    @server.tool
    async def big() -> str:
        made_results.append(1)
        return "x" * 1000

    async with server.running(), open_spawner() as spawner:
        wire = SlowWire(server, spawner)
        await wire.say(call(0, "big"))
        wire.reads = anyio.Event()
        wire.send(*(call(n, "big") for n in range(1, 101)))
        await wire.rest()

        assert len(made_results) == 1, "a hundred results would be kept for it"

        wire.reads.set()
        await wire.rest()

        assert len(made_results) == 101
        wire.connection.close()


async def test_a_call_that_becomes_a_task_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a large message would occupy the event loop for three times as long."""
    server = made()
    measured: list[int] = []

    @server.tool(task=True)
    async def bake(text: str) -> str:
        return text[:1]

    def measure(frame: bytes, costs: JsonCosts) -> int:
        measured.append(len(frame))
        return memory_bytes(frame, costs)

    monkeypatch.setattr(ledger, "memory_bytes", measure)
    async with connect(server, revisions=[NEW], tasks=True) as client:
        handle = await client.start_tool("bake", {"text": "x" * 10_000})
        await handle.result()

    assert handle.task_id
    assert 1 == len([each for each in measured if each > 10_000])
