"""A store of tasks fails for a moment, or has content that cannot be read."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Context, Limits, MemoryTaskStore, Server, TaskLimits
from mcpgen.runtime.server.tasks import lifecycle, task_worker
from mcpgen.runtime.server.tasks.running_task import RunningTask
from mcpgen.runtime.server.tasks.task_access import body_of
from mcpgen.runtime.server.tasks.task_store import NewTask, Outcome, StoreFailed, TaskRecord
from mcpgen.runtime.transports import memory
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = pytest.mark.anyio

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
}


def call(number: int, name: str) -> dict[str, Any]:
    params = {"name": name, "arguments": {}, "_meta": META}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class FailingStore(MemoryTaskStore):
    """It can look shared, and fail when tasks are to expire, or with its first beat."""

    is_shared = False
    fails = False
    odd_beat: anyio.Event | None = None

    def expire(self, now_ms: int) -> list[TaskRecord]:
        if self.fails:
            raise StoreFailed("it is not there")
        return super().expire(now_ms)

    def beat(self, worker: str) -> Mapping[str, int]:
        if self.odd_beat is not None and not self.odd_beat.is_set():
            self.odd_beat.set()
            b"\xff".decode()  # as the name of a worker
        return super().beat(worker)


async def test_calls_that_wait_for_input_expire_although_the_store_of_tasks_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifecycle, "RETRY_SECONDS", 0.001)
    store, ended = FailingStore(), anyio.Event()
    server = Server("failing", version="1", tasks=store, limits=Limits(waiting_seconds=0.01))

    @server.tool
    async def ask(ctx: Context) -> None:
        try:
            await ctx.roots()
        finally:
            ended.set()

    @server.tool(task=True)
    async def bake() -> str:
        return "baked"

    async with memory.wire(server) as wire:
        store.fails = True
        await wire.send(call(1, "ask"))
        assert (await wire.receive())["result"]["resultType"] == "input_required"
        with anyio.fail_after(PATIENCE_SECONDS):
            await ended.wait()


async def test_tasks_run_although_the_store_had_content_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_worker, "RETRY_SECONDS", 0.001)
    store, baked = FailingStore(), anyio.Event()
    store.is_shared, store.odd_beat = True, anyio.Event()
    server = Server("failing", version="1", tasks=store)

    @server.tool(task=True)
    async def bake() -> str:
        baked.set()
        return "baked"

    async with memory.wire(server) as wire:
        with anyio.fail_after(PATIENCE_SECONDS):
            await store.odd_beat.wait()
            await wire.send(call(1, "bake"))
            assert (await wire.receive())["result"]["resultType"] == "task"
            await baked.wait()
    assert "checking the tasks failed; the server tries again" in caplog.messages


async def test_the_results_that_wait_for_a_store_are_bounded() -> None:
    store = FailingStore()
    limits = TaskLimits(max_running_bytes=1_000_000)
    tasks = lifecycle.TaskLifecycle(store, clock=lambda: 0.0, random_bytes=secrets.token_bytes, limits=limits)
    begun: list[RunningTask] = []

    def run(running: RunningTask) -> Callable[[], None]:
        begun.append(running)
        return lambda: None

    for _ in range(20):
        tasks.begin(NewTask(principal="ann", revision="2026-07-28"), partial(RunningTask, changed=lambda _: None), run)
    store.fails = True
    for each in begun:
        each.finish(b'{"text":"%b"}' % (b"x" * 100_000))
        each.close()

    assert 900_000 < sum(len(each.outcome.json) for each in tasks._unsaved.values()) < 1_010_000
    store.fails = False
    while tasks.save():
        pass
    found = [store.get(each.task_id) for each in begun]
    assert [each.status for each in found if each is not None] == ["completed"] * 9 + ["failed"] * 11


def test_a_large_result_of_a_shared_store_is_not_kept_until_its_response_is_written() -> None:
    store = FailingStore()
    store.is_shared = True
    for size in (100, 100_000):
        outcome = Outcome(b'{"text":"%b"}' % (b"x" * size))
        record = TaskRecord(
            task_id=f"{size}",
            principal="ann",
            status="completed",
            created_ms=0,
            updated_ms=0,
            ttl_ms=1,
            outcome=outcome,
        )
        store.add(record)
        body = body_of(store, record.task_id, outcome)
        assert body().json == outcome.json
        store.remove(record.task_id)
        assert (b"There is no such task" in body().json) == (size > 1000)
