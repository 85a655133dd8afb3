"""The methods that the engine answers itself: the handshake, discovery, pings, log levels, subscriptions, empty lists.

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
from mcpgen.runtime.protocol.capabilities import check_declaration, client_peer, offers
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.negotiation import choose_revision, unsupported_revision
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.exchange import Exchange, MethodHandler, OpenRequest, ResponseBody
from mcpgen.runtime.server.extensions import accepted_filters
from mcpgen.runtime.server.ledger import uris_bytes
from mcpgen.runtime.server.subscriptions import check_uris, open_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.messages import Request
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["ID_IN_USE", "answer_builtin", "offered_revision", "open_before_handshake", "open_initialize"]

ID_IN_USE = "another request with this id is pending; use another id"


class _InitializeParams(Struct, rename="camel"):
    """What negotiation needs; the rest is checked when the revision is known."""

    protocol_version: str
    capabilities: Raw = Raw(b"{}")
    client_info: Raw | UnsetType = UNSET


_decode_initialize = msgspec.json.Decoder(_InitializeParams).decode


def open_initialize(session: ServerSession, message: Request, *, is_batched: bool) -> OpenRequest:
    """Negotiate the revision with the client that sent `initialize`.

    On a connection that has a session already, a new one replaces it: several clients may share a process behind a
    bridge, one after the other. Over HTTP, a bridge may send both `initialize` with the id of one session.

    Raises:
        RequestError: It is not valid, another request has its id, no handshake revision is served, or the session is
            initialized already and the server is strict.

    Spec:
        2025-11-25, basic/lifecycle, "Version Negotiation"; 2025-03-26, basic/lifecycle: not part of a batch;
        2026-07-28, basic/versioning, "Backward Compatibility …": name the supported versions.
    """
    handlers = session.handlers
    raw = b"{}" if isinstance(message.params, UnsetType) else message.params
    try:
        params = _decode_initialize(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError(ErrorCode.INVALID_PARAMS, f"the params of initialize are not valid: {error}") from None
    if not handlers.handshake_revisions:
        raise unsupported_revision(params.protocol_version, handlers.served)
    if is_batched:
        raise RequestError(ErrorCode.INVALID_REQUEST, "initialize must not be part of a batch; send it alone")
    if session.peer is not None and session.engine.reading.is_strict:
        raise RequestError(ErrorCode.INVALID_REQUEST, "this session is initialized already")
    max_bytes, max_values = session.limits.max_declaration_bytes, session.limits.max_declaration_values
    check_declaration(params.capabilities, params.client_info, max_bytes=max_bytes, max_values=max_values)
    revision = choose_revision(params.protocol_version, handlers.handshake_revisions)
    codec(revision, revision).incoming_request("initialize").params(Raw(raw))
    peer = client_peer(revision, params.capabilities, params.client_info, session.limits)
    pending = session.exchanges.get(message.id)
    if pending is not None and (session.peer is None or pending.peer.era == "stateless"):  # it outlasts the restart
        raise RequestError(ErrorCode.INVALID_REQUEST, ID_IN_USE)
    if session.peer is not None:
        session.restart()
    session.set_peer(peer)
    return OpenRequest(session, message.id, peer, access=session.access)


def offered_revision(session: ServerSession, message: Request) -> str | None:
    """Return the revision that the params of *message*, an `initialize`, are written in; None if it is unclear."""
    try:
        offered = _decode_initialize(b"{}" if isinstance(message.params, UnsetType) else message.params)
    except (msgspec.DecodeError, RecursionError):
        return None
    served = session.handlers.handshake_revisions
    return choose_revision(offered.protocol_version, served) if served else None


def open_before_handshake(session: ServerSession, message: Request, meta: RequestMeta) -> OpenRequest:
    """Accept a request that states no revision, before `initialize`.

    Raises:
        RequestError: It is not a ping, the one request that may come before the handshake.

    Spec:
        2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/index, "Per-request protocol fields": -32602.
    """
    handlers = session.handlers
    if handlers.handshake_revisions and message.method == "ping":
        peer = client_peer(handlers.handshake_revisions[-1], Raw(b"{}"), UNSET)
        return OpenRequest(session, message.id, peer, meta.progress_token, access=session.access)
    if handlers.stateless_revisions:
        reason = "the request has no valid protocol version in its _meta"
        if handlers.handshake_revisions:
            reason += ", and the session is not initialized"
        raise RequestError(ErrorCode.INVALID_PARAMS, reason)
    newest = handlers.handshake_revisions[-1]
    served = (handlers.methods(newest).CLIENT_REQUESTS, handlers.method_handlers(newest))  # the latter: of extensions
    if not any(message.method in each for each in served):
        raise RequestError(ErrorCode.METHOD_NOT_FOUND, f"this server does not support {quoted(message.method)}")
    raise RequestError(ErrorCode.INVALID_REQUEST, "the session is not initialized; send initialize first")


def answer_builtin(session: ServerSession, message: Request, request: OpenRequest) -> None:
    """Answer a request that no handler serves.

    Raises:
        RequestError: It is not a built-in method either, or cannot be served now.
        InvalidPayload: Its params are not valid.
    """
    revision, method = request.peer.revision, message.method
    handlers, tasks = session.handlers, session.engine.tasks
    known = handlers.methods(revision).CLIENT_REQUESTS
    if method not in known:
        raise RequestError(ErrorCode.METHOD_NOT_FOUND, f"{revision} has no request {quoted(method)} from a client")
    answer = _METHODS.get(method) or (None if tasks is None else tasks.methods.get(method))
    if answer is None or not offers(handlers.capabilities(revision), revision, method):
        raise RequestError(ErrorCode.METHOD_NOT_FOUND, f"this server does not support {quoted(method)}")
    params = codec(revision, revision).incoming_request(method).params(message.params)
    if answer is open_stream and handlers.extensions:
        context = session.output.context(request.peer)
        limit = session.limits.max_subscriptions
        accepted = accepted_filters(handlers.extensions, context, message.params, max_entries=limit)
        open_stream(session, request, params, accepted)
        return
    answer(session, request, params)


def _initialize(session: ServerSession, request: OpenRequest, _params: Any) -> None:
    session.reply(request, ResponseBody(session.handlers.initialize_result(request.peer.revision)))


def _ping(session: ServerSession, request: OpenRequest, _params: Any) -> None:
    session.reply(request, _EMPTY)


def _discover(session: ServerSession, request: OpenRequest, _params: Any) -> None:
    revision = request.peer.revision
    result = session.handlers.discover_result(revision)
    session.reply(request, ResponseBody(session.handlers.sign(result, revision)))


def _set_level(session: ServerSession, request: OpenRequest, params: Any) -> None:
    def set_level() -> None:
        session.log_level = params.level

    _act_after_handler(session, request, "logging/setLevel", params, set_level)


def _subscribe(session: ServerSession, request: OpenRequest, params: Any) -> None:
    uri, uris = params.uri, session.subscriptions.uris
    check_uris([uri], session.limits.max_uri_chars)
    if session.subscriptions.size >= session.limits.max_subscriptions and uri not in uris:
        raise RequestError(
            ErrorCode.INTERNAL_ERROR,
            "this connection has too many subscriptions to resources (max_subscriptions); unsubscribe from one first",
        )

    def subscribe() -> None:
        if uri not in uris and not session.is_closed:
            session.keep(uris_bytes([uri]))
            uris[uri] = None

    _act_after_handler(session, request, "resources/subscribe", params, subscribe)


def _unsubscribe(session: ServerSession, request: OpenRequest, params: Any) -> None:
    uri, uris = params.uri, session.subscriptions.uris

    def unsubscribe() -> None:
        if uri in uris and not session.is_closed:
            del uris[uri]
            session.keep(-uris_bytes([uri]))

    _act_after_handler(session, request, "resources/unsubscribe", params, unsubscribe)


def _act_after_handler(
    session: ServerSession, request: OpenRequest, method: str, params: Any, act: Callable[[], object]
) -> None:
    """Call *act* and answer; if the author has a handler of *method*, only when that has returned."""
    handlers = session.handlers
    handler = handlers.overridden(method)
    if handler is None:
        act()
        session.reply(request, _EMPTY)
        return

    async def call(params: Any, context: Any) -> Any:
        result = await handler(params, context)
        act()
        return result

    raw = Raw(msgspec.json.encode(params))
    native = codec(handlers.native_revision, request.peer.revision).incoming_request(method)
    method_handler = MethodHandler(method=method, codec=native, call=call)
    session.start(Exchange(request, method_handler, native.params(raw), raw))


def _empty_list(name: str, session: ServerSession, request: OpenRequest, _params: Any) -> None:
    """Answer with an empty list, where handlers have a capability and do not list anything.

    Spec:
        2025-11-25, server/tools, server/prompts and server/resources, "Capabilities"; 2026-07-28, the same: a server
        that declares one MUST answer its lists.
    """
    if request.peer.era == "handshake":
        session.reply(request, ResponseBody(msgspec.json.encode({name: []})))
        return
    result = msgspec.json.encode({"resultType": "complete", name: [], "ttlMs": 0, "cacheScope": "private"})
    session.reply(request, ResponseBody(session.handlers.sign(result, request.peer.revision)))


_EMPTY = ResponseBody(b"{}")

_METHODS: dict[str, Callable[[ServerSession, OpenRequest, Any], None]] = {
    "initialize": _initialize,
    "logging/setLevel": _set_level,
    "ping": _ping,
    "prompts/list": partial(_empty_list, "prompts"),
    "resources/list": partial(_empty_list, "resources"),
    "resources/subscribe": _subscribe,
    "resources/templates/list": partial(_empty_list, "resourceTemplates"),
    "resources/unsubscribe": _unsubscribe,
    "server/discover": _discover,
    "subscriptions/listen": open_stream,
    "tools/list": partial(_empty_list, "tools"),
}
