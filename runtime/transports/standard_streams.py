"""Reserving standard input and output for the protocol.

Theory of operation. A handler that prints, C code that writes to descriptor 1, or a child that reads descriptor 0 would
corrupt the protocol. So both descriptors are moved to other numbers, which no child inherits. In their place, 0 becomes
the null device, and 1 a duplicate of 2, the standard error. The buffers of Python and C are flushed before the original
descriptors are restored at the end. They are not restored while functions still run in threads, which may print, and
in a process that only serves, because what runs at its exit may print.

Spec:
    2024-11-05, basic/transports, "stdio": the server MUST NOT write anything to its stdout that is not a valid message.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, ClassVar, Final

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.transports.descriptors import duplicate, open_sink, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.transports.descriptors import Sink, Source

__all__ = ["StandardStreams"]

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2

# For threads that are ending already: those of asyncio that wait for a function.
_THREAD_SECONDS: Final = 0.05

# Threads that run no function: our own, and those of trio between two functions.
_IDLE: Final = ("mcpgen ", "Trio thread ")


class StandardStreams:
    """Reserve standard input and output for the protocol, within a ``with`` block.

    They are closed in a forked child, so that the peer sees the end when this process closes them.

    Attributes:
        source: The original standard input; empty if it was closed.
        sink: The original standard output; it drops what is written if it was closed.
        are_restored: Whether the original descriptors are restored at the end, if no thread runs a function.

    Raises:
        UsageError: They are reserved already. Raised on entering.
    """

    source: Source
    sink: Sink

    _active: ClassVar[StandardStreams | None] = None
    _has_fork_handler: ClassVar[bool] = False

    def __init__(self) -> None:
        self.are_restored = True
        self._originals: list[int] = []
        self._line_buffering: list[tuple[io.TextIOWrapper, bool]] = []
        self._threads_before: set[threading.Thread] = set()

    def __enter__(self) -> Self:
        if StandardStreams._active is not None:
            raise UsageError(
                "a server cannot be run on stdio here, because this process uses its standard input and output for MCP "
                'already; in a file that mcpgen loads, call run() only under: if __name__ == "__main__"'
            )
        self._originals = [_private(_STDIN), _private(_STDOUT)]
        _redirect()
        self.source, self.sink = open_source(self._originals[0]), open_sink(self._originals[1])
        StandardStreams._active = self
        self._threads_before = set(threading.enumerate())
        if not StandardStreams._has_fork_handler and hasattr(os, "register_at_fork"):
            StandardStreams._has_fork_handler = True
            os.register_at_fork(after_in_child=StandardStreams._close_in_child)
        for stream in _text_streams():
            self._line_buffering.append((stream, stream.line_buffering))
            # Block buffering, the default for a pipe, would delay output that now goes to the standard error.
            _flush(stream)
            stream.reconfigure(line_buffering=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if StandardStreams._active is not self:  # in a forked child
            return
        if not self.are_restored or _has_running(self._threads_before):
            self._close()
            return
        for stream, was_line_buffered in self._line_buffering:
            _flush(stream)
            stream.reconfigure(line_buffering=was_line_buffered)
        _flush_c()
        for standard, original in zip((_STDIN, _STDOUT), self._originals, strict=True):
            os.dup2(original, standard)
        self._close()

    @classmethod
    def _close_in_child(cls) -> None:
        if cls._active is not None:
            cls._active._close()  # noqa: SLF001 (of this class)

    def _close(self) -> None:
        StandardStreams._active = None
        self.source.close()
        self.sink.close()
        for original in self._originals:
            os.close(original)


def _has_running(threads_before: set[threading.Thread]) -> bool:
    """Return whether a thread that is not one of *threads_before* runs a function."""
    deadline = time.monotonic() + _THREAD_SECONDS
    for thread in threading.enumerate():
        if thread in threads_before or thread is threading.current_thread() or thread.name.startswith(_IDLE):
            continue
        thread.join(max(0, deadline - time.monotonic()))
        if thread.is_alive() and not thread.name.startswith(_IDLE):
            return True
    return False


def _private(fd: int) -> int:
    """Return a duplicate of *fd* that no child inherits; the null device if *fd* is closed."""
    try:
        return duplicate(fd)
    except OSError:
        return _null()


def _null() -> int:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return duplicate(null)  # it may have got the number of a closed standard stream
    finally:
        os.close(null)


def _redirect() -> None:
    null = _null()
    os.dup2(null, _STDIN)
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # standard error is closed; no file that is opened later may get its number
        os.dup2(null, _STDOUT)
        os.dup2(null, _STDERR)
    os.close(null)


def _text_streams() -> Iterator[io.TextIOWrapper]:
    """Yield the buffered streams that print() writes to."""
    for stream in {id(each): each for each in (sys.stdout, sys.__stdout__)}.values():
        if isinstance(stream, io.TextIOWrapper) and not stream.closed:
            yield stream


def _flush(stream: io.TextIOWrapper) -> None:
    with contextlib.suppress(OSError, ValueError):  # its reader is gone, or it is closed
        stream.flush()


def _flush_c() -> None:
    """Flush the buffer of the C library. At exit it would be written to the restored standard output."""
    with contextlib.suppress(ImportError, OSError, TypeError, AttributeError):  # no ctypes, or no fflush
        import ctypes  # noqa: PLC0415 (takes 2 ms, which no start needs to pay)

        ctypes.CDLL(None).fflush(None)
