"""The lifecycle of tasks: tool calls that go on after their first answer.

Theory of operation. `TaskLifecycle.begin` adds a record and starts the handler, which reports its progress to a
`RunningTask`. A task ends once: by its handler, by ``tasks/cancel``, or when it expires. At its end, the record changes
first; then the requestor is notified, the waiting ``tasks/result`` requests are answered, and the handler is stopped.
Later reports of the handler are ignored. Records are kept in a `TaskStore`, handlers and waiting requests here.

Another process may change a record in a shared store at the same time. So a change is made to the record that was read,
and made again if the stored one is another by then.

A stopped handler may need time to end, so it counts against the limits until `RunningTask.close`. Otherwise a client
could exceed them by creating and cancelling tasks in a loop.

A task can be used only by its principal; for any other, it does not exist. If clients cannot be distinguished, the id,
which has 256 random bits, is the secret.

Spec:
    2025-11-25, basic/utilities/tasks; ext-tasks, specification/draft/tasks.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.limits import TaskLimits
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.tasks.record_edit import record_edit
from mcpgen.runtime.server.tasks.running_task import MAX_STATUS_MESSAGE_CHARS, RunningTask, error_outcome
from mcpgen.runtime.server.tasks.running_totals import RunningCall, RunningTotals
from mcpgen.runtime.server.tasks.task_access import answering, may_use, no_such_task
from mcpgen.runtime.server.tasks.task_store import (
    FREE_OUTCOME_BYTES,
    Outcome,
    Status,
    StoreFailed,
    StoreFull,
    TaskRecord,
    briefs_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.tasks.running_task import Change
    from mcpgen.runtime.server.tasks.task_store import NewTask, TaskStore

__all__ = ["REQUEST_CANCELLED", "RETRY_SECONDS", "TaskLifecycle"]

# A cancelled request gets no answer, so neither MCP nor JSON-RPC has a code for it. But a `tasks/result` that waits for
# a cancelled task needs an answer. This is the code of the Language Server Protocol, outside of JSON-RPC's range.
REQUEST_CANCELLED: Final = -32800

# "Cryptographically secure task IDs with enough entropy to prevent guessing": 256 bits, as in a key.
ID_BYTES: Final = 32

CANCELLED: Final = error_outcome(REQUEST_CANCELLED, "The task was cancelled")
EXPIRED: Final = error_outcome(ErrorCode.INVALID_PARAMS, "The task has expired")

# Until a store that failed is tried again.
RETRY_SECONDS: Final = 1.0

# Two processes rarely change one task at once, and each of them retries at once.
_MAX_RETRIES: Final = 100

_logger = logging.getLogger("mcpgen.tasks")


class _Unsaved(Struct, frozen=True):
    """The end of a task that the store has not taken yet."""

    status: Status
    message: str | None
    outcome: Outcome


class TaskLifecycle:
    """The tasks of one server.

    A principal identifies a requestor: an authorized user, or else a session or a pipe. No method waits; callbacks are
    called before a method returns, and must not raise.

    Args:
        store: Keeps the records.
        clock: Returns seconds of Unix time (``time.time``).
        random_bytes: Makes ids; must be suitable for secrets (``secrets.token_bytes``).
        limits: Bounds on their number and lifetime.
        worker: The name of this process in the store. For a view of a server, it is the view's name, a space and more.

    Attributes:
        running: The tasks whose handlers run in this process, with those that were stopped and have not ended yet.
        totals: Counts these.
        view: The name of the view; empty for the server itself.
        clock: Returns seconds of Unix time.
        on_change: Called with the new record after each change that this process makes.
        on_unsaved: Called when the store has not taken the end of a task; call `save` later.
    """

    def __init__(
        self,
        store: TaskStore,
        *,
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        limits: TaskLimits | None = None,
        worker: str = "",
    ) -> None:
        self.store: TaskStore = store
        self.limits: TaskLimits = limits or TaskLimits()
        self.worker: str = worker
        self.view: str = worker.rpartition(" ")[0]
        self.running: dict[str, RunningTask] = {}
        self.totals: RunningTotals = RunningTotals(self.limits)
        self.on_change: Callable[[TaskRecord], None] | None = None
        self.on_unsaved: Callable[[], None] | None = None
        self.clock: Callable[[], float] = clock
        self._random_bytes = random_bytes
        # The `tasks/result` requests that wait for each task, in the order of their arrival, by a key of their own.
        self._waiting: dict[str, dict[object, Callable[[Outcome], None]]] = {}
        self._unsaved: dict[str, _Unsaved] = {}

    def begin(
        self, task: NewTask, make: Callable[..., RunningTask], run: Callable[[RunningTask], Callable[[], None]]
    ) -> TaskRecord:
        """Add a task, start its handler, and return its record.

        Args:
            task: What it is made of.
            make: Makes the `RunningTask` of an id, ``change`` and ``closed``.
            run: Starts the handler, and returns a function that stops it. The handler should begin later, so that the
                requestor receives the task before any message about it.

        Raises:
            RequestError: There is no room for another task.
        """
        with answering():
            self.expire()
            self.totals.check(task.owner or task.principal, task.size)
            record = self._add(task)
        running = self.attach(record, make, task.size)
        try:
            running.attach(run(running))
        except BaseException:  # without a handler there must be no task
            self.store.remove(record.task_id)
            running.has_ended = True
            running.close()
            raise
        return record

    def attach(self, record: TaskRecord, make: Callable[..., RunningTask], size: int) -> RunningTask:
        """Return the `RunningTask` of *record*, whose handler, for a request of *size* bytes, runs from now on."""
        change: Change = partial(self.change, record.task_id, worker=self.worker)
        call = RunningCall(self.totals, record.sharer, size)
        running = make(record.task_id, change=change, closed=partial(self._closed, record.task_id, call))
        running.principal, running.call = record.principal, call
        self.running[record.task_id] = running
        return running

    def wait(self, record: TaskRecord, deliver: Callable[[Outcome], None]) -> Callable[[], object]:
        """Call *deliver* with the outcome of a task at its end, or at once if it has ended.

        Returns:
            A function that drops the request, to be called when it is cancelled or its connection is lost. The task
            goes on.

        Raises:
            RequestError: Too many requests wait for the task.
        """
        if record.outcome is not None:
            deliver(record.outcome)
            return lambda: None
        waiting = self._waiting.setdefault(record.task_id, {})
        if len(waiting) >= self.limits.max_waits_per_task:
            reason = "Too many requests wait for this task (max_waits_per_task); try again later"
            raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
        key = object()
        waiting[key] = deliver
        return lambda: waiting.pop(key, None)

    def expire(self) -> float | None:
        """Drop the expired tasks, also running ones, and return when the next one expires, in seconds of the clock.

        Every other method does the same first; a timer calls this one, so that waiting requests are answered in time.
        """
        for record in self.store.expire(self._now_ms()):
            _logger.info("task %s of %r expired, %s", record.task_id[:8], record.principal, record.status)
            self.drop(record.task_id)
        following = self.store.next_expiry_ms()
        return None if following is None else following / 1000

    def tidy(self) -> float | None:
        """Do what `expire` does, and end what this worker does for tasks that another worker has ended or removed."""
        following = self.expire()
        followed = list(self._waiting if self.store.is_shared else {*self._waiting, *self.running})
        briefs = briefs_of(self.store, followed)
        for task_id in followed:
            if task_id not in briefs:
                self.drop(task_id)
            elif briefs[task_id].has_ended and (record := self.store.get(task_id)) is not None:
                self._end(task_id, None, record.outcome)
        return following

    def seconds_to_expiry(self) -> float | None:
        """Do what `tidy` does; return in how many seconds to call this again, also if the store fails now."""
        try:
            following = self.tidy()
        except StoreFailed as failure:
            _logger.warning("the task store failed: %s", failure)
            return RETRY_SECONDS
        return None if following is None else following - self.clock()

    def principal(self, name: str) -> str:
        """Return the principal for a client that the transport calls *name*; each view has principals of its own."""
        return f"{self.view} {name}" if self.view else name

    @property
    def is_watching(self) -> bool:
        """Whether something here depends on what other workers do to tasks."""
        return bool(self.running or self._waiting)

    def drop(self, task_id: str) -> None:
        """End what this process does for a task whose record is gone."""
        self._end(task_id, None, EXPIRED)
        self._stop(task_id)

    def stop_all(self, principal: str) -> None:
        """Stop the handlers of a principal whose session or pipe has ended; this does not use the store."""
        for each in [each for each in self.running.values() if each.principal == principal]:
            self.drop(each.task_id)

    def own(self, task_id: str, *, principal: str, revision: str, access: Access | None) -> TaskRecord:
        """Return the record of a task of *principal*.

        Raises:
            RequestError: The task does not exist for this principal, or *access* lacks a scope of its tool.
        """
        with answering():
            self.expire()
            record = self.store.get(task_id)
        is_alive = record is not None and self._now_ms() < record.expires_ms  # many expire in several steps
        if record is None or not is_alive or record.principal != principal or record.revision != revision:
            _logger.info("the client %r asked for a task that does not exist, or that another client owns", principal)
            raise no_such_task()
        if not may_use(record, access):
            raise RequestError(ErrorCode.INVALID_REQUEST, "the access token lacks a scope that the task needs")
        return record

    def cancel_record(self, record: TaskRecord, message: str) -> TaskRecord | None:
        """Cancel a task and stop its handler; return its new record, or None if it has ended."""
        cancelled = self.change(record.task_id, "cancelled", message=message, outcome=CANCELLED)
        if cancelled is not None or self.is_unsaved(record.task_id):
            self._stop(record.task_id)
        return cancelled

    def change(  # noqa: PLR0913 (one per member that changes)
        self,
        task_id: str,
        status: Status | None = None,
        /,
        *,
        message: str | None = None,
        outcome: Outcome | None = None,
        input_requests: bytes | UnsetType | None = UNSET,
        worker: str | None = None,
    ) -> TaskRecord | None:
        """Change a task and notify its requestor, unless it has ended; return its new record.

        With *worker*, do nothing if another worker has taken the task.
        """
        edit = record_edit(status, message, outcome, input_requests, worker)
        try:
            self.expire()
            return self._change(task_id, edit, outcome)
        except StoreFailed as failure:
            if outcome is None or status is None:
                raise
            _logger.warning("the end of task %s cannot be stored yet; the server tries again: %s", task_id[:8], failure)
            self._unsaved.setdefault(task_id, self._for_later(_Unsaved(status, message, outcome)))
            running = self.running.get(task_id)
            if running is not None:
                running.has_ended = True
            if self.on_unsaved is not None:
                self.on_unsaved()
            return None

    def _for_later(self, end: _Unsaved) -> _Unsaved:
        """Return the *end* of a task, or that it has failed if the ends that are not stored keep too many bytes."""
        size, kept = len(end.outcome.json), sum(len(each.outcome.json) for each in self._unsaved.values())
        if not kept or size <= FREE_OUTCOME_BYTES or kept + size <= self.limits.max_running_bytes:
            return end
        reason = "The result could not be stored, and the results that wait for the task store keep too many bytes"
        return _Unsaved("failed", reason, error_outcome(ErrorCode.INTERNAL_ERROR, reason))

    def is_unsaved(self, task_id: str) -> bool:
        """Whether the store has not taken the end of a task yet."""
        return task_id in self._unsaved

    def save(self) -> int:
        """Try again to store the end of a task that the store has not taken; return its bytes, 0 if there is none.

        Raises:
            StoreFailed: The store still does not take it.
        """
        for task_id, each in self._unsaved.items():
            self._change(task_id, record_edit(each.status, each.message, each.outcome), each.outcome)
            del self._unsaved[task_id]
            return len(each.outcome.json)
        return 0

    def replace(self, task_id: str, edit: Callable[[TaskRecord], TaskRecord | None]) -> TaskRecord | None:
        """Replace the record of a task by what *edit* makes of it; notify its requestor, and return the new one.

        *edit* returns None to change nothing. It is called again if another process has changed the task meanwhile.
        """
        for _ in range(_MAX_RETRIES):
            record = self.store.get(task_id)
            edited = None if record is None or record.has_ended else edit(record)
            if record is None or edited is None:
                return None
            changed = msgspec.structs.replace(edited, updated_ms=max(record.updated_ms + 1, self._now_ms()))
            if self.store.replace(changed, before=record):
                self._changed(changed)
                return changed
        raise StoreFailed(f"task {task_id[:8]} changes too often; try again later")

    def _change(
        self, task_id: str, edit: Callable[[TaskRecord], TaskRecord | None], outcome: Outcome | None
    ) -> TaskRecord | None:
        try:
            return self.replace(task_id, edit)
        except StoreFull as full:
            if outcome is None or len(outcome.json) <= FREE_OUTCOME_BYTES:
                raise  # a store must have room for this
            reason = f"The result is too large for the task store: {full}"[:MAX_STATUS_MESSAGE_CHARS]
            return self.replace(task_id, record_edit("failed", reason, error_outcome(ErrorCode.INTERNAL_ERROR, reason)))

    def _changed(self, record: TaskRecord) -> None:
        if record.has_ended:
            _logger.info("task %s of %r ended, %s", record.task_id[:8], record.principal, record.status)
        self._end(record.task_id, record, record.outcome)
        if self.on_change is not None:
            self.on_change(record)

    def _add(self, task: NewTask) -> TaskRecord:
        limits, now_ms = self.limits, self._now_ms()
        ttl_ms = limits.default_ttl_ms if isinstance(task.ttl_ms, UnsetType) else task.ttl_ms
        record = TaskRecord(
            task_id=urlsafe_b64encode(self._random_bytes(ID_BYTES)).rstrip(b"=").decode("ascii"),
            principal=task.principal,
            status="working",
            created_ms=now_ms,
            updated_ms=now_ms,
            ttl_ms=min(max(ttl_ms, limits.min_ttl_ms), limits.max_ttl_ms),
            revision=task.revision,
            owner=task.owner,
            worker=self.worker,
            input_responses=task.input_responses,
            call=task.call,
            scopes=task.scopes,
        )
        self.store.add(record)
        _logger.info("task %s of %r created, for %d ms", record.task_id[:8], record.principal, record.ttl_ms)
        return record

    def _end(self, task_id: str, record: TaskRecord | None, outcome: Outcome | None) -> None:
        """Notify the requestor of a change, unless the record is gone, and answer the waiting requests at the end."""
        running = self.running.get(task_id)
        if running is not None:
            running.has_ended = outcome is not None
            if record is not None:
                running.notify(record)
        if outcome is not None:
            waiting = self._waiting.pop(task_id, {})
            while waiting:  # an answer may drop another request
                waiting.pop(next(iter(waiting)))(outcome)

    def _stop(self, task_id: str) -> None:
        running = self.running.get(task_id)
        if running is not None:
            running.stop()

    def _closed(self, task_id: str, call: RunningCall) -> None:
        del self.running[task_id]
        call.end()

    def _now_ms(self) -> int:
        # Rounded, not truncated: a timer that fires at the time that `expire` returned must not be a millisecond early.
        return round(self.clock() * 1000)
