"""Requests that run on after their first answer: the task state machine of a receiver, in 2025-11-25.

Theory of operation. `Tasks.create` makes a record and lets the engine start the handler, which gets a `RunningTask` to
say how it fares. A task ends once: by its handler, by ``tasks/cancel``, or because its time is over. Whatever ends it,
the record changes first, then its requestor is told, then those who wait for the result, and then the handler is
stopped; what that still says is ignored. Records are in a `TaskStore`; handlers and waiting requests are here.

A handler that was told to stop may take its time, so it counts until the engine says that it is gone
(`RunningTask.close`): a client that creates and cancels in a loop gets no further than its limit.

Who may touch a task is decided by its principal, and an alien task is answered as one that does not exist. Where nobody
is told apart, the id is the secret: 256 bits of it.

Spec:
    2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.methods import REVISION, ErrorCode
from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.limits import TaskLimits
from mcpgen.runtime.server.tasks.pending_results import PendingResult, PendingResults
from mcpgen.runtime.server.tasks.running_task import RunningTask, error_outcome, related
from mcpgen.runtime.server.tasks.task_store import StoreFull, TaskRecord, cursor_behind, position_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.tasks.task_store import Outcome, Status, TaskStore

__all__ = ["IMMEDIATE_RESPONSE", "REQUEST_CANCELLED", "REVISION", "Tasks"]

IMMEDIATE_RESPONSE: Final = "io.modelcontextprotocol/model-immediate-response"

# Nobody answers a request that was cancelled, so neither MCP nor JSON-RPC has a code for it. But whoever waits for the
# result of a task has to get an answer. This code is the Language Server Protocol's, outside of JSON-RPC's range.
REQUEST_CANCELLED: Final = -32800

# "Cryptographically secure task IDs with enough entropy to prevent guessing": as much as a key has.
ID_BYTES: Final = 32

_CANCELLED: Final = error_outcome(REQUEST_CANCELLED, "The task was cancelled")
_EXPIRED: Final = error_outcome(ErrorCode.INVALID_PARAMS, "The task has expired")
_TOO_LARGE_MESSAGE: Final = "The result is too large to be kept"
_TOO_LARGE: Final = error_outcome(ErrorCode.INTERNAL_ERROR, _TOO_LARGE_MESSAGE)

_logger = logging.getLogger("mcpgen.tasks")


class Augmented(Protocol):
    """The params of a request that may ask to be run as a task."""

    @property
    def task(self) -> models.TaskMetadata | UnsetType:
        """The wish."""
        ...

    @property
    def meta(self) -> dict[str, Any] | UnsetType:
        """Its ``_meta``."""
        ...


class Tasks:
    """The tasks of one server.

    A principal is whatever tells requestors apart: who is authorized, or else one session or one pipe. Nothing here
    waits; callbacks are called before a method returns, and must not raise.

    Args:
        store: Where they are kept.
        clock: Seconds of Unix time (``time.time``).
        random_bytes: Makes ids; has to be fit for secrets (``secrets.token_bytes``).
        limits: How many there may be, and for how long.
    """

    def __init__(
        self,
        store: TaskStore,
        *,
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        limits: TaskLimits | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes
        self._limits = limits or TaskLimits()
        self._running: dict[str, RunningTask] = {}  # those too that were told to stop
        self._running_of: Counter[str] = Counter()  # by principal
        self._waits = PendingResults(self._limits.max_waits_per_task)

    def create(
        self,
        params: Augmented,
        run: Callable[[RunningTask], Callable[[], None]],
        *,
        principal: str,
        changed: Callable[[models.TaskStatusNotificationParams], None] | None = None,
        immediate: str | None = None,
    ) -> models.CreateTaskResult:
        """Accept a request as a task, and start it.

        Args:
            params: What the request came with.
            run: Starts the handler, and returns what stops it. The handler should begin later, so that the requestor
                knows the task before it hears of it.
            principal: Whose task it is.
            changed: Called with what ``notifications/tasks/status`` carries, whenever the task has changed.
            immediate: What a model is told while the task runs.

        Raises:
            RequestError: There is no room for another task.

        Spec:
            2025-11-25, basic/utilities/tasks, "Creating Tasks", "Task ID Requirements", "TTL and Resource Management".
        """
        self.expire()
        limits = self._limits
        if len(self._running) >= limits.max_running or self._running_of[principal] >= limits.max_running_per_principal:
            raise RequestError(ErrorCode.INTERNAL_ERROR, "Too many tasks are running; try again later")
        record = self._add(principal, params.task)
        task_id = record.task_id
        token = UNSET if params.meta is UNSET else params.meta.get("progressToken", UNSET)
        running = RunningTask(
            task_id,
            progress_token=token,
            change=partial(self._change, task_id),
            changed=changed,
            gone=partial(self._gone, record),
        )
        self._running[task_id] = running
        self._running_of[principal] += 1
        self._start(record, running, run)
        meta = related(task_id) if immediate is None else related(task_id, {IMMEDIATE_RESPONSE: immediate})
        return models.CreateTaskResult(task=self._task(record), meta=meta)

    def get(self, task_id: str, *, principal: str) -> dict[str, object]:
        """Return the result of ``tasks/get``.

        Raises:
            RequestError: The task does not exist, no longer, or not for this principal.
        """
        return self._members(self._own(task_id, principal))

    def list(self, cursor: str | UnsetType = UNSET, *, principal: str) -> models.ListTasksResult:
        """Return the result of ``tasks/list``: a page of the principal's tasks, oldest first.

        Raises:
            RequestError: The cursor is none of ours.

        Spec:
            2025-11-25, basic/utilities/tasks, "Task Listing"; server/utilities/pagination.
        """
        self.expire()
        after = None if cursor is UNSET else position_at(cursor)
        if cursor is not UNSET and after is None:
            raise RequestError(ErrorCode.INVALID_PARAMS, "The cursor is not valid")
        size = self._limits.page_size
        records = self._store.page(principal, after=after, limit=size + 1)
        following = cursor_behind(records[size - 1].position) if len(records) > size else UNSET
        return models.ListTasksResult(tasks=[self._task(each) for each in records[:size]], next_cursor=following)

    def result(self, task_id: str, *, principal: str, deliver: Callable[[Outcome], None]) -> Callable[[], None]:
        """Answer a ``tasks/result``: at once if the task has ended, otherwise when it does.

        Args:
            task_id: The task.
            principal: Who asks.
            deliver: Called once with the answer, unless the wait is dropped before.

        Returns:
            What drops the wait, to be called when its request is cancelled or its connection is lost. The task goes on.

        Raises:
            RequestError: The task does not exist for this principal, or too many requests wait for it.

        Spec:
            2025-11-25, basic/utilities/tasks, "Result Retrieval".
        """
        record = self._own(task_id, principal)
        _logger.info("result of task %s wanted by %r, %s", task_id[:8], principal, record.status)
        wait = PendingResult(deliver)
        if record.outcome is not None:
            wait.end(record.outcome)
            return wait.drop
        if not self._waits.add(task_id, wait):
            raise RequestError(ErrorCode.INTERNAL_ERROR, "Too many requests wait for this task")
        return wait.drop

    def cancel(self, task_id: str, *, principal: str) -> dict[str, object]:
        """Cancel a task, and return the result of ``tasks/cancel``.

        Raises:
            RequestError: The task has ended, or does not exist for this principal.

        Spec:
            2025-11-25, basic/utilities/tasks, "Task Cancellation".
        """
        record = self._own(task_id, principal)
        cancelled = self._cancel(record, "Cancelled by the requestor")
        if cancelled is None:
            raise RequestError(ErrorCode.INVALID_PARAMS, f"The task has ended already: it is {record.status}")
        return self._members(cancelled)

    def expire(self) -> float | None:
        """Drop the tasks whose time is over, even those that run, and return when the next one's is, on the clock.

        Every other method does the same first; this is for a timer, so that whoever waits for them need not wait more.
        """
        for record in self._store.expire(self._now_ms()):
            _logger.info("task %s of %r expired, %s", record.task_id[:8], record.principal, record.status)
            self._end(record.task_id, None, _EXPIRED)
            self._stop(record.task_id)
        following = self._store.next_expiry_ms()
        return None if following is None else following / 1000

    def forget(self, principal: str) -> None:
        """Cancel and drop the tasks of a principal that will not come back: its session or its pipe has ended."""
        while records := self._store.page(principal, after=None, limit=self._limits.page_size):
            for record in records:
                self._cancel(record, "Cancelled at the end of its session")
                self._store.remove(record.task_id)

    def _add(self, principal: str, wish: models.TaskMetadata | UnsetType) -> TaskRecord:
        limits, now_ms = self._limits, self._now_ms()
        ttl_ms = limits.default_ttl_ms if wish is UNSET or wish.ttl is UNSET else wish.ttl
        record = TaskRecord(
            task_id=urlsafe_b64encode(self._random_bytes(ID_BYTES)).rstrip(b"=").decode("ascii"),
            principal=principal,
            status="working",
            created_ms=now_ms,
            updated_ms=now_ms,
            ttl_ms=min(max(ttl_ms, limits.min_ttl_ms), limits.max_ttl_ms),
        )
        try:
            self._store.add(record)
        except StoreFull:
            raise RequestError(ErrorCode.INTERNAL_ERROR, "Too many tasks are kept; try again later") from None
        _logger.info("task %s of %r created, for %d ms", record.task_id[:8], principal, record.ttl_ms)
        return record

    def _start(
        self, record: TaskRecord, running: RunningTask, run: Callable[[RunningTask], Callable[[], None]]
    ) -> None:
        try:
            running.attach(run(running))
        except BaseException:  # whatever it is, there is no handler, and so there must be no task
            self._store.remove(record.task_id)
            running.has_ended = True
            running.close()
            raise

    def _own(self, task_id: str, principal: str) -> TaskRecord:
        self.expire()
        record = self._store.get(task_id)
        if record is None or record.principal != principal:
            _logger.info("no task for %r under the id that it names", principal)
            raise RequestError(ErrorCode.INVALID_PARAMS, "There is no such task; it may have expired")
        return record

    def _change(
        self,
        task_id: str,
        status: Status | None = None,
        /,
        *,
        message: str | None = None,
        outcome: Outcome | None = None,
    ) -> TaskRecord | None:
        """Change a task and tell of it, unless it has ended; return what it is then."""
        self.expire()
        record = self._store.get(task_id)
        if record is None or record.has_ended:
            return None
        changed = msgspec.structs.replace(
            record,
            status=status or record.status,
            status_message=record.status_message if outcome is None and message is None else message,
            updated_ms=max(record.updated_ms, self._now_ms()),
            outcome=outcome,
        )
        try:
            self._store.replace(changed)
        except StoreFull:
            if outcome is None or outcome is _TOO_LARGE:
                raise  # a store that has no room for this breaks its word
            return self._change(task_id, "failed", message=_TOO_LARGE_MESSAGE, outcome=_TOO_LARGE)
        if changed.has_ended:
            _logger.info("task %s of %r ended, %s", task_id[:8], changed.principal, changed.status)
        self._end(task_id, changed, outcome)
        return changed

    def _end(self, task_id: str, record: TaskRecord | None, outcome: Outcome | None) -> None:
        """Tell the requestor what is known of a task, None if that is nothing any more, and those who wait the end."""
        running = self._running.get(task_id)
        if running is not None:
            running.has_ended = outcome is not None
            if record is not None:
                running.tell(models.TaskStatusNotificationParams(**msgspec.structs.asdict(self._task(record))))
        if outcome is not None:
            self._waits.end(task_id, outcome)

    def _cancel(self, record: TaskRecord, message: str) -> TaskRecord | None:
        cancelled = self._change(record.task_id, "cancelled", message=message, outcome=_CANCELLED)
        if cancelled is not None:
            self._stop(record.task_id)
        return cancelled

    def _stop(self, task_id: str) -> None:
        running = self._running.get(task_id)
        if running is not None:
            running.stop()

    def _gone(self, record: TaskRecord) -> None:
        del self._running[record.task_id]
        self._running_of[record.principal] -= 1
        if not self._running_of[record.principal]:
            del self._running_of[record.principal]  # principals come and go

    def _task(self, record: TaskRecord) -> models.Task:
        return models.Task(
            task_id=record.task_id,
            status=record.status,
            status_message=record.status_message or UNSET,
            created_at=_timestamp(record.created_ms),
            last_updated_at=_timestamp(record.updated_ms),
            ttl=record.ttl_ms,
            poll_interval=self._limits.poll_interval_ms,
        )

    def _members(self, record: TaskRecord) -> dict[str, object]:
        members: dict[str, object] = msgspec.to_builtins(self._task(record))
        return members

    def _now_ms(self) -> int:
        # Not cut: what `expire` returns, brought back by a clock, must not be a millisecond early.
        return round(self._clock() * 1000)


def _timestamp(ms: int) -> str:
    at = datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
