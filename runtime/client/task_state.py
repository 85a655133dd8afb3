"""A task of a tool, as a server describes it, and the wait for it.

Spec:
    ext-tasks, specification/draft/tasks; 2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import McpgenError, RequestTimedOut, quoted
from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent, auto_reset_event

if TYPE_CHECKING:
    from mcpgen.runtime.client.outgoing_requests import OnProgress

__all__ = ["DescribedTask", "TaskCancelled", "TaskState", "TaskWait"]

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]

_FINAL: Final = frozenset({"completed", "failed", "cancelled"})

_DEFAULT_POLL_SECONDS: Final = 1.0
_MIN_POLL_MS: Final = 50  # a server that suggests less would be flooded
_MAX_POLL_MS: Final = 10**12  # 30 years; a number of hundreds of digits cannot be divided, also if it is negative


class TaskCancelled(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """The task of a tool was cancelled, so there is no result.

    Attributes:
        task_id: The id of the task.
        reason: The server's description; empty if there is none.
    """

    def __init__(self, task_id: str, reason: str) -> None:
        self.task_id = task_id
        self.reason = reason
        super().__init__(task_id, reason)

    def __str__(self) -> str:
        return "the task was cancelled" + (f": {quoted(self.reason)}" if self.reason else "")


class TaskState(Struct, frozen=True):
    """The state of a task.

    Attributes:
        status: ``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``.
        message: The server's description of the status; None if there is none.
    """

    status: Status
    message: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the status is final."""
        return self.status in _FINAL


class DescribedTask(Struct, frozen=True, rename="camel"):
    """A task as a server of either revision describes it."""

    task_id: str
    status: Status
    status_message: str | UnsetType = UNSET
    last_updated_at: str = ""
    poll_interval: int | UnsetType = UNSET
    poll_interval_ms: int | UnsetType = UNSET
    input_requests: dict[str, Raw] | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def state(self) -> TaskState:
        """The state of the task."""
        return TaskState(self.status, None if isinstance(self.status_message, UnsetType) else self.status_message)

    @property
    def poll_seconds(self) -> float:
        """The time to wait before the state is asked for again."""
        suggested = self.poll_interval if isinstance(self.poll_interval_ms, UnsetType) else self.poll_interval_ms
        if isinstance(suggested, UnsetType):
            return _DEFAULT_POLL_SECONDS
        return min(max(suggested, _MIN_POLL_MS), _MAX_POLL_MS) / 1000


class TaskWait:
    """One wait for a task: its time limit, and what is known of the task.

    Attributes:
        event: Set by a notification, and by the end of the subscription.
        found: The state in the last notification; None if it was read.
        answered: The hashes of the keys of the requests that were answered. The keys can have megabytes.
        rounds: How often requests were answered.

    Args:
        seconds: The time limit, which each change of the task restarts; None for none.
        max_seconds: The time limit in all.
        on_progress: Called with each new status message.
        used_seconds: How much of the limit in all was used before.
    """

    def __init__(
        self, seconds: float | None, max_seconds: float, on_progress: OnProgress | None, used_seconds: float = 0.0
    ) -> None:
        self.event: AutoResetEvent = auto_reset_event()
        self.found: DescribedTask | None = None
        self.answered: set[int] = set()
        self.rounds: int = 0
        self._seconds = seconds
        self._max_seconds = max(seconds or 0.0, max_seconds)
        self._on_progress = on_progress
        self._updated = hash("")  # hashes, as in `answered`
        self._message: int | None = None
        self._changes = 0
        now = time.monotonic()
        self._final = float("inf") if seconds is None else now + self._max_seconds - used_seconds
        self._deadline = self._final if seconds is None else min(now + seconds, self._final)

    def notify(self, found: DescribedTask) -> None:
        """Take the state from a notification."""
        self.found = found
        self.event.set()

    def unanswered(self, found: DescribedTask) -> dict[str, Raw]:
        """Return the requests of *found* that were not answered, if the task waits for them. They are copies."""
        if found.status != "input_required" or isinstance(found.input_requests, UnsetType):
            return {}
        # A view would keep the whole frame alive.
        return {key: each.copy() for key, each in found.input_requests.items() if hash(key) not in self.answered}

    def pause(self, since: float) -> None:
        """Give the task the time back that passed since *since*, in which the server waited for a handler."""
        passed = time.monotonic() - since
        self._deadline += passed
        self._final += passed

    async def report(self, found: DescribedTask) -> None:
        """Restart the time limit if the task has changed, and report its message."""
        updated = hash(found.last_updated_at)
        if updated != self._updated:
            self._updated = updated
            if self._seconds is not None:
                self._deadline = min(time.monotonic() + self._seconds, self._final)
        message = found.state.message
        if message is not None and hash(message) != self._message and not found.state.has_ended:
            self._message = hash(message)
            self._changes += 1
            if self._on_progress is not None:
                outcome = self._on_progress(self._changes, None, message)
                if inspect.isawaitable(outcome):
                    await outcome

    async def sleep(self, seconds: float) -> None:
        """Wait for a notification, at most *seconds*.

        Raises:
            RequestTimedOut: The time limit is over.
        """
        # anyio cancels no task whose future is done. A server that reports its task without end sets the event in each
        # turn of the event loop.
        await checkpoint_if_cancelled()
        with anyio.move_on_after(min(seconds, self.left_seconds())):
            await self.event.wait()

    def request_seconds(self) -> float:
        """Return the time limit of a request about the task: a second at least, for a last look at it."""
        return max(self._deadline - time.monotonic(), 1.0)

    def left_seconds(self) -> float:
        """Return the time that is left.

        Raises:
            RequestTimedOut: The time limit is over.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            seconds = self._max_seconds if self._deadline >= self._final else self._seconds or 0.0
            raise RequestTimedOut("tools/call", seconds, event="the task of the tool did not end")
        return left
