"""Waiting with a limit, which costs nothing where there is nothing to wait for.

Theory of operation. Nearly always, the body of a request is there when it is asked for, and what is sent goes out at
once. A time limit of an event loop would cost more than all that. So the first step is made without one; only if the
awaited then has to wait, a limit is set before the event loop is told, which cannot see the difference.

What is awaited may have entered a cancel scope in its first step, as Starlette's middleware does whenever it receives.
Scopes of anyio and of trio have to be left in the order opposite to that in which they were entered, so that ours would
be in the way. Limits of asyncio need not; and elsewhere than on asyncio a limit is set first.
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


async def with_timeout(seconds: float, awaited: Awaitable[T]) -> T:
    """Return what *awaited* returns.

    Raises:
        TimeoutError: It took longer.
    """
    if not is_asyncio():
        with anyio.fail_after(seconds):
            return await awaited
    steps: Any = awaited.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await ResumedAwaitable(steps, waits_for)


class ResumedAwaitable(Generic[T]):
    """What has made its first step already, and waits for something.

    Args:
        steps: The iterator of what is awaited.
        waits_for: What it has yielded.
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
                    told = yield waits_for
                except BaseException as error:  # noqa: BLE001 (what the event loop throws is for whoever waits)
                    waits_for = steps.throw(error)
                else:
                    waits_for = steps.send(told)
        except StopIteration as done:
            result: T = done.value
            return result
