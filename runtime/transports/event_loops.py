"""The event loop that runs in a thread, to call functions in it from other threads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EventLoop", "call_soon", "running_loop"]

EventLoop: TypeAlias = Any
"""A loop of asyncio, or a token of trio; None where no event loop runs."""


def running_loop() -> EventLoop:
    """Return the event loop that runs in this thread."""
    if "trio" in sys.modules:
        import trio  # noqa: PLC0415 (only where it runs already)

        if trio.lowlevel.in_trio_run():  # as a guest, it runs within a loop of asyncio
            return trio.lowlevel.current_trio_token()
    asyncio = sys.modules.get("asyncio")  # it takes 15 ms to import, and is there where one of its loops runs
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
