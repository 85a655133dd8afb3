"""Free memory goes back to the system, where there is much of it."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio._backends import _asyncio

from mcpgen.runtime.transports import process_memory
from mcpgen.runtime.transports.process_memory import return_free_memory
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

# What is in use at each check, in MiB, and at which seconds the rest is returned. The server starts with 40, and memory
# that was in use stays resident until it is returned.
COURSES = {
    "nothing happens": ([40, 40, 40], []),
    "little is free": ([56, 40, 56, 40], []),
    "all is free": ([200, 40, 40], [5, 35]),
    "much is in use": ([200, 200, 200, 200], [5, 35, 65, 95]),
    "it is freed later": ([200, 200, 40, 40], [5, 35, 65]),
    "it becomes free again and again": ([40, 100, 40, 40, 100, 40], [10, 40, 50, 80]),
}


class _OverError(Exception):
    pass


@pytest.fixture
def anyio_backend() -> str:
    # uvicorn needs asyncio. trio's loop under pytest waits in a thread, and would stop for ever where none may start.
    return "asyncio"


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.slow
async def test_free_memory_is_returned_when_there_is_much(monkeypatch: pytest.MonkeyPatch, course: str) -> None:
    uses, expected = COURSES[course]
    coming, used, resident, now = iter(uses), 40, 40, 0
    trimmed = []

    async def sleep(seconds: int) -> None:
        nonlocal used, resident, now
        await anyio.lowlevel.checkpoint()
        now += seconds
        used = next(coming, -1)
        if used < 0:
            raise _OverError
        resident = max(resident, used)

    def trim(_pad: int) -> int:
        nonlocal resident
        trimmed.append(now)
        resident = used
        return 1

    monkeypatch.setattr(anyio, "sleep", sleep)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(process_memory, "_malloc_trim", lambda: trim)
    monkeypatch.setattr(process_memory, "_resident_bytes", lambda: resident << 20)
    with pytest.raises(_OverError):
        await return_free_memory(list)

    assert trimmed == expected


class _Garbage:
    """Is freed by a garbage collection alone."""

    freed = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        type(self).freed += 1


@pytest.mark.parametrize(
    ("blocks", "thresholds", "freed"),
    [
        pytest.param(1000, (700, 10, 10), ("cleared", "collected"), id="few objects are in use"),
        pytest.param(1_000_000, (700, 10, 10), (), id="many objects are in use"),
        pytest.param(0, (700, 10, 10), (), id="Python uses another allocator"),
        pytest.param(1000, (0, 10, 10), ("cleared",), id="the program has turned off garbage collection"),
    ],
)
@pytest.mark.slow
async def test_what_keeps_arenas_is_freed_when_few_objects_are_in_use(
    monkeypatch: pytest.MonkeyPatch, blocks: int, thresholds: tuple[int, int, int], freed: tuple[str, ...]
) -> None:
    counts, sizes, happened, before = iter([1000]), iter([40 << 20]), [], gc.get_threshold()

    def trim(_pad: int) -> int:
        raise _OverError

    monkeypatch.setattr(process_memory, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(process_memory, "_malloc_trim", lambda: trim)
    monkeypatch.setattr(process_memory, "_resident_bytes", lambda: next(sizes, 200 << 20))
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: next(counts, blocks))
    gc.set_threshold(*thresholds)
    try:
        gc.collect()
        _Garbage.freed = 0
        _Garbage()
        with pytest.raises(_OverError):
            await return_free_memory(lambda: happened.append("cleared"))
    finally:
        gc.set_threshold(*before)
    if _Garbage.freed:
        happened.append("collected")

    assert tuple(happened) == freed


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # those of trio end by themselves
@pytest.mark.slow
async def test_threads_that_were_idle_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_asyncio.WorkerThread, "MAX_IDLE_TIME", 0)
    meeting, before = threading.Barrier(3), set(threading.enumerate())
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(anyio.to_thread.run_sync, meeting.wait, PATIENCE_SECONDS)
    idle = set(threading.enumerate()) - before
    assert len(idle) == 3

    await process_memory._free_unused()
    ended = idle - set(_asyncio._threadpool_idle_workers.get())
    for each in ended:
        each.join(PATIENCE_SECONDS)

    assert [each.is_alive() for each in ended] == [False, False]


@pytest.mark.slow
async def test_a_process_that_may_start_no_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading, "active_count", lambda: 2)
    monkeypatch.setattr(threading.Thread, "start", refuse)

    await process_memory._free_unused()


async def test_nothing_is_done_where_the_allocator_has_no_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([0, 1 << 30])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(process_memory, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(process_memory, "_resident_bytes", lambda: next(sizes))
    monkeypatch.setattr(process_memory, "_malloc_trim", lambda: None)
    with anyio.fail_after(PATIENCE_SECONDS):
        await return_free_memory(list)

    assert not list(sizes)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
async def test_only_linux_is_asked_for_a_trim(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with anyio.fail_after(PATIENCE_SECONDS):
        await return_free_memory(list)


def test_python_without_ctypes_has_no_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)

    assert process_memory._malloc_trim() is None


async def test_a_process_without_free_file_descriptors_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(process_memory, "_malloc_trim", lambda: lambda _: None)
    monkeypatch.setattr(process_memory, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(process_memory, "_STATM", Path("/proc/self/cannot-be-opened"))
    with anyio.move_on_after(0.01) as scope:
        await return_free_memory(list)
    assert scope.cancelled_caught


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_resident_memory_is_that_of_this_process() -> None:
    before = process_memory._resident_bytes()
    held = b"x" * (64 << 20)

    assert len(held) * 0.9 < process_memory._resident_bytes() - before < len(held) * 1.5
