"""Streams of `subscriptions/listen`, and notifications of changes to the clients that are subscribed to them.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.newest import NEWEST, ErrorCode, methods, models
from mcpgen.runtime.protocol.subscriptions import RESOURCE_UPDATED, SubscriptionFilter, supported_filter
from mcpgen.runtime.server.exchange import ResponseBody
from mcpgen.runtime.server.ledger import HANDLER_BYTES, uris_bytes
from mcpgen.runtime.server.server_session import SubscriptionStream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpgen.runtime.server.exchange import OpenRequest
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["check_uris", "end_stream", "notify_change", "open_stream", "stream_closed_notification", "wants_change"]

_SUBSCRIPTION_ID = methods.MetaKey.SUBSCRIPTION_ID


def check_uris(uris: Iterable[str], max_chars: int) -> None:
    """Check the length of URIs that are subscribed to, because they are kept.

    Raises:
        RequestError: One is too long.
    """
    if any(len(each) > max_chars for each in uris):
        raise RequestError(ErrorCode.INVALID_PARAMS, f"a URI has more than {max_chars} characters (max_uri_chars)")


def open_stream(session: ServerSession, request: OpenRequest, params: Any) -> None:
    """Open a stream for a `subscriptions/listen`.

    Raises:
        RequestError: There are too many subscriptions, or a URI is too long, or all of them are.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Acknowledgment": it comes first, with the supported filter.
    """
    subscriptions, limit = session.subscriptions, session.limits.max_subscriptions
    if len(subscriptions.streams) >= limit:
        raise RequestError(
            ErrorCode.INTERNAL_ERROR,
            "this connection has too many open subscription streams (max_subscriptions); end one first",
        )
    revision = request.peer.revision
    wanted = msgspec.convert(msgspec.to_builtins(params.notifications), SubscriptionFilter)
    supported = supported_filter(wanted, session.handlers.capabilities(revision), revision)
    check_uris(supported.resource_subscriptions, session.limits.max_uri_chars)
    if subscriptions.size + len(supported.resource_subscriptions) > limit:
        raise RequestError(
            ErrorCode.INTERNAL_ERROR,
            "this connection has too many subscriptions to resources (max_subscriptions); end a stream first",
        )
    session.keep(uris_bytes(supported.resource_subscriptions))
    acknowledged = {"_meta": {_SUBSCRIPTION_ID: request.id}, "notifications": supported}
    session.hold(request)
    stream = subscriptions.streams[request.id] = SubscriptionStream(request, supported)
    request.on_cancel = partial(_close_stream, session, stream)
    message = envelope.encode_notification("notifications/subscriptions/acknowledged", acknowledged)
    session.output.send(message, request)
    _call_handler(session, "resources/subscribe", stream)


def _close_stream(session: ServerSession, stream: SubscriptionStream) -> None:
    if session.subscriptions.streams.pop(stream.request.id, None) is not None:
        session.keep(-uris_bytes(stream.filter.resource_subscriptions))
    _call_handler(session, "resources/unsubscribe", stream)


def _call_handler(session: ServerSession, method: str, stream: SubscriptionStream) -> None:
    """Call the author's handler of *method*, if there is one, for each resource that only *stream* subscribes to."""
    handler = session.handlers.overridden(method)
    if handler is None:
        return
    params = session.handlers.methods(session.handlers.native_revision).CLIENT_REQUESTS[method].params
    others = [each for each in session.subscriptions.streams.values() if each is not stream]
    elsewhere = {*session.subscriptions.uris}.union(*(each.filter.resource_subscriptions for each in others))
    for uri in stream.filter.resource_subscriptions:
        if uri not in elsewhere:
            size = HANDLER_BYTES + uris_bytes([uri])
            session.output.start_notification_handler(handler, params(uri=uri), stream.request.peer, size)


def end_stream(session: ServerSession, stream: SubscriptionStream) -> None:
    """End a stream on the server's own initiative: send its result, and cancel it.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Graceful Closure"; basic/patterns/cancellation: MUST send.
    """
    request = stream.request
    _close_stream(session, stream)
    result = msgspec.json.encode({"resultType": "complete", "_meta": {_SUBSCRIPTION_ID: request.id}})
    session.reply(request, ResponseBody(session.handlers.sign(result, request.peer.revision)))
    session.output.send(stream_closed_notification(request), None)


def stream_closed_notification(request: OpenRequest) -> bytes:
    """Return the notification that ends the stream of *request*."""
    cancelled = {"requestId": request.id, "reason": "the server is shutting down"}
    return envelope.encode_notification("notifications/cancelled", cancelled)


def wants_change(session: ServerSession, method: str, uri: str | None) -> bool:
    """Return whether the client of the handshake or a stream is subscribed to the notification *method*."""
    subscriptions = session.subscriptions
    if session.is_initialized and (method != RESOURCE_UPDATED or uri in subscriptions.uris):
        return True
    return any(each.filter.passes(method, uri) for each in subscriptions.streams.values())


def notify_change(session: ServerSession, method: str, uri: str | None = None) -> None:
    """Send the notification *method* to the client of the handshake and on each stream, where they are subscribed.

    Spec:
        2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
    """
    peer, subscriptions = session.peer, session.subscriptions
    is_subscribed = session.is_initialized and (method != RESOURCE_UPDATED or uri in subscriptions.uris)
    if peer is not None and is_subscribed and offers(session.declared, peer.revision, method):
        session.output.send(_change(peer.revision, method, uri, None), None)
    for stream in list(subscriptions.streams.values()):
        if stream.filter.passes(method, uri):
            message = _change(stream.request.peer.revision, method, uri, stream.request.id)
            session.output.send(message, stream.request)


def _change(revision: str, method: str, uri: str | None, stream_id: str | int | None) -> bytes:
    meta: Any = UNSET if stream_id is None else {_SUBSCRIPTION_ID: stream_id}
    params: Any
    if method == RESOURCE_UPDATED:
        params = models.ResourceUpdatedNotificationParams(uri=uri or "", meta=meta)
    else:
        params = UNSET if stream_id is None else models.NotificationParams(meta=meta)
    return envelope.encode_notification(method, codec(NEWEST, revision).outgoing_notification(method).params(params))
