"""The store of tasks: records, the protocol of a store, and a bounded store in memory.

A store only keeps records; `mcpgen.runtime.server.tasks.lifecycle` decides how they change.

Spec:
    2025-11-25, basic/utilities/tasks, "Resource Management": receivers SHOULD limit tasks per requestor, and clean up
    those that have expired.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from mcpgen.runtime.errors import McpgenError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "MemoryTaskStore",
    "Outcome",
    "Position",
    "Status",
    "StoreFull",
    "TaskRecord",
    "TaskStore",
    "cursor_behind",
    "position_at",
]

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]

Position: TypeAlias = tuple[int, str]
"""The place of a task in the list of one client's tasks: time of creation and id.

It stays valid if the task is removed.
"""

# Most answers, and all errors, are smaller. They do not count against the limits, so that a task can end with an error
# in a full store.
FREE_OUTCOME_BYTES: Final = 1024

# Measured in CPython 3.11 to 3.13: a record, its id, and its places in the order and among the expiries.
_RECORD_BYTES: Final = 600


_TIME_BYTES: Final = 8

# Our cursors have about 70 characters; longer ones are refused without decoding them.
_MAX_CURSOR_CHARS: Final = 256


class StoreFull(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """There is no room for a task, or for its result."""


class Outcome(Struct, frozen=True, gc=False):
    """The final answer of the request that became a task: the JSON of a result or of an error."""

    json: bytes
    is_error: bool = False


class TaskRecord(Struct, frozen=True, kw_only=True):
    """The record of one task. Times are in milliseconds of Unix time.

    Attributes:
        principal: The user, session or connection that owns it.
        created_ms: The time of its creation.
        updated_ms: The time of its last change.
        ttl_ms: Its lifetime, from its creation on.
        status_message: A description of the status, for people.
        outcome: The answer, once the task has ended.
    """

    task_id: str
    principal: str
    status: Status
    created_ms: int
    updated_ms: int
    ttl_ms: int
    status_message: str | None = None
    outcome: Outcome | None = None

    @property
    def has_ended(self) -> bool:
        """Whether its status is final."""
        return self.status in {"completed", "failed", "cancelled"}

    @property
    def expires_ms(self) -> int:
        """The time at which it expires."""
        return self.created_ms + self.ttl_ms

    @property
    def position(self) -> Position:
        """Its place in the list of its principal."""
        return self.created_ms, self.task_id


class TaskStore(Protocol):
    """A store of tasks: one `TaskRecord` for each. Its methods are not async, so a remote store needs a local copy.

    `TaskRecord` and `StoreFull` are in `mcpgen.runtime.server.tasks.task_store`.
    """

    def add(self, record: TaskRecord) -> None:
        """Store the record of a new task.

        Raises:
            StoreFull: There is no room for the task.
        """
        ...

    def get(self, task_id: str) -> TaskRecord | None:
        """Return the record of a task, whichever client owns it; None if there is no such task."""
        ...

    def replace(self, record: TaskRecord) -> None:
        """Replace the record that has the same `task_id`; do nothing if there is no such record any more.

        `principal` and `created_ms` of a task never change.

        Raises:
            StoreFull: There is no room for the `outcome`. There must always be room for a short error.
        """
        ...

    def remove(self, task_id: str) -> None:
        """Remove a task, if it exists."""
        ...

    def page(self, principal: str, *, after: Position | None, limit: int) -> list[TaskRecord]:
        """Return at most *limit* tasks of *principal* after the position *after*, oldest first.

        The task at that position may have been removed. If *after* is None, start at the oldest task.
        """
        ...

    def expire(self, now_ms: int) -> list[TaskRecord]:
        """Remove the expired tasks, and return them."""
        ...

    def next_expiry_ms(self) -> int | None:
        """Return the time at which the next task expires; None if there are no tasks."""
        ...


class MemoryTaskStore:
    """A `TaskStore` in this process, with limits on the number of tasks and the size of their results.

    A full store first removes a cancelled task, which the specification allows at any time. It keeps all other tasks
    for their lifetime. If none is cancelled, it refuses the new task.

    Args:
        max_tasks: The largest number of tasks of all principals together. A principal is the user, session or
            connection that owns a task.
        max_tasks_per_principal: The largest number of tasks of one principal. The default allows one new task each
            second with the default lifetime of ten minutes, and some that live longer.
        max_outcome_bytes: The total size of all results, at most.
        max_outcome_bytes_per_principal: The total size of the results of one principal, at most. The default allows
            four of the largest results that fit into a message.

    Spec:
        2025-11-25, basic/utilities/tasks, "Task Cancellation".
    """

    def __init__(
        self,
        *,
        max_tasks: int = 10_000,
        max_tasks_per_principal: int = 1000,
        max_outcome_bytes: int = 64 * 1024 * 1024,
        max_outcome_bytes_per_principal: int = 16 * 1024 * 1024,
    ) -> None:
        if min(max_tasks, max_tasks_per_principal) < 1 or min(max_outcome_bytes, max_outcome_bytes_per_principal) < 0:
            raise UsageError(
                "`max_tasks` and `max_tasks_per_principal` must be at least 1, and `max_outcome_bytes` and "
                "`max_outcome_bytes_per_principal` must not be negative"
            )
        self._max_tasks = max_tasks
        self._max_tasks_per_principal = max_tasks_per_principal
        self._max_bytes = max_outcome_bytes
        self._max_bytes_per_principal = max_outcome_bytes_per_principal
        self._records: dict[str, TaskRecord] = {}
        self._order: dict[str, list[Position]] = {}  # of each principal's tasks, sorted
        self._expiries: list[tuple[int, str]] = []  # sorted
        self._bytes: Counter[str] = Counter()  # of each principal's outcomes
        self._total_bytes = 0
        self._kept_bytes = 0

    @property
    def count(self) -> int:
        """The number of stored tasks."""
        return len(self._records)

    @property
    def kept_bytes(self) -> int:
        """The memory that all records take, with their results."""
        return self._kept_bytes

    def add(self, record: TaskRecord) -> None:
        """Store the record of a new task; see `TaskStore`."""
        if record.task_id in self._records:
            raise UsageError(f"there is already a task with the id {record.task_id[:8]}…; give each task its own id")
        order = self._order.get(record.principal, ())
        if len(order) >= self._max_tasks_per_principal:
            limit = f"{self._max_tasks_per_principal} tasks of this client (max_tasks_per_principal)"
            self._drop_cancelled((self._records[task_id] for _, task_id in order), limit)
        elif len(self._records) >= self._max_tasks:
            self._drop_cancelled(self._records.values(), f"{self._max_tasks} tasks (max_tasks)")
        self._records[record.task_id] = record
        insort(self._order.setdefault(record.principal, []), record.position)
        insort(self._expiries, (record.expires_ms, record.task_id))
        self._count(record, 1)

    def get(self, task_id: str) -> TaskRecord | None:
        """Return the record of a task; see `TaskStore`."""
        return self._records.get(task_id)

    def replace(self, record: TaskRecord) -> None:
        """Replace the record that has the same `task_id`; see `TaskStore`."""
        before = self._records.get(record.task_id)
        if before is None:
            return
        more = _size(record) - _size(before)
        if self._bytes[record.principal] + more > self._max_bytes_per_principal:
            limit = f"{self._max_bytes_per_principal} bytes (max_outcome_bytes_per_principal)"
            raise StoreFull(f"the results of this client would have more than {limit}")
        if self._total_bytes + more > self._max_bytes:
            raise StoreFull(f"all results would have more than {self._max_bytes} bytes (max_outcome_bytes)")
        self._count(before, -1)
        self._records[record.task_id] = record
        self._count(record, 1)

    def remove(self, task_id: str) -> None:
        """Remove a task, if it exists."""
        record = self._records.pop(task_id, None)
        if record is None:
            return
        order = self._order[record.principal]
        del order[bisect_left(order, record.position)]
        if not order:
            del self._order[record.principal]
        del self._expiries[bisect_left(self._expiries, (record.expires_ms, task_id))]
        self._count(record, -1)

    def page(self, principal: str, *, after: Position | None, limit: int) -> list[TaskRecord]:
        """Return tasks of *principal*, oldest first; see `TaskStore`."""
        order = self._order.get(principal, [])
        first = 0 if after is None else bisect_right(order, after)
        return [self._records[task_id] for _, task_id in order[first : first + limit]]

    def expire(self, now_ms: int) -> list[TaskRecord]:
        """Remove the expired tasks, and return them."""
        end = bisect_left(self._expiries, (now_ms + 1, ""))
        expired = [self._records[task_id] for _, task_id in self._expiries[:end]]
        for record in expired:
            self.remove(record.task_id)
        return expired

    def next_expiry_ms(self) -> int | None:
        """Return the time at which the next task expires; None if there are no tasks."""
        return self._expiries[0][0] if self._expiries else None

    def _drop_cancelled(self, records: Iterable[TaskRecord], limit: str) -> None:
        oldest = next((record for record in records if record.status == "cancelled"), None)
        if oldest is None:
            raise StoreFull(f"it has {limit}")
        self.remove(oldest.task_id)

    def _count(self, record: TaskRecord, sign: int) -> None:
        self._kept_bytes += sign * _kept_bytes(record)
        size = sign * _size(record)
        if size:
            self._total_bytes += size
            self._bytes[record.principal] += size
            if not self._bytes[record.principal]:
                del self._bytes[record.principal]  # keeps the counter small


def cursor_behind(position: Position) -> str:
    """Return the cursor of the page after *position*. It reveals no more than the task itself."""
    created_ms, task_id = position
    return urlsafe_b64encode(created_ms.to_bytes(_TIME_BYTES, "big") + task_id.encode("utf-8")).decode("ascii")


def position_at(cursor: str) -> Position | None:
    """Return the position in *cursor*; None if the cursor is not one of ours."""
    if len(cursor) > _MAX_CURSOR_CHARS:
        return None
    try:
        raw = urlsafe_b64decode(cursor)
        position = int.from_bytes(raw[:_TIME_BYTES], "big"), raw[_TIME_BYTES:].decode("utf-8")
    except ValueError:
        return None
    return position if cursor_behind(position) == cursor else None


def _kept_bytes(record: TaskRecord) -> int:
    message = record.status_message or ""
    size = _RECORD_BYTES + (len(message) if message.isascii() else 4 * len(message))
    return size if record.outcome is None else size + len(record.outcome.json)


def _size(record: TaskRecord) -> int:
    return 0 if record.outcome is None else max(0, len(record.outcome.json) - FREE_OUTCOME_BYTES)
