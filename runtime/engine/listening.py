"""What a client wants to hear of: the resources that a session watches, and the streams that a stateless client opened.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from mcpgen.runtime.peers.capabilities import offers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcpgen.runtime.engine.exchange import Origin

__all__ = ["LIST_CHANGES", "Filter", "Listening", "RESOURCE_UPDATED", "Stream", "honoured"]

RESOURCE_UPDATED = "notifications/resources/updated"

# 2026-07-28, basic/patterns/subscriptions, "Notification Filter": what asks for which notification.
LIST_CHANGES = {
    "notifications/tools/list_changed": "tools_list_changed",
    "notifications/prompts/list_changed": "prompts_list_changed",
    "notifications/resources/list_changed": "resources_list_changed",
}


class Filter(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is told on a stream; what it leaves out is not."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []

    def passes(self, method: str, uri: str | None) -> bool:
        """Whether the notification *method*, about the resource *uri*, is asked for."""
        if method == RESOURCE_UPDATED:
            return uri in self.resource_subscriptions
        attribute = LIST_CHANGES.get(method)
        return attribute is not None and getattr(self, attribute)


class Stream(Struct, eq=False):
    """One open `subscriptions/listen`.

    Attributes:
        origin: The request, whose id is that of the subscription.
        filter: What is told.
    """

    origin: Origin
    filter: Filter


class Listening:
    """What one connection wants to hear of."""

    def __init__(self) -> None:
        self.uris: dict[str, None] = {}
        self.streams: dict[str | int, Stream] = {}

    @property
    def size(self) -> int:
        """How many resources are watched, by the session and on all streams."""
        return len(self.uris) + sum(len(each.filter.resource_subscriptions) for each in self.streams.values())

    def hears(self, method: str, uri: str | None) -> bool:
        """Whether the session, as opposed to a stream, is told of *method*."""
        return method != RESOURCE_UPDATED or uri in self.uris

    def streams_for(self, method: str, uri: str | None) -> Iterator[Stream]:
        """Yield the streams on which *method* is told."""
        return (each for each in list(self.streams.values()) if each.filter.passes(method, uri))


def honoured(wanted: Filter, capabilities: Mapping[str, object], revision: str) -> Filter:
    """Return the part of *wanted* that a server with these *capabilities* of *revision* can tell.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Acknowledgment": types that the server does not support are omitted.
    """
    kept = {
        attribute: getattr(wanted, attribute) and offers(capabilities, revision, method)
        for method, attribute in LIST_CHANGES.items()
    }
    can_watch = offers(capabilities, revision, RESOURCE_UPDATED)
    uris = list(dict.fromkeys(wanted.resource_subscriptions)) if can_watch else []
    return Filter(**kept, resource_subscriptions=uris)
