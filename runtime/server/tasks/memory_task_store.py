"""A store of tasks in this process, with limits.

Spec:
    2025-11-25, basic/utilities/tasks, "Resource Management": receivers SHOULD limit tasks per requestor, and clean up
    those that have expired.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.argument_checks import check_whole_numbers
from mcpgen.runtime.server.tasks.task_store import FREE_OUTCOME_BYTES, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcpgen.runtime.server.tasks.task_store import Position, TaskRecord

__all__ = ["MemoryTaskStore", "StoreBounds", "counted_bytes"]

# Measured in CPython 3.11 to 3.13: a record, its id, and its places in the order and among the expiries.
_RECORD_BYTES: Final = 600


class StoreBounds:
    """The limits of a store.

    Args:
        max_tasks: The largest number of tasks of all owners together.
        max_tasks_per_principal: The largest number of tasks of one owner.
        max_outcome_bytes: The total size of what the tasks keep, at most.
        max_outcome_bytes_per_principal: The same for the tasks of one owner.

    Raises:
        UsageError: A limit is not valid.
    """

    def __init__(
        self, max_tasks: int, max_tasks_per_principal: int, max_outcome_bytes: int, max_outcome_bytes_per_principal: int
    ) -> None:
        check_whole_numbers(
            max_tasks=max_tasks,
            max_tasks_per_principal=max_tasks_per_principal,
            max_outcome_bytes=max_outcome_bytes,
            max_outcome_bytes_per_principal=max_outcome_bytes_per_principal,
        )
        if min(max_tasks, max_tasks_per_principal) < 1 or min(max_outcome_bytes, max_outcome_bytes_per_principal) < 0:
            raise UsageError(
                "`max_tasks` and `max_tasks_per_principal` must be at least 1, and `max_outcome_bytes` and "
                "`max_outcome_bytes_per_principal` must not be negative"
            )
        self._max_tasks = max_tasks
        self._max_tasks_per_principal = max_tasks_per_principal
        self._max_bytes = max_outcome_bytes
        self._max_bytes_per_principal = max_outcome_bytes_per_principal

    def exceeded_count(self, of_owner: int, of_all: int) -> tuple[str, bool] | None:
        """Return which limit one more task would exceed, and whether it is that of the owner; None if none."""
        if of_owner >= self._max_tasks_per_principal:
            return f"{self._max_tasks_per_principal} tasks of this client (max_tasks_per_principal)", True
        return (f"{self._max_tasks} tasks (max_tasks)", False) if of_all >= self._max_tasks else None

    def check_bytes(self, of_owner: int, of_all: int) -> None:
        """Check the bytes that an owner and all owners would have.

        Raises:
            StoreFull: They exceed a limit.
        """
        if of_owner > self._max_bytes_per_principal:
            limit = f"{self._max_bytes_per_principal} bytes (max_outcome_bytes_per_principal)"
            raise StoreFull(f"the results of this client would have more than {limit}")
        if of_all > self._max_bytes:
            raise StoreFull(f"all results would have more than {self._max_bytes} bytes (max_outcome_bytes)")


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
        self._bounds = StoreBounds(
            max_tasks, max_tasks_per_principal, max_outcome_bytes, max_outcome_bytes_per_principal
        )
        self._records: dict[str, TaskRecord] = {}
        self._order: dict[str, list[Position]] = {}  # of each principal's tasks, sorted
        self._expiries: list[tuple[int, str]] = []  # sorted
        self._counts: Counter[str] = Counter()  # of each owner's tasks
        self._bytes: Counter[str] = Counter()  # of what each owner's tasks keep
        self._beats: Counter[str] = Counter()  # of each worker
        self._total_bytes = 0
        self._kept_bytes = 0

    @property
    def is_shared(self) -> bool:
        """Whether several processes use it."""
        return False

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
        exceeded = self._bounds.exceeded_count(self._counts[record.sharer], len(self._records))
        if exceeded is not None:
            limit, is_of_owner = exceeded
            records = self._records.values()
            mine = (each for each in records if not is_of_owner or each.sharer == record.sharer)
            self._drop_cancelled(mine, limit)
        self._check_bytes(record, counted_bytes(record))
        self._records[record.task_id] = record
        insort(self._order.setdefault(record.principal, []), record.position)
        insort(self._expiries, (record.expires_ms, record.task_id))
        self._counts[record.sharer] += 1
        self._count(record, 1)

    def get(self, task_id: str) -> TaskRecord | None:
        """Return the record of a task; see `TaskStore`."""
        return self._records.get(task_id)

    def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
        """Replace the record that has the same `task_id`; see `TaskStore`."""
        stored = self._records.get(record.task_id)
        if stored is None or (before is not None and stored != before):
            return False
        self._check_bytes(record, counted_bytes(record) - counted_bytes(stored))
        self._count(stored, -1)
        self._records[record.task_id] = record
        self._count(record, 1)
        return True

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
        self._counts[record.sharer] -= 1
        if not self._counts[record.sharer]:
            del self._counts[record.sharer]  # keeps the counter small
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

    def beat(self, worker: str) -> Mapping[str, int]:
        """Count one beat of *worker*; see `TaskStore`."""
        self._beats[worker] += 1
        removed = {each.worker: 0 for each in self._records.values() if not each.has_ended}
        return {**removed, **self._beats}

    def unfinished(self, worker: str) -> list[TaskRecord]:
        """Return the tasks of *worker* that have not ended."""
        return [each for each in self._records.values() if each.worker == worker and not each.has_ended]

    def remove_worker(self, worker: str) -> None:
        """Forget the beats of *worker*."""
        self._beats.pop(worker, None)

    def _drop_cancelled(self, records: Iterable[TaskRecord], limit: str) -> None:
        oldest = next((record for record in records if record.status == "cancelled"), None)
        if oldest is None:
            raise StoreFull(f"it has {limit}")
        self.remove(oldest.task_id)

    def _check_bytes(self, record: TaskRecord, more: int) -> None:
        if more > 0:
            self._bounds.check_bytes(self._bytes[record.sharer] + more, self._total_bytes + more)

    def _count(self, record: TaskRecord, sign: int) -> None:
        self._kept_bytes += sign * _kept_bytes(record)
        size = sign * counted_bytes(record)
        if size:
            self._total_bytes += size
            self._bytes[record.sharer] += size
            if not self._bytes[record.sharer]:
                del self._bytes[record.sharer]  # keeps the counter small


def counted_bytes(record: TaskRecord) -> int:
    """Return what *record* counts against the limits on bytes."""
    return max(0, record.content_bytes - FREE_OUTCOME_BYTES)


def _kept_bytes(record: TaskRecord) -> int:
    message = record.status_message or ""
    return _RECORD_BYTES + (len(message) if message.isascii() else 4 * len(message)) + record.content_bytes
