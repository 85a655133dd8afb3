"""Server-sent events: encode messages as events, and read events from the bytes of a stream.

Theory of operation. A stream consists of lines. A line is a field (``data: …``), a comment, or blank; a blank line ends
an event. A line ends with CR, LF or CRLF. The LF of a CRLF may arrive late, so a line ends at its CR, and an LF that
comes next is skipped. Lines are split before they are decoded: in UTF-8, no part of another character is a CR, LF or
colon.

Two limits bound what a reader holds: the length of a line and the length of an event's data. The result does not depend
on how the bytes are divided into chunks.

Spec:
    HTML Standard, "Parsing an event stream" and "Interpreting an event stream"; 2025-11-25, basic/transports,
    "Resumability and Redelivery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcpgen.runtime.errors import McpgenError, UsageError
from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.framing import frame

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Event", "EventReader", "EventTooLarge", "KEEP_ALIVE", "MAX_RETRY_MS", "encode_event"]

# A comment, which keeps proxies from closing a silent connection. Its blank line ends no event; it is for readers that
# split a stream at blank lines.
KEEP_ALIVE: Final = b":\n\n"

# About 30,000 years. The standard sets no limit, but Python takes long to parse a number of a million digits.
MAX_RETRY_MS: Final = 10**15
_RETRY_DIGITS: Final = 15

# A client keeps the last id of each stream, and returns it in a header. Servers do not take longer heads.
_MAX_ID_BYTES: Final = 8192

_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_DATA_STARTS: Final = (b"data:", _BOM + b"data:")

# What is kept of a line that is no data, until its end has come. The id is the longest value that is used.
_MAX_FIELD_BYTES: Final = 2 * _MAX_ID_BYTES
_LF: Final = 0x0A


class Event(Struct, frozen=True, gc=False):
    """One event of a stream.

    Attributes:
        data: Its data lines, joined by newlines, as UTF-8. As a `str`, one emoji would make four bytes of each byte.
        name: The event's type.
        event_id: The last id in this event or before it; None if there was none, or if the last one was empty.
        retry_ms: The reconnection time, if this event sets it.
    """

    data: bytes
    name: str = "message"
    event_id: str | None = None
    retry_ms: int | None = None


class EventTooLarge(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """An event is longer than the limit, so the rest of its stream cannot be read.

    Attributes:
        limit_bytes: The limit on the event's data.
        events: The events before it that the same bytes completed.
    """

    def __init__(self, *, limit_bytes: int, events: Sequence[Event] = ()) -> None:
        self.limit_bytes = limit_bytes
        self.events: tuple[Event, ...] = tuple(events)
        super().__init__(limit_bytes)

    def __str__(self) -> str:
        return f"an event is longer than the limit of {self.limit_bytes} bytes"


def encode_event(
    data: bytes, *, event_id: str | None = None, name: str | None = None, retry_ms: int | None = None
) -> bytes:
    r"""Return one event, encoded.

    Args:
        data: A message. Line breaks in it become spaces. Empty data makes an event that only tells the client an id.
        event_id: The id with which a client can resume the stream behind this event. An empty one clears the last id.
        name: The event's type, if it is not a message.
        retry_ms: How long the client should wait before it reconnects.

    Raises:
        UsageError: The id or the name contains a line break, or the id a NUL, or the time is negative.
    """
    text = _DATA + frame(data) + b"\n"
    if retry_ms is not None:
        if retry_ms < 0:
            raise UsageError(f"`retry_ms` is {retry_ms}; it must not be negative")
        text = b"retry: %d\n%s" % (retry_ms, text)
    if name is not None:
        text = b"event: %s\n%s" % (_one_line(name, "`name`"), text)
    if event_id is not None:
        if "\0" in event_id:
            raise UsageError("`event_id` must not contain a NUL; clients ignore such an id")
        text = b"id: %s\n%s" % (_one_line(event_id, "`event_id`"), text)
    return text


class EventReader:
    """Read the events of a stream from its bytes, in time linear in their number.

    Args:
        max_event_bytes: The limit on the data of one event. A line may be a little longer.

    Attributes:
        last_event_id: The value of ``Last-Event-ID`` for resuming the stream; None if there is none. It may come from
            an event without data, which `feed` does not return.
        retry_ms: The reconnection time, at most `MAX_RETRY_MS`; None if the stream has not set it.
    """

    def __init__(self, *, max_event_bytes: int = MAX_FRAME_BYTES) -> None:
        if max_event_bytes < 1:
            raise UsageError(f"`max_event_bytes` is {max_event_bytes}; it must be positive")
        self._max_data_bytes = max_event_bytes
        self._max_line_bytes = len(_BOM) + len(_DATA) + max_event_bytes
        self._has_started = False  # whether the first line was read, which may begin with a byte order mark
        self._after_cr = False
        self._partial = bytearray()  # the unfinished line
        self._dropped = 0  # bytes of it that were not kept
        self._data: bytes | bytearray | None = None  # of the unfinished event; a single line is not copied
        self._name = b""
        self._id: str | None = None
        self._event_retry_ms: int | None = None
        self.last_event_id: str | None = None
        self.retry_ms: int | None = None
        self._has_failed = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that *data* completes, oldest first.

        Raises:
            EventTooLarge: The next event is too long. The error holds the events before it.
        """
        if self._has_failed:
            raise EventTooLarge(limit_bytes=self._max_data_bytes)
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == _LF:
                data = data[1:]
        events: list[Event] = []
        lines, rest = self._lines(data)
        for line in lines:
            size, self._dropped = len(line) + self._dropped, 0
            if size > self._max_line_bytes or not self._read_line(line, events):
                self._fail(events)
        self._extend(rest)
        # A line of data that is not complete is part of its event; a field such as `database` is not.
        beside = len(self._data or b"") if self._partial.startswith(b"data:") else self._dropped
        if len(self._partial) + beside > self._max_line_bytes:
            self._fail(events)
        return events

    def finish(self) -> bool:
        """Drop the unfinished event at the end of a stream, and return whether there was one.

        The reader can then read the stream that resumes this one. It keeps the last id and the reconnection time until
        that stream sets others.
        """
        has_rest = bool(self._partial or self._name) or self._data is not None or self._id != self.last_event_id
        self._has_started = self._after_cr = self._has_failed = False
        self._partial = bytearray()
        self._dropped = 0
        self._id = self.last_event_id
        self._reset_event()
        return has_rest

    def _lines(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the lines that *data* completes, and the beginning of the next one."""
        lines = data.splitlines()  # bytes are split at CR, LF and CRLF only
        if not lines:
            return lines, b""
        self._after_cr = data.endswith(b"\r")
        rest = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._partial:
            self._extend(lines[0])
            lines[0] = bytes(self._partial)
            self._partial = bytearray()  # not `clear()`, which would keep the memory of a long line
        return lines, rest

    def _extend(self, piece: bytes) -> None:
        """Add to the unfinished line. Of a line that is no data, only the beginning is kept."""
        self._partial += piece
        excess = len(self._partial) - _MAX_FIELD_BYTES
        if excess > 0 and not self._partial.startswith(_DATA_STARTS):
            self._dropped += excess
            self._partial = self._partial[:_MAX_FIELD_BYTES]

    def _read_line(self, line: bytes, events: list[Event]) -> bool:
        """Read one line, and return False if the event's data is now too long."""
        if not self._has_started:
            self._has_started = True
            line = line.removeprefix(_BOM)
        if not line:
            self._end_event(events)
            return True
        if line.startswith(_DATA):
            return self._add_data(line[len(_DATA) :])
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                return self._add_data(value)
            case b"event":
                self._name = value[:_MAX_FIELD_BYTES]
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace") or None if len(value) <= _MAX_ID_BYTES else None
            case b"retry" if value.isdigit():  # bytes: ASCII digits only
                digits = value.lstrip(b"0")
                self._event_retry_ms = int(digits or b"0") if len(digits) <= _RETRY_DIGITS else MAX_RETRY_MS
                self.retry_ms = self._event_retry_ms  # takes effect at once; an id does at the end of its event
            case _:  # a comment, which is a field without a name, or an unknown field
                pass
        return True

    def _add_data(self, value: bytes) -> bool:
        if self._data is None:
            self._data = value
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += value
        return len(self._data) <= self._max_data_bytes

    def _end_event(self, events: list[Event]) -> None:
        self.last_event_id = self._id
        if self._data is not None:
            name = self._name.decode("utf-8", "replace") or "message"
            data = _valid(self._data)
            if len(data) > self._max_data_bytes:  # a replacement character has three bytes
                self._fail(events)
            events.append(Event(data, name, self._id, self._event_retry_ms))
        self._reset_event()

    def _reset_event(self) -> None:
        self._data = None
        self._name = b""
        self._event_retry_ms = None

    def _fail(self, events: list[Event]) -> None:
        self._has_failed = True
        self._partial = bytearray()
        self._dropped = 0
        self._reset_event()
        raise EventTooLarge(limit_bytes=self._max_data_bytes, events=events)


def _valid(data: bytes | bytearray) -> bytes:
    """Return *data* as valid UTF-8, with replacement characters for what is not."""
    return bytes(data) if data.isascii() else data.decode("utf-8", "replace").encode()


def _one_line(text: str, argument: str) -> bytes:
    if "\n" in text or "\r" in text:
        raise UsageError(f"{argument} must not contain a line break, which would start another field")
    return text.encode("utf-8")
