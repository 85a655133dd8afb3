"""Server-sent events: messages as text of an event stream, and the events of such a stream out of bytes.

Theory of operation. A stream is lines; a line is a field (``data: …``), a comment, or blank, and a blank line ends an
event. A line ends with CR, LF or both. Of these two the LF may come much later, or never: a line is taken at its CR,
and an LF that is the next byte then belongs to it. Lines are cut before they are decoded, since no part of a character
in UTF-8 looks like CR, LF or a colon.

What a reader holds is bounded twice: by the length of a line, whatever is on it, and by the length of the data. Both
are checked so that the verdict does not depend on how the bytes arrive.

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

# A comment, so that nobody in between takes a silent connection for a dead one. The blank line ends no event; it is for
# readers that look for events by the blank lines between them.
KEEP_ALIVE: Final = b":\n\n"

# About thirty thousand years. The standard has no limit, but numbers of a million digits take long to read.
MAX_RETRY_MS: Final = 10**15
_RETRY_DIGITS: Final = 15

_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_LF: Final = 0x0A


class Event(Struct, frozen=True, gc=False):
    """One event of a stream.

    Attributes:
        data: Its lines of data, with newlines between them.
        name: What kind of event it is.
        event_id: The id that was last seen, in this event or before; None if there was none, or an empty one, which
            takes back those before.
        retry_ms: How long to wait before connecting again, if this event says so.
    """

    data: str
    name: str = "message"
    event_id: str | None = None
    retry_ms: int | None = None


class EventTooLarge(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """An event is longer than allowed. Its stream cannot be read on.

    Attributes:
        limit_bytes: How long its data might have been.
        events: Those before it that the same bytes completed.
    """

    def __init__(self, *, limit_bytes: int, events: Sequence[Event] = ()) -> None:
        self.limit_bytes = limit_bytes
        self.events: tuple[Event, ...] = tuple(events)
        super().__init__(limit_bytes)

    def __str__(self) -> str:
        return f"an event is over the limit of {self.limit_bytes} bytes"


def encode_event(
    data: bytes, *, event_id: str | None = None, name: str | None = None, retry_ms: int | None = None
) -> bytes:
    r"""Return one event as text of a stream.

    Args:
        data: A message. Line breaks between its tokens become spaces, as on a pipe. Empty data makes an event, too: it
            tells a client an id to come back with, before there is anything else to tell.
        event_id: Where a client that comes back can go on. An empty one takes back those before.
        name: What kind of event it is, if it is no message.
        retry_ms: How long the client is to wait before it connects again.

    Raises:
        UsageError: The id or the name has a line break in it, or the id a NUL, or the time is negative.
    """
    text = _DATA + frame(data) + b"\n"
    if retry_ms is not None:
        if retry_ms < 0:
            raise UsageError(f"retry_ms is {retry_ms}; nobody can wait less than no time")
        text = b"retry: %d\n%s" % (retry_ms, text)
    if name is not None:
        text = b"event: %s\n%s" % (_one_line(name, "name"), text)
    if event_id is not None:
        if "\0" in event_id:
            raise UsageError("the id of an event has a NUL in it, so that it would be ignored")
        text = b"id: %s\n%s" % (_one_line(event_id, "id"), text)
    return text


class EventReader:
    """Finds the events of a stream in its bytes.

    What comes out does not depend on how the bytes arrive, and a byte costs the same however long its line is.

    Args:
        max_event_bytes: The longest data that an event may have. Lines may be a little longer.
    """

    def __init__(self, *, max_event_bytes: int = MAX_FRAME_BYTES) -> None:
        if max_event_bytes < 1:
            raise UsageError(f"max_event_bytes is {max_event_bytes}; it has to be more than 0")
        self._max_data = max_event_bytes
        self._max_line = len(_BOM) + len(_DATA) + max_event_bytes
        self._begun = False  # a first line was read, which a byte order mark may stand before
        self._after_cr = False
        self._partial = bytearray()  # the unfinished line
        self._data: bytes | bytearray | None = None  # of the unfinished event; most have one line, which is not copied
        self._name = b""
        self._id: str | None = None
        self._event_retry_ms: int | None = None
        self._last_id: str | None = None
        self._retry_ms: int | None = None
        self._failed = False

    @property
    def last_event_id(self) -> str | None:
        """What a client sends as ``Last-Event-ID`` when it comes back; None if nothing.

        Events without data, which are not returned, have told it as well.
        """
        return self._last_id

    @property
    def retry_ms(self) -> int | None:
        """How long to wait before connecting again, `MAX_RETRY_MS` at most; None if the stream never said."""
        return self._retry_ms

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that *data* completes, oldest first.

        Raises:
            EventTooLarge: The event behind them is too long, finished or not. It has them.
        """
        if self._failed:
            raise EventTooLarge(limit_bytes=self._max_data)
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == _LF:
                data = data[1:]
        events: list[Event] = []
        for line in self._lines(data):
            if len(line) > self._max_line or not self._take(line, events):
                self._fail(events)
        if len(self._partial) > self._max_line:
            self._fail(events)
        return events

    def finish(self) -> bool:
        """Drop the event that the end of the stream leaves unfinished, and return whether there was one.

        The reader then begins anew, for the stream that a client gets when it comes back: with the same last id, until
        that stream says another, and the same time to wait.
        """
        left = bool(self._partial or self._name) or self._data is not None or self._id != self._last_id
        self._begun = self._after_cr = self._failed = False
        self._partial = bytearray()
        self._id = self._last_id
        self._clear()
        return left

    def _lines(self, data: bytes) -> list[bytes]:
        lines = data.splitlines()  # of bytes: at CR, LF and both, and nowhere else
        if not lines:
            return lines
        self._after_cr = data.endswith(b"\r")
        rest = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._partial:
            self._partial += lines[0]
            lines[0] = bytes(self._partial)
            self._partial = bytearray()  # not cleared: the next line need not have been as long
        self._partial += rest
        return lines

    def _take(self, line: bytes, events: list[Event]) -> bool:
        """Read a line, and return False if it makes the data too long."""
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            self._end_event(events)
            return True
        if line.startswith(_DATA):
            return self._add(line[len(_DATA) :])
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                return self._add(value)
            case b"encode_event":
                self._name = value
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace") or None
            case b"retry" if value.isdigit():  # of bytes: ASCII digits, one at least
                digits = value.lstrip(b"0")
                self._event_retry_ms = int(digits or b"0") if len(digits) <= _RETRY_DIGITS else MAX_RETRY_MS
                self._retry_ms = self._event_retry_ms  # at once, unlike an id
            case _:  # a comment, which is a field without a name, or a field that nobody knows
                pass
        return True

    def _add(self, value: bytes) -> bool:
        if self._data is None:
            self._data = value
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += value
        return len(self._data) <= self._max_data

    def _end_event(self, events: list[Event]) -> None:
        self._last_id = self._id
        if self._data is not None:
            name = self._name.decode("utf-8", "replace") or "message"
            events.append(Event(self._data.decode("utf-8", "replace"), name, self._id, self._event_retry_ms))
        self._clear()

    def _clear(self) -> None:
        self._data = None
        self._name = b""
        self._event_retry_ms = None

    def _fail(self, events: list[Event]) -> None:
        self._failed = True
        self._partial = bytearray()
        self._clear()
        raise EventTooLarge(limit_bytes=self._max_data, events=events)


def _one_line(text: str, what: str) -> bytes:
    if "\n" in text or "\r" in text:
        raise UsageError(f"the {what} of an event has a line break in it, which would begin another field")
    return text.encode("utf-8")
