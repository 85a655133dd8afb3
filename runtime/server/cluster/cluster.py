"""The protocol of a cluster: what the workers of one server share.

A cluster has *records*, *messages* and *events*, and knows nothing of MCP. A record has a key, fields of text and
bytes, and a lifetime. A message goes to a channel, and reaches the workers that listen to the channel at this moment;
it is not kept for others. Events have numbers and belong to streams. They are stored for some time, within limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from mcpgen.runtime.errors import McpgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Cluster", "ClusterUnavailable", "Event"]

Event: TypeAlias = tuple[str, int, bytes]
"""The name of a stream, the number of an event in it, and its content."""


class ClusterUnavailable(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """What the workers share cannot be read or written now: Redis is gone, slow or full.

    Attributes:
        reason: Why.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

    def __str__(self) -> str:
        return f"the cluster of this server cannot be used: {self.reason}"


class Cluster(Protocol):
    """What the workers of one server share. `MemoryCluster` and `Redis` implement it.

    Every method may raise `ClusterUnavailable`, and does so within a time limit. An operation that failed may have been
    carried out nevertheless.
    """

    async def open(self) -> None:
        """Prepare for the event loop that runs now; a worker calls this before all other methods."""
        ...

    async def close(self) -> None:
        """End the connections of this process."""
        ...

    async def listen(
        self, channels: Sequence[str], *, subscribed: Callable[[], None], received: Callable[[bytes], None]
    ) -> None:
        """Listen to *channels* until the connection breaks, or until this is cancelled.

        The messages of one sender to one channel arrive in their order.

        Args:
            channels: The names of the channels.
            subscribed: Called when listening has begun. All messages that are sent from then on arrive.
            received: Called with each message.

        Raises:
            ClusterUnavailable: There is no connection, or it broke. Messages may be lost.
        """
        ...

    async def send(self, channel: str, message: bytes) -> int:
        """Send *message* to *channel*, and return how many workers listen to it."""
        ...

    async def create(self, key: str, fields: Mapping[str, bytes], seconds: float) -> bool:
        """Store a new record for *seconds*; return False, and change nothing, if there is one with this key."""
        ...

    async def read(self, key: str) -> dict[str, bytes]:
        """Return the fields of a record; empty if there is none."""
        ...

    async def change(
        self,
        key: str,
        fields: Mapping[str, bytes | None],
        *,
        expected: Mapping[str, bytes] | None = None,
        seconds: float | None = None,
        announced: tuple[str, bytes] | None = None,
    ) -> bool:
        """Change fields of a record in one step; return False, and change nothing, if that is not possible.

        Args:
            key: The key of the record. There must be one.
            fields: The new values; None removes a field.
            expected: Fields that must have these values.
            seconds: The lifetime from now on; None for the one that it has.
            announced: A channel, and a message that is sent to it in the same step, if the record was changed.
        """
        ...

    async def remove(self, key: str, *, announced: tuple[str, bytes] | None = None) -> bool:
        """Remove a record; return whether there was one.

        Args:
            key: The key of the record.
            announced: A channel, and a message that is sent to it in the same step, even if there was no record.
        """
        ...

    async def keep(self, keys: Iterable[str], seconds: float) -> None:
        """Let the records of *keys* live for *seconds* from now on; ignore keys without a record."""
        ...

    async def add_events(self, key: str, events: Sequence[Event]) -> None:
        """Store events, in order. Ignore those whose number is not higher than the last one of their stream.

        If there is no room, drop the oldest events of the owner that has the most. The owner is the part of a stream's
        name before the first of two dots.

        Args:
            key: The name of a group of streams. `EventLimits` apply to all streams of the group together.
            events: For each event, the name of its stream, its number and its content.
        """
        ...

    async def events_after(self, key: str, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the events of *stream* with higher numbers than *number*, in order, with their numbers.

        Return None if the stream is unknown, if some of them were dropped, or if *number* is higher than its last one.
        """
        ...

    async def remove_events(self, key: str, streams: Sequence[str]) -> None:
        """Remove the events of *streams*; ignore those that are unknown."""
        ...

    async def raise_levels(self, key: str, amounts: Mapping[str, float]) -> dict[str, float]:
        """Add to levels, which fall by 1 each second and never below 0; return them.

        Args:
            key: The name of a group of levels. Equal names in different groups are different levels.
            amounts: What is added to each level, by the name of the level. A level that does not exist yet is 0.
        """
        ...
