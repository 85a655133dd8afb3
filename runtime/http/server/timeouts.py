"""Time limits that cost nothing where nothing has to wait.

Theory of operation. Nearly always the body of a request is there when it is read, and a response is written at once. A
time limit of the event loop costs more than either. So on asyncio the first step of an awaitable runs without a limit;
a limit is set only if that step has to wait.

The first step may enter a cancel scope, as Starlette's middleware does when it receives. Scopes of anyio and trio must
be left in the reverse order of entry, so a scope that is set after the first step would break them. `asyncio.timeout`
has no such rule. On other event loops, the limit is set before the first step.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio

from mcpgen.runtime.http.server.first_step import Waiting, first_step
from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["with_timeout"]

T = TypeVar("T")


async def with_timeout(seconds: float, awaitable: Awaitable[T], *, is_on_asyncio: bool = False) -> T:
    """Return the result of *awaitable*; *is_on_asyncio* says that the event loop is known to be one of asyncio.

    Raises:
        TimeoutError: It took longer than *seconds*.
    """
    if not is_on_asyncio and not is_asyncio():
        with anyio.fail_after(seconds):
            return await awaitable
    found: Any = first_step(awaitable)
    if isinstance(found, Waiting):
        async with asyncio.timeout(seconds):
            found = await cast("Waiting[T]", found)
    result: T = found
    return result
