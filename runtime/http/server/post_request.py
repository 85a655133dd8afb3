"""POST on the endpoint: handle the message in its body, and answer it with JSON or with a stream of events.

Theory of operation. The revision that a message names decides which rules apply. A request of a stateless revision has
a connection of its own; every other message belongs to a session. Either writes to a `ResponseBuffer`. If the answer is
the only message and comes soon, it is sent as JSON. Otherwise a stream is started.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP"; 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct, UnsetType

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.app_state import AppState
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.direct_calls import CALL, finish_call, start_session_call, start_stateless_call
from mcpgen.runtime.http.server.http_session import HttpSession, malformed_batch
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES, Ticket, request_count
from mcpgen.runtime.http.server.rate_limit import bucket_name, call_count, send_rate_limited
from mcpgen.runtime.http.server.response_buffer import SMALL_BYTES, ResponseBuffer
from mcpgen.runtime.http.server.responses import Receive, Scope, Send
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.http.server.stateless_request import (
    StatelessConnection,
    has_required_metadata,
    header_problem,
    http_status,
)
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Fault, Malformed, Notification, Request, Response
from mcpgen.runtime.protocol.negotiation import read_meta
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.dispatcher import take
from mcpgen.runtime.server.exchange import Exchange, OpenRequest

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.direct_calls import DirectCall
    from mcpgen.runtime.http.server.event_streams import EventStream
    from mcpgen.runtime.protocol.messages import Message
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.connection import Connection

__all__ = ["PostRequest"]

# How much memory the parts of a message take beside its bytes, if it is not counted exactly.
_DECODED_FACTOR: Final = 4

_NO_SESSION_ID: Final = (
    "the request has no Mcp-Session-Id header; start a session with initialize, or name the revision in _meta"
)


class PostRequest(Struct, eq=False):
    """One POST on the endpoint.

    Attributes:
        state: The state of the application.
        headers: The request's headers, as `headers_by_name` returns them.
        client: Who sends it.
        receive: Of ASGI.
        send: Of ASGI.
        scope: Of ASGI.
    """

    state: AppState
    headers: Mapping[str, str]
    client: Client
    receive: Receive
    send: Send
    scope: Scope
    _body: bytes = b""
    _ticket: Ticket | None = None

    async def serve(self, body: bytes) -> None:
        """Handle the message in *body*, and answer it."""
        self._body = body
        state = self.state
        # Most calls return at once, and need no ticket if there is room for them.
        if state.is_shutting_down or not state.open_quota.has_room(OPEN_REQUEST_BYTES + _DECODED_FACTOR * len(body)):
            self._ticket = state.open_ticket(self.client, body, session=self.headers.get(http.SESSION, ""))
            if self._ticket is None:
                await self._refuse_overload()
                return
        limits = state.engine.limits
        try:
            message = envelope.decode(body, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
            meta = read_meta(message.params) if isinstance(message, Request) else None
            is_stateless = self._is_stateless(message, meta)
            seconds = self._seconds_to_wait(message, is_stateless)
            if seconds:
                await send_rate_limited(self.send, message, seconds)
            elif meta is None or not isinstance(message, Request):
                await (self._serve_stateless_other(message) if is_stateless else self._serve_handshake(message))
            elif message.method == CALL and await self._serve_directly(message, meta, is_stateless):
                return
            elif is_stateless:
                await self._serve_stateless(message, meta)
            else:
                await self._serve_handshake(message)
        finally:
            self._release_ticket()

    def _seconds_to_wait(self, message: Message | Batch | Malformed, is_stateless: bool) -> float:  # noqa: FBT001 (of `serve`)
        """Return how long the client has to wait because of its rate limit; take its tokens if that is 0."""
        state = self.state
        if state.limits.rate_limit is None:
            return 0
        calls = call_count(message)
        if not calls:
            return 0
        session_id = None if is_stateless else self.headers.get(http.SESSION)
        return state.rates.wait_seconds(bucket_name(self.client, session_id, state.sessions), calls)

    def _release_ticket(self) -> None:
        if self._ticket is not None:
            self._ticket.release()

    async def _refuse_overload(self) -> None:
        await responses.send_error(self.send, 503, self.state.refusal, headers=(responses.RETRY_AFTER,))

    def _open_ticket(self, count: int = 1, session: str = "") -> Ticket | None:
        """Return the ticket of this request, which `serve` releases; None if there is no room for it."""
        if self._ticket is None or count > 1:
            self._release_ticket()
            self._ticket = self.state.open_ticket(self.client, self._body, session=session, count=count)
        return self._ticket

    async def _serve_directly(
        self,
        request: Request,
        meta: RequestMeta,
        is_stateless: bool,  # noqa: FBT001 (of `serve`)
    ) -> bool:
        """Start a tool call in this task, and answer it; return False if that is not possible."""
        if not self.state.runs_inline:
            return False
        session = None if is_stateless else self._session()
        call: DirectCall | None = None
        if is_stateless:
            call = start_stateless_call(self.state.engine.handlers, self.headers, request, meta)
        elif session is not None:
            call = start_session_call(session.session, request, meta)
        if call is None:
            return False
        answer = call.answer(request)
        if answer is not None and len(answer) > SMALL_BYTES:
            response = self.state.new_response(self.client, None)
            response.write(answer)
            del answer, call  # a client that does not read would hold a copy in each of them
            await responses.send_large(self.state, response, self.send, responses.abort_of(self.scope))
        elif answer is not None:
            await responses.send_json(self.send, answer)
        elif session is None:
            await self._answer_stateless(request, meta, call)
        else:
            await self._answer_in_session(session, request, _exchange(session, request, meta, call), call)
        return True

    def _session(self) -> HttpSession | None:
        """Return the session that the headers name; None if there is none, or the headers are wrong."""
        session_id, revision = self.headers.get(http.SESSION), self.headers.get(http.REVISION)
        if session_id is None or (revision is not None and revision not in self.state.engine.handlers.served):
            return None
        return self.state.sessions.find(session_id, self.client.user)

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
        if meta.revision is not UNSET and meta.revision == revision and revision not in handlers.stateless_revisions:
            await responses.send_unsupported_revision(self.send, revision, handlers.served, request_id=request.id)
            return
        problem = header_problem(handlers, self.headers, request, meta)
        if problem is not None:
            data = None
            if request.method == "initialize":  # tells a client of a handshake revision what the server supports
                data = {"supported": list(reversed(handlers.served))}
                problem += f"; this server supports {', '.join(data['supported'])}"
            code = ErrorCode.HEADER_MISMATCH
            await responses.send_error(self.send, 400, problem, code=code, request_id=request.id, data=data)
            return
        await self._answer_stateless(request, meta)

    async def _answer_stateless(self, request: Request, meta: RequestMeta, call: DirectCall | None = None) -> None:
        """Answer a stateless request on a connection of its own, which ends with the answer or a disconnect."""
        state = self.state
        spawner = await state.open()
        ticket = self._open_ticket()
        if ticket is None:
            await self._abandon(call)
            return
        response = state.new_response(self.client, responses.abort_of(self.scope))
        connection = StatelessConnection(state.engine, response, spawner, state.open_quota, self.client, ticket)
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
                status=partial(http_status, is_complete=has_required_metadata(meta)),
            )
            if call is None:
                take(connection.session, request)
                if connection.session.subscriptions.streams:
                    state.engine.add(connection)
                await send_all()
            else:
                exchange = _exchange(connection, request, meta, call)
                await finish_call(state, connection, exchange, call, send_all=send_all, sent=connection.close)
        finally:
            state.remove_response(response)
            del state.connections[connection]
            connection.close()

    async def _serve_stateless_other(self, message: Message | Batch | Malformed) -> None:
        """Answer a stateless message that is not a request: accept a notification, refuse everything else.

        Spec:
            2026-07-28, basic/transports/streamable-http, "Sending Messages".
        """
        unsupported = self.state.unsupported_revision(self.headers)
        if unsupported is not None:
            await responses.send_unsupported_revision(self.send, unsupported, self.state.engine.handlers.served)
        elif isinstance(message, Notification):
            await responses.send_empty(self.send, 202)
        elif isinstance(message, Malformed):
            await self._refuse(message)
        elif isinstance(message, Batch):
            await self._refuse(Malformed(Fault.NO_BATCHES))
        else:
            await responses.send_error(self.send, 400, "this revision does not allow a client to send responses")

    async def _serve_handshake(self, message: Message | Batch | Malformed) -> None:
        unsupported = self.state.unsupported_revision(self.headers)
        if unsupported is not None:
            # 2026-07-28, streamable-http, "Backward Compatibility": this revision's code tells a client that the server
            # is stateless; so a server without stateless revisions must not use it, or the client sends no initialize.
            handlers = self.state.engine.handlers
            code = None if handlers.stateless_revisions else ErrorCode.INVALID_REQUEST
            await responses.send_unsupported_revision(self.send, unsupported, handlers.served, code=code)
            return
        session_id = self.headers.get(http.SESSION)
        if session_id is not None:
            session = self.state.sessions.find(session_id, self.client.user)
            if session is None:
                await responses.send_unknown_session(self.send)
            else:
                await self._serve_in_session(session, message)
        elif isinstance(message, Request) and message.method == "initialize":
            await self._start_session(message)
        elif isinstance(message, Malformed):
            await self._refuse(message)
        else:
            request_id = message.id if isinstance(message, Request) else UNSET
            await responses.send_error(self.send, 400, _NO_SESSION_ID, request_id=request_id)

    async def _start_session(self, request: Request) -> None:
        """Answer `initialize`, and start a session if the answer is no error."""
        state = self.state
        spawner = await state.open()
        session = HttpSession(
            state.engine,
            spawner,
            state.store,
            state.limits,
            state.open_quota,
            session_id=random_id(),
            streams_id=f"{state.tag(self.client)}.{random_id()}",
            client=self.client,
        )
        _, response = session.take(request)
        body = response.take()  # the server session has answered already
        if session.session.peer is None:
            session.close()
            await responses.send_json(self.send, body)
            return
        if not state.sessions.add(session, self._body):  # only now, since it may end another client's session
            session.close()
            reason = "there are too many sessions (max_sessions, max_sessions_bytes)"
            await responses.send_error(self.send, 503, reason, headers=(responses.RETRY_AFTER,))
            return
        state.engine.add(session)
        await responses.send_json(self.send, body, headers=((b"mcp-session-id", session.id.encode()),))

    async def _serve_in_session(self, session: HttpSession, message: Message | Batch | Malformed) -> None:
        revision = session.session.revision
        if isinstance(message, Notification | Response | ErrorResponse):
            take(session.session, message)
            await responses.send_empty(self.send, 202)
        elif isinstance(message, Malformed):
            if message.kind == "response":  # fails the request that it answers
                take(session.session, message)
            await self._refuse(message)
        elif isinstance(message, Batch) and not envelope.allows_batches(revision):
            await self._refuse(Malformed(Fault.NO_BATCHES))
        elif isinstance(message, Batch) and (malformed := malformed_batch(message)) is not None:
            await self._refuse(malformed)
        else:
            await self._answer_in_session(session, message)

    async def _answer_in_session(
        self,
        session: HttpSession,
        message: Request | Batch,
        exchange: Exchange | None = None,
        call: DirectCall | None = None,
    ) -> None:
        ticket = self._open_ticket(request_count(message), session.id)
        if ticket is None:
            await self._abandon(call)
            return
        stream, response = session.take(message, ticket) if exchange is None else session.open_stream(exchange, ticket)
        response.unread, response.owner = self.state.unread, self.client.owner
        response.on_abort = responses.abort_of(self.scope)
        self.state.sessions.hold(session)
        self.state.add_response(response)
        try:
            if response.has_ended and response.is_empty:  # a batch without requests
                await responses.send_empty(self.send, 202)
                return
            send_all = partial(self._send_in_session, session, stream, response)
            if exchange is None or call is None:
                await send_all()
            else:
                sent = partial(self._leave_session, session, stream, response)
                await finish_call(self.state, session, exchange, call, send_all=send_all, sent=sent)
        finally:
            self._leave_session(session, stream, response)

    async def _send_in_session(self, session: HttpSession, stream: EventStream, response: ResponseBuffer) -> None:
        state = self.state
        try:
            await responses.send_response(
                state,
                self.receive,
                self.send,
                response,
                start_stream=partial(_start_stream, session, stream),
                json_seconds=state.limits.stream_after_seconds,
            )
        except _SessionEnded:
            await responses.send_unknown_session(self.send)

    async def _abandon(self, call: DirectCall | None) -> None:
        """Refuse a request for which there is no room, although its function may have begun."""
        if call is not None:
            call.close()
        await self._refuse_overload()

    def _leave_session(self, session: HttpSession, stream: EventStream, response: ResponseBuffer) -> None:
        """Detach *response*, once; its call may go on, and its session may have ended."""
        if response in self.state.open_responses:
            stream.detach(response)
            self.state.remove_response(response)
            self.state.sessions.release(session)

    async def _refuse(self, malformed: Malformed) -> None:
        has_answer = malformed.kind not in ("notification", "response")
        request_id = malformed.id if has_answer and malformed.id is not None else UNSET
        status = 413 if malformed.fault is Fault.TOO_MANY_VALUES else 400
        await responses.send_error(
            self.send, status, malformed.reason, code=malformed.fault.code, request_id=request_id
        )


def _exchange(connection: Connection, request: Request, meta: RequestMeta, call: DirectCall) -> Exchange:
    open_request = OpenRequest(connection.session, request.id, call.peer, meta.progress_token, meta.log_level)
    return Exchange(open_request, call.as_handler(), call.params, request.params)


class _SessionEnded(Exception):  # noqa: N818 (no error: its client has ended it)
    """The session of a request has ended before a message was sent."""


def _start_stream(session: HttpSession, stream: EventStream) -> None:
    if session.session.is_closed:
        raise _SessionEnded
    session.start_stream(stream)
