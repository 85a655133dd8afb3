"""The standard error of a server's process: it is always read, handed on line by line, and its last part is kept."""

from __future__ import annotations

import codecs
import logging
import os
import sys
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import printable
from mcpgen.runtime.transports.child_process import read_chunk
from mcpgen.runtime.transports.descriptors import READ_BYTES
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ChildStderr"]

# A small read has few lines, and one turn of the event loop handles all lines of a read. A server that prints faster
# has to wait; the client does not.
_READ_BYTES: Final = 4096

# Twice what a pipe holds: read at once after the process has ended. Its children may still write to the pipe.
_MAX_FINAL_READS: Final = 2 * READ_BYTES // _READ_BYTES

# A longer line is handed on in pieces: it may have no end.
_MAX_LINE_CHARACTERS: Final = 16 * 1024

_SERVER_LOG = logging.getLogger("mcpgen.server")
_LOG = traceback_logger("mcpgen.client")


class ChildStderr:
    """The reading end of a server's standard error.

    Args:
        fd: The descriptor.
        max_bytes: How much of the last output is kept.
        on_line: Called with each line.
    """

    def __init__(self, fd: int, max_bytes: int, on_line: Callable[[str], None] | None) -> None:
        self._fd = fd
        self._max_bytes = max_bytes
        self._on_line = on_line
        self._kept = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial_line = ""
        self._is_ended = False
        self._has_failed = False

    @property
    def last(self) -> str:
        """The last part of the output. Bytes that are not UTF-8 are replaced."""
        kept = self._kept[-self._max_bytes :]
        start = 0
        if len(self._kept) > self._max_bytes:  # it may start within a character, whose other bytes are 10xxxxxx
            while start < min(3, len(kept)) and kept[start] & 0xC0 == 0x80:  # noqa: PLR2004 (the bits of UTF-8)
                start += 1
        return kept[start:].decode("utf-8", "replace")

    async def read_all(self) -> None:
        """Read until no process has the pipe open for writing."""
        while not self._is_ended:
            self._add(await read_chunk(self._fd, _READ_BYTES))

    def read_rest(self) -> None:
        """Read what is in the pipe, without waiting. On Windows, where only a thread could read it, do nothing."""
        if sys.platform == "win32":
            return
        for _ in range(_MAX_FINAL_READS):
            if self._is_ended:
                return
            try:
                data = os.read(self._fd, _READ_BYTES)
            except OSError:  # the pipe is empty
                return
            self._add(data)

    def end(self) -> None:
        """Hand on the last line, although it has no end."""
        self._is_ended = True
        self._partial_line += self._decoder.decode(b"", final=True)
        if self._partial_line:
            self._hand_on(self._partial_line)
            self._partial_line = ""

    def _add(self, data: bytes) -> None:
        if self._is_ended:
            return
        if not data:
            self.end()
            return
        self._kept += data
        if len(self._kept) > 2 * self._max_bytes:  # not at every read: deleting moves the rest
            del self._kept[: -self._max_bytes - 1]  # one byte more shows that it is not the whole output
        *lines, rest = (self._partial_line + self._decoder.decode(data)).split("\n")
        self._partial_line = ""
        for line in lines:
            self._hand_on(line)
        while len(rest) > _MAX_LINE_CHARACTERS:
            self._hand_on(rest[:_MAX_LINE_CHARACTERS])
            rest = rest[_MAX_LINE_CHARACTERS:]
        self._partial_line = rest

    def _hand_on(self, line: str) -> None:
        line = line.removesuffix("\r")
        if _SERVER_LOG.isEnabledFor(logging.DEBUG):
            _SERVER_LOG.debug("%s", printable(line))
        if self._on_line is None:
            return
        try:
            self._on_line(line)
        except Exception:  # noqa: BLE001 (the boundary: it must not affect the connection)
            if not self._has_failed:  # logged once: a server may print a lot
                self._has_failed = True
                _LOG.exception("`on_stderr` failed for a line; later failures are not logged")
