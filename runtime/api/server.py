"""A server: decorated functions, or handlers of one revision, offered to clients of every revision."""

from __future__ import annotations

import inspect
import secrets
import time
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol.native_revision import native_revision_of
from mcpgen.runtime.protocol.negotiation import selected_revisions
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.engine import Engine
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from mcpgen.runtime.server.functions.registrations import Registrations
from mcpgen.runtime.server.request_state import RequestStateSealer
from mcpgen.runtime.server.service import HandlerTable, Middleware

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
    from typing import Unpack

    from mcpgen.runtime.http.server.application import Application, Options
    from mcpgen.runtime.server.tasks.task_requests import TaskRequests
    from mcpgen.runtime.server.tasks.task_store import TaskStore
    from mcpgen.runtime.transports.interfaces import Endpoint, Writer
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["Server"]


class Server(Registrations):
    """A server that speaks every revision.

    Either functions become its tools, resources and prompts, by the decorators `tool`, `resource`, `prompt` and
    `completion`; or it has handlers: an object whose class overrides the generated ``ServerHandlers`` of some revision,
    in whose terms it is written.

    Args:
        name: What programs call it.
        version: Its own version.
        title: What people call it.
        description: What it is for.
        website_url: Where to read more.
        icons: Pictures of it.
        instructions: What a model should know to use it well.
        handlers: An instance of a subclass of a generated ``ServerHandlers``, instead of functions.
        revisions: The revisions to serve; all by default.
        lifespan: Called with the server; an async context manager that is open while it runs, and yields
            `Context.state`.
        page_size: The most items in one page of a list of functions.
        limits: Bounds on what peers may ask for.
        state_keys: Secrets of 32 bytes at least that seal what stateless clients hold between two requests; the first
            seals, all open. By default it is one for each process, so that another process cannot go on with a request.
        tasks: Where the tasks are kept that tool calls may become, for handlers of 2025-11-25: a `MemoryTaskStore`.
            Their class then has a method ``task_support(name)``, which says forbidden, optional or required.

    Attributes:
        native_revision: The revision that its handlers are written in.

    Raises:
        UsageError: The arguments make no sense together; the message says why.
        UnknownRevision: There is no such revision.
    """

    def __init__(  # noqa: PLR0913 (what a server says about itself, each by its name)
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[models.Icon] | None = None,
        instructions: str | None = None,
        handlers: object = None,
        revisions: Iterable[str] | None = None,
        lifespan: Callable[[Server], AbstractAsyncContextManager[Any]] | None = None,
        page_size: int = 100,
        limits: Limits | None = None,
        state_keys: Sequence[bytes] | None = None,
        tasks: TaskStore | None = None,
    ) -> None:
        self.name: str = name
        self.limits: Limits = Limits() if limits is None else limits
        if not name:
            raise UsageError("a server needs a name")
        super().__init__(page_size=page_size)
        self._has_handlers = handlers is not None
        self._middleware: list[Middleware] = []
        info = models.Implementation(
            name=name,
            version=version,
            title=_set(title),
            description=_set(description),
            website_url=_set(website_url),
            icons=UNSET if icons is None else list(icons),
        )
        _check(info, lifespan, limits, tasks)
        service = HandlerTable(
            FunctionHandlers(registry=self._registry) if handlers is None else handlers,
            served=selected_revisions(revisions),
            info=info,
            instructions=instructions,
            middleware=self._middleware,
            limits=self.limits,
            sealer=RequestStateSealer(state_keys, lifetime_seconds=self.limits.waiting_seconds, clock=time.time),
            clock=time.monotonic,
            wall_clock=time.time,
            token=lambda: secrets.token_urlsafe(16),
            tasking=None if tasks is None else _tasking(tasks, handlers),
        )
        self._engine = Engine(name, service, None if lifespan is None else partial(lifespan, self))
        self.native_revision: str = service.native_revision

    @property
    def state(self) -> Any:
        """The value that the lifespan yielded, while it is open; None otherwise."""
        return self._engine.state

    def _will_change(self) -> None:
        """Refuse functions where there are handlers.

        Raises:
            UsageError: The server has handlers instead of functions.
        """
        if self._has_handlers:
            raise UsageError(f"the server {self.name!r} has handlers; functions cannot be added to it")

    def _has_changed(self) -> None:
        """Look anew at what is offered, since a function was registered or removed."""
        self._engine.service.forget()

    def middleware(self, function: Middleware) -> Middleware:
        """Have *function* called around each handler; the first one is outermost.

        Args:
            function: ``async def around(params, context, call_next)``; it returns ``await call_next(params, context)``,
                or something else of its kind.
        """
        if not callable(function):
            raise UsageError(f"middleware is a function, not {function!r}")
        self._middleware.append(function)
        self._engine.service.forget()
        return function

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Server]:
        """Keep the lifespan open within the block; connections of one process share it."""
        async with self._engine.running():
            yield self

    def connect(self, writer: Writer, spawner: Spawner) -> Endpoint:
        """Return a new connection, for a transport to drive."""
        return self._engine.connect(writer, spawner)

    async def resource_updated(self, uri: str) -> None:
        """Notify every client that is subscribed to the resource *uri* that it has changed."""
        await self._engine.resource_updated(uri)

    async def tools_changed(self) -> None:
        """Notify every client that wants to know that the list of tools has changed."""
        await self._engine.tools_changed()

    async def prompts_changed(self) -> None:
        """Notify every client that wants to know that the list of prompts has changed."""
        await self._engine.prompts_changed()

    async def resources_changed(self) -> None:
        """Notify every client that wants to know that the list of resources has changed."""
        await self._engine.resources_changed()

    def asgi(self, **options: Unpack[Options]) -> Application:
        """Return this server as an ASGI application: one HTTP endpoint for clients of every revision.

            app = server.asgi()

        A server of ASGI serves it as it is (``uvicorn file:app``), and frameworks mount it; then ``app.running()``
        belongs into their lifespan.

        Args:
            **options: Those of `Application`: ``path``, ``allowed_origins``, ``allowed_hosts``, ``limits`` and others.

        Raises:
            UsageError: The options make no sense together.
        """
        # Who serves stdio needs no HTTP.
        from mcpgen.runtime.http.server.application import Application, Options  # noqa: PLC0415

        for each in options:
            if each not in Options.__annotations__:
                raise UsageError(f"asgi has no option {each!r}; there are {', '.join(Options.__annotations__)}")
        return Application(self._engine, **options)

    def run(self) -> None:
        """Serve standard input and output until the input ends, or the process is told to stop."""
        from mcpgen.runtime.transports import stdio_server  # noqa: PLC0415 (who serves elsewhere needs no descriptors and no signals)

        stdio_server.run(self)


def _check(info: models.Implementation, lifespan: object, limits: object, tasks: object) -> None:
    """Find arguments that would only fail when the first client comes.

    Raises:
        UsageError: One is not what it should be.
    """
    try:
        models.decode(msgspec.json.encode(info), models.Implementation)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UsageError(f"what the server says about itself is not valid: {error}") from error
    if inspect.isasyncgenfunction(lifespan):
        raise UsageError(f"lifespan is a plain generator; write @asynccontextmanager above {lifespan.__name__}")
    if limits is not None and not isinstance(limits, Limits):
        raise UsageError(f"limits are a Limits, such as Limits(max_in_flight=100), not {limits!r}")
    if tasks is not None and not hasattr(tasks, "page"):
        raise UsageError(f"tasks are a store, such as MemoryTaskStore(), not {tasks!r}")


def _tasking(store: TaskStore, handlers: object) -> TaskRequests:
    """Return what offers tasks.

    Raises:
        UsageError: The handlers are of a revision without tasks, or do not say which tools may be tasks.
    """
    # Most servers have no tasks, and need not load the bindings of the revision that has them.
    from mcpgen.runtime.server.tasks.lifecycle import REVISION, Tasks  # noqa: PLC0415
    from mcpgen.runtime.server.tasks.task_requests import TaskRequests  # noqa: PLC0415

    if handlers is None or native_revision_of(handlers, "server") != REVISION:
        raise UsageError(f"tasks are offered by handlers of {REVISION} only; no other revision has them")
    support = getattr(handlers, "task_support", None)
    if support is None or inspect.iscoroutinefunction(support):
        raise UsageError(
            f"{type(handlers).__name__} has to say which tools may be tasks: give it a method task_support(name) that "
            "returns forbidden, optional or required"
        )
    return TaskRequests(Tasks(store, clock=time.time, random_bytes=secrets.token_bytes), support)


def _set(value: Any) -> Any:
    return UNSET if value is None else value
