"""The lifecycle of tasks in 2025-11-25: requests that go on after their first answer.

Theory of operation. `Tasks.create` adds a record and lets the engine start the handler, which reports its progress to a
`RunningTask`. A task ends once: by its handler, by ``tasks/cancel``, or when it expires. At its end, the record changes
first; then the requestor is notified, the waiting ``tasks/result`` requests are answered, and the handler is stopped.
Later reports of the handler are ignored. Records are kept in a `TaskStore`, handlers and waiting requests in `Tasks`.

A stopped handler may need time to end, so it counts against the limits until `RunningTask.close`. Otherwise a client
could exceed them by creating and cancelling tasks in a loop.

A task can be used only by its principal; for any other, it does not exist. If clients cannot be distinguished, the id,
which has 256 random bits, is the secret.

Spec:
    2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.generated.v2025_11_25 import models
from mcpgen.generated.v2025_11_25.methods import REVISION, ErrorCode
from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.limits import TaskLimits
from mcpgen.runtime.server.tasks.running_task import MAX_STATUS_MESSAGE_CHARS, RunningTask, error_outcome, related
from mcpgen.runtime.server.tasks.task_store import FREE_OUTCOME_BYTES, StoreFull, TaskRecord, cursor_behind, position_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.tasks.task_store import Outcome, Status, TaskStore

__all__ = ["REQUEST_CANCELLED", "REVISION", "Tasks"]

# A cancelled request gets no answer, so neither MCP nor JSON-RPC has a code for it. But a `tasks/result` that waits for
# a cancelled task needs an answer. This is the code of the Language Server Protocol, outside of JSON-RPC's range.
REQUEST_CANCELLED: Final = -32800

# "Cryptographically secure task IDs with enough entropy to prevent guessing": 256 bits, as in a key.
ID_BYTES: Final = 32

_CANCELLED: Final = error_outcome(REQUEST_CANCELLED, "The task was cancelled")
_EXPIRED: Final = error_outcome(ErrorCode.INVALID_PARAMS, "The task has expired")

_logger = logging.getLogger("mcpgen.tasks")


class Tasks:
    """The tasks of one server.

    A principal identifies a requestor: an authorized user, or else a session or a pipe. No method waits; callbacks are
    called before a method returns, and must not raise.

    Args:
        store: Keeps the records.
        clock: Returns seconds of Unix time (``time.time``).
        random_bytes: Makes ids; must be suitable for secrets (``secrets.token_bytes``).
        limits: Bounds on their number and lifetime.
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
        self._running: dict[str, RunningTask] = {}  # including stopped ones that have not ended yet
        self._running_by_principal: Counter[str] = Counter()
        # The `tasks/result` requests that wait for each task, in the order of their arrival, by a key of their own.
        self._waiting: dict[str, dict[object, Callable[[Outcome], None]]] = {}

    def create(
        self,
        params: models.CallToolRequestParams,
        run: Callable[[RunningTask], Callable[[], None]],
        *,
        principal: str,
        changed: Callable[[models.TaskStatusNotificationParams], None],
    ) -> models.CreateTaskResult:
        """Accept a request as a task, and start it.

        Args:
            params: The params of the request.
            run: Starts the handler, and returns a function that stops it. The handler should begin later, so that the
                requestor receives the task before any message about it.
            principal: The owner of the task.
            changed: Called with the params of ``notifications/tasks/status`` whenever the task has changed.

        Raises:
            RequestError: There is no room for another task.

        Spec:
            2025-11-25, basic/utilities/tasks, "Creating Tasks", "Task ID Requirements", "TTL and Resource Management".
        """
        self.expire()
        limits = self._limits
        running_here = self._running_by_principal[principal]
        if len(self._running) >= limits.max_running or running_here >= limits.max_running_per_principal:
            raise RequestError(ErrorCode.INTERNAL_ERROR, "Too many tasks are running; try again later")
        record = self._add(principal, params.task)
        task_id = record.task_id
        running = RunningTask(
            task_id, change=partial(self._change, task_id), changed=changed, closed=partial(self._closed, record)
        )
        self._running[task_id] = running
        self._running_by_principal[principal] += 1
        self._start(record, running, run)
        return models.CreateTaskResult(task=self._task(record), meta=related(task_id))

    def get(self, task_id: str, *, principal: str) -> dict[str, object]:
        """Return the result of ``tasks/get``.

        Raises:
            RequestError: The task does not exist, has expired, or belongs to another principal.
        """
        return self._members(self._own(task_id, principal))

    def list(self, cursor: str | UnsetType = UNSET, *, principal: str) -> models.ListTasksResult:
        """Return the result of ``tasks/list``: a page of the principal's tasks, oldest first.

        Raises:
            RequestError: The cursor is not one of ours.

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

    def result(self, task_id: str, *, principal: str, deliver: Callable[[Outcome], None]) -> Callable[[], object]:
        """Answer a ``tasks/result``: at once if the task has ended, otherwise when it does.

        Args:
            task_id: The task.
            principal: The principal of the request.
            deliver: Called once with the answer, unless the request is dropped before.

        Returns:
            A function that drops the request, to be called when it is cancelled or its connection is lost. The task
            goes on.

        Raises:
            RequestError: The task does not exist for this principal, or too many requests wait for it.

        Spec:
            2025-11-25, basic/utilities/tasks, "Result Retrieval".
        """
        record = self._own(task_id, principal)
        _logger.info("result of task %s requested by %r, %s", task_id[:8], principal, record.status)
        if record.outcome is not None:
            deliver(record.outcome)
            return lambda: None
        waiting = self._waiting.setdefault(task_id, {})
        if len(waiting) >= self._limits.max_waits_per_task:
            raise RequestError(ErrorCode.INTERNAL_ERROR, "Too many requests wait for this task; try again later")
        key = object()
        waiting[key] = deliver
        return lambda: waiting.pop(key, None)

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
        """Drop the expired tasks, also running ones, and return when the next one expires, in seconds of the clock.

        Every other method does the same first; a timer calls this one, so that waiting requests are answered in time.
        """
        for record in self._store.expire(self._now_ms()):
            _logger.info("task %s of %r expired, %s", record.task_id[:8], record.principal, record.status)
            self._end(record.task_id, None, _EXPIRED)
            self._stop(record.task_id)
        following = self._store.next_expiry_ms()
        return None if following is None else following / 1000

    def forget(self, principal: str) -> None:
        """Cancel and drop the tasks of a principal whose session or pipe has ended."""
        while records := self._store.page(principal, after=None, limit=self._limits.page_size):
            for record in records:
                self._cancel(record, "Cancelled at the end of its session")
                self._store.remove(record.task_id)

    def _add(self, principal: str, requested: models.TaskMetadata | UnsetType) -> TaskRecord:
        limits, now_ms = self._limits, self._now_ms()
        ttl_ms = limits.default_ttl_ms if requested is UNSET or requested.ttl is UNSET else requested.ttl
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
        except StoreFull as full:
            reason = f"The task store is full: {full}; try again later"
            raise RequestError(ErrorCode.INTERNAL_ERROR, reason) from None
        _logger.info("task %s of %r created, for %d ms", record.task_id[:8], principal, record.ttl_ms)
        return record

    def _start(
        self, record: TaskRecord, running: RunningTask, run: Callable[[RunningTask], Callable[[], None]]
    ) -> None:
        try:
            running.attach(run(running))
        except BaseException:  # without a handler there must be no task
            self._store.remove(record.task_id)
            running.has_ended = True
            running.close()
            raise

    def _own(self, task_id: str, principal: str) -> TaskRecord:
        self.expire()
        record = self._store.get(task_id)
        if record is None or record.principal != principal:
            _logger.info("the client %r asked for a task that does not exist, or that another client owns", principal)
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
        """Change a task and notify its requestor, unless it has ended; return its new record."""
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
        except StoreFull as full:
            if outcome is None or len(outcome.json) <= FREE_OUTCOME_BYTES:
                raise  # a store must have room for this
            reason = f"The result is too large for the task store: {full}"[:MAX_STATUS_MESSAGE_CHARS]
            error = error_outcome(ErrorCode.INTERNAL_ERROR, reason)
            return self._change(task_id, "failed", message=reason, outcome=error)
        if changed.has_ended:
            _logger.info("task %s of %r ended, %s", task_id[:8], changed.principal, changed.status)
        self._end(task_id, changed, outcome)
        return changed

    def _end(self, task_id: str, record: TaskRecord | None, outcome: Outcome | None) -> None:
        """Notify the requestor of a change, unless the record is gone, and answer the waiting requests at the end."""
        running = self._running.get(task_id)
        if running is not None:
            running.has_ended = outcome is not None
            if record is not None:
                running.notify(models.TaskStatusNotificationParams(**msgspec.structs.asdict(self._task(record))))
        if outcome is not None:
            waiting = self._waiting.pop(task_id, {})
            while waiting:  # an answer may drop another request
                waiting.pop(next(iter(waiting)))(outcome)

    def _cancel(self, record: TaskRecord, message: str) -> TaskRecord | None:
        cancelled = self._change(record.task_id, "cancelled", message=message, outcome=_CANCELLED)
        if cancelled is not None:
            self._stop(record.task_id)
        return cancelled

    def _stop(self, task_id: str) -> None:
        running = self._running.get(task_id)
        if running is not None:
            running.stop()

    def _closed(self, record: TaskRecord) -> None:
        del self._running[record.task_id]
        self._running_by_principal[record.principal] -= 1
        if not self._running_by_principal[record.principal]:
            del self._running_by_principal[record.principal]  # keeps the counter small

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
        # Rounded, not truncated: a timer that fires at the time that `expire` returned must not be a millisecond early.
        return round(self._clock() * 1000)


def _timestamp(ms: int) -> str:
    at = datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
