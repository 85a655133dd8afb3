"""Newline-delimited JSON: the bytes of a pipe, cut into frames, and frames made ready for one.

The framer knows nothing of JSON. It holds one unfinished line at most, and of a line over the limit only the two ends:
they may still tell whose message it was (`mcpgen.runtime.protocol.envelope.decode_oversized`).

Spec:
    2024-11-05 to 2025-11-25, basic/transports, "stdio"; 2026-07-28, basic/transports/stdio: "Messages are delimited by
    newlines, and MUST NOT contain embedded newlines."
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct

from mcpgen.runtime.limits import MAX_FRAME_BYTES

__all__ = ["END_BYTES", "Frame", "LineFramer", "OversizedLine", "frame"]

# Enough for a method, an id and what separates them, which SDKs write before the params or behind them.
END_BYTES: Final = 1024

Frame: TypeAlias = bytes
"""One line without its end; never empty, never only white space."""

# Where JSON allows a line break it is white space, as a space is: a string cannot hold one unescaped.
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")


class OversizedLine(Struct, frozen=True):
    """A line that was longer than allowed and is gone; the stream goes on behind it.

    Attributes:
        size_bytes: How long it was.
        limit_bytes: How long it might have been.
        head: Its first bytes, `END_BYTES` at most.
        tail: Its last bytes, as many.
    """

    size_bytes: int
    limit_bytes: int
    head: bytes
    tail: bytes


@dataclass(slots=True)
class LineFramer:
    """Cut a byte stream into frames.

    What comes out does not depend on how the bytes arrive, and a line costs time in proportion to its length.

    Attributes:
        max_frame_bytes: The longest line that becomes a frame, without its newline.
    """

    max_frame_bytes: int = MAX_FRAME_BYTES
    _size: int = 0  # of the unfinished line, all of it
    _partial: bytearray = field(default_factory=bytearray)  # the unfinished line, unless it is too long
    _head: bytes = b""
    _tail: bytes = b""

    @property
    def discarded_bytes(self) -> int:
        """The bytes of an unfinished line that is too long already; 0 if there is none.

        Such a line is reported where it ends. Whoever does not want to wait for that can look here, and hang up.
        """
        return self._size if self._size > self.max_frame_bytes else 0

    def feed(self, data: bytes) -> list[Frame | OversizedLine]:
        """Return the lines that *data* completes, oldest first.

        A carriage return before the newline goes with it, and blank lines are skipped: neither belongs to a message.
        """
        lines = data.split(b"\n")
        events: list[Frame | OversizedLine] = []
        if self._size:
            if len(lines) == 1:
                self._hold(data)
                return events
            self._hold(lines.pop(0))
            events = self.finish()
        if rest := lines.pop():
            self._hold(rest)
        if len(data) > self.max_frame_bytes or b"\r" in data:
            events += [self._event(line) for line in lines if line and not line.isspace()]
        else:  # the usual chunk: nothing in it can be too long or needs trimming
            events += [line for line in lines if line and not line.isspace()]
        return events

    def finish(self) -> list[Frame | OversizedLine]:
        """Return the line, if any, that the end of the input leaves without a newline, and begin anew.

        A peer may have forgotten the newline, or died mid-message. The envelope tells which: no part of a JSON object
        is a JSON object.
        """
        size, self._size = self._size, 0
        if size > self.max_frame_bytes:
            head, tail, self._head, self._tail = self._head, self._tail, b"", b""
            return [OversizedLine(size, self.max_frame_bytes, head, tail)]
        line = bytes(self._partial)
        self._partial = bytearray()  # not cleared: the next line need not have been as long
        return [line.removesuffix(b"\r")] if line and not line.isspace() else []

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self.max_frame_bytes:
            self._partial += piece
            return
        if self._partial:
            self._head, self._tail = bytes(self._partial[:END_BYTES]), bytes(self._partial[-END_BYTES:])
            self._partial = bytearray()
        self._head += piece[: END_BYTES - len(self._head)]
        self._tail = (self._tail + piece[-END_BYTES:])[-END_BYTES:]

    def _event(self, line: bytes) -> Frame | OversizedLine:
        if len(line) > self.max_frame_bytes:
            return OversizedLine(len(line), self.max_frame_bytes, line[:END_BYTES], line[-END_BYTES:])
        return line.removesuffix(b"\r")


def frame(message: bytes) -> bytes:
    """Return *message*, which is JSON, as one line with its newline.

    Line breaks between its tokens become spaces: what is forwarded may have come from a peer that indents. Carriage
    returns too, since some readers take them for line ends.
    """
    if b"\n" in message or b"\r" in message:
        message = message.translate(_ONE_LINE)
    return message + b"\n"
