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
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

__all__ = ["ResumedAwaitable", "with_timeout"]

T = TypeVar("T")


async def with_timeout(seconds: float, awaitable: Awaitable[T]) -> T:
    """Return the result of *awaitable*.

    Raises:
        TimeoutError: It took longer than *seconds*.
    """
    if not is_asyncio():
        with anyio.fail_after(seconds):
            return await awaitable
    steps: Any = awaitable.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await ResumedAwaitable(steps, waits_for)


class ResumedAwaitable(Generic[T]):
    """The rest of an awaitable whose first step has run, and which now waits.

    Args:
        steps: The iterator of the awaitable.
        waits_for: The future that its first step yielded.
    """

    __slots__ = ("_steps", "_waits_for")

    def __init__(self, steps: Any, waits_for: Any) -> None:  # noqa: ANN401 (only the event loop knows)
        self._steps = steps
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        steps, waits_for = self._steps, self._waits_for
        try:
            while True:
                try:
                    value = yield waits_for
                except BaseException as error:  # noqa: BLE001 (the event loop throws it into the awaitable)
                    waits_for = steps.throw(error)
                else:
                    waits_for = steps.send(value)
        except StopIteration as done:
            result: T = done.value
            return result
