"""The memory of a process that serves: when garbage is collected, and when free memory goes back to the system.

Theory of operation. glibc returns memory to the system where it is free up to the end of the heap. One small object
behind large ones that are free keeps them all resident. After an attack with large messages, 9 of 230 MiB were in use
(docs/adr/0029-free-memory-is-returned.md). `malloc_trim` returns the rest. A server cannot know when much is
free. So it calls `malloc_trim` regularly while its resident memory is above that of its start, and less often while
that returns little.

Python's own allocator returns an arena of 1 MiB when no object is left in it. After a peak, a few objects that outlive
it keep many arenas: entries of caches, idle threads, and the unused objects that the interpreter keeps for later
use. When few objects are in use, these are freed, too.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["FEW_BLOCKS", "collect_garbage", "return_free_memory", "tune_gc"]

_DEFAULT_THRESHOLDS: Final = gc.get_threshold()

# `malloc_trim` takes about 0.1 ms for each MiB that it returns, and nothing else runs meanwhile. So a server neither
# calls it for little nor lets much accumulate. After a call that returned little, most memory is in use.
_PAUSE_SECONDS: Final = 5
_LONG_PAUSE_SECONDS: Final = 30
_WORTH_BYTES: Final = 16 * 1024 * 1024

# A garbage collection takes 10 ms for so many blocks of memory beyond those of the start, which `tune_gc` excludes.
FEW_BLOCKS: Final = 200_000

_STATM: Final = "/proc/self/statm"


@contextmanager
def tune_gc() -> Generator[None]:
    """Exclude all objects that exist now from garbage collection, and collect less often, within the block.

    Objects that exist when serving starts stay, and requests leave few cycles behind. With the default thresholds,
    collection took 1.5 to 3 µs of each call, of about 12 (docs/benchmarks.md). Thresholds that the program has changed
    are left alone.
    """
    before = gc.get_threshold()
    if before != _DEFAULT_THRESHOLDS:
        yield
        return
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def collect_garbage(few_blocks: int) -> None:
    """Collect all garbage, or only that of young objects if there are more blocks of memory than *few_blocks*.

    It does nothing if the program has turned off garbage collection.
    """
    if gc.isenabled() and gc.get_threshold()[0]:
        gc.collect(2 if sys.getallocatedblocks() < few_blocks else 1)


async def return_free_memory(clear_caches: Callable[[], object]) -> None:
    """Return free memory to the system when there is much, until this is cancelled; on glibc only.

    Args:
        clear_caches: Frees entries of caches that clients have filled.
    """
    if sys.platform != "linux":
        return
    start, pause = _resident_bytes(), _PAUSE_SECONDS
    few_blocks = sys.getallocatedblocks() + FEW_BLOCKS
    while True:
        await anyio.sleep(pause)
        pause = _PAUSE_SECONDS
        before = _resident_bytes()
        if before > start + _WORTH_BYTES:
            trim = _malloc_trim()
            if trim is None:
                return
            if 0 < sys.getallocatedblocks() < few_blocks:  # 0 if PYTHONMALLOC chooses another allocator
                clear_caches()
                await _free_unused()
            trim(0)
            is_worth = before - _resident_bytes() > _WORTH_BYTES
            pause = _PAUSE_SECONDS if is_worth else _LONG_PAUSE_SECONDS


async def _free_unused() -> None:
    """End idle worker threads, and free the unused objects that the interpreter keeps."""
    if threading.active_count() > 1:
        # When a thread gets work, anyio ends the other threads that have been idle for 10 seconds. So the first call
        # leaves one thread, and the second starts a new one. The objects of a new thread are beside others in use.
        limiter = anyio.CapacityLimiter(2)
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(_use_thread, limiter)
    collect_garbage(sys.maxsize)  # which empties the lists of unused tuples, dicts and floats, too


async def _use_thread(limiter: anyio.CapacityLimiter) -> None:
    with suppress(RuntimeError):  # the system allows no more threads
        await to_thread.run_sync(int, limiter=limiter)


def _malloc_trim() -> Callable[[int], int] | None:
    try:
        import ctypes  # noqa: PLC0415 (it takes a millisecond, and few servers have much free memory)
    except ImportError:  # Python was built without libffi
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none


def _resident_bytes() -> int:
    # /proc/self/statm cannot be read while no file descriptor is free. The next pause tries again.
    try:
        with open(_STATM, encoding="ascii") as file:  # noqa: PTH123 (pathlib would be imported for this alone)
            statm = file.read()
    except OSError:
        return 0
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")
