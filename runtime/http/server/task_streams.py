"""The streams of ``tasks/result``, on which a session sends what concerns their tasks.

Theory of operation. The response to a call that became a task has ended, so the messages of its handler would go to the
GET stream of the session. A client need not open that: it opens a stream with ``tasks/result`` when the task needs
input. While such a stream has a connection, it gets the messages of the task. They are recognised by their metadata,
because the handler may run in another worker.

Spec:
    2025-11-25, basic/utilities/tasks, "Input Required Status"; basic/transports, "Listening for Messages from the
    Server": messages on the GET stream SHOULD be unrelated to any concurrently-running request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from mcpgen.runtime.server.tasks.running_task import RELATED_TASK, related

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.event_streams import EventStream

__all__ = ["TaskStreams", "task_mark"]

_MARK: Final = re.compile(rb'"%b":\{"taskId":"[^"]*"\}' % re.escape(RELATED_TASK).encode())


class TaskStreams:
    """The streams of the open ``tasks/result`` requests of one session."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: dict[str, tuple[bytes, EventStream]] = {}  # by the name of the stream, oldest first

    def add(self, task_id: str, stream: EventStream, get_stream: EventStream) -> None:
        """Send the messages of a task on *stream* from now on, with those that wait for a connection of the GET stream.

        They are sent here even if the client has had a GET stream before, since it need not connect to it again.
        """
        mark = task_mark(task_id)
        self._marks[stream.name] = mark, stream
        if not get_stream.is_connected:
            for each in get_stream.take_waiting(mark):
                stream.write(each)

    def remove(self, stream: EventStream) -> None:
        """Send no more messages on *stream*."""
        self._marks.pop(stream.name, None)

    def find(self, message: bytes) -> EventStream | None:
        """Return the newest connected stream for the task of *message*, or of a `task_mark`; None if there is none."""
        # A session can have a thousand streams, and the message megabytes, so it is searched once.
        found = set(_MARK.findall(message)) if self._marks else ()
        newest_first = reversed(self._marks.values()) if found else ()
        return next((stream for mark, stream in newest_first if stream.is_connected and mark in found), None)


def task_mark(task_id: str) -> bytes:
    """Return what the messages of a task contain, and no others: in a JSON string, quotation marks are escaped."""
    return msgspec.json.encode(related(task_id))[1:-1]
