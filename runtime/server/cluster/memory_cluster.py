"""A cluster in the memory of one process: for tests, and for several applications of one process."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
from msgspec import Struct
from msgspec.structs import asdict

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import EventLimits
from mcpgen.runtime.server.event_store import MemoryEventStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcpgen.runtime.server.cluster.cluster import Event

__all__ = ["MemoryCluster"]

# Expired records are looked for when this many have been created since the last time.
_EXPIRE_EVERY: Final = 1000


class _Record(Struct):
    fields: dict[str, bytes]
    expires: float


class MemoryCluster:
    """A `Cluster` in this process, such as for tests of several applications over one server.

        cluster = MemoryCluster()
        first, second = server.asgi(cluster=cluster), other.asgi(cluster=cluster)

    All its workers run in one event loop.

    Args:
        event_limits: Limits on the events of streams.
        clock: A function that returns monotonic time in seconds.
    """

    def __init__(self, *, event_limits: EventLimits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._event_limits = EventLimits() if event_limits is None else event_limits
        self._events: dict[str, MemoryEventStore] = {}
        self._levels: dict[tuple[str, str], float] = {}  # when each is 0
        self._records: dict[str, _Record] = {}
        self._listeners: dict[str, dict[object, Callable[[bytes], None]]] = {}
        self._created = 0

    async def open(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Do nothing, likewise."""

    async def listen(
        self, channels: Sequence[str], *, subscribed: Callable[[], None], received: Callable[[bytes], None]
    ) -> None:
        """Listen until this is cancelled; see `Cluster`."""
        listener = object()
        for each in channels:
            self._listeners.setdefault(each, {})[listener] = received
        try:
            subscribed()
            await anyio.sleep_forever()
        finally:
            for each in channels:
                del self._listeners[each][listener]

    async def send(self, channel: str, message: bytes) -> int:
        """Send a message; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        return self._announce((channel, message))

    async def create(self, key: str, fields: Mapping[str, bytes], seconds: float) -> bool:
        """Store a new record; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        self._created += 1
        if self._created % _EXPIRE_EVERY == 0:
            self._expire()
        if self._find(key) is not None:
            return False
        self._records[key] = _Record(dict(fields), self._clock() + seconds)
        return True

    async def read(self, key: str) -> dict[str, bytes]:
        """Return the fields of a record; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        found = self._find(key)
        return {} if found is None else dict(found.fields)

    async def change(
        self,
        key: str,
        fields: Mapping[str, bytes | None],
        *,
        expected: Mapping[str, bytes] | None = None,
        seconds: float | None = None,
        announced: tuple[str, bytes] | None = None,
    ) -> bool:
        """Change fields of a record; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        found = self._find(key)
        if found is None or any(found.fields.get(name) != value for name, value in (expected or {}).items()):
            return False
        for name, value in fields.items():
            if value is None:
                found.fields.pop(name, None)
            else:
                found.fields[name] = value
        if seconds is not None:
            found.expires = self._clock() + seconds
        self._announce(announced)
        return True

    async def remove(self, key: str, *, announced: tuple[str, bytes] | None = None) -> bool:
        """Remove a record; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        found = self._find(key)
        self._records.pop(key, None)
        self._announce(announced)
        return found is not None

    async def keep(self, keys: Iterable[str], seconds: float) -> None:
        """Let records live for longer; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        for each in keys:
            found = self._find(each)
            if found is not None:
                found.expires = self._clock() + seconds

    async def add_events(self, key: str, events: Sequence[Event]) -> None:
        """Store events; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        store = self._store_of(key)
        for stream, number, content in events:
            with suppress(UsageError):  # there is an event with this number
                store.append(stream, number, content)

    async def events_after(self, key: str, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the events after *number*; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        return await self._store_of(key).after(stream, number)

    async def remove_events(self, key: str, streams: Sequence[str]) -> None:
        """Remove the events of *streams*; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        for each in streams:
            await self._store_of(key).forget(each)

    async def raise_levels(self, key: str, amounts: Mapping[str, float]) -> dict[str, float]:
        """Add to levels; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        now = self._clock()
        self._levels = {each: empty_at for each, empty_at in self._levels.items() if empty_at > now}
        for name, amount in amounts.items():
            self._levels[key, name] = max(now, self._levels.get((key, name), 0)) + amount
        return {name: self._levels[key, name] - now for name in amounts}

    def _announce(self, announced: tuple[str, bytes] | None) -> int:
        """Send a message, if there is one; return how many listen."""
        if announced is None:
            return 0
        channel, message = announced
        found = list(self._listeners.get(channel, {}).values())
        for each in found:
            each(message)
        return len(found)

    def _store_of(self, key: str) -> MemoryEventStore:
        found = self._events.get(key)
        if found is None:
            found = self._events[key] = MemoryEventStore(clock=self._clock, **asdict(self._event_limits))
        return found

    def _find(self, key: str) -> _Record | None:
        found = self._records.get(key)
        return None if found is None or found.expires <= self._clock() else found

    def _expire(self) -> None:
        now = self._clock()
        for key in [key for key, each in self._records.items() if each.expires <= now]:
            del self._records[key]
