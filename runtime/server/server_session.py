"""One session of a server: the state of one connection, and how its requests are answered.

Theory of operation. One connection carries requests of both eras. A request that states its revision in its metadata
belongs to no handshake. Any other belongs to the client that sent `initialize`. `mcpgen.runtime.server.dispatcher`
makes an `OpenRequest` of either, decodes it in its own revision, and starts its handler as an `Exchange`; what the
handler returns comes back to the dispatcher and is sent from here.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle; 2026-07-28, basic/index, "Statelessness", and basic/versioning.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import offers
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.error_mapping import lacks_capability
from mcpgen.runtime.server.exchange import Exchange, OpenRequest, ResponseBody
from mcpgen.runtime.server.fair_turns import LARGE_BYTES
from mcpgen.runtime.server.ledger import SESSION_BYTES, uris_bytes, waiting_bytes
from mcpgen.runtime.server.related_tasks import named_result
from mcpgen.runtime.server.subscription_state import Subscriptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import InputRound, ServerRequest
    from mcpgen.runtime.server.handler_table import HandlerTable
    from mcpgen.runtime.server.ledger import Account
    from mcpgen.runtime.server.quota import Entry
    from mcpgen.runtime.server.session_output import SessionOutput

__all__ = ["ServerSession"]


class ServerSession:
    """The state of one connection.

    Attributes:
        engine: What it shares with the server's other connections.
        handlers: The server's methods.
        limits: Bounds on what peers may ask for.
        output: The connection.
        principal: A label for the client of this connection.
        keeps_tasks: Whether its tasks outlive it, because the client goes on at another worker.
        user: The authenticated user; empty if the transport does not know.
        owner: Whom limits are shared among: the user, or else the address; the same for all where there is one client.
        access: What the access token of the HTTP request allows that is being read; None if there is none.
        hides: Whether lists omit what the token of a request does not allow.
        peer: The client of the handshake; None before `initialize`, and where clients are stateless.
        meta: The metadata that a stateless native revision wants in each request of that client.
        declared: The capabilities that were declared to it.
        is_initialized: Whether it has sent `notifications/initialized`.
        log_level: The least severe log entries that it asked for; UNSET before it does.
        exchanges: What the open requests are served by, by id: an exchange, or the request itself if no handler runs.
        server_requests: The requests to the client that are not done, by id.
        running: How many handlers run, including those that ignore their cancellation.
        held_bytes: What the open requests, their handlers and the requests to the client cost in memory.
        open_requests: The account of all sessions for that.
        kept_bytes: What the session itself keeps: the client's declaration, and subscriptions.
        entry: The session's entry in a quota; None if sessions have none.
        is_closed: Whether the peer has disconnected.
    """

    __slots__ = (
        "_sessions",
        "_subscriptions",
        "access",
        "declared",
        "engine",
        "entry",
        "exchanges",
        "handlers",
        "held_bytes",
        "hides",
        "is_closed",
        "is_initialized",
        "keeps_tasks",
        "kept_bytes",
        "last_id",
        "limits",
        "log_level",
        "malformed_count",
        "meta",
        "open_requests",
        "output",
        "owner",
        "peer",
        "principal",
        "running",
        "server_requests",
        "user",
    )

    def __init__(self, engine: Engine, output: SessionOutput, principal: str = "") -> None:
        self.engine: Engine = engine
        self.handlers: HandlerTable = engine.handlers
        self.limits: Limits = engine.limits
        self.principal: str = principal
        self.keeps_tasks: bool = False
        self.user: str = ""
        self.owner: str = ""
        self.access: Access | None = None
        self.hides: bool = False
        self.output: SessionOutput = output
        self.peer: Peer | None = None
        self.meta: Mapping[str, object] | None = None
        self.declared: Mapping[str, object] = {}
        self.is_initialized: bool = False
        self.log_level: str | UnsetType = UNSET
        self._subscriptions: Subscriptions | None = None
        self.exchanges: dict[RequestId, Exchange | OpenRequest] = {}
        self.server_requests: dict[RequestId, ServerRequest] = {}
        self.running: int = 0
        self.held_bytes: int = 0
        self.kept_bytes: int = 0
        self.entry: Entry | None = None
        self.last_id: int = 0
        self.malformed_count: int = 0
        self.is_closed: bool = False
        self.open_requests: Account = engine.ledger.account("open requests")
        self._sessions = engine.ledger.account("sessions")

    @property
    def revision(self) -> str | None:
        """The revision of the handshake; None if there was none."""
        return None if self.peer is None else self.peer.revision

    @property
    def subscriptions(self) -> Subscriptions:
        """What the clients are subscribed to; made on first use, since most sessions have no subscription."""
        if self._subscriptions is None:
            self._subscriptions = Subscriptions()
        return self._subscriptions

    def overload(self, size: int = 0) -> str | None:
        """Return why no request that costs *size* bytes is served until others end; None if it is.

        One request is always served, however large it is.
        """
        limits = self.limits
        if self.running >= limits.max_in_flight or len(self.exchanges) >= limits.max_in_flight:
            return "too many requests are pending (max_in_flight); wait for their responses"
        if self.held_bytes and self.held_bytes + size > limits.max_in_flight_bytes:
            return "the pending requests and notifications keep too many bytes (max_in_flight_bytes); try again later"
        return None

    def charge(self, size: int) -> None:
        """Charge *size* bytes more, or less if negative, for open requests."""
        self.held_bytes += size
        self.open_requests.bytes += size

    def keep_answer(self, exchange: Exchange, size: int) -> bool:
        """Charge an answer of *size* bytes, which the handler of *exchange* may keep; return whether there is room."""
        if self.held_bytes + size > self.limits.max_in_flight_bytes or not self.output.keep_answer(exchange, size):
            return False
        exchange.charge(size)
        return True

    def keep(self, size: int) -> None:
        """Charge *size* bytes more, or less if negative, for what the session itself keeps.

        Raises:
            RequestError: It keeps too much.
        """
        if size > 0 and self.kept_bytes + size > self.limits.max_session_bytes:
            reason = (
                f"the session would keep more than {self.limits.max_session_bytes} bytes (max_session_bytes), "
                "for the client's capabilities and its subscriptions"
            )
            raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
        if self.entry is not None and not self.entry.resize(self.entry.size + size):
            raise RequestError(ErrorCode.INTERNAL_ERROR, "all sessions keep too many bytes (max_sessions_bytes)")
        self.kept_bytes += size
        self._sessions.bytes += size

    def set_peer(self, peer: Peer) -> None:
        """Note the client of the handshake.

        Raises:
            RequestError: Its declaration is too large.
        """
        self.keep(SESSION_BYTES + peer.memory_bytes)
        self.peer = peer
        self.meta = self.handlers.client_meta(peer)
        self.declared = self.handlers.capabilities(peer.revision)

    def has_declared(self, revision: str, method: str) -> bool:
        """Whether the handshake declared *method*, whatever has been registered since.

        Spec:
            2025-11-25, basic/lifecycle, "Operation": only what was negotiated is used.
        """
        current = self.handlers.capabilities(revision)
        if self.declared is current:
            return True  # a method that is not declared has no handler
        if self.declared == current:
            self.declared = current
        return self.declared is current or offers(self.declared, revision, method) or self._has_extended(method)

    def _has_extended(self, method: str) -> bool:
        """Whether the handshake declared the extension that *method* belongs to."""
        declared: Any = self.declared.get("extensions", {})
        return any(method in each.requests and each.id in declared for each in self.handlers.extensions)

    def start(self, exchange: Exchange) -> None:
        """Start the handler of *exchange*."""
        if exchange.request is not None:
            self.exchanges[exchange.request.id] = exchange
        self.output.start(exchange)

    def register(self, exchange: Exchange) -> None:
        """Note that *exchange* serves its open request."""
        if exchange.request is not None:
            self.exchanges[exchange.request.id] = exchange

    def hold(self, request: OpenRequest) -> None:
        """Note that *request* is open, and that no handler runs for it."""
        self.exchanges[request.id] = request
        peer = None if request.peer is self.peer else request.peer
        request.held_bytes = waiting_bytes(request.id, peer)
        self.charge(request.held_bytes)
        self.output.held(request)

    def release(self, request: OpenRequest) -> None:
        """Charge nothing more for a request that `hold` has noted."""
        self.charge(-request.held_bytes)
        request.held_bytes = 0

    def end(self, exchange: Exchange, body: ResponseBody) -> None:
        """Answer *exchange* for good."""
        if exchange.has_ended:
            return
        exchange.has_ended = True
        if exchange.server_requests or exchange.earlier_responses:
            exchange.withdraw_requests()
        if exchange.request is None and len(body.json) > LARGE_BYTES:  # `reply` does so for a response
            self.engine.turns.spend(len(body.json))
        if exchange.task is not None:
            end_task = exchange.task.fail if body.is_error else exchange.task.finish
            end_task(body.json)
        elif exchange.request is None:
            exchange.unsent_response = body
            if exchange.input_round is not None:
                self.engine.parked.grow(exchange.input_round, len(body.json))
        elif exchange.input_round is None:
            exchange.request.session.reply(exchange.request, body)
        else:
            self.respond(exchange, body)

    def respond(self, exchange: Exchange, body: ResponseBody) -> None:
        """Answer the open request of *exchange*, and its duplicates."""
        if exchange.request is None:
            return
        exchange.request.session.reply(exchange.request, body)
        if exchange.input_round is not None:
            self._reply_to_duplicates(exchange.input_round, body)
            if lacks_capability(body):  # a later retry may come from a client that has declared it
                self.engine.parked.forget(exchange.input_round)
            else:
                self.engine.parked.record(exchange.input_round, body)

    def reply(self, request: OpenRequest, body: ResponseBody) -> None:
        """Answer *request*, which is one of this session."""
        self.exchanges.pop(request.id, None)
        if request.held_bytes:
            self.release(request)
        encode = envelope.encode_error if body.is_error else envelope.encode_response
        message = encode(request.id, body.json)
        if request.related_task and not body.is_error:
            message = encode(request.id, named_result(body.json, request.related_task))
        if len(message) > LARGE_BYTES:
            self.engine.turns.spend(len(message))
        if request.batch is None:
            self.output.respond(message, request)
            return
        request.batch.add(message, request.id)
        self.drop(request)

    def _reply_to_duplicates(self, resumed: InputRound, body: ResponseBody) -> None:
        duplicates, resumed.duplicates = resumed.duplicates, []
        for each in duplicates:
            if each.session.exchanges.get(each.id) is each:  # not cancelled in the meantime
                each.session.output.reply_in_turn(each, lambda: body)

    def drop(self, request: OpenRequest) -> None:
        """Note that *request* gets no response, or none outside its batch; send the batch if that was the last."""
        batch = request.batch
        if batch is None:
            self.output.drop(request)
            return
        batch.open -= 1
        whole = batch.finished()
        if whole is not None:
            self.output.respond(whole, request)
        elif batch.is_complete and not batch.open:
            self.output.drop(request)

    def stop(self, exchange: Exchange) -> None:
        """Stop the handler of *exchange*, which gets no response."""
        if exchange.has_ended:
            return
        exchange.has_ended = True
        exchange.withdraw_requests()  # first, while the request names the connection that they were sent on
        if exchange.request is not None and exchange.task is None:
            self.drop(exchange.request)
        resumed = exchange.input_round
        if resumed is not None:
            self.engine.parked.forget(resumed)
            failure = RequestError(ErrorCode.INTERNAL_ERROR, "the first request with this requestState was cancelled")
            self._reply_to_duplicates(resumed, ResponseBody(envelope.error_json(failure), is_error=True))
        if exchange.handle is not None:
            exchange.handle.cancel()

    def withdraw(self, request: ServerRequest, exchange: Exchange | None) -> None:
        """Withdraw a request to the client, if it has not answered.

        Spec:
            2025-11-25, basic/utilities/cancellation; 2026-07-28, basic/patterns/cancellation: there it has no id.
        """
        if exchange is not None:
            exchange.server_requests.pop(request.key, None)
        if request.is_done or not request.key.isdecimal():
            return
        request_id = int(request.key)
        if self.take_server_request(request_id) is not None:
            reason = "the server does not need the answer any more"
            meta = {} if exchange is None or exchange.task is None else {"_meta": exchange.task.related()}
            cancelled = {"requestId": request_id, "reason": reason, **meta}
            self.output.send(envelope.encode_notification("notifications/cancelled", cancelled), exchange)

    def take_server_request(self, request_id: RequestId | None) -> ServerRequest | None:
        """Return the request to the client with this id, which is done now; None if there is none."""
        request = None if request_id is None else self.server_requests.pop(request_id, None)
        if request is not None:
            self.charge(-request.held_bytes)
            if request.exchange is not None:  # which would keep it, and its result, until the handler ends
                request.exchange.server_requests.pop(request.key, None)
        return request

    def disconnect_requests(self) -> None:
        """End the requests to the client: it has disconnected, or sends nothing more."""
        for request_id in list(self.server_requests):
            request = self.take_server_request(request_id)
            if request is not None:
                request.disconnect()

    def restart(self) -> None:
        """End what the client of the handshake has open: the next one starts a new session."""
        self.disconnect_requests()
        for key, each in list(self.exchanges.items()):
            if each.peer.era == "handshake":
                self._stop_any(each)
                self.exchanges.pop(key, None)
        if self.engine.tasks is not None:
            self.engine.tasks.forget(self.principal)
        self.principal = self.engine.new_principal()
        if self.peer is not None:
            self.keep(-SESSION_BYTES - self.peer.memory_bytes - uris_bytes(self.subscriptions.uris))
        self.peer = None
        self.subscriptions.uris.clear()
        self.log_level = UNSET
        self.is_initialized = False

    def close(self) -> None:
        """End everything: the peer has disconnected."""
        self.is_closed = True
        self.disconnect_requests()
        self.stop_some()
        if self.engine.tasks is not None:
            self.engine.tasks.forget(self.principal, is_over=not self.keeps_tasks)
        self._subscriptions = None
        self.keep(-self.kept_bytes)

    def stop_some(self, count: int | None = None) -> bool:
        """End the first *count* open requests, or all, without a response; return whether there were any."""
        some = list(islice(self.exchanges.items(), count))
        for key, each in some:
            self._stop_any(each)
            self.exchanges.pop(key, None)
        return bool(some)

    def _stop_any(self, open_request: Exchange | OpenRequest) -> None:
        if isinstance(open_request, Exchange):
            self.stop(open_request)
            return
        self.release(open_request)
        if open_request.on_cancel is not None:
            open_request.on_cancel()
