"""The public `Server`: functions or handlers, served to clients of every revision."""

from __future__ import annotations

import inspect
from contextlib import AbstractAsyncContextManager, AsyncContextDecorator, ContextDecorator, asynccontextmanager
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec
from msgspec import UNSET

from mcpgen.runtime.api.server_functions import ServerFunctions
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import Limits, TaskLimits
from mcpgen.runtime.protocol.argument_checks import (
    check_fields,
    check_flags,
    check_icons,
    check_parameters,
    check_required_texts,
    check_texts,
)
from mcpgen.runtime.protocol.extensions import Extension
from mcpgen.runtime.protocol.negotiation import selected_revisions
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.ui import UI_EXTENSION
from mcpgen.runtime.server.cache_hints import CacheHint, check_cache_hints
from mcpgen.runtime.server.connection import Connection
from mcpgen.runtime.server.engine import ChangeNotifier, Engine
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from mcpgen.runtime.server.handler_table import HandlerTable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import Self, Unpack

    from mcpgen.runtime.http.server.application import Application
    from mcpgen.runtime.http.server.application_options import Options
    from mcpgen.runtime.server.cache_hints import CacheHints
    from mcpgen.runtime.server.extensions import ServerExtension
    from mcpgen.runtime.server.functions.schemas import UnknownKeys
    from mcpgen.runtime.server.middleware import RegisteredMiddleware
    from mcpgen.runtime.server.tasks.task_store import TaskStore
    from mcpgen.runtime.transports.interfaces import Endpoint, MessageWriter
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["Server"]


if TYPE_CHECKING:
    import typing_extensions

    # Without a lifespan, a server is a `Server[Any]`.
    StateT = typing_extensions.TypeVar("StateT", default=Any)
else:  # type variables have defaults from Python 3.13 on
    StateT = TypeVar("StateT")


class Server(ServerFunctions, ChangeNotifier, Generic[StateT]):
    """A server for clients of every revision.

    It offers either functions or handlers. The decorators `tool`, `resource`, `prompt` and `completion` register
    functions. Handlers are an object whose class overrides the generated ``ServerHandlers`` of one revision.

    Args:
        name: The name of the server, for programs.
        version: The version of the server.
        title: The name of the server, for people.
        description: The purpose of the server.
        website_url: The URL of a page about the server.
        icons: The icons of the server.
        instructions: Instructions for a model that uses the server.
        handlers: An instance of a subclass of a generated ``ServerHandlers``, instead of functions.
        revisions: The revisions that the server supports; all by default.
        lifespan: A function that takes the server and returns an async context manager. The context manager is open
            while the server runs. The value that it yields is `Context.state`.
        page_size: The largest number of items in one page of a list, if the server offers functions.
        unknown_keys: What happens to arguments that a tool does not have: ``refuse`` or ``ignore``. ``refuse`` holds
            for the keys of nested objects, too. Default: refuse arguments, so that a model notices its mistake, and let
            the types decide about nested objects.
        cache_hints: How long clients of 2026-07-28 may reuse results, and for whom, by method:
            ``{"tools/list": CacheHint(ttl_ms=60_000, scope="public")}``. By default, results are stale at once, and
            ``private``.
        strict: Whether to refuse what the revision of a client does not allow, even if other SDKs read it.
        limits: The limits of the server.
        state_keys: Secret keys of at least 32 bytes. They sign the request states: the strings that clients of
            2026-07-28 send back, with the requested input. The server signs with the first key, and accepts signatures
            of all of them. By default each process has its own key, so only the process that asked for input can
            continue the request.
        state_audience: A server with another audience refuses these states, even if it has the same keys. Default: the
            name of the server.
        tasks: A `TaskStore` for calls that run as tasks, such as `SqliteTaskStore("tasks.db")`. Default: a
            `MemoryTaskStore`, if a tool is registered with ``task=…``. The class of `handlers` must then have a method
            ``task_support(name)``, which takes the name of a tool and returns forbidden, optional or required.
        task_limits: The limits on tasks.
        debug: Whether errors tell clients the type and the message of the exception that a handler raised, and whether
            a handler that blocks the event loop is logged. For development only: messages can contain secrets.

    Attributes:
        native_revision: The revision against which the handlers are written.

    Raises:
        UsageError: The arguments are not valid, or contradict each other.
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
        lifespan: Callable[[Server[Any]], AbstractAsyncContextManager[StateT]] | None = None,
        page_size: int = 100,
        unknown_keys: UnknownKeys | None = None,
        cache_hints: CacheHints | None = None,
        strict: bool = False,
        limits: Limits | None = None,
        state_keys: Sequence[bytes] | None = None,
        state_audience: str | None = None,
        tasks: TaskStore | None = None,
        task_limits: TaskLimits | None = None,
        debug: bool = False,
    ) -> None:
        self.name: str = name
        if not isinstance(cast("object", limits), (Limits, NoneType)):
            kind = type(cast("object", limits)).__name__
            raise UsageError(f"`limits` must be a Limits, such as Limits(max_in_flight=100), not {kind}")
        self.limits: Limits = Limits() if limits is None else limits
        if not isinstance(cast("object", task_limits), (TaskLimits, NoneType)):
            kind = type(cast("object", task_limits)).__name__
            raise UsageError(f"`task_limits` must be a TaskLimits, such as TaskLimits(max_running=10), not {kind}")
        check_flags(strict=strict, debug=debug)
        check_required_texts(name=name, version=version)
        check_texts(title=title, description=description, website_url=website_url)
        if not name:
            raise UsageError("`name` is empty; give the server a name")
        super().__init__(
            page_size=page_size,
            unknown_keys=unknown_keys,
            max_threads=self.limits.max_threads,
            strict=strict,
            max_uri_chars=self.limits.max_uri_chars,
        )
        self._has_handlers = handlers is not None
        self._middleware: list[RegisteredMiddleware] = []
        self._registry.cache_hints = check_cache_hints(cache_hints, has_handlers=self._has_handlers)
        check_icons(icons)
        info = models.Implementation(
            name=name,
            version=version,
            title=_set(title),
            description=_set(description),
            website_url=_set(website_url),
            icons=UNSET if icons is None else list(icons),
        )
        _check(info, lifespan, tasks)
        check_texts(instructions=instructions, state_audience=state_audience)
        self._handlers: object = FunctionHandlers(registry=self._registry) if handlers is None else handlers
        self._task_limits = task_limits
        self._task_store = tasks
        table = HandlerTable(
            self._handlers,
            served=selected_revisions(revisions),
            info=info,
            instructions=instructions,
            middleware=self._middleware,
            more_capabilities={},
        )
        table.discover_hint = self._registry.cache_hints.get("server/discover", CacheHint())
        self._engine = Engine(
            name,
            table,
            limits=self.limits,
            lifespan=None if lifespan is None else partial(_entered, lifespan, self),
            state_keys=state_keys,
            state_audience=state_audience,
            is_strict=strict,
        )
        self._registry.on_change = self._engine.functions_changed
        self._engine.wait_for_threads = self._registry.threads.wait_at_end
        if tasks is not None:
            self._serve_tasks()
        self.native_revision: str = table.native_revision
        self.debug = debug

    def __repr__(self) -> str:
        if self._has_handlers:
            return f"<Server {self.name!r}: handlers of {self.native_revision}>"
        registered = self._registry
        resources = len(registered.resources.entries) + len(registered.templates.entries)
        tools, prompts = len(registered.tools.entries), len(registered.prompts.entries)
        return f"<Server {self.name!r}: tools {tools}, resources {resources}, prompts {prompts}>"

    @property
    def debug(self) -> bool:
        """Whether errors tell clients which exception a handler raised; set it before the server runs."""
        return self._engine.debug

    @debug.setter
    def debug(self, value: bool) -> None:
        check_flags(debug=value)
        self._engine.debug = value

    @property
    def state(self) -> StateT:
        """The value that the lifespan yielded, while it is open; None otherwise."""
        state: StateT = self._engine.state
        return state

    def _declare_ui(self) -> None:
        if all(each.id != UI_EXTENSION for each in self._engine.handlers.extensions):
            self.extend(UI_EXTENSION)

    def extend(
        self,
        package: ModuleType | str | Extension,
        handlers: object = None,
        *,
        settings: Mapping[str, object] | msgspec.Struct | None = None,
        revisions: Iterable[str] | None = None,
    ) -> ServerExtension:
        """Add an extension of the protocol, and declare it.

            rooms_extension = server.extend(rooms, Rooms())

        A client has to declare an extension, too, before it can use the methods of the extension. Any other client gets
        the error -32021 (2026-07-28) or "method not found" (earlier revisions).

        Args:
            package: The package that `mcpgen build --extension` wrote, or only the identifier of an extension without
                messages.
            handlers: An instance of a subclass of the package's ``ServerHandlers``.
            settings: The settings to declare, as a mapping or a model of the package; by default an empty object.
            revisions: The revisions in which the extension is used. By default, an extension with messages is used in
                the revisions of the era of its base, and any other extension in all revisions.

        Returns:
            The extension of this server; its ``notify`` sends notifications to subscribed clients.

        Raises:
            UsageError: An argument is not valid, or the extension was added before.
        """
        if self._is_view:
            raise UsageError("a view, which `only` returned, cannot add an extension; add it to the server itself")
        made = package
        if not isinstance(made, Extension):
            made = Extension(made, handlers=handlers, settings=settings, revisions=revisions)
        elif handlers is not None or settings is not None or revisions is not None:
            raise UsageError(f"pass `handlers`, `settings` and `revisions` to the Extension {made.id}, not to extend()")
        return self._add_extension(made)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Self]:
        """Keep the lifespan open within the block; all connections of this process share it."""
        async with self._engine.running():
            yield self

    def connect(self, writer: MessageWriter, spawner: Spawner) -> Endpoint:
        """Return a new connection; a transport calls this."""
        connection = Connection(self._engine, writer, spawner)
        self._engine.add(connection)
        return connection

    def asgi(self, **options: Unpack[Options]) -> Application:
        """Return this server as an ASGI application: one HTTP endpoint for clients of every revision.

            app = server.asgi()

        An ASGI server runs the application (``uvicorn file:app``). A framework can mount it. The lifespan of the
        framework must then enter ``app.running()``.

        Args:
            **options: ``path``, ``allowed_origins``, ``allowed_hosts``, ``limits`` and others. `Application` describes
                them.

        Raises:
            UsageError: The options are not valid, or do not go together.
        """
        # A server over stdio needs no HTTP.
        from mcpgen.runtime.http.server.application import Application  # noqa: PLC0415
        from mcpgen.runtime.http.server.application_options import Options  # noqa: PLC0415

        for each in options:
            if each not in Options.__annotations__:
                raise UsageError(f"asgi() has no option `{each}`; the options are {', '.join(Options.__annotations__)}")
        return Application(self._engine, **options)

    def run(self, *, http: str | None = None, **options: Unpack[Options]) -> None:
        """Serve standard input and output, or HTTP at an address, until the process gets a signal to stop.

            server.run(http="127.0.0.1:8000")

        On standard input and output, the end of the input stops the server, too.

        Args:
            http: The address, ``HOST:PORT``, to serve over HTTP. Port 0 is any free port.
            **options: Those of `asgi`, over HTTP.

        Raises:
            UsageError: The address or an option is not valid, or something that HTTP needs is not installed.
        """
        from mcpgen.runtime.api import server_runner  # noqa: PLC0415 (an ASGI application needs no transport)

        server_runner.run(self, http, options)

    async def run_async(self, *, http: str | None = None, **options: Unpack[Options]) -> None:
        """Serve as `run` does, in the event loop that is running already. Signals are left to the program.

        To stop the server, cancel the task.

        Args:
            http: As for `run`. It needs asyncio.
            **options: As for `run`.

        Raises:
            UsageError: As for `run`.
        """
        from mcpgen.runtime.api import server_runner  # noqa: PLC0415 (as in `run`)

        await server_runner.run_async(self, http, options)


def _check(info: models.Implementation, lifespan: object, tasks: object) -> None:
    """Check arguments that would otherwise fail when the first client connects.

    Raises:
        UsageError: One is not valid.
    """
    check_fields(info, "of Server")
    if lifespan is not None and not callable(lifespan):
        raise UsageError(f"`lifespan` must be a function with @asynccontextmanager, not {lifespan!r}")
    if isinstance(lifespan, (ContextDecorator, AsyncContextDecorator)):
        raise UsageError("`lifespan` is a context manager already; pass the function without calling it")
    if inspect.isasyncgenfunction(lifespan):
        raise UsageError(f"`lifespan` lacks its decorator; write @asynccontextmanager above {lifespan.__name__}")
    if inspect.iscoroutinefunction(lifespan):
        raise UsageError(
            f"`lifespan` is a coroutine function; write @asynccontextmanager above {lifespan.__name__}, and `yield` "
            "where the server runs"
        )
    if callable(lifespan):
        check_parameters("lifespan", lifespan, "the server", 1)
    if tasks is not None and (isinstance(tasks, type) or not hasattr(tasks, "page")):
        raise UsageError(f"`tasks` must be a task store, such as MemoryTaskStore(), not {tasks!r}")


def _entered(function: Callable[[Server[Any]], object], server: Server[Any]) -> AbstractAsyncContextManager[Any]:
    """Return the context manager that the *function* ``lifespan`` makes.

    Raises:
        UsageError: It makes something else.
    """
    found: Any = function(server)
    if not isinstance(cast("object", found), AbstractAsyncContextManager):
        raise UsageError(
            "`lifespan` must return an async context manager, but it returned an object of the type "
            f"{type(found).__name__}; write an `async def` with @asynccontextmanager"
        )
    return cast("AbstractAsyncContextManager[Any]", found)


def _set(value: Any) -> Any:
    return UNSET if value is None else value
