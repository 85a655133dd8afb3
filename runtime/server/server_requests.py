"""Requests of a server to its client: roots, sampling, elicitation.

A client of a handshake gets each request at once, and answers it by its id. A stateless client gets no requests: they
are collected into an ``InputRequiredResult`` (`mcpgen.runtime.server.input_required`), and it answers in its retry.

A new request of this kind needs four edits:

1. ``[capabilities.client]`` in ``schema/overlay.toml``: what the generated handlers declare;
2. ``CLIENT_CAPABILITIES`` in `mcpgen.runtime.protocol.capabilities`: what a client must have declared;
3. a method of `mcpgen.runtime.server.context.Context`;
4. an option of ``connect``: a field of `mcpgen.runtime.client.handler_functions.HandlerFunctions`.

``ServerMethods(context)`` and classes of ``ClientHandlers`` need the first two only.

Spec:
    2024-11-05 to 2025-11-25, client/roots, client/sampling, client/elicitation; 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.adapt.payloads import senders
from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    RequestError,
    UnknownMethod,
    UnsupportedByPeer,
    UsageError,
)
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.missing_capabilities import capability_names, missing_capabilities, missing_task_capability
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.exchange import RequestEnded, ServerRequest
from mcpgen.runtime.server.ledger import server_request_bytes

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import ErrorResponse
    from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = [
    "check_may_ask",
    "flush_soon",
    "note_elicitation_id",
    "prepare_request",
    "read_result",
    "receive_error",
    "receive_result",
    "require_capability",
    "send_prepared",
]

_NO_ROOM = (
    "the client's answer and the pending requests would keep too many bytes (max_in_flight_bytes, max_open_bytes); "
    "ask the client for less, or try again later"
)
_TOO_MANY = "too many requests wait for answers of the client (max_in_flight); try again later"

# Of a key in inputRequests: 48 bits of a digest distinguish the requests of one handler.
_DIGEST_LETTERS = 12

# 2026-07-28, basic/patterns/mrtr, "Supported Requests".
_ONLY_THESE_ASK = "in this revision, only handlers of tools/call, prompts/get and resources/read can ask the client"


def check_may_ask(exchange: Exchange | None, peer: Peer, method: str) -> None:
    """Check that *peer* can get the request *method* from its handler, which belongs to *exchange*.

    Without an exchange, a request is sent in the session of the connection. A client of 2026-07-28 has none: if the
    connection has one, it is of another client.

    Raises:
        UnsupportedByPeer: It cannot.
    """
    if exchange is None and peer.era == "stateless":
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason=_ONLY_THESE_ASK)


def prepare_request(
    session: ServerSession, exchange: Exchange | None, method: str, value: Any, *, terms: str
) -> ServerRequest:
    """Return a request that the client can answer, for `send_prepared`.

    Args:
        session: The client's session, for a request that belongs to no exchange.
        exchange: The exchange whose handler makes the request.
        method: ``elicitation/create``.
        value: Params, in the revision *terms*; UNSET for none.
        terms: The revision of the params and of the result.

    Raises:
        UnsupportedByPeer: The client's revision has no such request, or it has not declared the capability.
        TransportClosed: The exchange was cancelled, or has its response.
        UsageError: The params are not valid.
    """
    peer = session.peer if exchange is None else exchange.peer
    if peer is None:
        raise UnsupportedByPeer(revision="", what=method, reason="the session is not initialized")
    if exchange is not None and exchange.has_ended:
        raise RequestEnded("the request of the client was already answered or cancelled")
    try:
        outgoing = codec(terms, peer.revision).outgoing_request(method)
        params = outgoing.params(value)
    except (AdaptationError, UnknownMethod) as error:
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason=_reason(error, peer, method)) from error
    except InvalidPayload as error:  # which would blame the client
        raise UsageError(f"{error}; correct the arguments of the call") from error
    try:
        require_capability(peer, method, params)
    except UnsupportedByPeer:
        if exchange is not None:
            exchange.lacks_capability = True
        raise
    params = _with_elicitation_id(session, value, params)
    if exchange is not None and exchange.task is not None and exchange.task.marks_messages:
        params = exchange.task.marked(params)
    return ServerRequest(outgoing, params, value)


def send_prepared(session: ServerSession, exchange: Exchange | None, request: ServerRequest) -> None:
    """Send a request of `prepare_request`, or collect it for a stateless client.

    Raises:
        UnsupportedByPeer: The client cannot get a request now, or in this exchange.
        RequestError: Too many requests wait for answers.
        UsageError: The params have the progress token of an open request.
    """
    _check_token(session, request)
    peer = session.peer if exchange is None else exchange.peer
    if peer is not None and peer.era == "stateless":
        _collect(session, exchange, request, peer)
    else:
        _send(session, exchange, request)


def _check_token(session: ServerSession, request: ServerRequest) -> None:
    """Check that no open request has the progress token of *request*.

    Raises:
        UsageError: One has it.

    Spec:
        2025-11-25, basic/utilities/progress, "Progress Flow": unique across all active requests.
    """
    token = _progress_token(request)
    if token is not None and any(_progress_token(each) == token for each in session.server_requests.values()):
        raise UsageError(f"`_meta` has the progressToken {token!r}, which another open request has; choose another")


def _progress_token(request: ServerRequest) -> object:
    if isinstance(request.params, UnsetType) or b'"progressToken"' not in request.params:
        return None
    return msgspec.json.decode(request.params).get("_meta", {}).get("progressToken")


def _reason(error: AdaptationError | UnknownMethod, peer: Peer, method: str) -> str:
    # An error with a pointer is about a part of the params; one without is about the whole request.
    if isinstance(error, UnknownMethod) or not senders(peer.revision, method, "params"):
        return "the client's revision has no such request"
    if not error.pointer:  # the revision has only other requests of this method, such as forms
        return error.reason
    return f"the client's revision cannot express {error.pointer} of the params: {error.reason}"


def require_capability(peer: Peer, method: str, params: bytes | UnsetType) -> None:
    """Check that *peer* has declared what the request *method* needs.

    Raises:
        UnsupportedByPeer: It has not.
    """
    members: dict[str, Any] = {} if isinstance(params, UnsetType) else msgspec.json.decode(params)
    missing = missing_capabilities(peer, method, members)
    if missing is None and "task" in members:
        missing = missing_task_capability(peer, method)
    if missing is not None:
        raise UnsupportedByPeer(
            revision=peer.revision,
            what=method,
            reason=f"the client has not declared the capability {', '.join(capability_names(missing))}",
            required=missing,
        )


def _with_elicitation_id(session: ServerSession, value: Any, params: bytes | UnsetType) -> bytes | UnsetType:
    """Return *params* with a new id for an elicitation by URL, if only the peer's revision has such ids.

    The adapter derives one from the params, so two requests for the same page would have the same id.

    Spec:
        2025-11-25, client/elicitation, "URL Mode Elicitation Requests": a unique identifier.
    """
    if isinstance(params, UnsetType) or b'"elicitationId"' not in params or hasattr(value, "elicitation_id"):
        return params
    members: dict[str, Any] = msgspec.json.decode(params)
    if "elicitationId" in members:
        members["elicitationId"] = session.engine.new_token()
    return msgspec.json.encode(members)


def note_elicitation_id(session: ServerSession, params: bytes | UnsetType) -> None:
    """Note that the client of *session* gets the id of *params*, if they are those of an elicitation by URL."""
    if isinstance(params, UnsetType) or b'"elicitationId"' not in params:
        return
    found = msgspec.json.decode(params).get("elicitationId")
    if isinstance(found, str):
        session.engine.elicitation_ids.add(found, session.principal, session.owner)


def _send(session: ServerSession, exchange: Exchange | None, request: ServerRequest) -> None:
    """Send *request* as a message of its own."""
    method = request.codec.method
    if exchange is not None and not exchange.server_requests:
        exchange.round_count += 1
        most = session.limits.max_rounds
        if exchange.round_count > most:
            raise RequestError(
                ErrorCode.INTERNAL_ERROR, f"the handler asked for input too often; the limit is {most} (max_rounds)"
            )
    if not session.is_initialized and method != "ping":
        # 2025-11-25, basic/lifecycle, "Initialization": before initialized the server SHOULD NOT send other requests.
        revision = session.revision or ""
        reason = "the client has not sent notifications/initialized"
        raise UnsupportedByPeer(revision=revision, what=method, reason=reason)
    limits, size = session.limits, server_request_bytes(request.params)
    if len(session.server_requests) >= limits.max_in_flight:
        raise RequestError(ErrorCode.INTERNAL_ERROR, _TOO_MANY)
    if session.held_bytes + size > limits.max_in_flight_bytes:
        reason = (
            "the request to the client and the pending requests would keep too many bytes (max_in_flight_bytes); "
            "ask the client for less at once, or try again later"
        )
        raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
    request.held_bytes = size
    session.charge(size)
    session.last_id += 1
    request.key = str(session.last_id)
    session.server_requests[session.last_id] = request
    if exchange is not None:
        exchange.server_requests[request.key] = request
        request.exchange = exchange
    note_elicitation_id(session, request.params)
    session.output.send(envelope.encode_request(session.last_id, method, request.params), exchange)


def _collect(session: ServerSession, exchange: Exchange | None, request: ServerRequest, peer: Peer) -> None:
    """Keep *request* for an ``InputRequiredResult``; in a replay, answer it with the client's earlier result.

    Raises:
        UnsupportedByPeer: The client cannot get such a request, or not in this exchange.
        RequestError: Too many requests of the handler wait for answers.
    """
    method = request.codec.method
    input_requests = session.handlers.methods(peer.revision).INPUT_REQUESTS
    if exchange is None or not exchange.handler.may_request_input or method not in input_requests:
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason=_ONLY_THESE_ASK)
    request.key = _key(exchange, request)
    earlier = exchange.earlier_responses.get(request.key)
    if earlier is not None:
        request.set_result(read_result(session.engine.reading, request, earlier))
        return
    if len(exchange.server_requests) >= session.limits.max_in_flight:
        raise RequestError(ErrorCode.INTERNAL_ERROR, _TOO_MANY)
    exchange.server_requests[request.key] = request
    # The params of this client have no id, but the handler may have chosen one, which is not for other clients.
    chosen = getattr(request.value, "elicitation_id", UNSET)
    if isinstance(chosen, str):
        session.engine.elicitation_ids.add(chosen, session.principal, session.owner)
    if exchange.task is not None:
        exchange.task.ask(exchange)
    else:
        flush_soon(exchange)


def _key(exchange: Exchange, request: ServerRequest) -> str:
    """Return the key of *request*: a digest of the params and a number, so that a replay makes the same keys.

    The order of the requests would not do: a handler that makes two at once need not make them in the same order again.
    """
    from hashlib import sha256  # noqa: PLC0415 (it loads OpenSSL, and most servers send no requests)

    method = request.codec.method
    params = b"" if isinstance(request.params, UnsetType) else request.params
    digest = sha256(method.encode() + b"\0" + params).hexdigest()
    base = f"{method.partition('/')[0]}-{digest[:_DIGEST_LETTERS]}"
    count = exchange.key_counts[base] = exchange.key_counts.get(base, 0) + 1
    return base if count == 1 else f"{base}-{count}"


def flush_soon(exchange: Exchange) -> None:
    """Send the collected requests when the handler had time to make all of them."""
    if exchange.request is not None and not exchange.is_flushing:
        exchange.is_flushing = True
        exchange.request.session.output.flush_soon(exchange)


def receive_result(session: ServerSession, request: ServerRequest, raw: Raw) -> None:
    """End *request* with the client's result."""
    if not _keep(session, request, raw):
        return
    try:
        request.set_result(read_result(session.engine.reading, request, raw))
    except (InvalidPayload, AdaptationError) as error:
        request.fail(error)


def receive_error(session: ServerSession, request: ServerRequest, response: ErrorResponse) -> None:
    """End *request* with the client's error, whose data the handler may keep like a result."""
    if _keep(session, request, response.error):
        request.set_error(response)


def _keep(session: ServerSession, request: ServerRequest, answer: Raw) -> bool:
    """Charge an *answer*, which the handler that made *request* may keep; end *request* if there is no room."""
    size, exchange, keep = decoded_bytes(answer), request.exchange, request.keep
    has_room = session.keep_answer(exchange, size) if exchange is not None else keep is None or keep(size)
    if not has_room:
        request.fail(RequestError(ErrorCode.INTERNAL_ERROR, _NO_ROOM))
    return has_room


def read_result(reading: ReadingPolicy, request: ServerRequest, raw: Raw) -> Any:
    """Return the client's result in the native revision; a multi-select field of a form always has a list.

    Before 2025-11-25 forms have no multi-select: the adapter makes a single choice of it, and a string comes back.

    Raises:
        InvalidPayload: It is not valid in the client's revision.

    Spec:
        2025-11-25, client/elicitation, "Supported Schema Types" (multi-select enums are new).
    """
    result = reading.result(request.codec, "server", raw)
    content = getattr(result, "content", UNSET)
    schema = getattr(request.value, "requested_schema", None)
    if not is_object(content) or schema is None:
        return result
    properties: dict[str, Any] = msgspec.to_builtins(schema).get("properties", {})
    given: dict[str, Any] = content
    wrapped = {
        name: [each] if isinstance(each, str) and properties.get(name, {}).get("type") == "array" else each
        for name, each in given.items()
    }
    return result if wrapped == given else msgspec.structs.replace(result, content=wrapped)
