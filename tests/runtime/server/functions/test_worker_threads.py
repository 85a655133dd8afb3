"""A plain function keeps its slot until its thread ends, even if its request was cancelled."""

from __future__ import annotations

import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from mcpgen import Context, Limits, Server, TransportClosed
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.server.functions import worker_threads
from mcpgen.runtime.server.functions.worker_threads import CALLER, Caller, WorkerThreads
from mcpgen.runtime.transports import memory
from tests.patience import PATIENCE_SECONDS
from tests.specification.http_server.http_clients import caller, cancellation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

pytestmark = pytest.mark.anyio

MOST = 3
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


class Slow:
    """A function that returns when it is told to.

    Attributes:
        running: How many of it run.
        most: The most that ran at once.
        calls: How often it was called.
    """

    def __init__(self) -> None:
        self.running = self.most = self.calls = 0
        self.may_return = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, argument: object = None) -> object:
        with self._lock:
            self.calls += 1
            self.running += 1
            self.most = max(self.most, self.running)
        self.may_return.wait(PATIENCE_SECONDS)
        with self._lock:
            self.running -= 1
        return argument

    async def wait_running(self, count: int) -> None:
        """Wait until *count* of it run."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while self.running != count:  # noqa: ASYNC110 (threads change it)
                await anyio.sleep(0.005)


@pytest.fixture
def slow() -> Generator[Slow]:
    made = Slow()
    try:
        yield made
    finally:
        made.may_return.set()


async def wait_free(threads: WorkerThreads, running: int = 0) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while threads.running != running:  # noqa: ASYNC110 (threads change it)
            await anyio.sleep(0.005)


async def abandon(threads: WorkerThreads, slow: Slow, count: int) -> None:
    """Begin *count* calls, and cancel them when they run."""
    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(threads.run, slow, None)
        await slow.wait_running(count)
        group.cancel_scope.cancel()


async def test_functions_run_in_threads_and_return_their_results() -> None:
    threads = WorkerThreads(1)

    assert [1, 2] == [await threads.run(abs, -1), await threads.run(abs, -2)]
    with pytest.raises(ValueError, match="invalid literal"):
        await threads.run(int, "x")
    assert 0 == threads.running


async def test_a_cancelled_call_keeps_its_slot_until_its_thread_ends(slow: Slow) -> None:
    threads = WorkerThreads(MOST)
    await abandon(threads, slow, MOST)
    assert MOST == threads.running
    with anyio.move_on_after(0.05) as scope:
        await threads.run(abs, -1)
    assert scope.cancelled_caught
    assert (MOST, MOST) == (slow.calls, slow.running)

    slow.may_return.set()
    with anyio.fail_after(PATIENCE_SECONDS):
        assert 1 == await threads.run(abs, -1)
    await wait_free(threads)


async def test_calls_that_wait_are_served_in_order(slow: Slow) -> None:
    threads = WorkerThreads(1)
    order: list[int] = []

    async def call(number: int) -> None:
        await threads.run(order.append, number)

    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, slow, None)
        await slow.wait_running(1)
        for number in range(5):
            group.start_soon(call, number)
            await anyio.sleep(0.005)
        slow.may_return.set()

    assert ([0, 1, 2, 3, 4], 0) == (order, threads.running)


async def test_a_call_that_is_cancelled_while_it_waits_takes_no_slot(slow: Slow) -> None:
    threads = WorkerThreads(1)
    await abandon(threads, slow, 1)
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(threads.run, slow, None)
        await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    slow.may_return.set()
    await wait_free(threads)

    assert 1 == slow.calls
    assert 3 == await threads.run(abs, -3)


async def test_a_call_that_is_cancelled_as_it_gets_its_slot_passes_it_on(slow: Slow) -> None:
    threads = WorkerThreads(1)
    await abandon(threads, slow, 1)
    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, abs, -1)
        await anyio.sleep(0.02)
        slow.may_return.set()
        while slow.running or threads._waiting:  # until the thread has given its slot to the call
            pass
        group.cancel_scope.cancel()
    await wait_free(threads)


async def test_a_call_that_is_cancelled_before_it_begins_takes_no_slot(slow: Slow) -> None:
    threads = WorkerThreads(1)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await threads.run(slow, None)
    await wait_free(threads)

    assert 0 == slow.calls


def server(slow: Slow) -> Server:
    made = Server("slow", version="1.0", limits=Limits(max_threads=MOST))

    @made.tool(name="slow")
    def run() -> str:
        slow()
        return "done"

    @made.tool
    async def quick() -> str:
        return "quick"

    return made


def call(identity: int, name: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": {"name": name, "_meta": META}}


async def test_cancelled_requests_leave_no_more_threads_than_allowed(slow: Slow) -> None:
    before = threading.active_count()
    async with memory.wire(server(slow)) as wire:
        for identity in range(20):
            await wire.send(call(identity, "slow"))
            if identity < MOST:  # or a busy machine would cancel them before their threads begin
                await slow.wait_running(identity + 1)
            else:
                await anyio.sleep(0.005)
            params = {"requestId": identity}
            await wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await wire.send(call(100, "quick"))
        quick = await wire.receive()
        threads = threading.active_count() - before
        await wire.send(call(101, "slow"))
        slow.may_return.set()
        last = await wire.receive()

    assert (100, 101) == (quick["id"], last["id"])
    assert "done" == last["result"]["content"][0]["text"]
    assert (MOST, MOST + 1) == (slow.most, slow.calls)
    assert threads <= MOST + 1


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_clients_that_hang_up_leave_no_more_threads_than_allowed(revision: str, slow: Slow) -> None:
    async with caller(server(slow), revision) as peer:
        for identity in range(1, 21):
            exchange = peer.post(peer.request(identity, "tools/call", '"name":"slow"'))
            if identity <= MOST:
                await slow.wait_running(identity)
            else:
                await anyio.sleep(0.005)
            if revision == "2026-07-28":
                exchange.leave()
            else:
                await peer.post(cancellation(identity)).complete()
        await slow.wait_running(MOST)
        assert "quick" == (await peer.result("tools/call", '"name":"quick"'))["content"][0]["text"]
        slow.may_return.set()
        assert "done" == (await peer.result("tools/call", '"name":"slow"'))["content"][0]["text"]

    assert MOST == slow.most


def test_a_thread_that_outlives_its_event_loop_does_not_keep_it_from_ending() -> None:
    made = Slow()
    threads = WorkerThreads(1)

    async def leave() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(threads.run, made, None)
            await made.wait_running(1)
            group.start_soon(threads.run, abs, -1)
            await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    try:
        for backend in ("asyncio", "trio"):
            made.may_return.clear()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(made, "running", 0)
                anyio.run(leave, backend=backend)
                assert 1 == threads.running
                made.may_return.set()
                anyio.run(wait_free, threads)
    finally:
        made.may_return.set()


async def test_the_lifespan_is_left_when_functions_of_cancelled_calls_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_threads, "_END_SECONDS", PATIENCE_SECONDS)
    order: list[object] = []
    has_begun = anyio.Event()

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncGenerator[str]:
        yield "database"
        order.append("lifespan")

    made = Server("x", lifespan=lifespan)

    @made.tool
    def watchful(context: Context) -> None:
        anyio.from_thread.run_sync(has_begun.set)
        while not context.is_cancelled:
            time.sleep(0.001)
        time.sleep(0.05)
        order.append(context.state)

    @made.tool
    def asking(context: Context) -> None:
        try:
            context.sync.elicit("?", {"type": "object", "properties": {}})
        except TransportClosed as error:
            order.extend([str(error), context.state])

    async with memory.wire(made) as wire:
        await wire.send(call(1, "watchful"))
        with anyio.fail_after(PATIENCE_SECONDS):
            await has_begun.wait()
    async with memory.wire(made) as wire:
        await wire.send(call(1, "asking"))
        assert "input_required" == (await wire.receive())["result"]["resultType"]

    assert ["database", "lifespan", "the request is over: the server ends", "database", "lifespan"] == order


async def test_callers_take_turns_whoever_of_them_has_asked_most(slow: Slow) -> None:
    threads, turns = WorkerThreads(1), FairTurns()
    order: list[str] = []

    async def call(owner: str) -> None:
        CALLER.set(Caller(owner, turns))
        await threads.run(order.append, owner)

    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, slow, None)
        await slow.wait_running(1)
        for owner in "aaaabb":
            group.start_soon(call, owner)
            await anyio.lowlevel.checkpoint()
        slow.may_return.set()

    assert order == ["a", "b", "a", "b", "a", "a"]


async def test_callers_that_are_cancelled_leave_the_queue(slow: Slow) -> None:
    threads = WorkerThreads(1)
    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, slow, None)
        await slow.wait_running(1)
        with anyio.move_on_after(0.02):
            await threads.run(abs, -1)
        assert not threads._waiting
        slow.may_return.set()
    await wait_free(threads)
