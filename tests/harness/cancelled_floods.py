"""How soon a wait ends that is cancelled while something comes in each turn of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def turns_until_it_ends(wait: Callable[[], Awaitable[object]], send: Callable[[int], object]) -> int:
    """Call *send* in each of 100 turns, cancel *wait* after 10, and return in which turn it ends."""
    turns = 0
    scope = anyio.CancelScope()

    async def flood() -> None:
        nonlocal turns
        for number in range(100):
            send(number)
            await checkpoint()
            turns = number

    async def cancel() -> None:
        for _ in range(10):
            await checkpoint()
        scope.cancel()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(flood)
            group.start_soon(cancel)
            with scope:
                await wait()
            group.cancel_scope.cancel()
    return turns
