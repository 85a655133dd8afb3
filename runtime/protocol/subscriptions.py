"""The filter of a subscription: the changes that a client wants, and those of them that a server can report.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.newest import methods

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.protocol.messages import RequestId

__all__ = [
    "LIST_CHANGES",
    "RESOURCE_UPDATED",
    "SUBSCRIPTION_ID",
    "SubscriptionFilter",
    "stream_end",
    "supported_filter",
]

SUBSCRIPTION_ID = methods.MetaKey.SUBSCRIPTION_ID

RESOURCE_UPDATED = "notifications/resources/updated"

# 2026-07-28, basic/patterns/subscriptions, "Notification Filter": the member of the filter for each notification.
LIST_CHANGES = {
    "notifications/tools/list_changed": "tools_list_changed",
    "notifications/prompts/list_changed": "prompts_list_changed",
    "notifications/resources/list_changed": "resources_list_changed",
}


class SubscriptionFilter(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The notifications that a stream carries."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []

    def passes(self, method: str, uri: str | None) -> bool:
        """Whether the filter selects the notification *method*, about the resource *uri*."""
        if method == RESOURCE_UPDATED:
            return uri in self.resource_subscriptions
        attribute = LIST_CHANGES.get(method)
        return attribute is not None and getattr(self, attribute)


def supported_filter(
    wanted: SubscriptionFilter, capabilities: Mapping[str, object], revision: str
) -> SubscriptionFilter:
    """Return the part of *wanted* that a server with these *capabilities* in *revision* can report.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Acknowledgment": types that the server does not support are omitted.
    """
    kept = {
        attribute: getattr(wanted, attribute) and offers(capabilities, revision, method)
        for method, attribute in LIST_CHANGES.items()
    }
    can_watch = offers(capabilities, revision, RESOURCE_UPDATED)
    uris = list(dict.fromkeys(wanted.resource_subscriptions)) if can_watch else []
    return SubscriptionFilter(**kept, resource_subscriptions=uris)


def stream_end(request_id: RequestId) -> tuple[bytes, bytes]:
    """Return the cancellation and the result with which a server ends a stream on its own initiative.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Graceful Closure"; basic/patterns/cancellation: MUST send, and only
        for a request that is still open; schema, NotificationMetaObject: each notification on the stream MUST have the
        subscription's id.
    """
    meta = {SUBSCRIPTION_ID: request_id}
    cancelled = {"_meta": meta, "requestId": request_id, "reason": "the server has ended the stream"}
    result = msgspec.json.encode({"resultType": "complete", "_meta": meta})
    return envelope.encode_notification("notifications/cancelled", cancelled), result
