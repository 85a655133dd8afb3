"""The streams of a session that have ended, or that others have replaced, while the store may have their events.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anyio.lowlevel import checkpoint

from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.server.event_store import event_id

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView

    from mcpgen.runtime.server.event_store import EventStore

__all__ = ["EarlierStreams", "forget_streams"]

# A client that has opened so many GET streams since does not come back to an older one.
_MAX_STREAMS: Final = 10

# Each takes 160 bytes, which no limit counts, and there may be 10,000 sessions. The store drops older ones by itself.
_MAX_ENDED_STREAMS: Final = 32


class EarlierStreams:
    """The last of them, each of which a client may resume.

    Args:
        store: Has stored their events.
    """

    __slots__ = ("_ended", "_last", "_store")

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._ended: list[str] = []  # names of streams of requests
        self._last: dict[str, int] = {}  # the last number that was sent on each, by name, oldest first

    @property
    def replaced(self) -> KeysView[str]:
        """The names of the GET streams that others have replaced."""
        return self._last.keys()

    def add_ended(self, name: str) -> None:
        """Add the stream *name* of a request that has ended."""
        self._ended.append(name)
        del self._ended[:-_MAX_ENDED_STREAMS]

    def add_replaced(self, name: str, last: int) -> list[str]:
        """Add the GET stream *name*, on which *last* was the last number; return those that can be forgotten."""
        self._last[name] = last
        lost = list(self._last)[:-_MAX_STREAMS]
        for each in lost:
            del self._last[each]
        return lost

    def take_all(self) -> list[str]:
        """Remove all, and return their names."""
        names = [*self._ended, *self._last]
        self._ended.clear()
        self._last.clear()
        return names

    async def missed(self, name: str, number: int) -> list[bytes] | None:
        """Return the events of the GET stream *name* behind *number*; None if *number* is not one of its numbers."""
        found = await self._store.after(name, number)
        last = self._last.get(name, -1)  # another request may have removed it meanwhile
        if found is None or not number <= last <= max([number, *(each for each, _ in found)]):
            return None
        return [encode_event(each, event_id=event_id(name, at)) for at, each in found if each and at <= last]


async def forget_streams(store: EventStore, names: Iterable[str]) -> None:
    """Remove streams from *store*, each in a turn of the event loop: a session can have 150,000 messages in it."""
    for each in names:
        await store.forget(each)
        await checkpoint()
