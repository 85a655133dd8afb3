"""What the extension for tasks does with the notifications and the results of a server.

Spec:
    ext-tasks, specification/draft/tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.generated.extensions import tasks as bindings
from mcpgen.runtime.client.task_state import DescribedTask, TaskWait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["TaskWatcher", "decode_task"]

decode_task: Final = msgspec.json.Decoder(DescribedTask).decode


class TaskWatcher(bindings.ClientHandlers[Any]):
    """Passes the notifications of tasks to those who wait for the tasks.

    Attributes:
        waits: The open waits, by the id of the task.
        wait: Waits for a task, and returns the result of its tool; None before the client is connected.
    """

    def __init__(self) -> None:
        self.waits: dict[str, list[TaskWait]] = {}
        self.wait: Callable[[str], Awaitable[Any]] | None = None

    async def task_status(self, params: bindings.TaskStatusNotificationParams, context: object, /) -> None:
        """Pass a notification to those who wait for its task."""
        del context
        waits = self.waits.get(params.task_id)
        if waits:
            found = decode_task(msgspec.json.encode(params))
            for each in waits:  # a server can give one id to hundreds of calls
                each.notify(found)

    async def finish_result(self, result: Any, _context: object, /) -> Any:
        """Wait for the task that a call with generated methods has become."""
        if self.wait is None or not isinstance(result, bindings.CreateTaskResult):
            return result
        return await self.wait(result.task_id)
