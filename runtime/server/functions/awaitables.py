"""Make registered functions awaitable, coroutine functions as well as plain ones.

A coroutine function runs in the event loop. A plain function runs in a worker thread, with the caller's context
variables, so that it does not block the server. When its request is cancelled, the thread goes on but its result is
ignored, because a thread cannot be stopped. It counts as running until it ends (`worker_threads`).
"""

from __future__ import annotations

import dis
import inspect
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.server.functions.worker_threads import WorkerThreads

__all__ = ["as_awaitable", "exit_refused", "is_async", "may_wait"]


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling *function* returns a coroutine; looks into partials and at an object's ``__call__``."""
    while isinstance(function, partial):
        function = function.func
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(called)


def may_wait(function: Callable[..., Any]) -> bool:
    """Return False if *function* never waits: it is a coroutine function, and its code has no ``await``."""
    if not (inspect.isfunction(function) and inspect.iscoroutinefunction(function)):
        return True
    # From Python 3.11 on, each `await`, `async with` and `async for` is compiled to this instruction, and nothing else
    # in a coroutine is.
    return any(each.opname == "SEND" for each in dis.get_instructions(function))


def as_awaitable(function: Callable[..., Any], threads: WorkerThreads) -> Callable[..., Awaitable[Any]]:
    """Return *function* as a coroutine function; a plain one runs in one of *threads*.

    ``sys.exit`` in *function* must not end the server, so it raises a RuntimeError instead.
    """
    return _contained(function) if is_async(function) else _threaded(function, threads)


def exit_refused() -> RuntimeError:
    """Return the exception that takes the place of the one of a function's ``sys.exit``."""
    return RuntimeError("the function called sys.exit(), which does not end a server")


def _contained(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def contained(**arguments: object) -> object:
        try:
            return await function(**arguments)
        except SystemExit as error:
            raise exit_refused() from error

    return contained


def _threaded(function: Callable[..., Any], threads: WorkerThreads) -> Callable[..., Awaitable[Any]]:
    def run(arguments: dict[str, object]) -> tuple[object]:
        try:
            return (function(**arguments),)  # in a tuple, because trio refuses a coroutine as the result of a thread
        except SystemExit as error:
            raise exit_refused() from error
        except GeneratorExit as error:  # in the event loop, it would close every coroutine that waits for the thread
            raise RuntimeError("the function raised GeneratorExit") from error

    @wraps(function)
    async def threaded(**arguments: object) -> object:
        (value,) = await threads.run(run, arguments)
        # Decorators often wrap a coroutine function in a plain one.
        return await value if inspect.isawaitable(value) else value

    return threaded
