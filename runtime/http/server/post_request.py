"""POST on the endpoint: handle the message in its body, and answer it with JSON or with a stream of events.

Theory of operation. The revision that a message names decides which rules apply. A request of a stateless revision has
a connection of its own; every other message belongs to a session. Either writes to a `ResponseBuffer`. If the answer is
the only message and comes soon, it is sent as JSON. Otherwise a stream is started.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP"; 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from mcpgen.runtime.http.server import responses, session_request
from mcpgen.runtime.http.server.auth.required_scopes import refuse_scopes
from mcpgen.runtime.http.server.auth.token_expiry import ending_with_token
from mcpgen.runtime.http.server.direct_calls import CALL, finish_call, start_session_call, start_stateless_call
from mcpgen.runtime.http.server.http_request import HttpRequest
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES
from mcpgen.runtime.http.server.response_buffer import SMALL_BYTES
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
from mcpgen.runtime.protocol.negotiation import oversized_part, read_meta
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.reading_policy import SUSPECT
from mcpgen.runtime.server.dispatcher import take
from mcpgen.runtime.server.exchange import Exchange, OpenRequest

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.direct_calls import DirectCall
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.shared_state import SharedState
    from mcpgen.runtime.protocol.messages import Message
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.connection import Connection

__all__ = ["PostRequest"]

# How much memory the parts of a message take beside its bytes, if it is not counted exactly.
_DECODED_FACTOR: Final = 4


class PostRequest(HttpRequest, eq=False):
    """One POST on the endpoint, which it answers."""

    async def serve(self, body: bytes) -> None:
        """Handle the message in *body*, and answer it."""
        self.body = body
        state = self.state
        # Most calls return at once, and need no ticket if there is room for them.
        has_room = state.open_quota.has_room(OPEN_REQUEST_BYTES + _DECODED_FACTOR * len(body))
        needs_ticket = state.is_shutting_down or not has_room
        if needs_ticket and self.open_ticket(session=self.headers.get(http.SESSION, "")) is None:
            await self.refuse_overload()
            return
        limits = state.engine.limits
        try:
            message = envelope.decode(body, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
            if isinstance(message, SUSPECT):
                message = state.engine.reading.reread(body, message, limits)
            meta = read_meta(message.params) if isinstance(message, Request) else None
            is_stateless = self._is_stateless(message, meta)
            if state.cluster is not None and await self._is_relayed(state.cluster, meta, is_stateless):
                return
            session = None if is_stateless else session_request.find_session(self)
            may_need_scopes = state.tokens is not None or state.engine.handlers.scopes is not None
            if may_need_scopes and await refuse_scopes(state, self.client, self.send, message, meta):
                return
            rates, own = state.rates, None if session is None else session.bucket
            if rates is not None and (seconds := rates.wait_seconds(message, self.client, own)):
                await self.refuse_rate(message, seconds)
            elif meta is None or not isinstance(message, Request):
                await (self._serve_stateless_other(message) if is_stateless else session_request.serve(self, message))
            elif message.method == CALL and await self._serve_directly(message, meta, session, is_stateless):
                return
            elif is_stateless:
                await self._serve_stateless(message, meta)
            else:
                await session_request.serve(self, message)
        finally:
            if self.ticket is not None:
                self.ticket.release()

    async def _serve_directly(
        self,
        request: Request,
        meta: RequestMeta,
        session: HttpSession | None,
        is_stateless: bool,  # noqa: FBT001 (of `serve`)
    ) -> bool:
        """Start a tool call in this task, and answer it; return False if that is not possible."""
        state = self.state
        if not state.runs_inline:
            return False
        if len(self.body) > state.small_bytes and oversized_part(request, meta, state.engine.limits) is not None:
            return False
        call: DirectCall | None = None
        if is_stateless:
            call = start_stateless_call(state.engine, self.headers, meta)
        elif session is not None:
            call = start_session_call(session.session, request, meta)
        if call is None:
            return False
        answer = call.answer(request, state.engine.handlers)
        if answer is not None and len(answer) > SMALL_BYTES:
            self.state.engine.turns.spend(len(answer))
            response = self.state.new_response(self.client, None)
            response.write(answer)
            del answer, call  # a client that does not read would hold a copy in each of them
            await responses.send_large(self.state, response, self.send, responses.abort_of(self.scope))
        elif answer is not None:
            await responses.send_json(self.send, answer)
        elif session is None:
            await self._answer_stateless(request, meta, call)
        else:
            await session_request.answer(self, session, request, _exchange(session, request, meta, call), call)
        return True

    async def _is_relayed(
        self,
        cluster: SharedState,
        meta: RequestMeta | None,
        is_stateless: bool,  # noqa: FBT001 (of `serve`)
    ) -> bool:
        """Return whether another worker has answered; read the session from the cluster if necessary."""
        if not is_stateless:
            await cluster.prepare(self.headers)
        elif meta is not None and meta.request_state is not UNSET and self.open_ticket() is not None:
            state, receive, send = str(meta.request_state), self.receive, self.send
            return await cluster.relay_retry(state, self.headers, self.client, self.body, receive=receive, send=send)
        return False

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
        problem = header_problem(handlers, self.headers, request, meta, self.state.engine.reading)
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
        ticket = self.open_ticket()
        if ticket is None:
            await self.abandon(call)
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
                status=partial(http_status, is_complete=has_required_metadata(meta, state.engine.limits)),
            )
            if call is None:
                take(connection.session, request)
                if connection.session.subscriptions.streams:
                    state.engine.add(connection)
                    with ending_with_token(self.client.access, spawner, connection.end_of_input):
                        await send_all()
                else:
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
            await self.refuse(message)
        elif isinstance(message, Batch):
            await self.refuse(Malformed(Fault.NO_BATCHES))
        else:
            await responses.send_error(self.send, 400, "this revision does not allow a client to send responses")


def _exchange(connection: Connection, request: Request, meta: RequestMeta, call: DirectCall) -> Exchange:
    session = connection.session
    token, level = meta.progress_token, meta.log_level
    open_request = OpenRequest(session, request.id, call.peer, token, level, access=session.access)
    return Exchange(open_request, call.as_handler(), call.params, request.params)
