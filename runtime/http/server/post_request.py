"""A POST to the endpoint: what it brings is taken, and answered by JSON or by a stream of events.

Theory of operation. What a message says of its revision decides by whose rules it is served. A stateless request is
served by a connection of its own, one of a session by the session; either writes to an `ResponseBuffer`. If the
answer is all that comes out, and comes soon, it is sent as JSON. Otherwise a stream is begun.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP"; 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.direct_calls import CALL, finish_call, start_session_call, start_stateless_call
from mcpgen.runtime.http.server.http_session import HttpSession
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.responses import send_response
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.http.server.stateless_request import (
    HEADER_MISMATCH,
    StatelessConnection,
    has_required_metadata,
    header_problem,
    http_status,
)
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.messages import (
    Batch,
    Code,
    ErrorResponse,
    Fault,
    Malformed,
    Notification,
    Request,
    Response,
)
from mcpgen.runtime.protocol.negotiation import read_meta
from mcpgen.runtime.server.exchange import Exchange, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.direct_calls import DirectCall
    from mcpgen.runtime.http.server.event_streams import EventStream
    from mcpgen.runtime.http.server.responses import Receive, Send
    from mcpgen.runtime.protocol.messages import Message
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.connection import Connection

__all__ = ["PostRequest"]

# A client that was refused because there is too much to do may try again then.
_RETRY_LATER: Final = (b"retry-after", b"1")

_HANDSHAKE_NEEDED: Final = (
    "the request belongs to no session: it has no Mcp-Session-Id; "
    "begin one with initialize, or name the revision in _meta"
)


class PostRequest:
    """One POST.

    Args:
        desk: What it shares with others.
        headers: As `headers.gathered` returns them.
        user: Who sends it.
        receive: Of ASGI.
        send: Of ASGI.
    """

    __slots__ = ("_desk", "_headers", "_receive", "_send", "_service", "_size", "_user")

    def __init__(self, desk: AppState, headers: Mapping[str, str], user: str, receive: Receive, send: Send) -> None:
        self._desk = desk
        self._headers = headers
        self._user = user
        self._receive = receive
        self._send = send
        self._service = desk.engine.service
        self._size = 0

    async def serve(self, body: bytes) -> None:
        """Answer what *body* holds."""
        self._size = len(body)
        busy = self._desk.refusal(self._size)
        if busy is not None:
            await responses.send_error(self._send, 503, busy, headers=(_RETRY_LATER,))
            return
        limit = self._service.limits.max_batch_length
        message = envelope.decode(body, max_batch_length=limit)
        meta = read_meta(message.params) if isinstance(message, Request) else None
        is_stateless = self._is_stateless(message, meta)
        if meta is not None and isinstance(message, Request):
            begun = self._begun(message, meta, is_stateless) if message.method == CALL else None
            if begun is not None:
                await self._go_through(message, meta, *begun)
            elif is_stateless:
                await self._stateless(message, meta)
            else:
                await self._handshake(message)
        elif is_stateless:
            await self._no_request(message)
        else:
            await self._handshake(message)

    def _begun(
        self,
        call: Request,
        meta: RequestMeta,
        is_stateless: bool,  # noqa: FBT001 (of `serve`)
    ) -> tuple[DirectCall, HttpSession | None] | None:
        """Begin a tool call by the short way, if it has one; return it with the session that it belongs to."""
        if not self._desk.may_step:
            return None
        if is_stateless:
            begun = start_stateless_call(self._service, self._headers, meta)
            return None if begun is None else (begun, None)
        session = self._session()
        begun = None if session is None else start_session_call(session.session, call, meta)
        return None if begun is None else (begun, session)

    async def _go_through(
        self, call: Request, meta: RequestMeta, begun: DirectCall, session: HttpSession | None
    ) -> None:
        """Answer a call that has begun."""
        answer = begun.answer(call)
        if answer is not None:
            await responses.send_json(self._send, answer)
        elif session is None:
            await self._alone(call, meta, begun)
        else:
            await self._answered(session, call, meta, begun)

    def _session(self) -> HttpSession | None:
        """Return the session that the request belongs to, unless something is wrong with what it says about it."""
        session_id, said = self._headers.get(http.SESSION), self._headers.get(http.REVISION)
        if session_id is None or (said is not None and said not in self._service.served):
            return None
        return self._desk.sessions.find(session_id, self._user)

    def _is_stateless(self, message: Message | Batch | Malformed, meta: RequestMeta | None) -> bool:
        """Whether the message is of a client that shakes no hands, as its metadata says, or its header.

        Spec:
            2026-07-28, basic/versioning, "Compatibility Matrix": metadata selects the one era, `initialize` the other.
        """
        service = self._service
        if not service.stateless or not service.handshakes:
            return bool(service.stateless)
        if meta is not None and not isinstance(meta.revision, UnsetType):
            return True
        if isinstance(message, Request) and message.method == "initialize":
            return False
        return self._headers.get(http.REVISION, "").strip() in service.stateless

    async def _stateless(self, request: Request, meta: RequestMeta) -> None:
        service = self._service
        said = self._headers.get(http.REVISION, "").strip()
        if meta.revision is not UNSET and meta.revision == said and said not in service.stateless:
            await responses.send_unsupported_revision(self._send, said, service.served, request_id=request.id)
            return
        wrong = header_problem(service, self._headers, request, meta)
        if wrong is not None:
            data = None
            if request.method == "initialize":  # whoever shakes hands learns what would be spoken here
                data = {"supported": list(reversed(service.served))}
                wrong += f"; this server serves {', '.join(data['supported'])}"
            await responses.send_error(self._send, 400, wrong, code=HEADER_MISMATCH, request_id=request.id, data=data)
            return
        await self._alone(request, meta)

    async def _alone(self, request: Request, meta: RequestMeta, begun: DirectCall | None = None) -> None:
        """Answer a stateless request by a connection of its own, which ends with the answer or when its client goes."""
        desk = self._desk
        spawner = await desk.open()
        outlet = ResponseBuffer(desk.engine.limits.max_buffered_bytes)
        post = StatelessConnection(desk.engine, outlet, spawner, self._user)
        desk.passing[post] = None
        desk.enter(outlet, self._size)
        try:
            status = partial(http_status, is_complete=has_required_metadata(meta))
            begin, seconds = partial(outlet.begin, encode_event), desk.limits.keep_alive_seconds
            sending = partial(send_response, desk, self._receive, self._send, outlet)
            send_all = partial(sending, begin=begin, seconds=seconds, status=status)
            if begun is None:
                post.session.take(request)
                if post.session.listening.streams:
                    desk.engine.adopt(post)
                await send_all()
            else:
                await finish_call(
                    desk, post, _exchange(post, request, meta, begun), begun, reply=send_all, end=post.close
                )
        finally:
            desk.leave(outlet, self._size)
            del desk.passing[post]
            post.close()

    async def _no_request(self, message: Message | Batch | Malformed) -> None:
        """Answer what a stateless client sends beside requests: a notification is accepted, all else refused.

        Spec:
            2026-07-28, basic/transports/streamable-http, "Sending Messages".
        """
        said = self._desk.unserved(self._headers)
        if said is not None:
            await responses.send_unsupported_revision(self._send, said, self._service.served)
        elif isinstance(message, Notification):
            await responses.send_empty(self._send, 202)
        elif isinstance(message, Malformed):
            await self._malformed(message)
        elif isinstance(message, Batch):
            await self._malformed(Malformed(Fault.NO_BATCHES))
        else:
            await responses.send_error(self._send, 400, "a client sends no responses in this revision")

    async def _handshake(self, message: Message | Batch | Malformed) -> None:
        said = self._desk.unserved(self._headers)
        if said is not None:
            # 2026-07-28, streamable-http, "Backward Compatibility": a client of both eras takes its code for the sign
            # of a modern server, and would not shake hands with one that is none.
            code = None if self._service.stateless else Code.INVALID_REQUEST
            await responses.send_unsupported_revision(self._send, said, self._service.served, code=code)
            return
        session_id = self._headers.get(http.SESSION)
        if session_id is not None:
            session = self._desk.sessions.find(session_id, self._user)
            if session is None:
                await responses.send_unknown_session(self._send)
            else:
                await self._in_session(session, message)
        elif isinstance(message, Request) and message.method == "initialize":
            await self._begin(message)
        elif isinstance(message, Malformed):
            await self._malformed(message)
        else:
            request_id = message.id if isinstance(message, Request) else UNSET
            await responses.send_error(self._send, 400, _HANDSHAKE_NEEDED, request_id=request_id)

    async def _begin(self, request: Request) -> None:
        """Begin a session, if its client is agreed with."""
        desk = self._desk
        spawner = await desk.open()
        session = HttpSession(
            desk.engine,
            spawner,
            desk.store,
            desk.limits,
            session_id=random_id(),
            streams_id=random_id(),
            user=self._user,
        )
        _, outlet = session.take(request)
        body = outlet.take()  # the engine answers it at once
        if session.session.peer is None:
            session.close()
            await responses.send_json(self._send, body)
            return
        if not desk.sessions.make_room():  # only now, since it may cost another client its session
            session.close()
            headers = (_RETRY_LATER,)
            await responses.send_error(self._send, 503, "there are too many sessions (max_sessions)", headers=headers)
            return
        desk.sessions.add(session)
        desk.engine.adopt(session)
        await responses.send_json(self._send, body, headers=((b"mcp-session-id", session.id.encode()),))

    async def _in_session(self, session: HttpSession, message: Message | Batch | Malformed) -> None:
        revision = session.session.revision
        if isinstance(message, Notification | Response | ErrorResponse):
            session.session.take(message)
            await responses.send_empty(self._send, 202)
        elif isinstance(message, Malformed):
            if message.kind == "response":  # somebody waits for it
                session.session.take(message)
            await self._malformed(message)
        elif isinstance(message, Batch) and not envelope.allows_batches(revision):
            await self._malformed(Malformed(Fault.NO_BATCHES))
        elif isinstance(message, Batch) and (nothing := _nothing(message)) is not None:
            await self._malformed(nothing)
        else:
            await self._answered(session, message)

    async def _answered(
        self,
        session: HttpSession,
        message: Request | Batch,
        meta: RequestMeta | None = None,
        begun: DirectCall | None = None,
    ) -> None:
        exchange = None
        if begun is None or meta is None or not isinstance(message, Request):
            stream, outlet = session.take(message)
        else:
            exchange = _exchange(session, message, meta, begun)
            stream, outlet = session.open_stream(exchange)
        self._desk.sessions.hold(session)
        self._desk.enter(outlet, self._size)
        try:
            if outlet.is_over and outlet.is_empty:  # a batch in which nothing is to be answered
                await responses.send_empty(self._send, 202)
                return
            send_all = partial(self._reply_in_session, session, stream, outlet)
            if exchange is None or begun is None:
                await send_all()
            else:
                leave = partial(self._leave, session, stream, outlet)
                await finish_call(self._desk, session, exchange, begun, reply=send_all, end=leave)
        finally:
            self._leave(session, stream, outlet)

    async def _reply_in_session(self, session: HttpSession, stream: EventStream, outlet: ResponseBuffer) -> None:
        begin = partial(_begin_stream, session, stream)
        try:
            seconds = self._desk.limits.stream_after_seconds
            await send_response(self._desk, self._receive, self._send, outlet, begin=begin, seconds=seconds)
        except _SessionEnded:
            await responses.send_unknown_session(self._send)

    def _leave(self, session: HttpSession, stream: EventStream, outlet: ResponseBuffer) -> None:
        """Take it that nothing more goes over *outlet*; its call may go on, and its session may end meanwhile."""
        if outlet in self._desk.outlets:
            stream.detach(outlet)
            self._desk.leave(outlet, self._size)
            self._desk.sessions.release(session)

    async def _malformed(self, malformed: Malformed) -> None:
        is_answered = malformed.kind not in ("notification", "response")
        request_id = malformed.id if is_answered and malformed.id is not None else UNSET
        await responses.send_error(
            self._send, 400, malformed.fault.reason, code=malformed.fault.code, request_id=request_id
        )


def _exchange(connection: Connection, request: Request, meta: RequestMeta, begun: DirectCall) -> Exchange:
    origin = Origin(connection.session, request.id, begun.peer, meta.progress_token, meta.log_level)
    return Exchange(origin, begun.as_entry(), begun.params, request.params)


class _SessionEnded(Exception):  # noqa: N818 (no error: its client has asked for it)
    """A session has ended before anything was said about a request."""


def _begin_stream(session: HttpSession, stream: EventStream) -> None:
    if session.session.is_closed:
        raise _SessionEnded
    session.begin(stream)


def _nothing(batch: Batch) -> Malformed | None:
    """Return what is wrong with a batch that holds no message at all; None if it holds one.

    Spec:
        2025-03-26, basic/transports, "Sending Messages to the Server": what is not accepted has an error status.
    """
    faults = [each for each in batch.items if isinstance(each, Malformed) and each.id is None]
    return faults[0] if len(faults) == len(batch.items) else None
