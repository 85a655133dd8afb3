"""Events out of the text of a stream, read strictly: what a lenient reader would pass over is a fault of who wrote it.

Spec:
    HTML Standard, "Parsing an event stream". Read from there alone, and not with the reader of the runtime.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FIELDS = ("data", "event", "id", "retry")


class Event(NamedTuple):
    """One block of a stream that has a field of its own.

    Attributes:
        data: None if it has no such field, which is not the same as an empty one.
    """

    data: str | None
    name: str = "message"
    event_id: str | None = None
    retry_ms: int | None = None


class EventText:
    """The text of one stream.

    Attributes:
        faults: What is wrong with it.
        comments: How many there were.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.comments = 0
        self._left = b""
        self._block: list[tuple[str, str]] = []

    @property
    def is_between_events(self) -> bool:
        """Whether nothing is unfinished."""
        return not self._left and not self._block

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that *data* completes."""
        found: list[Event] = []
        text = self._left + data
        end = len(text) - 1 if text.endswith(b"\r") else len(text)  # half of a CRLF may be still on its way
        *lines, left = re.split(b"\r\n|\n|\r", text[:end])
        self._left = left + text[end:]
        for line in lines:
            self._take(line, found)
        return found

    def _take(self, line: bytes, found: list[Event]) -> None:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            self.faults.append(f"a stream is UTF-8: {line!r}")
            return
        if not text:
            self._end(found)
        elif text.startswith(":"):
            self.comments += 1
        else:
            name, _, value = text.partition(":")
            if name not in _FIELDS:
                self.faults.append(f"nobody knows the field {name!r}")
            self._block.append((name, value.removeprefix(" ")))

    def _end(self, found: list[Event]) -> None:
        block, self._block = self._block, []
        if not block:
            return
        fields = dict(block)
        data = [value for name, value in block if name == "data"]
        if len(block) - len(data) != len(set(fields) - {"data"}):
            self.faults.append(f"a field twice in one event: {block}")
        retry = fields.get("retry")
        if retry is not None and not re.fullmatch("[0-9]+", retry):
            self.faults.append(f"retry is a number of milliseconds, not {retry!r}")
            retry = None
        if "id" in fields and ("\0" in fields["id"] or not fields["id"]):
            self.faults.append(f"an id that a client cannot come back with: {fields['id']!r}")
        found.append(
            Event(
                "\n".join(data) if data else None,
                fields.get("event") or "message",
                fields.get("id"),
                None if retry is None else int(retry),
            )
        )
