"""Requests that wait for tasks to end: the ``tasks/result`` that cannot be answered yet.

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
    """One request that waits; it is answered once, or dropped."""

    def __init__(self, deliver: Callable[[Outcome], None]) -> None:
        self._deliver: Callable[[Outcome], None] | None = deliver

    @property
    def is_over(self) -> bool:
        """Whether it was answered or dropped."""
        return self._deliver is None

    def end(self, outcome: Outcome) -> None:
        """Answer it."""
        deliver, self._deliver = self._deliver, None
        if deliver is not None:
            deliver(outcome)

    def drop(self) -> None:
        """Let it go without an answer: it was cancelled, or nobody is there any more."""
        self._deliver = None


class PendingResults:
    """The requests that wait, by task.

    Args:
        max_per_task: The most that wait for one task.
    """

    def __init__(self, max_per_task: int) -> None:
        self._max_per_task = max_per_task
        self._waits: dict[str, list[PendingResult]] = {}

    def add(self, task_id: str, wait: PendingResult) -> bool:
        """Let *wait* wait for a task; False if as many do as may."""
        others = [each for each in self._waits.get(task_id, ()) if not each.is_over]
        if len(others) >= self._max_per_task:
            return False
        self._waits[task_id] = [*others, wait]
        return True

    def end(self, task_id: str, outcome: Outcome) -> None:
        """Answer those that wait for a task, in the order in which they came."""
        for wait in self._waits.pop(task_id, ()):
            wait.end(outcome)
