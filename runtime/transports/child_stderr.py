"""What a server prints as errors: always read, so that it never waits for us; told by line; the last of it kept."""

from __future__ import annotations

import codecs
import logging
import os
import sys
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import printable
from mcpgen.runtime.transports.child_process import read_chunk
from mcpgen.runtime.transports.descriptors import READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ChildStderr"]

# Little, so that the lines of one read, which are handled in one turn of the event loop, cannot be many. A server that
# prints more than is read so has to wait; we do not.
_READ_BYTES: Final = 4096

# Twice what a pipe holds: what is read at once when the process is over. Others may still fill it.
_REST_READS: Final = 2 * READ_BYTES // _READ_BYTES

# A longer line comes in pieces: it may have no end.
_MAX_LINE_CHARACTERS: Final = 16 * 1024

_PRINTED = logging.getLogger("mcpgen.server")
_LOG = logging.getLogger("mcpgen.client")


class ChildStderr:
    """The reading end of a server's standard error."""

    def __init__(self, fd: int, max_bytes: int, on_line: Callable[[str], None] | None) -> None:
        self._fd = fd
        self._most = max_bytes
        self._on_line = on_line
        self._kept = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""  # as far as it has come
        self._is_ended = False
        self._has_failed = False

    @property
    def last(self) -> str:
        """The last of what was printed; what is no UTF-8 is replaced."""
        kept = self._kept[-self._most :]
        start = 0
        if len(self._kept) > self._most:  # then it may begin within a character, whose other bytes are 10xxxxxx
            while start < min(3, len(kept)) and kept[start] & 0xC0 == 0x80:  # noqa: PLR2004 (the bits of UTF-8)
                start += 1
        return kept[start:].decode("utf-8", "replace")

    async def read_all(self) -> None:
        """Read until nobody can print any more."""
        while not self._is_ended:
            self._take(await read_chunk(self._fd, _READ_BYTES))

    def read_rest(self) -> None:
        """Read what there is, without waiting; nothing where a thread has to wait for it."""
        if sys.platform == "win32":
            return
        for _ in range(_REST_READS):
            if self._is_ended:
                return
            try:
                data = os.read(self._fd, _READ_BYTES)
            except OSError:  # there is no more yet
                return
            self._take(data)

    def end(self) -> None:
        """Take what has come of a line for all of it."""
        self._is_ended = True
        self._line += self._decoder.decode(b"", final=True)
        if self._line:
            self._tell(self._line)
            self._line = ""

    def _take(self, data: bytes) -> None:
        if self._is_ended:
            return
        if not data:
            self.end()
            return
        self._kept += data
        if len(self._kept) > 2 * self._most:  # not with every read
            del self._kept[: -self._most - 1]  # one more, to tell that it is not all
        *lines, rest = (self._line + self._decoder.decode(data)).split("\n")
        self._line = ""
        for line in lines:
            self._tell(line)
        while len(rest) > _MAX_LINE_CHARACTERS:
            self._tell(rest[:_MAX_LINE_CHARACTERS])
            rest = rest[_MAX_LINE_CHARACTERS:]
        self._line = rest

    def _tell(self, line: str) -> None:
        line = line.removesuffix("\r")
        if _PRINTED.isEnabledFor(logging.DEBUG):
            _PRINTED.debug("%s", printable(line))
        if self._on_line is None:
            return
        try:
            self._on_line(line)
        except Exception:  # noqa: BLE001 (the boundary: it must not cost the connection)
            if not self._has_failed:  # once: a server may print a lot
                self._has_failed = True
                _LOG.exception("the function that is told what a server prints failed")
