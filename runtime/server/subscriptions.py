"""Streams of `subscriptions/listen`, and notifications of changes to the clients that are subscribed to them.

Spec:
    2024-11-05 to 2025-11-25, server/resources, "Subscriptions"; 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcpgen.runtime.errors import RequestError, quoted
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.newest import NEWEST, ErrorCode, models
from mcpgen.runtime.protocol.subscriptions import (
    LIST_CHANGES,
    RESOURCE_UPDATED,
    SUBSCRIPTION_ID,
    SubscriptionFilter,
    stream_end,
    supported_filter,
)
from mcpgen.runtime.protocol.value_syntax import uri_fault
from mcpgen.runtime.server.exchange import ResponseBody
from mcpgen.runtime.server.extensions import check_entries
from mcpgen.runtime.server.ledger import HANDLER_BYTES, uris_bytes
from mcpgen.runtime.server.subscription_state import SubscriptionStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcpgen.runtime.protocol.extension_codec import ExtensionNotification
    from mcpgen.runtime.server.exchange import OpenRequest
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = [
    "all_changes",
    "check_uris",
    "end_stream",
    "extension_messages",
    "notify_change",
    "open_stream",
    "wants_change",
]


def check_uris(uris: Iterable[str], max_chars: int) -> None:
    """Check URIs that are subscribed to; their length, too, because they are kept.

    Raises:
        RequestError: One is too long, or is not a URI.

    Spec:
        2025-11-25, server/resources, "Security Considerations": servers validate all resource URIs.
    """
    for each in uris:
        if len(each) > max_chars:
            raise RequestError(ErrorCode.INVALID_PARAMS, f"a URI has more than {max_chars} characters (max_uri_chars)")
        if (fault := uri_fault(each)) is not None:
            raise RequestError(ErrorCode.INVALID_PARAMS, f"{quoted(each)} cannot be subscribed to: {fault}")


def open_stream(
    session: ServerSession, request: OpenRequest, params: Any, extensions: Mapping[str, Any] | None = None
) -> None:
    """Open a stream for a `subscriptions/listen`; *extensions* has the filters that extensions have accepted.

    Raises:
        RequestError: There are too many subscriptions, a URI is not valid or too long, or all of them are too long.

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
    if subscriptions.size + len(supported.resource_subscriptions) > limit:
        raise RequestError(
            ErrorCode.INTERNAL_ERROR,
            f"this connection would have more than {limit} subscriptions to resources (max_subscriptions); name fewer "
            "URIs, or end another stream first",
        )
    stream = SubscriptionStream(request, supported, extensions or {})
    accepted = msgspec.to_builtins(supported)
    if extensions:
        _add_extensions(session, stream, accepted)
    size = _stream_bytes(stream)
    session.keep(size)
    try:  # now that they are few: a client may send megabytes of URIs, each of which takes long to check
        check_uris(supported.resource_subscriptions, session.limits.max_uri_chars)
    except RequestError:
        session.keep(-size)
        raise
    acknowledged = {"_meta": {SUBSCRIPTION_ID: request.id}, "notifications": accepted}
    session.hold(request)
    subscriptions.streams[request.id] = stream
    request.on_cancel = partial(_close_stream, session, stream)
    message = envelope.encode_notification("notifications/subscriptions/acknowledged", acknowledged)
    session.output.send(message, request)
    _call_handler(session, "resources/subscribe", stream)


def _add_extensions(session: ServerSession, stream: SubscriptionStream, accepted: dict[str, Any]) -> None:
    """Add the filters of the extensions to *accepted*, and count their bytes and their entries.

    Raises:
        RequestError: There are too many.
    """
    found: dict[str, Any] = {}
    for each in stream.extensions.values():
        found |= msgspec.to_builtins(each)
    check_entries(found, session.limits.max_subscriptions)
    stream.extension_bytes = len(msgspec.json.encode(found))
    accepted |= found


def _stream_bytes(stream: SubscriptionStream) -> int:
    return uris_bytes(stream.filter.resource_subscriptions) + stream.extension_bytes


def _close_stream(session: ServerSession, stream: SubscriptionStream) -> None:
    if session.subscriptions.streams.pop(stream.request.id, None) is not None:
        session.keep(-_stream_bytes(stream))
    stream.request.on_cancel = None  # it refers to the request itself, which the garbage collector would free late
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
    """End a stream on the server's own initiative: cancel it, and send its result."""
    request = stream.request
    _close_stream(session, stream)
    cancelled, result = stream_end(request.id)
    session.output.send(cancelled, request)
    session.reply(request, ResponseBody(session.handlers.sign(result, request.peer.revision)))


def wants_change(session: ServerSession, method: str, uri: str | None) -> bool:
    """Return whether the client of the handshake or a stream is subscribed to the notification *method*."""
    subscriptions = session.subscriptions
    if session.is_initialized and (method != RESOURCE_UPDATED or uri in subscriptions.uris):
        return True
    return any(each.filter.passes(method, uri) for each in subscriptions.streams.values())


def all_changes(session: ServerSession) -> list[tuple[str, str | None]]:
    """Return the changes that the client may be subscribed to: methods of notifications, and URIs of resources."""
    subscriptions = session.subscriptions
    uris = dict(subscriptions.uris)
    for each in subscriptions.streams.values():
        uris.update(dict.fromkeys(each.filter.resource_subscriptions))
    return [*((each, None) for each in LIST_CHANGES), *((RESOURCE_UPDATED, each) for each in uris)]


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


def extension_messages(session: ServerSession, notification: ExtensionNotification) -> Iterator[Callable[[], None]]:
    """Yield what sends *notification* to the client of the handshake and on each stream, where they are subscribed.

    Each message is encoded only when it is sent: those of a thousand streams, of 1 MB each, would take 1 GB.
    """
    extension, peer = notification.extension, session.peer
    to, suits = notification.to, notification.suits
    for each in session.handlers.extensions:
        if each.id == extension and peer is not None and session.is_initialized:
            is_used = each.extension.is_used_in(peer.revision) and extension in peer.extensions
            if is_used and not each.extension.filter_keys():
                yield partial(_send_extension, session, notification, None)
    for stream in list(session.subscriptions.streams.values()):
        accepted = stream.extensions.get(extension)
        if accepted is None or (to is not None and not to(accepted)):
            continue
        if suits is None or suits(stream.request.peer):
            yield partial(_send_extension, session, notification, stream)


def _send_extension(
    session: ServerSession, notification: ExtensionNotification, stream: SubscriptionStream | None
) -> None:
    if stream is None:
        session.output.send(notification.encode(None), None)
    elif session.subscriptions.streams.get(stream.request.id) is stream:  # not ended in the meantime
        session.output.send(notification.encode({SUBSCRIPTION_ID: stream.request.id}), stream.request)


def _change(revision: str, method: str, uri: str | None, stream_id: str | int | None) -> bytes:
    meta: Any = UNSET if stream_id is None else {SUBSCRIPTION_ID: stream_id}
    if method != RESOURCE_UPDATED:  # every revision writes these alike, and an author has no part in them
        return envelope.encode_notification(method, UNSET if stream_id is None else {"_meta": meta})
    params = models.ResourceUpdatedNotificationParams(uri=uri or "", meta=meta)
    return envelope.encode_notification(method, codec(NEWEST, revision).outgoing_notification(method).params(params))
