"""The part of `Server` that changes its functions, and that shows only some of them."""

from __future__ import annotations

import copy
import inspect
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from mcpgen.generated._support.methods import RequestMethod
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.extensions import Extension
from mcpgen.runtime.server.extensions import ServerExtension
from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers
from mcpgen.runtime.server.functions.registrations import Registrations
from mcpgen.runtime.server.functions.visibility import make_rule
from mcpgen.runtime.server.middleware import RegisteredMiddleware

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import Self

    from mcpgen.runtime.api.middleware import MethodMiddleware, Middleware
    from mcpgen.runtime.limits import TaskLimits
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.functions.function_registry import FunctionRegistry
    from mcpgen.runtime.server.functions.visibility import Component
    from mcpgen.runtime.server.tasks.task_store import TaskStore

__all__ = ["ServerFunctions"]

M = TypeVar("M", bound="Middleware")
P = TypeVar("P")
R = TypeVar("R")


class ServerFunctions(Registrations):
    """What a server calls: its functions, and the middleware around its handlers."""

    name: str
    _engine: Engine
    _has_handlers: bool
    _middleware: list[RegisteredMiddleware]
    _handlers: object
    _task_limits: TaskLimits | None
    _task_store: TaskStore | None
    _is_view: bool = False

    @contextmanager
    def _changing(self, *, registers: bool = True) -> Generator[None]:
        """Change the registered functions, or which of them are shown, within the block; report it to clients.

        Raises:
            UsageError: The server has handlers instead of functions, or it is a view, which cannot register any.
        """
        if self._has_handlers:
            raise UsageError(
                f"the server {self.name!r} has `handlers`, so functions cannot be added, removed, enabled or disabled; "
                "use either `handlers` or functions"
            )
        if registers and self._is_view:
            raise UsageError(_of_view("functions"))
        with self._registry.changing():
            yield
        if self._engine.tasks is None and any(each.task for each in self._registry.tools.entries.values()):
            self._serve_tasks()

    def only(
        self,
        *,
        names: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        components: Iterable[Component] | None = None,
    ) -> Self:
        """Return a view of this server, which shows only the functions that match.

            server.only(tags={"public"}).run()

        A view follows the server: later changes of the functions hold for it, too. It has its own clients and limits,
        and shares the lifespan, the dependencies and the middleware. Its own `enable` and `disable` change the view
        alone, as does setting its `debug`. Its cache hints are ``private``. Its clients can use only tasks that were
        created through it, or through the same view in another process.

        Args:
            names: As for `enable`.
            tags: As for `enable`.
            components: As for `enable`.

        Raises:
            UsageError: An argument is not valid, no function has one of the names, or the server has handlers.
        """
        if self._has_handlers:
            raise UsageError(f"the server {self.name!r} has `handlers`, so it has no functions to choose from")
        rule = make_rule(self._registry, is_shown=True, names=names, tags=tags, components=components)
        view = copy.copy(self)
        view._show(self._registry.view(rule), rule.label)  # noqa: SLF001 (a copy of this object)
        return view

    def _show(self, registry: FunctionRegistry, label: str) -> None:
        """Make this copy of a server a view, which shows the functions in *registry*."""
        has_tasks = self._engine.tasks is not None
        self._is_view = True
        self._registry = registry
        self._handlers = FunctionHandlers(registry=registry)
        self._engine = self._engine.view(self._handlers, label)
        registry.on_change = self._engine.functions_changed
        if has_tasks:
            self._serve_tasks()

    def _serve_tasks(self) -> None:
        """Run calls as tasks, whose records are in the store of the server, or else in memory.

        Raises:
            UsageError: The handlers have no ``task_support``.
        """
        # Most servers have no tasks, and need not import the bindings of the revision that has them.
        from mcpgen.generated.extensions import tasks as tasks_extension  # noqa: PLC0415
        from mcpgen.runtime.server.tasks.memory_task_store import MemoryTaskStore  # noqa: PLC0415
        from mcpgen.runtime.server.tasks.task_requests import serve_tasks  # noqa: PLC0415

        handlers: Any = self._handlers
        support = getattr(handlers, "task_support", None)
        if support is None or inspect.iscoroutinefunction(support):
            raise UsageError(
                f"{type(handlers).__name__} does not say which tools can run as tasks; add a method task_support(name) "
                "that returns forbidden, optional or required"
            )
        store = MemoryTaskStore() if self._task_store is None else self._task_store
        defers = getattr(handlers, "defers_task", None)
        tasks = serve_tasks(store, support, defers, self._task_limits, view_name=self._engine.view_name)
        self._engine.tasks = tasks
        self._engine.handlers.declare_tasks(tasks)
        added = self._add_extension(Extension(tasks_extension, handlers=tasks.extension))
        tasks.extension.attach(added, self._engine.send_extension)
        self._engine.ledger.add_store("tasks", lambda: getattr(store, "kept_bytes", 0))

    def _add_extension(self, extension: Extension) -> ServerExtension:
        added = ServerExtension(extension, self._engine.notify_extension)
        self._engine.handlers.extend(added)
        return added

    @overload
    def middleware(
        self, function: RequestMethod[P, R], /
    ) -> Callable[[MethodMiddleware[P, R]], MethodMiddleware[P, R]]: ...
    @overload
    def middleware(self, function: M, /) -> M: ...
    def middleware(self, function: Any, /) -> Any:
        """Call a function around each handler, or around the handler of one method; the first is outermost.

            @server.middleware
            async def around(params, context, call_next): ...

            @server.middleware(methods.CALL_TOOL)
            async def around_calls(params, context, call_next): ...

        Args:
            function: ``async def around(params, context, call_next)``. It returns the result of the handler, which is
                ``await call_next(params, context)``, or another one. Or a method of the native revision, such as
                ``methods.CALL_TOOL``; this then returns a decorator.

        Raises:
            UsageError: It is neither, or the method is one of another revision, or this is a view.
        """
        if isinstance(function, RequestMethod):
            return partial(self._add_middleware, method=self._check_method(cast("Any", function)))
        return self._add_middleware(function)

    def _add_middleware(self, function: Any, method: str | None = None) -> Any:
        if self._is_view:
            raise UsageError(_of_view("middleware"))
        if not callable(cast("object", function)):
            hint = "; to name a method, pass a constant of the module `methods`, such as methods.CALL_TOOL"
            hint *= isinstance(function, str)
            raise UsageError(f"`function` of middleware() must be a function, not {function!r}{hint}")
        if isinstance(function, type):
            raise UsageError(f"`function` of middleware() is the class {function.__name__}; pass an instance of it")
        _check_middleware(function)
        self._middleware.append(RegisteredMiddleware(function, method))
        self._registry.refresh_handlers()
        return function

    def _check_method(self, method: RequestMethod[Any, Any]) -> str:
        """Return the name of a method that was given for its middleware.

        Raises:
            UsageError: No handler of this server gets its requests, or it is of another revision.
        """
        table = self._engine.handlers
        revision, methods = table.native_revision, table.methods(table.native_revision)
        known = methods.CLIENT_REQUESTS
        if known.get(method.name) is not method:
            problem = f"`{method.name}` is not a method of {revision} that a server handles"
            if method.name in known:
                problem = f"the constant for `{method.name}` is not of {revision}, the native revision of this server"
            raise UsageError(f"{problem}; use a constant of {methods.__name__}, such as methods.CALL_TOOL")
        if not table.is_handled(method.name):
            raise UsageError(
                f"mcpgen itself answers {method.name}, and calls no middleware for it; remove this middleware"
            )
        name: str = method.name
        return name


def _of_view(what: str) -> str:
    return f"a view, which `only` returned, cannot register {what}; register at the server itself"


def _check_middleware(function: Callable[..., object]) -> None:
    """Refuse a middleware that cannot be called with params, context and the next call.

    Raises:
        UsageError: It is one.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable without one, such as one that is written in C
        return
    try:
        signature.bind(None, None, None)
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        raise UsageError(
            f"{name}{signature} cannot be a middleware; it must take (params, context, call_next)"
        ) from None
