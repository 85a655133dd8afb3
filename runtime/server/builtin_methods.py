"""What the engine answers itself, whatever home is: the handshake, discovery, pings, log levels, subscriptions.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, basic/utilities/ping, server/utilities/logging, server/resources;
    2026-07-28, server/discover, basic/patterns/subscriptions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import RequestError, quoted
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import client_peer, offers
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.negotiation import choose_revision, unsupported_revision
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter, supported_filter
from mcpgen.runtime.server.exchange import Body, Entry, Exchange, Origin
from mcpgen.runtime.server.subscriptions import SubscriptionStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.messages import Request, RequestId
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.batch import BatchResponse
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = [
    "answer_builtin",
    "cancelled_id",
    "early_origin",
    "end_stream",
    "initialize_origin",
    "stream_closed_notification",
]

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


class _Offer(Struct, rename="camel"):
    """What decides about a handshake; the rest is checked when the revision is known."""

    protocol_version: str
    capabilities: Raw = Raw(b"{}")
    client_info: Raw | UnsetType = UNSET


class _Cancelled(Struct, rename="camel"):
    request_id: str | int


_decode_offer = msgspec.json.Decoder(_Offer).decode
_decode_cancelled = msgspec.json.Decoder(_Cancelled).decode


def cancelled_id(params: Raw | UnsetType) -> RequestId | None:
    """Return which request `notifications/cancelled` is about; None if that cannot be told."""
    try:
        return _decode_cancelled(b"{}" if isinstance(params, UnsetType) else params).request_id
    except (msgspec.DecodeError, RecursionError):
        return None


def initialize_origin(session: ServerSession, request: Request, batch: BatchResponse | None) -> Origin:
    """Agree on a revision with the client that sent `initialize`.

    Raises:
        RequestError: It is no such request, or comes at the wrong time, or no revision with a handshake is served.

    Spec:
        2025-11-25, basic/lifecycle, "Version Negotiation"; 2025-03-26, basic/lifecycle: not part of a batch;
        2026-07-28, basic/versioning, "Backward Compatibility …": name the supported versions.
    """
    service = session.service
    raw = b"{}" if isinstance(request.params, UnsetType) else request.params
    try:
        offer = _decode_offer(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError(Code.INVALID_PARAMS, f"the params of initialize are not valid: {error}") from None
    if not service.handshakes:
        raise unsupported_revision(offer.protocol_version, service.served)
    if batch is not None:
        raise RequestError(Code.INVALID_REQUEST, "initialize may not be part of a batch")
    if session.peer is not None:
        raise RequestError(Code.INVALID_REQUEST, "this session is initialized already")
    revision = choose_revision(offer.protocol_version, service.handshakes)
    codec(revision, revision).request("initialize").params(Raw(raw))
    peer = client_peer(revision, offer.capabilities, offer.client_info)
    session.shake(peer)
    return Origin(session, request.id, peer)


def early_origin(session: ServerSession, request: Request, meta: RequestMeta) -> Origin:
    """Return who sends a request that belongs to no session and states no revision.

    Raises:
        RequestError: It is not a ping, the one request that may come before the handshake.

    Spec:
        2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/index, "Per-request protocol fields": -32602.
    """
    service = session.service
    if service.handshakes and request.method == "ping":
        peer = client_peer(service.handshakes[-1], Raw(b"{}"), UNSET)
        return Origin(session, request.id, peer, meta.progress_token)
    if service.stateless:
        reason = "the request states no protocol version in its _meta"
        if service.handshakes:
            reason += ", and initialize was not sent"
        raise RequestError(Code.INVALID_PARAMS, reason)
    if request.method not in service.methods(service.handshakes[-1]).CLIENT_REQUESTS:
        raise RequestError(Code.METHOD_NOT_FOUND, f"{quoted(request.method)} is not served")
    raise RequestError(Code.INVALID_REQUEST, "initialize was not sent")


def answer_builtin(session: ServerSession, request: Request, origin: Origin) -> None:
    """Answer a request that no handler serves.

    Raises:
        RequestError: Nobody does, or it cannot be served now.
        InvalidPayload: Its params are not valid.
    """
    revision, method = origin.peer.revision, request.method
    known = session.service.methods(revision).CLIENT_REQUESTS
    tasking = session.service.tasking
    answer = _ANSWERS.get(method) or (None if tasking is None else tasking.answers.get(method))
    if answer is None or method not in known or not offers(session.service.capabilities(revision), revision, method):
        raise RequestError(Code.METHOD_NOT_FOUND, f"{quoted(method)} is not served")
    params = codec(revision, revision).request(method).params(request.params)
    answer(session, origin, params)


def _empty(session: ServerSession, origin: Origin, result: bytes = b"{}") -> None:
    session.reply(origin, Body(result))


def _initialize(session: ServerSession, origin: Origin, params: Any) -> None:
    del params
    _empty(session, origin, session.service.initialize_result(origin.peer.revision))


def _ping(session: ServerSession, origin: Origin, params: Any) -> None:
    del params
    _empty(session, origin)


def _discover(session: ServerSession, origin: Origin, params: Any) -> None:
    del params
    revision = origin.peer.revision
    _empty(session, origin, session.service.sign(session.service.discover_result(revision), revision))


def _set_level(session: ServerSession, origin: Origin, params: Any) -> None:
    def keep() -> None:
        session.level = params.level

    _after_hook(session, origin, "logging/setLevel", params, keep)


def _subscribe(session: ServerSession, origin: Origin, params: Any) -> None:
    uris = session.listening.uris
    if session.listening.size >= session.service.limits.max_subscriptions and params.uri not in uris:
        raise RequestError(Code.INTERNAL_ERROR, "too many resources are watched")
    _after_hook(session, origin, "resources/subscribe", params, lambda: uris.setdefault(params.uri))


def _unsubscribe(session: ServerSession, origin: Origin, params: Any) -> None:
    uris = session.listening.uris
    _after_hook(session, origin, "resources/unsubscribe", params, lambda: uris.pop(params.uri, None))


def _after_hook(
    session: ServerSession,
    origin: Origin,
    method: str,
    params: Any,
    keep: Callable[[], object],
) -> None:
    """Let home's own handler of a request, if it has one, agree to it before the engine does what it asks."""
    service = session.service
    hook = service.hook(method)
    if hook is None:
        keep()
        _empty(session, origin)
        return

    async def call(params: Any, context: Any) -> Any:
        result = await hook(params, context)
        keep()
        return result

    raw = Raw(msgspec.json.encode(params))
    translate = codec(service.native_revision, origin.peer.revision).request(method)
    session.start(Exchange(origin, Entry(method=method, codec=translate, call=call), translate.params(raw), raw))


def _listen(session: ServerSession, origin: Origin, params: Any) -> None:
    """Open a stream.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Acknowledgment": it comes first, with what will be told.
    """
    streams = session.listening.streams
    limit = session.service.limits.max_subscriptions
    if len(streams) >= limit:
        raise RequestError(Code.INTERNAL_ERROR, "too many streams are open")
    revision = origin.peer.revision
    wanted = msgspec.convert(msgspec.to_builtins(params.notifications), SubscriptionFilter)
    agreed = supported_filter(wanted, session.service.capabilities(revision), revision)
    if session.listening.size + len(agreed.resource_subscriptions) > limit:
        raise RequestError(Code.INTERNAL_ERROR, "too many resources are watched")
    acknowledged = {"_meta": {SUBSCRIPTION_ID: origin.id}, "notifications": agreed}
    session.exchanges[origin.id] = origin
    stream = streams[origin.id] = SubscriptionStream(origin, agreed)
    origin.on_drop = partial(_close_stream, session, stream)
    message = envelope.encode_notification("notifications/subscriptions/acknowledged", acknowledged)
    session.sink.send(message, origin)
    _tell_watchers(session, "resources/subscribe", stream)


def _close_stream(session: ServerSession, stream: SubscriptionStream) -> None:
    session.listening.streams.pop(stream.origin.id, None)
    _tell_watchers(session, "resources/unsubscribe", stream)


def _tell_watchers(session: ServerSession, method: str, stream: SubscriptionStream) -> None:
    """Tell home's own handler of a subscription, if it has one, what a stream begins or ceases to watch."""
    hook = session.service.hook(method)
    if hook is None:
        return
    params = session.service.methods(session.service.native_revision).CLIENT_REQUESTS[method].params
    others = [each for each in session.listening.streams.values() if each is not stream]
    watched = {*session.listening.uris}.union(*(each.filter.resource_subscriptions for each in others))
    for uri in stream.filter.resource_subscriptions:
        if uri not in watched:
            session.sink.tell(hook, params(uri=uri), stream.origin.peer)


def end_stream(session: ServerSession, stream: SubscriptionStream) -> None:
    """End a stream on the server's own initiative: say that it ended well, and that nothing more will come.

    Spec:
        2026-07-28, basic/patterns/subscriptions, "Graceful Closure"; basic/patterns/cancellation: MUST send.
    """
    origin = stream.origin
    _close_stream(session, stream)
    result = msgspec.json.encode({"resultType": "complete", "_meta": {SUBSCRIPTION_ID: origin.id}})
    session.reply(origin, Body(session.service.sign(result, origin.peer.revision)))
    session.sink.send(stream_closed_notification(origin), None)


def stream_closed_notification(origin: Origin) -> bytes:
    """Return the notification that the stream which *origin* has opened is over."""
    cancelled = {"requestId": origin.id, "reason": "the server is shutting down"}
    return envelope.encode_notification("notifications/cancelled", cancelled)


def _empty_list(name: str, session: ServerSession, origin: Origin, params: Any) -> None:
    """Answer that there is nothing, where handlers have a capability and do not say what there is.

    Spec:
        2025-11-25, server/tools, server/prompts and server/resources, "Capabilities"; 2026-07-28, the same: whoever
        declares one MUST answer its lists.
    """
    del params
    if origin.peer.era == "handshake":
        _empty(session, origin, msgspec.json.encode({name: []}))
        return
    result = msgspec.json.encode({"resultType": "complete", name: [], "ttlMs": 0, "cacheScope": "private"})
    _empty(session, origin, session.service.sign(result, origin.peer.revision))


_ANSWERS: dict[str, Callable[[ServerSession, Origin, Any], None]] = {
    "initialize": _initialize,
    "logging/setLevel": _set_level,
    "ping": _ping,
    "prompts/list": partial(_empty_list, "prompts"),
    "resources/list": partial(_empty_list, "resources"),
    "resources/subscribe": _subscribe,
    "resources/templates/list": partial(_empty_list, "resourceTemplates"),
    "resources/unsubscribe": _unsubscribe,
    "server/discover": _discover,
    "subscriptions/listen": _listen,
    "tools/list": partial(_empty_list, "tools"),
}
