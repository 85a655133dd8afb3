"""Find handlers that block the event loop, in the servers that have ``debug=True``.

Theory of operation. While an ``async def`` function computes or calls a blocking function, no other request is served,
and neither is a cancellation. A thread asks the event loop, several times a second, to set an event. If the event is
not set in time, the thread reads the stack of the event loop's thread, and reads it again later. If the same call is
still running, its place is logged. The loop does nothing for this but set the event, so a handler costs the same with
it and without it. A thread and its wake-ups are not free, though, so only servers with ``debug=True`` have it.
"""

from __future__ import annotations

import asyncio
import contextlib
import linecache
import logging
import os
import selectors
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

__all__ = ["watching"]

_LOG = logging.getLogger("mcpgen.handlers")

# Together about a second: the pause between two questions, and the time after which the stack is read and read again.
_PAUSE_SECONDS: Final = 0.25
_FIRST_LOOK_SECONDS: Final = 0.25
_SECOND_LOOK_SECONDS: Final = 0.5

# The folders of what calls the functions of authors: mcpgen, and the event loops with the tasks of authors.
_CALLERS: Final = tuple(
    f"{Path(each).parent}{os.sep}" for each in (str(Path(__file__).parents[1]), asyncio.__file__, anyio.__file__)
)
_TRIO: Final = f"{os.sep}trio{os.sep}_core{os.sep}_run.py"  # not imported where asyncio runs
_BETWEEN: Final = frozenset({contextlib.__file__})  # calls the functions of authors for us
# Where an idle event loop waits. It can be there for a second after its wake-up if the machine is busy.
_SELECTORS: Final = (selectors.__file__, f"{os.sep}trio{os.sep}_core{os.sep}_io_")


@contextmanager
def watching() -> Generator[None]:
    """Log the functions that block the event loop of this thread within the block."""
    watchdog = _Watchdog(threading.get_ident(), _call_soon())
    thread = threading.Thread(target=watchdog.run, name="mcpgen loop watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watchdog.stopped.set()


def _call_soon() -> Callable[[Callable[[], object]], object]:
    """Return the function by which other threads call a function in this event loop."""
    if is_asyncio():
        return asyncio.get_running_loop().call_soon_threadsafe
    import trio  # noqa: PLC0415 (only where it runs already)

    return trio.lowlevel.current_trio_token().run_sync_soon


class _Watchdog:
    """Watches one event loop.

    Args:
        thread_id: The thread of the loop.
        call_soon: Calls a function in the loop.

    Attributes:
        stopped: Set when it is to end.
    """

    def __init__(self, thread_id: int, call_soon: Callable[[Callable[[], object]], object]) -> None:
        self.stopped = threading.Event()
        self._thread_id = thread_id
        self._call_soon = call_soon

    def run(self) -> None:
        with suppress(RuntimeError):  # the event loop has ended; so says trio's RunFinishedError, too
            while not self.stopped.wait(_PAUSE_SECONDS):
                answered = threading.Event()
                self._call_soon(answered.set)
                if not answered.wait(_FIRST_LOOK_SECONDS):
                    self._look(answered)

    def _look(self, answered: threading.Event) -> None:
        first = self._place()
        if first is None or answered.wait(_SECOND_LOOK_SECONDS):
            return
        if self._place() is first:  # otherwise several functions ran, each of them for a shorter time
            _LOG.warning("%s", _message(first))
        del first  # its variables are the author's
        while not (self.stopped.is_set() or answered.wait(1)):
            pass

    def _place(self) -> FrameType | None:
        """Return the frame of the author's function that mcpgen or the event loop has called; None if none runs."""
        frames = sys._current_frames()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (documented, despite its name)
        frame = frames.get(self._thread_id)
        inner: FrameType | None = None
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_CALLERS) or file.endswith(_TRIO):
                return inner
            if file not in _BETWEEN and not any(each in file for each in _SELECTORS):
                inner = frame
            frame = frame.f_back
        return None


def _message(frame: FrameType) -> str:
    code, line = frame.f_code, frame.f_lineno
    source = linecache.getline(code.co_filename, line).strip()
    return (
        f"{code.co_qualname}() has blocked the event loop for about a second, at {code.co_filename}:{line}"
        f"{f' ({source})' if source else ''}; no other request is served meanwhile; await an asynchronous call "
        "instead of the one that blocks, or, for a tool, resource or prompt, write `def` instead of `async def`, so "
        "that it runs in a thread"
    )
