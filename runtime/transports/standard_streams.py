"""The standard streams of the process, while they belong to the protocol.

Theory of operation. A handler prints, a library's C code writes to descriptor 1, a child reads descriptor 0: each would
corrupt the protocol. So the two descriptors are moved out of everybody's reach, to numbers that no program knows and no
child inherits. In their place, 0 is the null device and 1 is another name of 2, the standard error. What is still in a
buffer, Python's or C's, is flushed while 1 means that. At the end all is put back.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
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


class StandardStreams:
    """Keep standard input and output for the protocol, within a ``with`` block.

    A forked child loses them when it begins, so that no peer waits for it too to close them.

    Attributes:
        source: What was the standard input; nothing to read if it was closed.
        sink: What was the standard output; what is written is dropped if it was closed.

    Raises:
        UsageError: They are kept already, on entering.
    """

    source: Source
    sink: Sink

    _keeper: ClassVar[StandardStreams | None] = None
    _watches_forks: ClassVar[bool] = False

    def __init__(self) -> None:
        self._originals: list[int] = []
        self._buffering: list[tuple[io.TextIOWrapper, bool]] = []

    def __enter__(self) -> Self:
        if StandardStreams._keeper is not None:
            raise UsageError(
                "this process serves on its standard streams already"
                ' (if "mcpgen serve" loads this file, call run() only under: if __name__ == "__main__")'
            )
        self._originals = [_private(_STDIN), _private(_STDOUT)]
        _redirect()
        self.source, self.sink = open_source(self._originals[0]), open_sink(self._originals[1])
        StandardStreams._keeper = self
        if not StandardStreams._watches_forks and hasattr(os, "register_at_fork"):
            StandardStreams._watches_forks = True
            os.register_at_fork(after_in_child=StandardStreams._forget)
        for stream in _printed():
            self._buffering.append((stream, stream.line_buffering))
            # Behind a pipe it was buffered in blocks, but now it leads to where people look for what was printed when.
            _flush(stream)
            stream.reconfigure(line_buffering=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if StandardStreams._keeper is not self:  # in a forked child
            return
        for stream, is_line_buffered in self._buffering:
            _flush(stream)
            stream.reconfigure(line_buffering=is_line_buffered)
        _flush_c()
        for standard, original in zip((_STDIN, _STDOUT), self._originals, strict=True):
            os.dup2(original, standard)
        self._close()

    @classmethod
    def _forget(cls) -> None:
        if cls._keeper is not None:
            cls._keeper._close()  # noqa: SLF001 (of this class)

    def _close(self) -> None:
        StandardStreams._keeper = None
        self.source.close()
        self.sink.close()
        for original in self._originals:
            os.close(original)


def _private(fd: int) -> int:
    """Return another descriptor of what *fd* is, which no child inherits; the null device if it is closed."""
    try:
        return duplicate(fd)
    except OSError:
        return _null()


def _null() -> int:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return duplicate(null)  # what was opened may have got a standard number
    finally:
        os.close(null)


def _redirect() -> None:
    null = _null()
    os.dup2(null, _STDIN)
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # there is no standard error; nor may what is opened next take its place
        os.dup2(null, _STDOUT)
        os.dup2(null, _STDERR)
    os.close(null)


def _printed() -> Iterator[io.TextIOWrapper]:
    """Yield what print() writes to, if that is buffered."""
    for stream in {id(each): each for each in (sys.stdout, sys.__stdout__)}.values():
        if isinstance(stream, io.TextIOWrapper) and not stream.closed:
            yield stream


def _flush(stream: io.TextIOWrapper) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody reads it, or somebody closed it
        stream.flush()


def _flush_c() -> None:
    """Write what C code has printed: it has a buffer of its own, which the exit of the process would write to us."""
    with contextlib.suppress(ImportError, OSError, TypeError, AttributeError):  # no ctypes, or no such C library
        import ctypes  # noqa: PLC0415 (takes 2 ms, which no start needs to pay)

        ctypes.CDLL(None).fflush(None)
