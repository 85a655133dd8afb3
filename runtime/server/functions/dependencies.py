"""Values that a function gets from other functions: its dependencies, declared with `Depends`.

Theory of operation. Each dependency runs once per call. A dependency that yields its value is open while the function
runs. A plain function goes on in its worker thread when its call is cancelled. So its plain dependencies are opened and
closed in the same thread: they stay open until the function has ended, and may be objects that belong to one thread,
such as connections of sqlite3. The call itself opens and closes all other dependencies, in the event loop or in
threads.
"""

from __future__ import annotations

import inspect
import logging
import threading
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import anyio
from msgspec import NODEFAULT, Struct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.functions.awaitables import as_awaitable, is_async
from mcpgen.runtime.server.functions.signatures import Dependency, Function, label_of, read_signature

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping
    from contextlib import (
        AbstractContextManager,
        _AsyncGeneratorContextManager,  # pyright: ignore[reportPrivateUsage] (what asynccontextmanager returns)
        _GeneratorContextManager,  # pyright: ignore[reportPrivateUsage] (what contextmanager returns)
    )

    from mcpgen.runtime.server.functions.signatures import Signature
    from mcpgen.runtime.server.functions.worker_threads import WorkerThreads

__all__ = ["Depends", "Injector"]

_LOG = logging.getLogger("mcpgen.handlers")

T = TypeVar("T")

# Long enough to roll back and close; a dependency that never ends must not keep a cancelled call forever.
TEARDOWN_SECONDS = 10.0

# Starts as no parameter can: `signatures` refuses such names.
CONTEXT = "__context"

_Plan = tuple[tuple[Function, "Provider"], ...]


@overload
def Depends(function: Callable[..., _AsyncGeneratorContextManager[T]]) -> T: ...
@overload
def Depends(function: Callable[..., _GeneratorContextManager[T]]) -> T: ...
@overload
def Depends(function: Callable[..., AsyncGenerator[T, Any]]) -> T: ...
@overload
def Depends(function: Callable[..., Generator[T, Any, Any]]) -> T: ...
@overload
def Depends(function: Callable[..., Coroutine[Any, Any, T]]) -> T: ...
@overload
def Depends(function: Callable[..., T]) -> T: ...
def Depends(function: Callable[..., Any]) -> Any:  # noqa: N802 (the name that users know from FastAPI)
    """Declare that a parameter gets the value of *function*; it is not an argument of the request.

    Write it as the default, ``database: Database = Depends(open_database)``, or in the type,
    ``database: Annotated[Database, Depends(open_database)]``. It works in tools, resources, prompts, completions and
    dependencies.

    Args:
        function: A plain or async function that returns the value, or a generator function that yields it. What follows
            the ``yield`` runs after the call, also when the call fails or is cancelled. It may take a `Context` and
            dependencies of its own. It runs once per call, even if several parameters need it.
    """
    return Dependency(function)


class _Kind(Enum):
    """How a dependency provides its value."""

    VALUE = auto()
    COROUTINE = auto()
    CONTEXT_MANAGER = auto()
    ASYNC_CONTEXT_MANAGER = auto()


_ASYNC = (_Kind.COROUTINE, _Kind.ASYNC_CONTEXT_MANAGER)


class Provider(Struct, frozen=True):
    """A function that provides the value of a dependency.

    Attributes:
        label: Its name in error messages.
        function: The function. If it yields, it returns a context manager.
        dependencies: The parameters that get dependencies, each with the function that it names.
        context: The parameters that get the `Context`.
    """

    label: str
    function: Function
    kind: _Kind
    dependencies: tuple[tuple[str, Function], ...]
    context: tuple[str, ...]

    def open(self, values: Mapping[Function, object], context: object) -> Any:
        """Call the function."""
        given = {name: values[each] for name, each in self.dependencies}
        return self.function(**given, **dict.fromkeys(self.context, context))


class _Overrides(dict[Function, Function]):
    """Functions that replace dependencies. A function that cannot be a dependency is refused when it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.providers: dict[Function, Provider] = {}

    def __setitem__(self, function: Function, other: Function) -> None:
        self.provider(function)
        if not callable(other):
            name = getattr(function, "__name__", repr(function))
            raise UsageError(f"`overrides[{name}]` must be a function that replaces {name}, not {other!r}")
        self.provider(other)
        super().__setitem__(function, other)

    def provider(self, function: Function) -> Provider:
        found = self.providers.get(function)
        if found is None:
            found = self.providers[function] = _provider(function)
        return found


class Injector:
    """Calls functions with their dependencies.

    Args:
        threads: Where plain functions run.

    Attributes:
        overrides: The functions that replace dependencies, by the dependency.
    """

    def __init__(self, threads: WorkerThreads) -> None:
        self.overrides: _Overrides = _Overrides()
        self._threads = threads

    def bind(
        self, function: Callable[..., Any], signature: Signature
    ) -> tuple[Callable[..., Awaitable[Any]], tuple[str, ...]]:
        """Return *function* as a coroutine function of its arguments, and the names that get the `Context`.

        Raises:
            UsageError: A dependency cannot be called, or depends on itself.
        """
        if not signature.dependencies:
            return as_awaitable(function, self._threads), signature.context
        keys = [each for _, each in signature.dependencies]
        plan = self._plan(keys, signature.label)
        call = as_awaitable(function, self._threads)
        # A plain wrapper of a coroutine function returns a coroutine, which its dependencies have to outlive.
        runs_in_thread = not is_async(inspect.unwrap(function))

        async def injected(**arguments: Any) -> Any:
            context = arguments.pop(CONTEXT)
            current = self._plan(keys, signature.label) if self.overrides else plan
            late = _late(current) if runs_in_thread else ()
            values: dict[Function, object] = {}
            async with _open_for_call(signature.label) as stack:
                for key, each in current:
                    if (key, each) not in late:
                        stack.push(partial(_explain_exit, each, signature.label))
                        with _named(each, signature.label):
                            values[key] = await self._open(each, values, context, stack)
                if late:
                    run = partial(_run_with, function, signature, late, values, context)
                    return await as_awaitable(run, self._threads)(**arguments)
                for name, key in signature.dependencies:
                    arguments[name] = values[key]
                return await call(**arguments)
            raise _swallowed(signature.label)

        return injected, (*signature.context, CONTEXT)

    def _plan(self, keys: list[Function], label: str) -> _Plan:
        """Return all dependencies of *keys*, each after those that it needs."""
        done: dict[Function, Provider] = {}
        for each in keys:
            self._visit(each, done, (), label)
        return tuple(done.items())

    def _visit(self, key: Function, done: dict[Function, Provider], path: tuple[Function, ...], label: str) -> None:
        if key in done:
            return
        if key in path:
            circle = " → ".join(label_of(each) for each in (*path[path.index(key) :], key))
            raise UsageError(f"a dependency of {label} depends on itself: {circle}; remove one of the `Depends`")
        provider = self.overrides.provider(self.overrides.get(key, key))
        for _, each in provider.dependencies:
            self._visit(each, done, (*path, key), label)
        done[key] = provider

    async def _open(
        self, each: Provider, values: Mapping[Function, object], context: object, stack: AsyncExitStack
    ) -> object:
        match each.kind:
            case _Kind.COROUTINE:
                return await each.open(values, context)
            case _Kind.ASYNC_CONTEXT_MANAGER:
                return await stack.enter_async_context(each.open(values, context))
            case _Kind.VALUE:
                return await as_awaitable(partial(each.open, values, context), self._threads)()
            case _Kind.CONTEXT_MANAGER:
                manager = _ManagerInThreads(each.open(values, context), self._threads)
                stack.push_async_exit(manager.leave)
                return await manager.enter()


class _ManagerInThreads:
    """A plain context manager that is entered and left in worker threads.

    If the call is cancelled while it is being entered, the thread that enters it leaves it, too.
    """

    def __init__(self, manager: AbstractContextManager[Any], threads: WorkerThreads) -> None:
        self._manager = manager
        self._enter = as_awaitable(self._entered, threads)
        self._leave = as_awaitable(self._left, threads)
        self._lock = threading.Lock()
        self._is_open = False
        self._is_over = False

    async def enter(self) -> object:
        return await self._enter()

    async def leave(self, *error: object) -> bool | None:
        with self._lock:
            self._is_over = True
            is_open = self._is_open
        return cast("bool | None", await self._leave(error=error)) if is_open else None

    def _entered(self) -> object:
        value: object = self._manager.__enter__()
        with self._lock:
            is_over = self._is_over
            self._is_open = not is_over
        if is_over:
            self._manager.__exit__(None, None, None)
        return value

    def _left(self, error: Any) -> bool | None:
        return self._manager.__exit__(*error)


@asynccontextmanager
async def _open_for_call(label: str) -> AsyncGenerator[AsyncExitStack]:
    """Keep dependencies open within the block; close them even if the call was cancelled."""
    from mcpgen.runtime.transports.spawner import postponed_cancellation  # noqa: PLC0415 (it imports asyncio)

    # Outside of the scopes that the dependencies open; it becomes a shield when they are closed.
    with anyio.CancelScope() as scope:
        try:
            async with AsyncExitStack() as closing, AsyncExitStack() as stack:
                try:
                    yield stack
                finally:
                    await closing.enter_async_context(postponed_cancellation())
                    scope.shield = True
                    scope.deadline = anyio.current_time() + TEARDOWN_SECONDS
        except SystemExit as error:
            raise RuntimeError(f"a dependency of {label} called sys.exit(), which does not end a server") from error
    if scope.cancelled_caught:
        _LOG.error("the dependencies of %s were not closed within %g seconds", label, TEARDOWN_SECONDS)


def _run_with(
    function: Callable[..., Any],
    signature: Signature,
    late: _Plan,
    values: dict[Function, object],
    context: object,
    **arguments: Any,
) -> Any:
    """Call *function* in its thread, with its plain dependencies open."""
    with ExitStack() as stack:
        for key, each in late:
            with _named(each, signature.label):
                value = each.open(values, context)
                stack.push(partial(_explain_exit, each, signature.label))
                values[key] = stack.enter_context(value) if each.kind is _Kind.CONTEXT_MANAGER else value
        for name, key in signature.dependencies:
            arguments[name] = values[key]
        return function(**arguments)
    raise _swallowed(signature.label)


@contextmanager
def _named(provider: Provider, label: str) -> Generator[None]:
    """Name the dependency in the traceback of an exception that it raises."""
    try:
        yield
    except Exception as error:  # raised again
        error.add_note(f"{provider.label}, a dependency of {label}, failed")
        raise


def _explain_exit(provider: Provider, label: str, _kind: object, error: BaseException | None, _: object) -> None:
    """Name the dependency that yields twice, which contextlib does not."""
    if isinstance(error, RuntimeError) and str(error) == "generator didn't stop" and not hasattr(error, "__notes__"):
        error.add_note(f"{provider.label}, a dependency of {label}, yields more than once; yield one value")


def _swallowed(label: str) -> RuntimeError:
    return RuntimeError(f"a dependency of {label} caught an exception, so there is no result; raise it again")


def _late(plan: _Plan) -> _Plan:
    """Return the dependencies that the thread of a plain function opens: plain ones that no async one needs."""
    providers = dict(plan)
    early: set[Function] = set()
    for key, each in reversed(plan):  # those that need others come first
        if key in early or each.kind in _ASYNC:
            early |= {key, *(needed for _, needed in each.dependencies)}
    return tuple((key, each) for key, each in providers.items() if key not in early)


def _provider(function: Function) -> Provider:
    signature = read_signature(function, is_dependency=True)
    for each in signature.parameters:
        if each.default is NODEFAULT:
            raise UsageError(
                f"parameter `{each.name}` of {signature.label} gets no value; a dependency takes a `Context` and other "
                "dependencies (`Depends`); give the parameter a default"
            )
    kind, opened = _kind_of(function)
    return Provider(signature.label, opened, kind, signature.dependencies, signature.context)


def _kind_of(function: Function) -> tuple[_Kind, Function]:
    """Return how a function provides its value, and the function, which returns a context manager if it yields."""
    if inspect.isasyncgenfunction(function):
        return _Kind.ASYNC_CONTEXT_MANAGER, asynccontextmanager(function)
    if inspect.isgeneratorfunction(function):
        return _Kind.CONTEXT_MANAGER, contextmanager(function)
    decorated = inspect.unwrap(function)
    if inspect.isasyncgenfunction(decorated):
        return _Kind.ASYNC_CONTEXT_MANAGER, function
    if inspect.isgeneratorfunction(decorated):
        return _Kind.CONTEXT_MANAGER, function
    return _Kind.COROUTINE if is_async(function) else _Kind.VALUE, function
