"""Calling an author's function, whichever kind it is: where this package meets the event loop.

A coroutine function runs where it is called. Any other runs in a worker thread, with the caller's context variables,
so that one that blocks does not stop the server. When its request is cancelled it is abandoned: threads cannot be
stopped.
"""

from __future__ import annotations

import inspect
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from anyio import to_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["as_awaitable", "is_async"]


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling *function* gives a coroutine: itself, what a partial is of, or an object's ``__call__``."""
    while isinstance(function, partial):
        function = function.func
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(called)


def as_awaitable(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return what calls *function* and can be awaited.

    ``sys.exit`` in a function must not end the server that it is a guest of: it comes out as a RuntimeError.
    """
    return _contained(function) if is_async(function) else _threaded(function)


def _contained(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def contained(**arguments: object) -> object:
        try:
            return await function(**arguments)
        except SystemExit as error:
            raise RuntimeError("the function wants to exit") from error

    return contained


def _threaded(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    def run(arguments: dict[str, object]) -> tuple[object]:
        try:
            return (function(**arguments),)  # in a tuple, since trio takes no coroutine out of a thread
        except SystemExit as error:
            raise RuntimeError("the function wants to exit") from error

    @wraps(function)
    async def threaded(**arguments: object) -> object:
        (value,) = await to_thread.run_sync(run, arguments, abandon_on_cancel=True)
        # A plain function around a coroutine function, as decorators often are.
        return await value if inspect.isawaitable(value) else value

    return threaded
