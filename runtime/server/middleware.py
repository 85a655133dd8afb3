"""Middleware: functions around handlers.

Theory of operation. A result with the cache scope ``public`` may be given to every user. Middleware often depends on
the user: it hides entries of a list, or reads another resource. So when middleware changes such a result, or the params
of its request, the result becomes ``private``. Middleware may make a ``private`` result ``public``. All pages of a list
must have the same scope, and middleware may change any of them. So a page is always ``private`` if there is middleware.

Spec:
    2026-07-28, server/utilities/caching, "Interaction with Pagination" and "Security Considerations".
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcpgen.runtime.server.exchange import Call

__all__ = ["RegisteredMiddleware", "around", "for_method"]

Around: TypeAlias = "Callable[[Any, Any, Call], Awaitable[Any]]"
"""A middleware: called with params, context and the next call, which takes both."""


_NO_RESULTS: Final = (str, bytes, bool, int, float, list, tuple)


class RegisteredMiddleware(Struct, frozen=True):
    """A middleware, and the method whose requests it is called for; None for all methods."""

    call: Around
    method: str | None = None


def for_method(middleware: Sequence[RegisteredMiddleware], method: str) -> list[Around]:
    """Return the *middleware* of *method*, outermost first."""
    return [each.call for each in middleware if each.method is None or each.method == method]


def around(handler: Call, middleware: Sequence[Around]) -> Call:
    """Return *handler* with *middleware* around it, the outermost first."""
    return partial(_call_all, handler, tuple(reversed(middleware))) if middleware else handler


async def _call_all(handler: Call, inner_first: Sequence[Around], params: Any, context: Any) -> Any:
    public: list[bytes] = []  # the public results of the handler; empty if its params were changed

    async def call_handler(its_params: Any, its_context: Any) -> Any:
        result = await handler(its_params, its_context)
        if getattr(result, "cache_scope", None) == "public":
            public.append(msgspec.json.encode(result) if its_params == params else b"")
        return result

    call: Call = call_handler
    for each in inner_first:
        call = partial(_call_middleware, each, _named(call))
    result = await call(params, context)
    if getattr(result, "cache_scope", None) == "public" and (
        # A page that the middleware itself returns has the scope of the other pages, too.
        _is_one_of_several_pages(params, result)
        # Encoded, because a middleware may change the list inside of a result.
        or (public and [msgspec.json.encode(result)] != public)
    ):
        return msgspec.structs.replace(result, cache_scope="private")
    return result


def _is_one_of_several_pages(params: Any, result: Any) -> bool:
    return isinstance(getattr(params, "cursor", None), str) or isinstance(getattr(result, "next_cursor", None), str)


def _named(call: Call) -> Call:
    """Return *call* under the name that the author of a middleware knows: Python's errors about arguments show it."""

    def call_next(params: Any, context: Any) -> Any:
        return call(params, context)

    call_next.__qualname__ = "call_next"
    return call_next


async def _call_middleware(middleware: Around, call: Call, params: Any, context: Any) -> Any:
    name = getattr(middleware, "__name__", type(middleware).__name__)
    pending = middleware(params, context, call)
    if not inspect.isawaitable(pending):
        raise TypeError(
            f"the middleware {name} is not an `async def`; make it one, and return the result of "
            "`await call_next(params, context)`"
        )
    result = await pending
    if result is None or inspect.iscoroutine(result) or type(result) in _NO_RESULTS:
        # It often only waits for the next call, forgets to wait, or returns a part of the result.
        found = "None" if result is None else f"a value of the type {type(result).__name__}"
        if inspect.iscoroutine(result):
            found = "a coroutine"
            result.close()
        raise TypeError(
            f"the middleware {name} returned {found}; return the result of `await call_next(params, context)`"
        )
    return result
