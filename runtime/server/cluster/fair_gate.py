"""Share the connections to a cluster among the clients whose requests need them.

A client can send a request on each of a thousand connections that it closes at once, and each request asks the cluster.
Those of others would wait behind them for longer than an operation may take.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["FairGate", "requester"]

# The client whose request needs the cluster; empty for what a worker does by itself.
requester: Final[ContextVar[str]] = ContextVar("requester", default="")


class FairGate:
    """Lets *room* operations run at once; of those that wait, the clients alternate.

        async with gate:
            ...

    Args:
        room: How many operations run at once.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._waiting: dict[str, dict[asyncio.Future[None], None]] = {}  # whose turn is next comes first

    async def __aenter__(self) -> None:
        """Return when the operation may run."""
        if self._room > 0:
            self._room -= 1
            return
        owner = requester.get()
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, {})[place] = None
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()
            elif owner in self._waiting:
                self._waiting[owner].pop(place, None)
                if not self._waiting[owner]:
                    del self._waiting[owner]
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Let the next operation run."""
        self._leave()

    def _leave(self) -> None:
        while self._waiting:
            owner = next(iter(self._waiting))
            places = self._waiting.pop(owner)
            place = next(iter(places))
            del places[place]
            if places:
                self._waiting[owner] = places
            if not place.done():  # else its operation has been cancelled
                place.set_result(None)
                return
        self._room += 1
