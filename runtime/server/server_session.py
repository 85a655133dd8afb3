"""A server's side of one connection: what its peer may say when, and what is answered; no awaiting, no clock.

Theory of operation. A connection carries requests of two eras at once. One that states its revision in its metadata is
an exchange of its own. One that does not belongs to the session that `initialize` opened. Either way it gets an
`Origin`, is checked against its own revision, and becomes an `Exchange` in the terms of home, whose handler the sink
runs; the sink hands back what the handler returned or raised. What the engine answers itself is in
`mcpgen.runtime.server.builtin_methods`, what is asked of clients in `mcpgen.runtime.server.server_requests` and
`demands`.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle; 2026-07-28, basic/index, "Statelessness", and basic/versioning.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError, UnsupportedByPeer, quoted
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import client_peer, offers
from mcpgen.runtime.protocol.framing import OversizedLine
from mcpgen.runtime.protocol.messages import (
    Batch,
    Code,
    ErrorResponse,
    Fault,
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
)
from mcpgen.runtime.protocol.negotiation import missing_fields, read_meta, unsupported_revision
from mcpgen.runtime.server import builtin_methods, error_mapping, input_required, notifications, server_requests
from mcpgen.runtime.server.batch import BatchResponse, refuse, take_batch
from mcpgen.runtime.server.exchange import Body, Exchange, Origin
from mcpgen.runtime.server.subscriptions import Subscriptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.interfaces import SessionOutput
    from mcpgen.runtime.server.parked_requests import InputRound
    from mcpgen.runtime.server.server_requests import ServerRequest
    from mcpgen.runtime.server.service import HandlerTable

__all__ = ["ServerSession"]

_MOST_WARNINGS = 20

_encode = msgspec.json.Encoder().encode

_LOG = logging.getLogger("mcpgen.session")


class ServerSession:
    """One connection of a server.

    Attributes:
        service: What the server offers.
        sink: The shell.
        principal: What tells its client from others: the connection itself.
        user: Who it is, where the transport knows; empty otherwise.
        peer: Who shook hands; None before `initialize`, and where clients are stateless.
        meta: What each of its requests would say about it, where home wants to hear that from each.
        declared: What the server declared to it.
        is_ready: Whether the client has said `notifications/initialized`.
        level: The least severe log entries that the session wants; UNSET until it says.
        listening: What the client wants to hear of.
        exchanges: The requests that are being served, by id.
        asks: The requests of ours that are open, by id.
        running: How many handlers run, those that do not heed their cancellation included.
        held_bytes: How large the params are that they hold.
        is_closed: Whether the peer has gone.
    """

    def __init__(self, service: HandlerTable, sink: SessionOutput, principal: str = "") -> None:
        self.service = service
        self.principal = principal
        self.user: str = ""
        self.sink = sink
        self.peer: Peer | None = None
        self.meta: Mapping[str, object] | None = None
        self.declared: Mapping[str, object] = {}
        self.is_ready = False
        self.level: str | UnsetType = UNSET
        self.listening: Subscriptions = Subscriptions()
        self.exchanges: dict[RequestId, Exchange | Origin] = {}
        self.asks: dict[RequestId, ServerRequest] = {}
        self.running: int = 0
        self.held_bytes: int = 0
        self.last_id: int = 0
        self.is_closed: bool = False
        self._unread = 0

    @property
    def revision(self) -> str | None:
        """What was agreed on; None if nothing was."""
        return None if self.peer is None else self.peer.revision

    @property
    def is_busy(self) -> bool:
        """Whether so much is being served that no other request is."""
        limits = self.service.limits
        is_full = max(len(self.exchanges), self.running) >= limits.max_in_flight
        return is_full or self.held_bytes > limits.max_in_flight_bytes

    def receive(self, frame: Frame | OversizedLine) -> None:
        """Take one frame."""
        if isinstance(frame, OversizedLine):
            self.take_one(envelope.decode_oversized(frame), None)
            return
        self.take(envelope.decode(frame, max_batch_length=self.service.limits.max_batch_length))

    def take(self, message: Message | Batch | Malformed) -> None:
        """Take what a frame held."""
        if isinstance(message, Batch):
            take_batch(self, message)
        else:
            self.take_one(message, None)

    def complete(self, exchange: Exchange, result: Any) -> None:
        """Answer *exchange* with what its handler returned.

        Raises:
            AdaptationError: The peer's revision cannot express it.
        """
        if exchange.has_ended:
            return
        frame = exchange.entry.frame
        if frame is not None and type(result) is str:
            self.end(exchange, Body(frame[0] + _encode(result) + frame[1]))
            return
        if exchange.peer.era == "stateless" and getattr(result, "result_type", "complete") == "input_required":
            input_required.demand_input(exchange, result)
            return
        body = exchange.entry.codec.result(result)
        if exchange.peer.era == "stateless":
            body = self.service.sign(body, exchange.peer.revision)
        self.end(exchange, Body(body))

    def fail(self, exchange: Exchange, failure: BaseException) -> None:
        """Answer *exchange* with what its handler raised."""
        if exchange.has_ended:
            return
        try:
            if isinstance(failure, RequestError) and input_required.demand_urls(exchange, failure):
                return
        except UnsupportedByPeer as unable:
            failure = unable
        self.end(exchange, Body(error_mapping.error_body(exchange, failure), is_error=True))

    def end(self, exchange: Exchange, body: Body) -> None:
        """Answer *exchange* for good."""
        if exchange.has_ended:
            return
        exchange.has_ended = True
        server_requests.abandon_all(exchange)
        if exchange.task is not None:
            end_task = exchange.task.fail if body.is_error else exchange.task.finish
            end_task(body.json)
        elif exchange.origin is None:
            exchange.early = body
            if exchange.round is not None:
                self.service.waiting.grow(exchange.round, len(body.json))
        else:
            self.answer(exchange, body)

    def answer(self, exchange: Exchange, body: Body) -> None:
        """Answer the open request of *exchange*, and whoever asked the same again."""
        origin = exchange.origin
        if origin is None:
            return
        self.reply(origin, body)
        if exchange.round is not None:
            others, exchange.round.others = exchange.round.others, []
            for each in others:
                if each.session.exchanges.get(each.id) is each:  # not cancelled in the meantime
                    self.reply(each, body)
            self.service.waiting.record(exchange.round, body)

    def reply(self, origin: Origin, body: Body) -> None:
        """Answer one request, unless it was cancelled."""
        session = origin.session
        session.exchanges.pop(origin.id, None)
        encode = envelope.encode_error if body.is_error else envelope.encode_response
        message = encode(origin.id, body.json)
        if origin.batch is None:
            session.sink.answer(message, origin)
            return
        batch: BatchResponse = origin.batch
        batch.messages.append(message)
        session.dropped(origin)

    def shake(self, peer: Peer) -> None:
        """Take *peer* for the one that shook hands."""
        self.peer = peer
        self.meta = self.service.client_meta(peer)
        self.declared = self.service.capabilities(peer.revision)

    def close(self) -> None:
        """Forget everything: the peer has gone."""
        self.is_closed = True
        for ask in list(self.asks.values()):
            ask.leave()
        self.asks.clear()
        for each in list(self.exchanges.values()):
            if isinstance(each, Exchange):
                self.stop(each)
            elif each.on_drop is not None:
                each.on_drop()
        self.exchanges.clear()
        if self.service.tasking is not None:
            self.service.tasking.forget(self.principal)
        self.listening = Subscriptions()

    def take_one(self, message: Message | Malformed, batch: BatchResponse | None) -> None:
        """Take one message, which may be one of a *batch*."""
        if isinstance(message, Request):
            self._request(message, batch)
        elif isinstance(message, Notification):
            notifications.take_notification(self, message)
        elif isinstance(message, Malformed):
            self.refuse(message, batch)
        else:
            self._response(message)

    def refuse(self, malformed: Malformed, batch: BatchResponse | None) -> None:
        """Answer what is no message, if it may be answered."""
        self._unread += 1
        # A host need not read our standard error; a pipe that is full of warnings would stop us.
        _LOG.log(logging.WARNING if self._unread <= _MOST_WARNINGS else logging.DEBUG, "%s", malformed.fault.reason)
        if malformed.kind == "response" and malformed.id is not None and malformed.id in self.asks:
            failure = RequestError(malformed.fault.code, f"the answer cannot be read: {malformed.fault.reason}")
            self.asks.pop(malformed.id).fail(failure)
            return
        revision = self.revision or self.service.served[-1]
        if malformed.fault.code == Code.PARSE_ERROR and malformed.id in self.exchanges:
            # An id that was salvaged from what cannot be read is no proof; its answer would be taken for the other's.
            malformed = Malformed(malformed.fault, None, malformed.kind)
        if malformed.id is None and envelope.unknown_id(revision) is None:
            return  # before 2025-11-25 an error needs an id, and null is none: nothing that we could say is valid
        refusal = envelope.refusal(malformed, revision)
        if refusal is None:
            return
        if batch is None:
            self.sink.answer(refusal, None)
        else:
            batch.messages.append(refusal)

    def _request(self, request: Request, batch: BatchResponse | None) -> None:
        meta = read_meta(request.params)
        try:
            origin = self._origin(request, meta, batch)
        except Exception as error:  # noqa: BLE001 (the boundary: whatever it is, the client gets an answer)
            body = Body(envelope.error_json(error_mapping.as_request_error(error, request.method)), is_error=True)
            # A stateless request has no batches, so it is not answered in one either.
            refuse(self.sink, request.id, body, batch if isinstance(meta.revision, UnsetType) else None)
            return
        if batch is not None:
            batch.open += 1
        try:
            self._serve(request, origin, meta)
        except Exception as failure:  # noqa: BLE001 (the boundary: what an author's object says about itself may fail)
            self.reply(
                origin,
                Body(envelope.error_json(error_mapping.as_request_error(failure, request.method)), is_error=True),
            )

    def _origin(self, request: Request, meta: RequestMeta, batch: BatchResponse | None) -> Origin:
        """Return who asks, and in which revision.

        Raises:
            RequestError: Neither the request nor a handshake says so, or it cannot be served now.
        """
        if request.id in self.exchanges:
            raise RequestError(Code.INVALID_REQUEST, "another request with this id is open")
        if self.is_busy:
            raise RequestError(Code.INTERNAL_ERROR, "too many requests are open")
        service = self.service
        if meta.revision is not UNSET and service.stateless:
            if batch is not None:
                raise RequestError(Code.INVALID_REQUEST, Fault.NO_BATCHES.reason)
            if meta.revision not in service.stateless:
                raise unsupported_revision(meta.revision, service.served)
            missing = missing_fields(meta)
            if missing is not None:
                raise missing
            peer = client_peer(meta.revision, meta.client_capabilities, meta.client_info)
            return Origin(self, request.id, peer, meta.progress_token, meta.log_level, batch)
        if request.method == "initialize":
            return builtin_methods.initialize_origin(self, request, batch)
        if self.peer is None:
            return builtin_methods.early_origin(self, request, meta)
        return Origin(self, request.id, self.peer, meta.progress_token, UNSET, batch)

    def _serve(self, request: Request, origin: Origin, meta: RequestMeta) -> None:
        """Answer *request*, or start what will.

        Raises:
            RequestError: It is refused.
            InvalidPayload: Its revision does not allow its params.
        """
        revision = origin.peer.revision
        if origin.peer is self.peer and not self.has_declared(revision, request.method):
            raise RequestError(Code.METHOD_NOT_FOUND, f"{quoted(request.method)} was not declared")
        entry = self.service.entries(revision).get(request.method)
        if entry is None:
            builtin_methods.answer_builtin(self, request, origin)
            return
        if meta.request_state is not UNSET and origin.peer.era == "stateless" and entry.may_ask:
            input_required.resume_parked(self, request, origin, meta, entry)
            return
        if entry.short is not None:
            found = entry.short(meta)
            if found is not None:
                self.start(Exchange(origin, found[0], found[1], request.params))
                return
        params = entry.codec.params(request.params, self.meta if origin.peer is self.peer else None)
        exchange = Exchange(origin, entry, params, request.params)
        tasking = self.service.tasking
        if tasking is not None and tasking.becomes_task(self, origin, entry, params):
            tasking.create(self, exchange, origin)
        else:
            self.start(exchange)

    def has_declared(self, revision: str, method: str) -> bool:
        """Whether the handshake said that *method* is offered, whatever has been registered since.

        Spec:
            2025-11-25, basic/lifecycle, "Operation": only what was negotiated is used.
        """
        current = self.service.capabilities(revision)
        if self.declared is current:
            return True  # what is not offered at all has no entry
        if self.declared == current:
            self.declared = current
        return self.declared is current or offers(self.declared, revision, method)

    def start(self, exchange: Exchange) -> None:
        """Let the handler of *exchange* run."""
        self.begin(exchange)
        self.sink.start(exchange)

    def begin(self, exchange: Exchange) -> None:
        """Note that the handler of *exchange* runs."""
        if exchange.origin is not None:
            self.exchanges[exchange.origin.id] = exchange

    def stop(self, exchange: Exchange) -> None:
        """Stop the handler of *exchange*; nothing more is said about it."""
        if exchange.has_ended:
            return
        exchange.has_ended = True
        server_requests.abandon_all(exchange)  # while there is still the way on which it has asked
        if exchange.origin is not None and exchange.task is None:
            self.dropped(exchange.origin)
        if exchange.round is not None:
            self.service.waiting.forget(exchange.round)
            self._give_up(exchange.round)
        if exchange.handle is not None:
            exchange.handle.cancel()

    def _give_up(self, taken: InputRound) -> None:
        """Answer those who asked again for what nobody will answer now."""
        others, taken.others = taken.others, []
        failure = RequestError(Code.INTERNAL_ERROR, "the request was given up")
        for each in others:
            self.reply(each, Body(envelope.error_json(failure), is_error=True))

    def dropped(self, origin: Origin) -> None:
        """Take it that *origin* gets no answer of its own; a batch need not wait for it."""
        batch: BatchResponse | None = origin.batch
        if batch is None:
            self.sink.dropped(origin)
            return
        batch.open -= 1
        whole = batch.finished()
        if whole is not None:
            self.sink.answer(whole, origin)
        elif batch.is_complete and not batch.open:
            self.sink.dropped(origin)

    def _response(self, response: Response | ErrorResponse) -> None:
        """Hand an answer to whoever asked; one to nothing is ignored (a late one is usual)."""
        ask = None if response.id is None else self.asks.pop(response.id, None)
        if ask is None:
            _LOG.debug("an answer to nothing: %r", response.id)
        elif isinstance(response, ErrorResponse):
            ask.refuse(response)
        else:
            server_requests.take_response(ask, response.result)
