"""A cluster in the memory of one process: for tests, and for several applications of one process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
        clock: A function that returns monotonic time in seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
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
        found = list(self._listeners.get(channel, {}).values())
        for each in found:
            each(message)
        return len(found)

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
        return True

    async def remove(self, key: str) -> bool:
        """Remove a record; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        found = self._find(key)
        self._records.pop(key, None)
        return found is not None

    async def keep(self, keys: Iterable[str], seconds: float) -> None:
        """Let records live for longer; see `Cluster`."""
        await anyio.lowlevel.checkpoint()
        for each in keys:
            found = self._find(each)
            if found is not None:
                found.expires = self._clock() + seconds

    def _find(self, key: str) -> _Record | None:
        found = self._records.get(key)
        return None if found is None or found.expires <= self._clock() else found

    def _expire(self) -> None:
        now = self._clock()
        for key in [key for key, each in self._records.items() if each.expires <= now]:
            del self._records[key]
