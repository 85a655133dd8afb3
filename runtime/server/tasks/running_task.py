"""A running task: its handler reports status, input requests and the outcome, and marks its messages with the task.

Spec:
    2025-11-25, basic/utilities/tasks, "Behavior Requirements".
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated.v2025_11_25.methods import ErrorCode, MetaKey
from mcpgen.runtime.server.tasks.task_store import Outcome, StoreFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.tasks.running_totals import RunningCall
    from mcpgen.runtime.server.tasks.task_store import Status, TaskRecord

__all__ = ["RELATED_TASK", "Change", "RunningTask", "error_outcome", "related"]

_LOG = logging.getLogger("mcpgen.tasks")

RELATED_TASK: Final = MetaKey.RELATED_TASK

# Shown in a list of tasks: a sentence or two, not a log.
MAX_STATUS_MESSAGE_CHARS: Final = 500


class Change(Protocol):
    """Changes the given members of a task; does nothing if the task has ended."""

    def __call__(
        self,
        status: Status | None = None,
        /,
        *,
        message: str | None = None,
        outcome: Outcome | None = None,
        input_requests: bytes | UnsetType | None = UNSET,
    ) -> object:
        """Change the task."""
        ...


class _ErrorMessage(Struct):
    message: str


class _Block(Struct):
    """A content block; other blocks than text have an empty text."""

    text: str = ""


def related(task_id: str, meta: Mapping[str, object] | UnsetType = UNSET) -> dict[str, object]:
    """Return *meta*, the ``_meta`` of a message, with the id of the task that the message belongs to.

    Spec:
        2025-11-25, basic/utilities/tasks, "Associating Task-Related Messages".
    """
    return {**({} if meta is UNSET else meta), RELATED_TASK: {"taskId": task_id}}


def error_outcome(code: int, message: str) -> Outcome:
    """Return an error as the outcome of a task."""
    return Outcome(msgspec.json.encode({"code": int(code), "message": message}), is_error=True)


class RunningTask:
    """A task with a handler. The runner of the handler calls `finish` or `fail`, and always `close`.

    Attributes:
        task_id: Its id.
        principal: The owner of the task.
        call: Counts its call; None before it runs.
        has_ended: Whether it has finished, failed, expired or was cancelled; later reports are ignored.
        notify: Notifies the requestor of the task's new record.
        marks_messages: Whether the messages of the handler carry the id of the task.

    Args:
        task_id: Its id.
        change: Changes the record.
        changed: Notifies the requestor.
        closed: Called when the handler has ended.
        may_leave: Returns whether the handler, which is stopped, will run again elsewhere.
    """

    marks_messages: ClassVar[bool] = True

    def __init__(
        self,
        task_id: str,
        *,
        change: Change,
        changed: Callable[[TaskRecord], None],
        closed: Callable[[], None],
        may_leave: Callable[[], bool] | None = None,
    ) -> None:
        self.task_id = task_id
        self.principal: str = ""
        self.call: RunningCall | None = None
        self.has_ended: bool = False
        self.notify = changed
        self._change = change
        self._closed: Callable[[], None] | None = closed
        self._may_leave = may_leave
        self._stop: Callable[[], None] | None = None
        self._has_outcome = False
        self._input_requests = 0

    def related(self, meta: Mapping[str, object] | UnsetType = UNSET) -> dict[str, object]:
        """Return *meta* of a request or notification that the handler sends, with the id of the task."""
        return related(self.task_id, meta)

    def marked(self, params: bytes | UnsetType) -> bytes:
        """Return the params of a message that the server sends for the task, with the id of the task."""
        members: dict[str, Any] = {} if isinstance(params, UnsetType) else msgspec.json.decode(params)
        return msgspec.json.encode({**members, "_meta": self.related(members.get("_meta", UNSET))})

    def set_status_message(self, message: str) -> None:
        """Set the status message, for people. It is not worth the failure of a task."""
        try:
            self._change(message=_shortened(message))
        except StoreFailed as failure:
            _LOG.warning("a status message of task %s is not stored: %s", self.task_id[:8], failure)

    def report_progress(self, _progress: float, _total: float | None, message: str | None) -> None:
        """Make the message of a progress notification the status message. The notification is sent, too."""
        if message is not None:
            self.set_status_message(message)

    def ask(self, exchange: Exchange) -> None:
        """Publish the requests of *exchange* to the client, in revisions in which they are no messages of their own."""
        raise NotImplementedError(f"this kind of task cannot publish the requests of {exchange.handler.method}")

    @contextmanager
    def awaiting_input(self) -> Generator[None]:
        """Set the status ``input_required`` within the block. Blocks may overlap."""
        self._input_requests += 1
        if self._input_requests == 1:
            self._change("input_required")
        try:
            yield
        finally:
            self._input_requests -= 1
            if not self._input_requests:
                self._change("working")

    def finish(self, result: bytes) -> None:
        """End the task with the JSON of the result of its request."""
        members = msgspec.json.decode(result, type=dict[str, Raw])
        meta = msgspec.json.decode(members["_meta"], type=dict[str, Raw]) if "_meta" in members else UNSET
        members["_meta"] = Raw(msgspec.json.encode(related(self.task_id, meta)))
        outcome = Outcome(msgspec.json.encode(members))
        self._has_outcome = True
        if "isError" in members and msgspec.json.decode(members["isError"]) is True:
            self._change("failed", message=_shortened(_first_text(members)), outcome=outcome)
        else:
            self._change("completed", outcome=outcome)

    def fail(self, error: bytes) -> None:
        """End the task with the JSON of the error of its request."""
        message = msgspec.json.decode(error, type=_ErrorMessage).message
        self._has_outcome = True
        self._change("failed", message=_shortened(message), outcome=Outcome(error, is_error=True))

    def close(self) -> None:
        """Note that the handler has ended. A task without an outcome has failed."""
        if not self.has_ended:
            self.fail(error_outcome(ErrorCode.INTERNAL_ERROR, "The task ended without a result").json)
        closed, self._closed, self._stop = self._closed, None, None
        if closed is not None:
            closed()

    def leave(self) -> bool:
        """Give up the task without an outcome if its function will run again elsewhere; return whether that is so."""
        if self.has_ended or self._may_leave is None or not self._may_leave():
            return False
        self.has_ended = True
        return True

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the handler; call it if the task has ended already."""
        self._stop = stop
        if self.has_ended:
            self.stop()

    def stop(self) -> None:
        """Stop the handler, once, unless it has given its outcome."""
        stop, self._stop = self._stop, None
        if stop is not None and not self._has_outcome:
            stop()


def _first_text(members: Mapping[str, Raw]) -> str:
    try:
        blocks = msgspec.json.decode(members.get("content", b"[]"), type=list[_Block])
    except msgspec.ValidationError:  # an invalid result is reported elsewhere
        blocks = []
    return next((block.text for block in blocks if block.text), "The tool reported an error")


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_STATUS_MESSAGE_CHARS else message[: MAX_STATUS_MESSAGE_CHARS - 1] + "…"
