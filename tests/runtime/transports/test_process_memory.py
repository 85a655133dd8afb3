"""Free memory goes back to the system, where there is much of it."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

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


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("course", COURSES)
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
    monkeypatch.setattr(process_memory, "_malloc_trim", lambda: trim)
    monkeypatch.setattr(process_memory, "_resident_bytes", lambda: resident << 20)
    with pytest.raises(_OverError):
        await return_free_memory()

    assert trimmed == expected


async def test_nothing_is_done_where_the_allocator_has_no_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "_malloc_trim", lambda: None)
    with anyio.fail_after(PATIENCE_SECONDS):
        await return_free_memory()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_only_linux_is_asked_for_a_trim(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)

    assert process_memory._malloc_trim() is None


def test_python_without_ctypes_has_no_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(sys.modules, "ctypes", None)

    assert process_memory._malloc_trim() is None


async def test_a_process_without_free_file_descriptors_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "_malloc_trim", lambda: lambda _: None)
    monkeypatch.setattr(process_memory, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(process_memory, "_STATM", Path("/proc/self/cannot-be-opened"))
    with anyio.move_on_after(0.01) as scope:
        await return_free_memory()
    assert scope.cancelled_caught


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_resident_memory_is_that_of_this_process() -> None:
    before = process_memory._resident_bytes()
    held = b"x" * (64 << 20)

    assert len(held) * 0.9 < process_memory._resident_bytes() - before < len(held) * 1.5
