"""Dispatch: from an incoming message to its handler, and from what the handler returns to the response.

A request comes from `take` to `_serve`. A built-in method is answered there. For any other the handler is started: by
the fast path, as a task, as the retry of a parked exchange, or in the usual way with decoded params. `complete` and
`fail` end what was started.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle; 2026-07-28, basic/index, "Statelessness", and basic/versioning;
    2025-03-26, basic/index, "Batching"; JSON-RPC 2.0, "Batch".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.runtime.adapt.json_pointer import is_array
from mcpgen.runtime.errors import InvalidPayload, MalformedFrame, RequestError, UnsupportedByPeer, quoted
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import client_peer
from mcpgen.runtime.protocol.exception_groups import forget_frames
from mcpgen.runtime.protocol.framing import OversizedLine
from mcpgen.runtime.protocol.messages import (
    Batch,
    ErrorResponse,
    Fault,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
)
from mcpgen.runtime.protocol.negotiation import missing_fields, oversized_part, read_meta, unsupported_revision
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.reading_policy import SUSPECT
from mcpgen.runtime.protocol.value_syntax import uri_fault
from mcpgen.runtime.server import builtin_methods, error_mapping, input_required, notifications, server_requests
from mcpgen.runtime.server.batch_response import BatchResponse
from mcpgen.runtime.server.cache_hints import not_cacheable
from mcpgen.runtime.server.exchange import Exchange, OpenRequest, ResponseBody
from mcpgen.runtime.server.extensions import encode_result, extension_meta, missing_extension
from mcpgen.runtime.server.fair_turns import REQUEST_COST_BYTES
from mcpgen.runtime.server.fast_path import plain_json
from mcpgen.runtime.server.functions.results import StructuredJson
from mcpgen.runtime.server.ledger import peer_bytes, request_bytes
from mcpgen.runtime.server.lenient_requests import meant_request, normalized
from mcpgen.runtime.server.related_tasks import related_task

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.exchange import MethodHandler
    from mcpgen.runtime.server.handler_table import HandlerTable
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["complete", "fail", "receive", "result_json", "take", "take_batch"]

# About malformed messages; later ones are logged at DEBUG. A host need not read our standard error, and a pipe that is
# full of warnings would stop us.
_MAX_WARNINGS = 20

# What a part of a batch costs: 64 small messages, or 21 of 4 KiB. It takes up to 5 ms.
_PART_COST_BYTES = 128 * 1024

_LOG = logging.getLogger("mcpgen.session")


def receive(session: ServerSession, frame: Frame | OversizedLine) -> None:
    """Act on one frame."""
    if isinstance(frame, OversizedLine):
        _take_one(session, envelope.decode_oversized(frame), None)
        return
    limits = session.limits
    message = envelope.decode(frame, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
    if isinstance(message, SUSPECT):
        message = session.engine.reading.reread(frame, message, limits)
    take(session, message)


def take(session: ServerSession, message: Message | Batch | Malformed) -> None:
    """Act on the decoded content of a frame."""
    if isinstance(message, Request):
        _take_request(session, message, None)
    elif isinstance(message, Batch):
        for _ in take_batch(session, message):
            pass
    else:
        _take_one(session, message, None)


def take_batch(session: ServerSession, batch: Batch) -> Generator[int]:
    """Act on the messages of a batch, or refuse each of them where the revision has no batches.

    Yields:
        After each part that takes some milliseconds, what it costs of a turn of the event loop.

    Spec:
        2025-03-26, basic/index, "Batching"; 2025-06-18, changelog: batches are gone.
    """
    if not envelope.allows_batches(session.revision):
        requests = [each for each in batch.items if isinstance(each, Request)]
        for each in requests:
            _refuse(session, Malformed(Fault.NO_BATCHES, each.id, "request"), None)
        if not requests:
            _refuse(session, Malformed(Fault.NO_BATCHES), None)
        return
    responses = BatchResponse(session.limits.max_batch_bytes, session.output.batch_charge())
    cost = 0
    try:
        for item in batch.items:
            _take_one(session, item, responses)
            params = item.params if isinstance(item, Request | Notification) else UNSET
            cost += REQUEST_COST_BYTES + (0 if params is UNSET else memoryview(params).nbytes)
            if cost >= _PART_COST_BYTES:
                yield cost
                cost = 0
        responses.is_complete = True
    finally:
        if not responses.is_complete:  # it had to make room before all was taken
            responses.release()
    whole = responses.finished()
    if whole is not None:
        session.output.respond(whole, None)
    elif not responses.open:
        session.output.drop(None)


def _take_one(session: ServerSession, message: Message | Malformed, batch: BatchResponse | None) -> None:
    if isinstance(message, Request):
        _take_request(session, message, batch)
    elif isinstance(message, Notification):
        notifications.receive_notification(session, message)
    elif isinstance(message, Malformed):
        _refuse(session, message, batch)
    else:
        _take_response(session, message)


def _take_response(session: ServerSession, response: Response | ErrorResponse) -> None:
    """End the request to the client that *response* answers; a late response is usual, and ignored."""
    request = session.take_server_request(response.id)
    if request is None and isinstance(response.id, str):
        request = meant_request(session, response.id)
    if request is None:
        _LOG.debug("a response is ignored: no request with the id %r is pending", response.id)
    elif isinstance(response, ErrorResponse):
        server_requests.receive_error(session, request, response)
    else:
        server_requests.receive_result(session, request, response.result)


def _refuse(session: ServerSession, malformed: Malformed, batch: BatchResponse | None) -> None:
    """Answer a malformed message, if it can be answered."""
    session.malformed_count += 1
    level = logging.WARNING if session.malformed_count <= _MAX_WARNINGS else logging.DEBUG
    _LOG.log(level, "the client sent an invalid message: %s", malformed.reason)
    revision = session.revision or session.handlers.served[-1]
    pending = session.take_server_request(malformed.id) if malformed.is_answer else None
    if pending is not None:
        pending.fail(MalformedFrame(revision=revision, reason=malformed.reason, request_id=malformed.id))
        return
    is_unread = malformed.fault.code == ErrorCode.PARSE_ERROR or malformed.fault is Fault.TOO_MANY_VALUES
    if is_unread and malformed.id in session.exchanges:
        # The id was found in text that may not be JSON. A response to it would be taken for that of the open request.
        malformed = msgspec.structs.replace(malformed, id=None)
    if malformed.id is None and envelope.unknown_id(revision) is None:
        return  # before 2025-11-25 an error must have an id that is not null
    refusal = envelope.refusal(malformed, revision)
    if refusal is not None:
        _respond(session, refusal, batch)


def _respond(session: ServerSession, message: bytes, batch: BatchResponse | None) -> None:
    """Send a response to a message that has no open request."""
    if batch is None:
        session.output.respond(message, None)
    else:
        batch.add(message, None)


def _take_request(session: ServerSession, message: Request, batch: BatchResponse | None) -> None:
    meta = read_meta(message.params)
    size = request_bytes(message.params, message.id, session.handlers.json_costs)
    try:
        try:
            request = _open(session, message, meta, batch, size)
        except (InvalidPayload, RequestError) as error:
            message = normalized(session, message, None, meta, error)
            meta = read_meta(message.params)
            request = _open(session, message, meta, batch, size)
    except Exception as error:  # noqa: BLE001 (the boundary: the client gets an answer in any case)
        body = envelope.error_json(error_mapping.as_request_error(error, message.method, debug=session.engine.debug))
        forget_frames(error)
        # Stateless revisions have no batches, so the error is not part of one either.
        in_batch = batch if isinstance(meta.revision, UnsetType) else None
        _respond(session, envelope.encode_error(message.id, body), in_batch)
        return
    if batch is not None:
        batch.open += 1
    peer = request.peer
    if not isinstance(meta.related_task, UnsetType):
        request.related_task = related_task(meta.related_task, peer.revision, message.method)
    request.size = size if peer is session.peer else size + peer_bytes(peer)
    try:
        try:
            _serve(session, message, request, meta)
        except (InvalidPayload, RequestError) as error:
            message = normalized(session, message, request.peer, meta, error)
            _serve(session, message, request, read_meta(message.params))
    except Exception as error:  # noqa: BLE001 (the boundary: methods such as `capabilities` of an author's object may fail)
        body = envelope.error_json(error_mapping.as_request_error(error, message.method, debug=session.engine.debug))
        forget_frames(error)
        session.reply(request, ResponseBody(body, is_error=True))


def _open(
    session: ServerSession, message: Request, meta: RequestMeta, batch: BatchResponse | None, size: int
) -> OpenRequest:
    """Return a request, which costs *size* bytes, with its client and revision.

    These come from its metadata or from the handshake.

    Raises:
        RequestError: Neither states them, or the request cannot be served now.
    """
    oversized = None if size <= session.engine.small_bytes else oversized_part(message, meta, session.limits)
    if oversized is not None:
        raise oversized
    stateless = session.handlers.stateless_revisions
    if message.method == "initialize" and (meta.revision is UNSET or not stateless):
        return builtin_methods.open_initialize(session, message, is_batched=batch is not None)
    if message.id in session.exchanges:
        raise RequestError(ErrorCode.INVALID_REQUEST, builtin_methods.ID_IN_USE)
    overload = session.overload(size)
    if overload is not None:
        raise RequestError(ErrorCode.INTERNAL_ERROR, overload)
    if meta.revision is not UNSET and stateless:
        if batch is not None:
            raise RequestError(ErrorCode.INVALID_REQUEST, Fault.NO_BATCHES.reason)
        if meta.revision not in stateless:
            raise unsupported_revision(meta.revision, session.handlers.served)
        missing = missing_fields(meta) if meta.client_capabilities is UNSET else None
        if missing is not None:
            raise missing
        peer = client_peer(meta.revision, meta.client_capabilities, meta.client_info, session.limits)
        token, level = meta.progress_token, meta.log_level
        opened = OpenRequest(session, message.id, peer, token, level, batch, access=session.access)
        opened.is_retry = meta.request_state is not UNSET or meta.input_responses is not UNSET
        return opened
    if session.peer is None:
        return builtin_methods.open_before_handshake(session, message, meta)
    return OpenRequest(session, message.id, session.peer, meta.progress_token, UNSET, batch, access=session.access)


def _serve(session: ServerSession, message: Request, request: OpenRequest, meta: RequestMeta) -> None:
    """Answer *request*, or start its handler.

    Raises:
        RequestError: It is refused.
        InvalidPayload: Its params are not valid in its revision.
    """
    revision, in_session = request.peer.revision, request.peer is session.peer
    if in_session and not session.has_declared(revision, message.method):
        raise RequestError(
            ErrorCode.METHOD_NOT_FOUND, f"this server has not declared the capability for {quoted(message.method)}"
        )
    handler = session.handlers.method_handlers(revision).get(message.method)
    if handler is None:
        builtin_methods.answer_builtin(session, message, request)
        return
    if meta.request_state is not UNSET and request.peer.era == "stateless" and handler.may_request_input:
        input_required.resume_parked(session, message, request, meta, handler)
        return
    if handler.fast_path is not None:
        found = handler.fast_path(meta)
        if found is not None:
            session.start(Exchange(request, found[0], found[1], message.params))
            return
    if handler.extension and handler.extension not in request.peer.extensions:
        raise missing_extension(request.peer, handler.extension, message.method)
    own_meta = session.meta if in_session else None
    if handler.extension and in_session:
        own_meta = extension_meta(session.handlers.extensions, handler.extension, request.peer)
    read_params = handler.codec.params if request.peer.era == "stateless" else handler.handshake_params
    params = read_params(message.params, own_meta)
    exchange = Exchange(request, handler, params, message.params)
    tasks = session.engine.tasks
    if tasks is not None and tasks.becomes_task(session, exchange):
        tasks.create(session, exchange, request)
    else:
        session.start(exchange)


def _check_uris(asked: str, result: Any) -> None:
    """Check the URIs that a handler of `resources/read` has written. The one that the client *asked* for comes back.

    Spec:
        2026-07-28, server/resources, "Custom URI Schemes".
    """
    contents = getattr(result, "contents", ())
    for each in contents if is_array(contents) else ():  # its types are checked when it is encoded
        uri = getattr(each, "uri", asked)
        if uri != asked and isinstance(uri, str) and (fault := uri_fault(uri)) is not None:
            raise TypeError(f"the handler returned contents with the uri {uri!r}: {fault}")


def complete(session: ServerSession, exchange: Exchange, result: Any) -> None:
    """Answer *exchange* with the result of its handler.

    Raises:
        AdaptationError: The peer's revision cannot express it.
        TypeError: It has a URI that is none.
    """
    if exchange.has_ended:
        return
    plain = plain_json(exchange.handler, result)
    if plain is not None:
        session.end(exchange, ResponseBody(plain))
        return
    if isinstance(result, StructuredJson):
        result = result.to_result()
    is_stateless = exchange.peer.era == "stateless"
    if is_stateless and getattr(result, "result_type", "complete") == "input_required":
        input_required.send_input_required(session, exchange, result)
        return
    if exchange.handler.method == "resources/read":
        _check_uris(exchange.params.uri, result)
    if is_stateless and (exchange.request is None or exchange.request.is_retry):
        result = not_cacheable(result)
    body = encode_result(session.handlers.extensions, exchange, result) if exchange.handler.is_extended else None
    if body is None:
        body = result_json(session.handlers, exchange.handler, exchange.peer, result)
    elif is_stateless:
        body = session.handlers.sign(body, exchange.peer.revision)
    session.end(exchange, ResponseBody(body))


def result_json(handlers: HandlerTable, handler: MethodHandler, peer: Peer, result: Any) -> bytes:
    """Return a complete *result* of *handler* as JSON for *peer*.

    Raises:
        InvalidPayload: Its types do not allow it.
        AdaptationError: The peer's revision cannot express it.
    """
    body = handler.codec.result(result)
    return handlers.sign(body, peer.revision) if peer.era == "stateless" else body


def fail(session: ServerSession, exchange: Exchange, failure: BaseException) -> None:
    """Answer *exchange* with the exception that its handler raised."""
    if exchange.has_ended:
        return
    try:
        if isinstance(failure, RequestError) and input_required.send_url_elicitations(session, exchange, failure):
            return
    except UnsupportedByPeer as unsupported:
        failure = unsupported
    result = error_mapping.unsupported_tool_result(exchange, failure)
    if result is not None:
        session.end(exchange, ResponseBody(result))
        return
    body = error_mapping.error_body(exchange, failure, debug=session.engine.debug)
    session.end(exchange, ResponseBody(body, is_error=True))
