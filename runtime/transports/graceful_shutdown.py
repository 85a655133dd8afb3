"""How a process that serves comes to its end: asked by a signal, in time, whatever its handlers do.

Theory of operation. Three things can keep a process from ending although all that matters is done: a handler that
swallows its cancellation, a handler that blocks the event loop, and a thread that hangs, which the interpreter waits
for at exit. No code in the event loop can help against the second, so that a thread of its own keeps the time, and ends
the process when it is over. It hears of signals through a socket that the interpreter's own handler writes to, without
any help of the main thread, and wakes the loop through another. Behind the event loop's end, another thread waits until
the interpreter begins to exit, and ends the process if nothing but threads that were left behind keeps it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

import anyio

from mcpgen.runtime.transports.descriptors import duplicate

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

__all__ = ["GracefulShutdown", "LEAVE_SECONDS"]

# From a signal to the end of the process at the latest. Hosts kill after a second or two, and the interpreter's own
# exit takes a while.
LEAVE_SECONDS: Final = 0.6

# What threads that still run get when the interpreter exits: they had all the time before.
_LINGER_SECONDS: Final = 0.1

# For the last words: who should read them may have stopped reading.
_FAREWELL_SECONDS: Final = 0.1

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_LOG = logging.getLogger("mcpgen.serving")


class GracefulShutdown:
    """See, within a ``with`` block, that the process leaves when it is asked to, with status 0.

    Signals are only noticed if the block is entered in the main thread, and only those that were not ignored before, as
    SIGINT is in the background of a shell.

    Args:
        leave_seconds: From a signal to the end of the process at the latest.
    """

    def __init__(self, leave_seconds: float = LEAVE_SECONDS) -> None:
        self._leave_seconds = leave_seconds
        self._ear, self._mouth = _private_pair()  # what the keeper is told: the numbers of signals, or 0 to look around
        self._bell, self._hammer = _private_pair()  # how it wakes the event loop
        self._mouth.setblocking(False)  # noqa: FBT003 (the socket's own signature)
        self._hammer.setblocking(False)  # noqa: FBT003 (likewise)
        self._until: float | None = None
        self._is_over = False
        self._keeper = threading.Thread(target=self._keep_time, name="mcpgen departure", daemon=True)
        self._handlers: dict[signal.Signals, Any] = {}
        self._older_wakeup = -1
        self._before: set[threading.Thread] = set()

    def __enter__(self) -> Self:
        self._before = set(threading.enumerate())
        self._keeper.start()
        if threading.current_thread() is threading.main_thread():
            for each in _SIGNALS:
                if signal.getsignal(each) is not signal.SIG_IGN:
                    self._handlers[each] = signal.signal(each, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = True
        _send(self._mouth, 0)
        self._keeper.join()
        for each, handler in self._handlers.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)
        for end in (self._ear, self._mouth, self._bell, self._hammer):
            end.close()
        left = [each for each in threading.enumerate() if each not in self._before and not each.daemon]
        if left:
            threading.Thread(target=_end_without, args=(left,), name="mcpgen exit", daemon=True).start()

    async def asked(self) -> None:
        """Return when a signal asks the process to leave."""
        if not self._handlers:
            await anyio.sleep_forever()
        # A handler in Python runs when the main thread comes to it, which may be about to wait, or blocked for good.
        # The interpreter's own handler, in C, tells the keeper in any case.
        self._older_wakeup = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        try:
            await anyio.wait_readable(self._bell)
        finally:
            signal.set_wakeup_fd(self._older_wakeup)

    def begin(self, seconds: float) -> None:
        """End the process, whatever it does, unless the block is left within *seconds*."""
        self._hurry(seconds)
        _send(self._mouth, 0)

    def _hurry(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._until = until if self._until is None else min(until, self._until)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        _send(self._mouth, number)

    def _keep_time(self) -> None:
        while not self._is_over:
            # Not 0, which would mean not to wait.
            self._ear.settimeout(None if self._until is None else max(0.001, self._until - time.monotonic()))
            try:
                heard = self._ear.recv(4096)
            except TimeoutError:
                _end_process("the server did not end in time")
            if self._older_wakeup != -1:  # the event loop's, or somebody's who was first
                with suppress(OSError):
                    os.write(self._older_wakeup, heard)
            if any(each in heard for each in self._handlers):
                self._hurry(self._leave_seconds)
                _send(self._hammer, 0)


def _private_pair() -> tuple[socket.socket, socket.socket]:
    """Return two sockets, neither of which takes the place of a standard stream that was closed."""
    one, other = socket.socketpair()
    if sys.platform == "win32":
        return one, other
    with one, other:
        return socket.socket(fileno=duplicate(one.fileno())), socket.socket(fileno=duplicate(other.fileno()))


def _send(end: socket.socket, number: int) -> None:
    with suppress(OSError):  # full: of what had the same effect
        end.send(bytes([number]))


def _end_without(left: list[threading.Thread]) -> None:
    threading.main_thread().join()  # returns when the interpreter begins to exit
    for thread in threading.enumerate():
        if not thread.daemon and thread not in left and thread is not threading.main_thread():
            thread.join()  # not ours to judge
    until = time.monotonic() + _LINGER_SECONDS
    for thread in left:
        thread.join(max(0, until - time.monotonic()))
    hanging = [thread.name for thread in left if thread.is_alive()]
    if hanging:
        _end_process(f"threads do not end: {', '.join(hanging)}")


def _end_process(reason: str) -> NoReturn:
    """End the process without waiting for anything in it."""
    farewell = threading.Thread(target=_say, args=(reason,), daemon=True)
    with suppress(RuntimeError):  # Python 3.12 starts no threads any more while it exits
        farewell.start()
        farewell.join(_FAREWELL_SECONDS)
    os._exit(0)


def _say(reason: str) -> None:
    _LOG.warning("ending the process: %s", reason)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
            stream.flush()
