"""POST on the endpoint: handle the message in its body, and answer it with JSON or with a stream of events.

Theory of operation. The revision that a message names decides which rules apply. A request of a stateless revision has
a connection of its own; every other message belongs to a session. Either writes to a `ResponseBuffer`. If the answer is
the only message and comes soon, it is sent as JSON. Otherwise a stream is started.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP"; 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from msgspec import UNSET, UnsetType

from mcpgen.runtime.http.media_types import EVENT_STREAM, JSON, accepts, is_json
from mcpgen.runtime.http.server import responses, session_request
from mcpgen.runtime.http.server.auth.required_scopes import refuse_scopes
from mcpgen.runtime.http.server.auth.token_expiry import ending_with_token
from mcpgen.runtime.http.server.direct_calls import (
    CALL,
    finish_call,
    open_request,
    start_session_call,
    start_stateless_call,
)
from mcpgen.runtime.http.server.http_request import HttpRequest
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES
from mcpgen.runtime.http.server.response_buffer import SMALL_BYTES
from mcpgen.runtime.http.server.shared_state import RelayedPost
from mcpgen.runtime.http.server.stateless_request import (
    StatelessConnection,
    has_required_metadata,
    header_problem,
    http_status,
)
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.messages import Batch, Fault, Malformed, Notification, Request
from mcpgen.runtime.protocol.negotiation import missing_fields, oversized_part, read_meta
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.reading_policy import SUSPECT
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.dispatcher import take
from mcpgen.runtime.server.exchange import Exchange
from mcpgen.runtime.server.fair_turns import LARGE_BYTES, REQUEST_COST_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.http.server.direct_calls import DirectCall
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.http.server.shared_state import SharedState
    from mcpgen.runtime.protocol.messages import Message
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.connection import Connection
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["PostRequest", "refusal"]

# How much memory the parts of a message take beside its bytes, if it is not counted exactly.
_DECODED_FACTOR: Final = 4


class Refusal(NamedTuple):
    """Why the content of a POST is refused before it is read."""

    status: int
    reason: str
    headers: tuple[responses.Header, ...] = ()


_ANSWERS: Final = (JSON, EVENT_STREAM)


@lru_cache(maxsize=256)  # most clients send the same few values; the call takes a third of the checks
def refusal(content_type: str | None, content_encoding: str | None, accept: str | None = None) -> Refusal | None:
    """Return why a POST with these headers is refused; None if it is not."""
    if not is_json(content_type):
        return Refusal(415, f"the Content-Type must be {JSON}")
    if content_encoding is not None and content_encoding.strip().lower() not in ("", "identity"):
        # RFC 9110, 15.5.16: `Accept-Encoding` tells that the encoding is the problem, and which one is accepted.
        reason = "the body must not have a Content-Encoding; send it uncompressed"
        return Refusal(415, reason, ((b"accept-encoding", b"identity"),))
    if not all(accepts(accept, each) for each in _ANSWERS):
        return Refusal(406, f"the Accept header must allow {' and '.join(_ANSWERS)}")
    return None


class PostRequest(HttpRequest, eq=False):
    """One POST on the endpoint, which it answers."""

    _connection: StatelessConnection | None = None

    async def serve(self) -> None:  # noqa: C901, PLR0912 (one coroutine more takes 1 % of a call)
        """Handle the message in the body, and answer it."""
        state = self.state
        connection = self.scope.get("extensions", {}).get(responses.ABORT)
        if connection is not None and connection["is_closing"]() and self._is_cancelled_by_disconnect():
            self.forget_body()
            with anyio.move_on_after(state.limits.write_seconds):  # an earlier answer may not have been read yet
                await self.receive()  # `http.disconnect`; without it, uvicorn would log an error
            raise responses.ClientDisconnected("a client disconnected before its request was decoded")
        # Most calls return at once, and need no ticket if there is room for them.
        has_room = state.open_quota.has_room(OPEN_REQUEST_BYTES + _DECODED_FACTOR * len(self.body))
        needs_ticket = state.is_shutting_down or not has_room
        if needs_ticket and self.open_ticket(session=self.headers.get(http.SESSION, "")) is None:
            await self.refuse_overload()
            return
        limits = state.engine.limits
        try:
            message = envelope.decode(self.body, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
            if isinstance(message, SUSPECT):
                message = state.engine.reading.reread(self.body, message, limits)
            meta = read_meta(message.params) if isinstance(message, Request) else None
            is_stateless = self._is_stateless(message, meta)
            if state.cluster is not None and await self._is_relayed(state.cluster, message, meta, is_stateless):
                return
            session = None if is_stateless else session_request.find_session(self)
            may_lack_scopes = state.tokens is not None and not state.has_scopes(self.client)
            may_need_more = state.engine.handlers.scopes is not None
            if may_lack_scopes or may_need_more:
                if not self._may_wait():  # a client may name a thousand URIs, which takes many turns
                    await self.refuse_overload()
                    return
                if await refuse_scopes(state, self.client, self.send, message, meta):
                    return
            rates, own = state.rates, None if session is None else session.bucket
            if rates is not None and (seconds := rates.wait_seconds(message, self.client, own)):
                await self.refuse_rate(message, seconds)
            elif meta is None or not isinstance(message, Request):
                await (self._serve_stateless_other(message) if is_stateless else session_request.serve(self, message))
            elif message.method == CALL and (answer := self._direct_answer(message, meta, session, is_stateless)):
                del message, meta  # it may be sent to a client that does not read, and they refer to the body
                await answer
            elif is_stateless:
                await self._serve_stateless(message, meta)
            else:
                await session_request.serve(self, message)
        except ClusterUnavailable as error:
            await responses.send_unreachable(self.send, error, self.body)
        finally:
            if self.ticket is not None:
                self.ticket.release()

    def _may_wait(self) -> bool:
        """Count a long message, which is about to wait; return False if there is no room for it."""
        session = self.headers.get(http.SESSION, "")
        return len(self.body) <= REQUEST_COST_BYTES or self.open_ticket(session=session) is not None

    def _is_cancelled_by_disconnect(self) -> bool:
        """Return whether the request is cancelled if its client closes the connection.

        Spec:
            2026-07-28, basic/patterns/cancellation, "Transport-Specific Cancellation": only for stateless requests.
        """
        revision, method = self.headers.get(http.REVISION, "").strip(), self.headers.get(http.METHOD, "")
        is_request = bool(method) and not method.startswith("notifications/")
        is_stateless = revision in self.state.engine.handlers.stateless_revisions
        return is_request and is_stateless

    def _direct_answer(
        self,
        request: Request,
        meta: RequestMeta,
        session: HttpSession | None,
        is_stateless: bool,  # noqa: FBT001 (of `serve`)
    ) -> Awaitable[None] | None:
        """Start a tool call in this task, and return what sends its answer; None if that is not possible."""
        state = self.state
        if not state.may_run_inline():
            return None
        if len(self.body) > state.small_bytes and oversized_part(request, meta, state.engine.limits) is not None:
            return None
        call: DirectCall | None = None
        if is_stateless:
            call = start_stateless_call(state.engine, self.headers, request, meta, self._open_session)
        # Each request has a token of its own, and most have that of the request before.
        elif session is not None and (session.session.access is self.client.access or session.use_token(self.client)):
            call = start_session_call(session.session, request, meta)
        if call is None:
            return None
        answer = call.answer(request, state.engine.handlers)
        if answer is None:
            if session is None:
                return self._answer_stateless(request, meta, call)
            return session_request.answer(self, session, request, _exchange(session, request, meta, call), call)
        if self._connection is not None:
            self._connection.close()
        if len(answer) <= SMALL_BYTES and len(self.body) <= LARGE_BYTES:
            return responses.send_json(self.send, answer)
        return self._send_large(request, answer)

    def _send_large(self, request: Request, answer: bytes) -> Awaitable[None]:
        """Return what sends an answer that is large, or that answers a large request, whose body is kept no longer."""
        state = self.state
        state.engine.ledger.count_freed(_DECODED_FACTOR * len(self.body))
        self.forget_body()
        state.engine.turns.spend(len(answer))
        response = state.new_response(self.client, None)
        response.write(answer)  # not kept here: a client that does not read would hold two copies
        return responses.send_large(state, response, self.send, responses.abort_of(self.scope), request.id)

    async def _is_relayed(
        self,
        cluster: SharedState,
        message: Message | Batch | Malformed,
        meta: RequestMeta | None,
        is_stateless: bool,  # noqa: FBT001 (of `serve`)
    ) -> bool:
        """Return whether another worker has answered; read the session from the cluster if necessary."""
        if not is_stateless:
            # The cluster is asked for a session, which may be slow, and a client may invent the id.
            if http.SESSION in self.headers and not self._may_wait():
                await self.refuse_overload()
                return True
            await cluster.prepare(self.headers, self.client)
            is_relayed = isinstance(message, Request) and message.method == "tasks/result"
        else:
            is_relayed = meta is not None and meta.request_state is not UNSET
        ticket = self.open_ticket() if is_relayed else None
        if ticket is None:
            return False
        post = RelayedPost(self.headers, self.client, self.body, ticket, self.receive, self.send, self.scope)
        if is_stateless and meta is not None:
            return await cluster.relay_retry(str(meta.request_state), post)
        return await cluster.relay_result(post)

    def _is_stateless(self, message: Message | Batch | Malformed, meta: RequestMeta | None) -> bool:
        """Return whether the metadata or the header of a message names a stateless revision.

        Spec:
            2026-07-28, basic/versioning, "Compatibility Matrix": metadata selects the one era, `initialize` the other.
        """
        handlers = self.state.engine.handlers
        if not handlers.stateless_revisions or not handlers.handshake_revisions:
            return bool(handlers.stateless_revisions)
        if meta is not None and not isinstance(meta.revision, UnsetType):
            return True
        if isinstance(message, Request) and message.method == "initialize":
            return False
        return self.headers.get(http.REVISION, "").strip() in handlers.stateless_revisions

    async def _serve_stateless(self, request: Request, meta: RequestMeta) -> None:
        handlers, revision = self.state.engine.handlers, self.headers.get(http.REVISION, "").strip()
        if meta.revision is UNSET:  # the header alone names the revision
            is_refused = self.state.unsupported_revision(self.headers) is not None
        else:
            is_refused = meta.revision == revision and revision not in handlers.stateless_revisions
        if is_refused:
            await responses.send_unsupported_revision(self.send, revision, handlers.served, request_id=request.id)
            return
        problem = header_problem(handlers, self.headers, request, meta, self.state.engine.reading)
        if problem is not None:
            data = None
            if request.method == "initialize":  # tells a client of a handshake revision what the server supports
                data = {"supported": list(reversed(handlers.served))}
                problem += f"; this server supports {', '.join(data['supported'])}"
            code = ErrorCode.HEADER_MISMATCH
            await responses.send_error(self.send, 400, problem, code=code, request_id=request.id, data=data)
            return
        # Before `initialize`, a ping needs no metadata; but the header says that none is to come.
        missing = missing_fields(meta) if meta.revision is UNSET and request.method == "ping" else None
        if missing is not None:
            await responses.send_error(self.send, 400, missing.message, code=missing.code, request_id=request.id)
            return
        await self._answer_stateless(request, meta)

    async def _answer_stateless(self, request: Request, meta: RequestMeta, call: DirectCall | None = None) -> None:
        """Answer a stateless request on a connection of its own, which ends with the answer or a disconnect."""
        state = self.state
        spawner = await state.open()
        ticket = self.open_ticket()
        if ticket is None:
            await self.abandon(call)
            if self._connection is not None:
                self._connection.close()
            return
        connection = self._connection or self._connect(spawner)
        response = connection.open(ticket, responses.abort_of(self.scope))
        state.connections[connection] = None
        state.add_response(response)
        try:
            send_all = partial(
                responses.send_response,
                state,
                self.receive,
                self.send,
                response,
                start_stream=partial(response.start_stream, encode_event),
                json_seconds=state.limits.keep_alive_seconds,
                status=partial(http_status, is_complete=has_required_metadata(meta, state.engine.limits)),
                body=self.body,
            )
            if call is None:
                take(connection.session, request)
                if connection.session.subscriptions.streams:
                    state.engine.add(connection)
                    with ending_with_token(self.client.access, spawner, connection.end_of_input):
                        await self._send_stream(connection, response, send_all)
                else:
                    await send_all()
            else:
                exchange = _exchange(connection, request, meta, call)
                await finish_call(state, connection, exchange, call, send_all=send_all, sent=connection.close)
        finally:
            state.remove_response(response)
            del state.connections[connection]
            connection.close()

    async def _send_stream(
        self, connection: StatelessConnection, response: ResponseBuffer, send_all: Callable[[], Awaitable[None]]
    ) -> None:
        """Send a stream of changes; end it in order if the ASGI server cancels it, as uvicorn does at its shutdown.

        Spec:
            2026-07-28, basic/patterns/cancellation: MUST send a cancellation when it tears a stream down.
        """
        try:
            await send_all()
        except anyio.get_cancelled_exc_class():
            if response.is_stream and not response.is_sending and not response.has_ended:
                connection.end_of_input()
                await responses.send_end(self.send, response)
            raise

    def _connect(self, spawner: Spawner) -> StatelessConnection:
        state = self.state
        response = state.new_response(self.client, None)
        return StatelessConnection(state.engine, response, spawner, state.open_quota, self.client)

    def _open_session(self) -> ServerSession:
        """Return the session of a stateless call whose function takes a `Context`."""
        spawner = self.state.spawner
        if spawner is None:  # unreachable: `may_run_inline` says that there is one
            raise AssertionError
        self._connection = self._connect(spawner)
        return self._connection.session

    async def _serve_stateless_other(self, message: Message | Batch | Malformed) -> None:
        """Answer a stateless message that is not a request: accept a notification, refuse everything else.

        Spec:
            2026-07-28, basic/transports/streamable-http, "Sending Messages".
        """
        unsupported = self.state.unsupported_revision(self.headers)
        if unsupported is not None:
            served = self.state.engine.handlers.served
            await responses.send_unsupported_revision(self.send, unsupported, served, body=self.body)
        elif isinstance(message, Notification):
            await responses.send_empty(self.send, 202)
        elif isinstance(message, Malformed):
            await self.refuse(message)
        elif isinstance(message, Batch):
            await self.refuse(Malformed(Fault.NO_BATCHES))
        else:
            revision = self.state.engine.handlers.stateless_revisions[-1]
            reason = f"stateless revisions, such as {revision}, do not allow a client to send responses"
            await responses.send_error(self.send, 400, reason)


def _exchange(connection: Connection, request: Request, meta: RequestMeta, call: DirectCall) -> Exchange:
    """Return the exchange of *call*, which goes on with it."""
    if call.exchange is None:
        opened = open_request(connection.session, request, meta, call.peer)
        return Exchange(opened, call.as_handler(), call.params, request.params)
    call.exchange.handler = call.as_handler()
    return call.exchange
