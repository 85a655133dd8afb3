"""The ``tasks/result`` requests that wait for their tasks to end.

Spec:
    2025-11-25, basic/utilities/tasks, "Result Retrieval".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.server.tasks.task_store import Outcome

__all__ = ["PendingResult", "PendingResults"]


class PendingResult:
    """One waiting request; it is answered once, or dropped."""

    def __init__(self, deliver: Callable[[Outcome], None]) -> None:
        self._deliver: Callable[[Outcome], None] | None = deliver

    @property
    def is_over(self) -> bool:
        """Whether it was answered or dropped."""
        return self._deliver is None

    def deliver(self, outcome: Outcome) -> None:
        """Answer it, unless it was dropped."""
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver(outcome)

    def drop(self) -> None:
        """Drop it without an answer: it was cancelled, or its connection is closed."""
        self._deliver = None


class PendingResults:
    """The waiting requests, by task.

    Args:
        max_per_task: The most that may wait for one task.
    """

    def __init__(self, max_per_task: int) -> None:
        self._max_per_task = max_per_task
        self._pending: dict[str, list[PendingResult]] = {}

    def add(self, task_id: str, pending: PendingResult) -> bool:
        """Add a request that waits for a task; return False if too many wait already."""
        others = [each for each in self._pending.get(task_id, ()) if not each.is_over]
        if len(others) >= self._max_per_task:
            return False
        self._pending[task_id] = [*others, pending]
        return True

    def deliver(self, task_id: str, outcome: Outcome) -> None:
        """Answer the requests that wait for a task, in the order of their arrival."""
        for pending in self._pending.pop(task_id, ()):
            pending.deliver(outcome)
