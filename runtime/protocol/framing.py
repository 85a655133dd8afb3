"""Newline-delimited JSON: split the bytes of a pipe into frames, and write a message as one line.

The framer does not look at the JSON. It holds at most one unfinished line; of a line over the limit it holds only the
two ends, from which `mcpgen.runtime.protocol.envelope.decode_oversized` may read the id of the message.

Spec:
    2024-11-05 to 2025-11-25, basic/transports, "stdio"; 2026-07-28, basic/transports/stdio: "Messages are delimited by
    newlines, and MUST NOT contain embedded newlines."
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from mcpgen.runtime.limits import MAX_FRAME_BYTES

__all__ = ["END_BYTES", "Frame", "LineFramer", "OversizedLine", "frame"]

# Enough for a method and an id, which SDKs write before or after the params.
END_BYTES: Final = 1024

Frame: TypeAlias = bytes
"""One line without its newline; never empty or only whitespace."""

# As numbers: if `in` searches bytes for bytes, it first tries to read them as a number, and discards an exception.
_LF: Final = ord("\n")
_CR: Final = ord("\r")

# An unescaped line break in JSON is whitespace between tokens, so a space can replace it.
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")


class OversizedLine(Struct, frozen=True):
    """A line that exceeded the limit and was discarded; the stream goes on after it.

    Attributes:
        size_bytes: Its length.
        limit_bytes: The limit.
        head: Its first `END_BYTES`.
        tail: Its last `END_BYTES`.
    """

    size_bytes: int
    limit_bytes: int
    head: bytes
    tail: bytes


class LineFramer:
    """Split a byte stream into frames.

    The frames do not depend on how the bytes arrive, and the time for a line is proportional to its length.

    Attributes:
        max_frame_bytes: The longest line that becomes a frame, without its newline.
    """

    __slots__ = ("_head", "_partial", "_size", "_tail", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes: int = max_frame_bytes
        self._size = 0  # of the unfinished line, including discarded bytes
        self._partial = bytearray()  # the unfinished line, unless it is too long
        self._head = b""
        self._tail = b""

    @property
    def discarded_bytes(self) -> int:
        """The size of an unfinished line that exceeds the limit; 0 if there is none.

        `feed` reports such a line only when it ends; a transport that does not want to wait can close the connection.
        """
        return self._size if self._size > self.max_frame_bytes else 0

    def feed(self, data: bytes) -> list[Frame | OversizedLine]:
        """Return the lines that *data* completes, oldest first.

        A carriage return before the newline is removed, and blank lines are skipped.
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
        if len(data) > self.max_frame_bytes or _CR in data:
            events += [self._event(line) for line in lines if line and not line.isspace()]
        else:  # the usual chunk, in which no line can be too long or end in a carriage return
            events += [line for line in lines if line and not line.isspace()]
        return events

    def finish(self) -> list[Frame | OversizedLine]:
        """Return the unfinished line at the end of the input, if there is one, and reset the framer.

        The line is a message without its newline, or a truncated one; the envelope finds out, because a part of a JSON
        object is not a JSON object.
        """
        size, self._size = self._size, 0
        if size > self.max_frame_bytes:
            head, tail, self._head, self._tail = self._head, self._tail, b"", b""
            return [OversizedLine(size, self.max_frame_bytes, head, tail)]
        line = bytes(self._partial)
        self._partial = bytearray()  # not `clear()`, which would keep the memory of a long line
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

    Line breaks between its tokens become spaces, because a forwarded message may be indented. So do carriage returns,
    which some readers treat as line ends.
    """
    if _LF in message or _CR in message:
        message = message.translate(_ONE_LINE)
    return message + b"\n"
