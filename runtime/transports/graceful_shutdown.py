"""Ending the process of a server in time after a signal, whatever its handlers do.

Theory of operation. Three things can keep a process alive after its work is done: a handler that catches its
cancellation, a handler that blocks the event loop, and a thread that hangs, which the interpreter joins at exit. Code
in a blocked event loop cannot run, so a thread, the watchdog, keeps the time and ends the process. It learns of signals
through a socket that the interpreter's C handler writes to, which works while the main thread is blocked. It wakes the
event loop through another socket. After the end of the event loop, a second thread waits until the interpreter begins
to exit, and ends the process if only threads that were started meanwhile keep it alive.

A process that a function forks, such as one of `multiprocessing`, inherits the socket of the watchdog. A signal to this
child must end only the child, so the child gets back the handlers that were set before the ``with`` block. A signal may
come before the child has restored them, so signals are blocked during the fork.
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
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import anyio

from mcpgen.runtime.transports.descriptors import duplicate

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

__all__ = ["GracefulShutdown", "SHUTDOWN_SECONDS", "end_with_parent"]

# From a signal to the end of the process at the latest. Hosts kill after a second or two, and the interpreter's own
# exit takes a while.
SHUTDOWN_SECONDS: Final = 0.6

# For threads that still run when the interpreter exits. They had all the time before.
_THREAD_SECONDS: Final = 0.1

# For the last log line and flush: the reader may have stopped reading.
_LAST_LOG_SECONDS: Final = 0.1

_WORKER: Final = "AnyIO worker thread"  # runs a function that is not async

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_FORKING: Final = threading.local()  # `mask`: which signals a thread that forks had blocked

_LOG = logging.getLogger("mcpgen.serving")


class GracefulShutdown:
    """End the process with status 0 after a signal, within a ``with`` block.

    Signals are handled if the block is entered in the main thread, except those that were ignored before, as SIGINT is
    in the background of a shell.

    Args:
        shutdown_seconds: From a signal to the end of the process at the latest.
    """

    _active: ClassVar[list[GracefulShutdown]] = []  # those that handle signals, oldest first
    _has_fork_handler: ClassVar[bool] = False

    def __init__(self, shutdown_seconds: float = SHUTDOWN_SECONDS) -> None:
        self._shutdown_seconds = shutdown_seconds
        # To the watchdog: the numbers of signals, or 0 to look at its state.
        self._watchdog_reader, self._watchdog_writer = _private_socketpair()
        # From the watchdog to the event loop.
        self._loop_reader, self._loop_writer = _private_socketpair()
        self._watchdog_writer.setblocking(False)  # noqa: FBT003 (the socket's own signature)
        self._loop_writer.setblocking(False)  # noqa: FBT003 (likewise)
        self._deadline: float | None = None
        self._is_over = False
        self._watchdog = threading.Thread(target=self._watch, name="mcpgen shutdown", daemon=True)
        self._handlers: dict[signal.Signals, Any] = {}
        self._previous_wakeup_fd = -1
        self._threads_before: set[threading.Thread] = set()

    def __enter__(self) -> Self:
        self._threads_before = set(threading.enumerate())
        self._watchdog.start()
        if threading.current_thread() is threading.main_thread():
            if not GracefulShutdown._has_fork_handler and hasattr(os, "register_at_fork"):
                GracefulShutdown._has_fork_handler = True
                os.register_at_fork(
                    before=GracefulShutdown._block_signals,
                    after_in_parent=GracefulShutdown._unblock_signals,
                    after_in_child=GracefulShutdown._release_in_child,
                )
            GracefulShutdown._active.append(self)
            for each in _SIGNALS:
                if signal.getsignal(each) is not signal.SIG_IGN:
                    self._handlers[each] = signal.signal(each, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = True
        _send(self._watchdog_writer, 0)
        self._watchdog.join()
        if self in GracefulShutdown._active:  # not in a forked child
            self._restore_handlers()
            GracefulShutdown._active.remove(self)
        for each_socket in (self._watchdog_reader, self._watchdog_writer, self._loop_reader, self._loop_writer):
            each_socket.close()
        left = [each for each in threading.enumerate() if each not in self._threads_before and not each.daemon]
        if left:
            threading.Thread(target=_end_despite, args=(left,), name="mcpgen exit", daemon=True).start()

    async def wait_requested(self) -> None:
        """Return when a signal requests the shutdown."""
        if not self._handlers:
            await anyio.sleep_forever()
        # A handler in Python runs only when the main thread gets to it, which may be about to wait, or be blocked.
        # The interpreter's C handler writes to the watchdog in any case.
        self._previous_wakeup_fd = signal.set_wakeup_fd(self._watchdog_writer.fileno(), warn_on_full_buffer=False)
        try:
            await anyio.wait_readable(self._loop_reader)
        finally:
            signal.set_wakeup_fd(self._previous_wakeup_fd)

    def start_countdown(self, seconds: float) -> None:
        """End the process in any case, unless the block is left within *seconds*."""
        self._shorten_deadline(seconds)
        _send(self._watchdog_writer, 0)

    @classmethod
    def _block_signals(cls) -> None:
        # Of this thread; the parent's other threads still get signals.
        _FORKING.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS if cls._active else ())

    @staticmethod
    def _unblock_signals() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _FORKING.mask)

    @classmethod
    def _release_in_child(cls) -> None:
        if cls._active:
            signal.set_wakeup_fd(-1)
        while cls._active:
            cls._active.pop()._restore_handlers()  # noqa: SLF001 (of this class)
        cls._unblock_signals()

    def _restore_handlers(self) -> None:
        for each, handler in self._handlers.items():
            if signal.getsignal(each) == self._on_signal:  # otherwise, the program has set its own meanwhile
                signal.signal(each, handler if handler is not None else signal.SIG_DFL)

    def _shorten_deadline(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._deadline = deadline if self._deadline is None else min(deadline, self._deadline)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        _send(self._watchdog_writer, number)

    def _watch(self) -> None:
        while not self._is_over:
            # Not 0, which would mean not to wait.
            timeout = None if self._deadline is None else max(0.001, self._deadline - time.monotonic())
            self._watchdog_reader.settimeout(timeout)
            try:
                numbers = self._watchdog_reader.recv(4096)
            except TimeoutError:
                _end_process("the server did not end in time")
            if self._previous_wakeup_fd != -1:  # of the event loop, or of the program
                with suppress(OSError):
                    os.write(self._previous_wakeup_fd, numbers)
            if any(each in numbers for each in self._handlers):
                self._shorten_deadline(self._shutdown_seconds)
                _send(self._loop_writer, 0)


def _private_socketpair() -> tuple[socket.socket, socket.socket]:
    """Return two sockets whose descriptors do not have the number of a standard stream that was closed."""
    one, other = socket.socketpair()
    if sys.platform == "win32":
        return one, other
    with one, other:
        return socket.socket(fileno=duplicate(one.fileno())), socket.socket(fileno=duplicate(other.fileno()))


def _send(receiver: socket.socket, number: int) -> None:
    with suppress(OSError):  # its buffer is full of bytes with the same effect
        receiver.send(bytes([number]))


def _end_despite(left: list[threading.Thread]) -> None:
    """End the process if nothing but the threads *left* keeps it alive."""
    threading.main_thread().join()  # returns when the interpreter begins to exit
    for thread in threading.enumerate():
        if not thread.daemon and thread not in left and thread is not threading.main_thread():
            thread.join()  # a thread of the program, which it may wait for
    deadline = time.monotonic() + _THREAD_SECONDS
    for thread in left:
        thread.join(max(0, deadline - time.monotonic()))
    hanging = [thread.name for thread in left if thread.is_alive()]
    if hanging:
        _end_process(_threads_text(hanging))


def _threads_text(names: list[str]) -> str:
    """Return why the process is ended although the threads with these *names* run."""
    others = [each for each in names if each != _WORKER]
    running = ["a function of the server"] if len(others) < len(names) else []
    running += [f"the thread {each}" for each in others]
    return f"{', '.join(running)} still {'runs' if len(running) == 1 else 'run'}"


def _end_process(reason: str) -> NoReturn:
    """End the process without waiting for anything in it."""
    last = threading.Thread(target=_log_and_flush, args=(reason,), daemon=True)
    with suppress(RuntimeError):  # Python 3.12 starts no threads while it exits
        last.start()
        last.join(_LAST_LOG_SECONDS)
    os._exit(0)


def _log_and_flush(reason: str) -> None:
    _LOG.warning("ending the process: %s", reason)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
            stream.flush()


def end_with_parent() -> None:
    """End this process when the process that started it closes the pipe at standard input, or has ended.

    The program itself gets an empty standard input.
    """
    pipe = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)

    def wait() -> None:
        while os.read(pipe, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True, name="mcpgen end_with_parent").start()
