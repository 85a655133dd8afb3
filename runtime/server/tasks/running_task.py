"""A task as its handler sees it: what it can tell about how it fares, and what marks the messages that it sends.

Spec:
    2025-11-25, basic/utilities/tasks, "Behavior Requirements".
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated.v2025_11_25.methods import ErrorCode
from mcpgen.runtime.server.tasks.task_store import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from mcpgen.generated.v2025_11_25 import models
    from mcpgen.runtime.server.tasks.task_store import Status

__all__ = ["RELATED_TASK", "Change", "RunningTask", "error_outcome", "related"]

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

# For people, in a list of tasks: a sentence or two, not a log.
MAX_STATUS_MESSAGE: Final = 500


class Change(Protocol):
    """Makes a change of a task known; does nothing if the task has ended. What is not given stays as it is."""

    def __call__(
        self, status: Status | None = None, /, *, message: str | None = None, outcome: Outcome | None = None
    ) -> object:
        """Change the task."""
        ...


class _ErrorMessage(Struct):
    message: str


class _Block(Struct):
    """A content block, as far as it may be text."""

    text: str = ""


def related(task_id: str, meta: Mapping[str, object] | UnsetType = UNSET) -> dict[str, object]:
    """Return *meta*, the ``_meta`` of a message that belongs to a task, with the task in it.

    Spec:
        2025-11-25, basic/utilities/tasks, "Associating Task-Related Messages".
    """
    return {**({} if meta is UNSET else meta), RELATED_TASK: {"taskId": task_id}}


def error_outcome(code: int, message: str) -> Outcome:
    """Return an error as what a task ends with."""
    return Outcome(msgspec.json.encode({"code": int(code), "message": message}), is_error=True)


class RunningTask:
    """A task that has a handler. Whoever runs it calls `finish` or `fail`, and in any case `close`.

    Attributes:
        task_id: Its id.
        has_ended: Whether it was finished, cancelled, or dropped: nothing that is said here counts any more.
    """

    def __init__(
        self,
        task_id: str,
        *,
        progress_token: str | int | UnsetType,
        change: Change,
        changed: Callable[[models.TaskStatusNotificationParams], None] | None,
        gone: Callable[[], None],
    ) -> None:
        self.task_id = task_id
        self.has_ended = False
        self._progress_token = progress_token
        self._change = change
        self._changed = changed
        self._gone: Callable[[], None] | None = gone
        self._stop: Callable[[], None] | None = None
        self._has_spoken_last = False
        self._questions = 0

    @property
    def progress_token(self) -> str | int | UnsetType:
        """What progress is reported under: the token of the request that became the task, until the task ends.

        Spec:
            2025-11-25, basic/utilities/progress, "Behavior Requirements".
        """
        return UNSET if self.has_ended else self._progress_token

    def related(self, meta: Mapping[str, object] | UnsetType = UNSET) -> dict[str, object]:
        """Return *meta* of a request or notification that the handler sends, with the task in it."""
        return related(self.task_id, meta)

    def say(self, message: str) -> None:
        """Tell people where the task stands."""
        self._change(message=_shortened(message))

    @contextmanager
    def asking(self) -> Generator[None]:
        """Let the requestor know, while this lasts, that its input is needed. Questions may overlap."""
        self._questions += 1
        if self._questions == 1:
            self._change("input_required")
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._change("working")

    def finish(self, result: bytes) -> None:
        """End the task with the JSON of the result that its request would have been answered with."""
        members = msgspec.json.decode(result, type=dict[str, Raw])
        meta = msgspec.json.decode(members["_meta"], type=dict[str, Raw]) if "_meta" in members else UNSET
        members["_meta"] = Raw(msgspec.json.encode(related(self.task_id, meta)))
        outcome = Outcome(msgspec.json.encode(members))
        self._has_spoken_last = True
        if "isError" in members and msgspec.json.decode(members["isError"]) is True:
            self._change("failed", message=_shortened(_first_text(members)), outcome=outcome)
        else:
            self._change("completed", outcome=outcome)

    def fail(self, error: bytes) -> None:
        """End the task with the JSON of the error that its request would have been answered with."""
        message = msgspec.json.decode(error, type=_ErrorMessage).message
        self._has_spoken_last = True
        self._change("failed", message=_shortened(message), outcome=Outcome(error, is_error=True))

    def close(self) -> None:
        """Say that the handler runs no more. A task that it has not ended has failed."""
        if not self.has_ended:
            self.fail(error_outcome(ErrorCode.INTERNAL_ERROR, "The task ended without a result").json)
        gone, self._gone, self._stop = self._gone, None, None
        if gone is not None:
            gone()

    def attach(self, stop: Callable[[], None]) -> None:
        """Be told how to stop the handler; do so if that was wanted before it was known how."""
        self._stop = stop
        if self.has_ended:
            self.stop()

    def stop(self) -> None:
        """Stop the handler, once, unless it has said its last."""
        stop, self._stop = self._stop, None
        if stop is not None and not self._has_spoken_last:
            stop()

    def tell(self, task: models.TaskStatusNotificationParams) -> None:
        """Tell the requestor how the task is now."""
        if self._changed is not None:
            self._changed(task)


def _first_text(members: Mapping[str, Raw]) -> str:
    try:
        blocks = msgspec.json.decode(members.get("content", b"[]"), type=list[_Block])
    except msgspec.ValidationError:  # whether the result is a good one is not for this to find out
        blocks = []
    return next((block.text for block in blocks if block.text), "The tool reported an error")


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_STATUS_MESSAGE else message[: MAX_STATUS_MESSAGE - 1] + "…"
