"""The event loop that runs in a thread, to call functions in it from other threads; and what cancels its tasks.

The module imports no event loop: asyncio takes 15 ms, and a program that defines a server may never run it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EventLoop", "call_soon", "is_cancellation", "next_turn", "running_loop"]

EventLoop: TypeAlias = Any
"""A loop of asyncio, or a token of trio; None where no event loop runs."""


def running_loop() -> EventLoop:
    """Return the event loop that runs in this thread."""
    if "trio" in sys.modules:
        import trio  # noqa: PLC0415 (only where it runs already)

        if trio.lowlevel.in_trio_run():  # as a guest, it runs within a loop of asyncio
            return trio.lowlevel.current_trio_token()
    asyncio = sys.modules.get("asyncio")
    try:
        return None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        return None


def call_soon(loop: EventLoop, function: Callable[[], object]) -> bool:
    """Call *function* in the next turn of *loop*, from any thread; at once if *loop* is None.

    Return whether it is called: it is not if the loop has ended.
    """
    if loop is None:
        function()
        return True
    try:
        if hasattr(loop, "call_soon_threadsafe"):  # one of asyncio
            loop.call_soon_threadsafe(function)
        else:
            loop.run_sync_soon(function)
    except RuntimeError:  # so does trio's RunFinishedError
        return False
    return True


async def next_turn() -> None:
    """Let the other tasks of the event loop run."""
    await anyio.lowlevel.checkpoint()


def is_cancellation(failure: BaseException) -> bool:
    """Return whether *failure* has to be raised again: it cancels a task, or ends the program, or holds such a one.

    `GeneratorExit` is none: a coroutine that is closed may end in any way.
    """
    if isinstance(failure, Exception):
        return False
    found = (anyio.get_cancelled_exc_class(), KeyboardInterrupt, SystemExit)
    if isinstance(failure, BaseExceptionGroup):
        return cast("Any", failure).subgroup(found) is not None
    return isinstance(failure, found)
