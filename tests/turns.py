"""Count the turns of the event loop in which other tasks run."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["Turns", "counted_turns"]


class Turns:
    """The turns so far.

    Attributes:
        count: How many there were.
    """

    def __init__(self) -> None:
        self.count: int = 0

    async def count_on(self) -> None:
        """Count until it is cancelled."""
        while True:
            await anyio.lowlevel.checkpoint()
            self.count += 1


@asynccontextmanager
async def counted_turns() -> AsyncGenerator[Turns]:
    """Count the turns within the block, from 0."""
    turns = Turns()
    async with anyio.create_task_group() as group:
        group.start_soon(turns.count_on)
        await anyio.lowlevel.checkpoint()
        turns.count = 0
        yield turns
        group.cancel_scope.cancel()
