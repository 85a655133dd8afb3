"""Records of tasks, and the protocol of the store that keeps them.

A store only keeps records; `mcpgen.runtime.server.tasks.lifecycle` decides how they change.

Several processes can share a store. Each is a *worker*, with a name of its own, and runs the functions of some tasks.
A worker counts a *beat* in the store every few seconds. If the beats of a worker stop, it has died, and another worker
ends its tasks or runs them again. The others compare only whether the number of beats has changed while they watched,
so no clock of one process is compared with that of another.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from mcpgen.runtime.errors import McpgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "FREE_OUTCOME_BYTES",
    "MAX_READ_BYTES",
    "NewTask",
    "Outcome",
    "Position",
    "Status",
    "StoreFailed",
    "StoreFull",
    "TaskCall",
    "TaskRecord",
    "TaskStore",
    "briefs_of",
    "cursor_behind",
    "forget",
    "forget_all",
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

# How much of the contents of tasks a worker reads in one turn of the event loop, and one task more.
MAX_READ_BYTES: Final = 256 * 1024

# How many tasks of a session that has ended are removed in one step.
_FORGOTTEN: Final = 50

_TIME_BYTES: Final = 8
_MAX_TIME_MS: Final = 2**63  # integers of SQLite have 64 bits

# Our cursors have about 70 characters; longer ones are refused without decoding them.
_MAX_CURSOR_CHARS: Final = 256

_LOG = logging.getLogger("mcpgen.tasks")


class StoreFull(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """There is no room for a task, or for its result."""


class StoreFailed(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """The store of tasks cannot be read or written: it is locked, damaged, or its disk is full."""


class Outcome(Struct, frozen=True, gc=False):
    """The final answer of the request that became a task: the JSON of a result or of an error."""

    json: bytes
    is_error: bool = False


class TaskCall(Struct, frozen=True, kw_only=True):
    """What another worker needs to run the function of a task again.

    Attributes:
        params: The params of the request, as the client sent them.
        capabilities: The capabilities that the client declared.
        info: The name and version of the client; None if it sent none.
        user: The authenticated user; empty if users are not known.
    """

    params: bytes
    capabilities: bytes
    info: bytes | None = None
    user: str = ""


class NewTask(Struct, frozen=True, kw_only=True):
    """What a task is made of.

    Attributes:
        principal: The owner of the task.
        revision: The revision of the client.
        owner: The user or address that limits are shared among; empty if that is the principal.
        ttl_ms: The lifetime that the client asked for; UNSET for the default.
        size: The bytes of memory that the request takes while its function runs.
        input_responses: The client's responses before the task began, if its function may run again: a JSON object.
        call: The request, if its function may run again.
        scopes: The scopes that an access token needs to use it: those of its tool.
    """

    principal: str
    revision: str
    owner: str = ""
    ttl_ms: int | UnsetType = UNSET
    size: int = 0
    input_responses: bytes | None = None
    call: TaskCall | None = None
    scopes: tuple[str, ...] = ()


class TaskRecord(Struct, frozen=True, kw_only=True):
    """The record of one task. Times are in milliseconds of Unix time.

    Attributes:
        principal: The user, session or connection that owns it. For any other, it does not exist.
        created_ms: The time of its creation.
        updated_ms: The time of its last change.
        ttl_ms: Its lifetime, from its creation on.
        status_message: A description of the status, for people.
        outcome: The answer, once the task has ended.
        revision: The revision of the client that created it, in which all its JSON is written.
        owner: The user or address that limits are shared among; empty if that is the principal.
        worker: The name of the process that runs its function.
        input_requests: The requests to the client that have no response yet: a JSON object. None if there are none.
        input_responses: The client's responses that its function may still need: a JSON object.
        call: The request, if its function may run again.
        scopes: The scopes that an access token needs to use it.
    """

    task_id: str
    principal: str
    status: Status
    created_ms: int
    updated_ms: int
    ttl_ms: int
    status_message: str | None = None
    outcome: Outcome | None = None
    revision: str = "2025-11-25"
    owner: str = ""
    worker: str = ""
    input_requests: bytes | None = None
    input_responses: bytes | None = None
    call: TaskCall | None = None
    scopes: tuple[str, ...] = ()

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

    @property
    def sharer(self) -> str:
        """The name under which it counts against limits that clients share."""
        return self.owner or self.principal

    @property
    def content_bytes(self) -> int:
        """The size of what the client and the function made it keep."""
        call = self.call
        parts = [
            b"" if self.outcome is None else self.outcome.json,
            self.input_requests or b"",
            self.input_responses or b"",
            *((call.params, call.capabilities, call.info or b"") if call is not None else ()),
        ]
        return sum(map(len, parts))

    def brief(self) -> TaskRecord:
        """Return the record without what can be large: see `content_bytes`."""
        return replace(self, outcome=None, call=None, input_requests=None, input_responses=None)


class TaskStore(Protocol):
    """A store of tasks: one `TaskRecord` for each.

    The methods are not async, so the server does nothing else until they return. Each should return within
    milliseconds, and must return within a time limit.

    The methods that return several tasks may return their briefs (`TaskRecord.brief`). A store can also have a method
    `briefs`, which gets the ids of tasks and returns the briefs of those that exist, in that order; and a method
    `remove_all`, which gets the ids of tasks and removes them.

    Every method may raise `StoreFailed`. `TaskRecord`, `StoreFull` and `StoreFailed` are in
    `mcpgen.runtime.server.tasks.task_store`.
    """

    @property
    def is_shared(self) -> bool:
        """Whether several processes use it, so that they have to watch each other's workers."""
        ...

    def add(self, record: TaskRecord) -> None:
        """Store the record of a new task. When this returns, every process that shares the store finds the task.

        Raises:
            StoreFull: There is no room for the task.
        """
        ...

    def get(self, task_id: str) -> TaskRecord | None:
        """Return the record of a task, whichever client owns it; None if there is no such task."""
        ...

    def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
        """Replace the record that has the same `task_id`; return False if there is no such record any more.

        With *before*, replace the record only if it is still equal to *before*; return False otherwise.

        `principal`, `owner` and `created_ms` of a task never change.

        Raises:
            StoreFull: There is no room for the content. There must always be room for a short error.
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
        """Remove the expired tasks, and return them. A store may remove some of them, and the others the next time."""
        ...

    def next_expiry_ms(self) -> int | None:
        """Return the time at which the next task expires; None if there are no tasks."""
        ...

    def beat(self, worker: str) -> Mapping[str, int]:
        """Count one beat of *worker*. Return the beats of every worker, with 0 for those that were removed.

        A worker that was removed is returned as long as it has tasks that have not ended.
        """
        ...

    def unfinished(self, worker: str) -> list[TaskRecord]:
        """Return the tasks of *worker* that have not ended."""
        ...

    def remove_worker(self, worker: str) -> None:
        """Forget the beats of *worker*, which has ended or died."""
        ...


def briefs_of(store: TaskStore, task_ids: Sequence[str]) -> dict[str, TaskRecord]:
    """Return the briefs, or the records, of those tasks that exist, by their ids and in their order."""
    # Each step of a remote store takes a while, and each large result, too.
    briefs: Callable[[Sequence[str]], Iterable[TaskRecord]] | None = getattr(store, "briefs", None)
    found: Iterable[TaskRecord | None] = map(store.get, task_ids) if briefs is None else briefs(task_ids)
    return {each.task_id: each for each in found if each is not None}


def forget(store: TaskStore, principal: str) -> bool:
    """Remove some tasks of *principal*, whose session or pipe has ended; return False if there are none."""
    found = [each.task_id for each in store.page(principal, after=None, limit=_FORGOTTEN)]
    # A session may have a thousand tasks when it ends, and each step of a remote store takes a while.
    remove_all: Callable[[Sequence[str]], None] | None = getattr(store, "remove_all", None)
    if remove_all is None:
        for each in found:
            store.remove(each)
    elif found:
        remove_all(found)
    return bool(found)


def forget_all(store: TaskStore, principals: Iterable[str]) -> None:
    """Remove the tasks of *principals*; if the store fails, they stay until they expire."""
    try:
        for each in principals:
            while forget(store, each):
                pass
    except StoreFailed as failure:
        _LOG.warning("the tasks of a session that has ended cannot be removed; they expire later: %s", failure)


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
    return position if position[0] < _MAX_TIME_MS and cursor_behind(position) == cursor else None
