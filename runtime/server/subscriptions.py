"""What a client wants to hear of: the resources that a session watches, and the streams that a stateless client opened.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from mcpgen.runtime.protocol.subscriptions import RESOURCE_UPDATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter
    from mcpgen.runtime.server.exchange import Origin

__all__ = ["Subscriptions", "SubscriptionStream"]


class SubscriptionStream(Struct, eq=False):
    """One open `subscriptions/listen`.

    Attributes:
        origin: The request, whose id is that of the subscription.
        filter: What is told.
    """

    origin: Origin
    filter: SubscriptionFilter


class Subscriptions:
    """What one connection wants to hear of."""

    def __init__(self) -> None:
        self.uris: dict[str, None] = {}
        self.streams: dict[str | int, SubscriptionStream] = {}

    @property
    def size(self) -> int:
        """How many resources are watched, by the session and on all streams."""
        return len(self.uris) + sum(len(each.filter.resource_subscriptions) for each in self.streams.values())

    def hears(self, method: str, uri: str | None) -> bool:
        """Whether the session, as opposed to a stream, is told of *method*."""
        return method != RESOURCE_UPDATED or uri in self.uris

    def streams_for(self, method: str, uri: str | None) -> Iterator[SubscriptionStream]:
        """Yield the streams on which *method* is told."""
        return (each for each in list(self.streams.values()) if each.filter.passes(method, uri))
