"""What the clients of one connection are subscribed to.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter
    from mcpgen.runtime.server.exchange import OpenRequest

__all__ = ["SubscriptionStream", "Subscriptions"]


class SubscriptionStream(Struct, eq=False):
    """One open `subscriptions/listen`.

    Attributes:
        request: The request, whose id is that of the subscription.
        filter: Which notifications it gets.
        extensions: Which notifications of extensions it gets: the accepted filter of each, by identifier.
        extension_bytes: The bytes of those.
    """

    request: OpenRequest
    filter: SubscriptionFilter
    extensions: Mapping[str, Any] = {}
    extension_bytes: int = 0


class Subscriptions(Struct, eq=False):
    """What the clients of one connection are subscribed to.

    Attributes:
        uris: The resources that the client of the handshake subscribed to.
        streams: The open `subscriptions/listen`, by id.
    """

    uris: dict[str, None] = {}
    streams: dict[str | int, SubscriptionStream] = {}

    @property
    def size(self) -> int:
        """How many resources are subscribed to, by the session and on all streams."""
        return len(self.uris) + sum(len(each.filter.resource_subscriptions) for each in self.streams.values())
