"""The handle of a tool that runs as a task: its result can be waited for now or later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from mcpgen.runtime.client.task_state import TaskState
from mcpgen.runtime.client.tool_results import as_tool_result, check_type, value_as

if TYPE_CHECKING:
    from mcpgen.runtime.client.outgoing_requests import OnProgress
    from mcpgen.runtime.client.task_state import DescribedTask

__all__ = ["StartedTool", "TaskHandle", "TaskRequests"]


class StartedTool(Struct, frozen=True):
    """A tool that was started.

    Attributes:
        tool: The name of the tool; empty if it is not known.
        task_id: The id of its task; empty if it ran as a plain call.
        token: The progress token of the call, of a server of 2025-11-25.
        result: The result of a plain call.
    """

    tool: str
    task_id: str = ""
    token: int | None = None
    result: Any = None


class TaskRequests(Protocol):
    """What a handle needs of the tasks of a server: `mcpgen.runtime.client.tool_tasks`."""

    @property
    def max_values(self) -> int:
        """The most values of a text that is read as a value."""
        ...

    async def get(self, task_id: str, /) -> DescribedTask:
        """Return a task."""
        ...

    async def cancel(self, task_id: str, /) -> None:
        """Cancel a task, unless it has ended."""
        ...

    async def wait(self, task: StartedTool, on_progress: OnProgress | None, seconds: float | None, /) -> Any:
        """Wait for a task, and return the result of its tool."""
        ...


class TaskHandle:
    """A tool that was started with `Client.start_tool`. Its result can be waited for now or later.

    Another client, also of another process, takes it up with ``client.task(task_id)``: store `task_id` for that.

    Attributes:
        task_id: The id of the task; empty if the server ran the tool at once, as a plain call.
    """

    def __init__(self, tasks: TaskRequests, started: StartedTool) -> None:
        self.task_id: str = started.task_id
        self._tasks = tasks
        self._started = started
        self._result: Any = started.result

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.task_id[:8] or 'of a finished call'}>"

    async def state(self) -> TaskState:
        """Return the state of the task.

        Raises:
            RequestRefused: There is no such task any more.
        """
        if self._result is not None:
            return TaskState("completed")
        return (await self._tasks.get(self.task_id)).state

    async def result(
        self, *, returns: Any = None, on_progress: OnProgress | None = None, timeout_seconds: float | None = None
    ) -> Any:
        """Wait until the task has ended, and return the result of the tool. The client's handlers answer its requests.

        If the wait is cancelled or takes too long, the task goes on.

        Args:
            returns: As for `Client.call_tool`.
            on_progress: A function that is called when the task reports progress.
            timeout_seconds: The time limit, which each change of the task restarts; by default none.

        Raises:
            TaskCancelled: The task was cancelled.
            RequestRefused: The task has failed with an error, or there is no such task any more.
            RequestTimedOut: The time limit is over.
        """
        if returns is not None:
            check_type(returns)
        found = self._result
        if found is None:
            found = await self._tasks.wait(self._started, on_progress, timeout_seconds)
            self._result = found
        result = as_tool_result(found)
        if returns is None:
            return result
        return value_as(self._started.tool, result, returns, max_values=self._tasks.max_values)

    async def cancel(self) -> None:
        """Ask the server to cancel the task. Nothing happens if it has ended.

        Raises:
            UnsupportedByPeer: The server has not declared that it cancels tasks.
        """
        if self._result is None:
            await self._tasks.cancel(self.task_id)
