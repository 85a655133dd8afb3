"""The GET streams of a session that others have replaced.

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

__all__ = ["ReplacedStreams", "forget_streams"]

# A client that has opened so many GET streams since does not come back to an older one.
_MAX_STREAMS: Final = 10


class ReplacedStreams:
    """The last of them, each of which a client may resume.

    Args:
        store: Has stored their events.
    """

    __slots__ = ("_last", "_store")

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._last: dict[str, int] = {}  # the last number that was sent on each, by name, oldest first

    @property
    def names(self) -> KeysView[str]:
        """Their names."""
        return self._last.keys()

    def add(self, name: str, last: int) -> list[str]:
        """Add the stream *name*, on which *last* was the last number; return those that can be forgotten instead."""
        self._last[name] = last
        lost = list(self._last)[:-_MAX_STREAMS]
        for each in lost:
            del self._last[each]
        return lost

    def take_all(self) -> list[str]:
        """Remove all, and return their names."""
        names = list(self._last)
        self._last.clear()
        return names

    async def missed(self, name: str, number: int) -> list[bytes] | None:
        """Return the events of the stream *name* behind *number*; None if *number* is not one of its numbers."""
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
