"""What the engine needs of the tasks of a server, which most servers do not have and do not import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcpgen.runtime.protocol.codec import IncomingRequestCodec
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Exchange, OpenRequest

__all__ = ["NOT_DEFERRED", "EngineTasks", "TaskDeclarations"]

NOT_DEFERRED: Final = (
    'ctx.defer() needs a tool that can run as a task; register the tool with `task="deferred"`; for a tool of '
    "`handlers`, pass `tasks` to Server, and return 'optional' from `task_support`"
)


class EngineTasks(Protocol):
    """The tasks of a server: `mcpgen.runtime.server.tasks.task_requests`."""

    @property
    def methods(self) -> Mapping[str, Callable[[Any, OpenRequest, Any], None]]:
        """What answers each method of tasks: called with session, request and params."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether several processes use their store."""
        ...

    def scopes(self, task_id: str, access: Access | None) -> Iterable[str]:
        """Return the scopes that an access token needs to use a task; none if the user of *access* has no such task."""
        ...

    async def open(self, engine: Engine, /) -> None:
        """Start what runs the tasks of *engine*."""
        ...

    async def close(self) -> None:
        """Stop the functions of tasks."""
        ...

    def becomes_task(self, session: Any, exchange: Exchange, /) -> bool:
        """Whether a request is to be run as a task."""
        ...

    def defer(self, session: Any, exchange: Exchange, /) -> bool:
        """Make a task of a call whose function runs already; return whether the call is a task."""
        ...

    def create(self, session: Any, exchange: Exchange, request: OpenRequest) -> None:
        """Run a request as a task, and answer it with the task."""
        ...

    def seconds_to_expiry(self) -> float | None:
        """Drop the expired tasks; return in how many seconds the next one expires."""
        ...

    def forget(self, principal: str, *, is_over: bool = True) -> None:
        """Drop the tasks of a session that has ended here; keep them unless it *is_over*: it goes on elsewhere."""
        ...


class TaskDeclarations(Protocol):
    """What the tasks of a server declare: `mcpgen.runtime.server.tasks.task_requests`."""

    extension: Any
    """The handlers of the extension."""

    @property
    def capabilities(self) -> Mapping[str, object]:
        """What the server declares to clients of 2025-11-25."""
        ...

    def list_support(self, codec: IncomingRequestCodec, /) -> IncomingRequestCodec:
        """Return *codec* of the list of tools, which says of each tool whether it can be a task."""
        ...
