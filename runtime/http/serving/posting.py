"""A POST to the endpoint: what it brings is taken, and answered by JSON or by a stream of events.

Theory of operation. What a message says of its revision decides by whose rules it is served. A stateless request is
served by a connection of its own, one of a session by the session; either writes to an `Outlet`. If the answer is all
that comes out, and comes soon, it is sent as JSON. Otherwise a stream is begun.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP"; 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import UNSET, UnsetType

from mcpgen.runtime.http import headers as http
from mcpgen.runtime.http.events import event
from mcpgen.runtime.http.serving import replies
from mcpgen.runtime.http.serving.outlet import Outlet
from mcpgen.runtime.http.serving.session import HttpSession
from mcpgen.runtime.http.serving.sessions import new_id
from mcpgen.runtime.http.serving.stateless import HEADER_MISMATCH, StatelessPost, disagreement, status_of
from mcpgen.runtime.peers.negotiation import missing_fields, read_meta, unsupported
from mcpgen.runtime.wire import envelope
from mcpgen.runtime.wire.messages import Batch, ErrorResponse, Fault, Malformed, Notification, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.serving.desk import Desk
    from mcpgen.runtime.http.serving.replies import Receive, Send
    from mcpgen.runtime.http.serving.streams import Stream
    from mcpgen.runtime.peers.negotiation import RequestMeta
    from mcpgen.runtime.wire.messages import Message

__all__ = ["Post"]

# A client that was refused because there is too much to do may try again then.
_RETRY_LATER: Final = (b"retry-after", b"1")

_HANDSHAKE_NEEDED: Final = "the request belongs to no session: it has no Mcp-Session-Id"


class Post:
    """One POST.

    Args:
        desk: What it shares with others.
        headers: As `headers.gathered` returns them.
        user: Who sends it.
        receive: Of ASGI.
        send: Of ASGI.
    """

    __slots__ = ("_desk", "_headers", "_receive", "_send", "_service", "_size", "_user")

    def __init__(self, desk: Desk, headers: Mapping[str, str], user: str, receive: Receive, send: Send) -> None:
        self._desk = desk
        self._headers = headers
        self._user = user
        self._receive = receive
        self._send = send
        self._service = desk.server.service
        self._size = 0

    async def serve(self, body: bytes) -> None:
        """Answer what *body* holds."""
        self._size = len(body)
        busy = self._desk.refusal(self._size)
        if busy is not None:
            await replies.refuse(self._send, 503, busy, headers=(_RETRY_LATER,))
            return
        limit = self._service.limits.max_batch_length
        message = envelope.decode(body, max_batch_length=limit)
        meta = read_meta(message.params) if isinstance(message, Request) else None
        if self._is_stateless(meta):
            if isinstance(message, Request) and meta is not None:
                await self._stateless(message, meta)
            else:
                await self._no_request(message)
        else:
            await self._handshake(message)

    def _is_stateless(self, meta: RequestMeta | None) -> bool:
        """Whether the message is of a client that shakes no hands, as its metadata says, or its header."""
        service = self._service
        if not service.stateless or not service.handshakes:
            return bool(service.stateless)
        if meta is not None and not isinstance(meta.revision, UnsetType):
            return True
        return self._headers.get(http.REVISION, "").strip() in service.stateless

    async def _stateless(self, request: Request, meta: RequestMeta) -> None:
        service = self._service
        said = self._headers.get(http.REVISION, "").strip()
        if meta.revision is not UNSET and meta.revision == said and said not in service.stateless:
            error = unsupported(said, service.served)
            await replies.refuse(self._send, 400, str(error), code=error.code, request_id=request.id, data=error.data)
            return
        wrong = disagreement(service, self._headers, request, meta)
        if wrong is not None:
            data = None
            if request.method == "initialize":  # whoever shakes hands learns what would be spoken here
                data = {"supported": list(reversed(service.served))}
                wrong += f"; this server serves {', '.join(data['supported'])}"
            await replies.refuse(self._send, 400, wrong, code=HEADER_MISMATCH, request_id=request.id, data=data)
            return
        desk = self._desk
        spawner = await desk.open()
        outlet = Outlet(desk.server.limits.max_buffered_bytes)
        post = StatelessPost(desk.server, outlet, spawner, self._user)
        desk.passing[post] = None
        desk.enter(outlet, self._size)
        try:
            post.session.take(request)
            status = partial(status_of, is_complete=missing_fields(meta) is None)
            await self._reply(outlet, partial(outlet.begin, event), desk.limits.keep_alive_seconds, status)
        finally:
            desk.leave(outlet, self._size)
            del desk.passing[post]
            post.close()

    async def _no_request(self, message: Message | Batch | Malformed) -> None:
        """Answer what a stateless client sends beside requests: a notification is accepted, all else refused.

        Spec:
            2026-07-28, basic/transports/streamable-http, "Sending Messages".
        """
        if isinstance(message, Notification):
            await replies.empty(self._send, 202)
        elif isinstance(message, Malformed):
            await self._malformed(message)
        elif isinstance(message, Batch):
            await self._malformed(Malformed(Fault.NO_BATCHES))
        else:
            await replies.refuse(self._send, 400, "a client sends no responses in this revision")

    async def _handshake(self, message: Message | Batch | Malformed) -> None:
        said = self._headers.get(http.REVISION)
        if said is not None and said.strip() not in self._service.served:
            # 2025-06-18, basic/transports, "Protocol Version Header": MUST.
            error = unsupported(said.strip(), self._service.served)
            await replies.refuse(self._send, 400, str(error), code=error.code, data=error.data)
            return
        session_id = self._headers.get(http.SESSION)
        if session_id is not None:
            session = self._desk.sessions.find(session_id, self._user)
            if session is None:
                await replies.refuse(self._send, 404, "there is no such session")
            else:
                await self._in_session(session, message)
        elif isinstance(message, Request) and message.method == "initialize":
            await self._begin(message)
        elif isinstance(message, Malformed):
            await self._malformed(message)
        else:
            request_id = message.id if isinstance(message, Request) else UNSET
            await replies.refuse(self._send, 400, _HANDSHAKE_NEEDED, request_id=request_id)

    async def _begin(self, request: Request) -> None:
        """Begin a session, if its client is agreed with."""
        desk = self._desk
        spawner = await desk.open()
        if not desk.sessions.make_room():
            headers = (_RETRY_LATER,)
            await replies.refuse(self._send, 503, "there are too many sessions (max_sessions)", headers=headers)
            return
        session = HttpSession(
            desk.server,
            spawner,
            desk.store,
            desk.limits,
            session_id=new_id(),
            streams_id=new_id(),
            user=self._user,
        )
        stream = session.take(request)
        body = b"" if stream.outlet is None else stream.outlet.take()  # the engine answers it at once
        if session.session.peer is None:
            session.close()
            await replies.answer(self._send, body)
            return
        desk.sessions.add(session)
        await replies.answer(self._send, body, headers=((b"mcp-session-id", session.id.encode()),))

    async def _in_session(self, session: HttpSession, message: Message | Batch | Malformed) -> None:
        revision = session.session.revision
        if isinstance(message, Notification | Response | ErrorResponse):
            session.session.take(message)
            await replies.empty(self._send, 202)
        elif isinstance(message, Malformed):
            if message.kind == "response":  # somebody waits for it
                session.session.take(message)
            await self._malformed(message)
        elif isinstance(message, Batch) and not envelope.allows_batches(revision):
            await self._malformed(Malformed(Fault.NO_BATCHES))
        else:
            await self._answered(session, message)

    async def _answered(self, session: HttpSession, message: Request | Batch) -> None:
        stream = session.take(message)
        outlet = stream.outlet
        if outlet is None:
            return  # cannot be: it is given one when it is made
        self._desk.sessions.hold(session)
        self._desk.enter(outlet, self._size)
        try:
            if outlet.is_over and outlet.is_empty:  # a batch in which nothing is to be answered
                await replies.empty(self._send, 202)
                return
            begin = partial(_begin_stream, session, stream)
            await self._reply(outlet, begin, self._desk.limits.stream_after_seconds)
        finally:
            stream.detach(outlet)
            self._desk.leave(outlet, self._size)
            self._desk.sessions.release(session)

    async def _reply(
        self, outlet: Outlet, begin: Callable[[], object], seconds: float, status: Callable[[bytes], int] | None = None
    ) -> None:
        """Send what comes out of *outlet*: as JSON, or after so many *seconds* as a stream.

        Args:
            outlet: Where it comes out.
            begin: Makes it a stream.
            seconds: How long the answer may take to be JSON.
            status: Says which status goes with it; by default 200.
        """
        if not outlet.is_ready:
            await anyio.lowlevel.checkpoint()  # most handlers have answered by then
        only = outlet.only()
        if only is None:
            watch = (await self._desk.open()).start(replies.lose_when_gone, self._receive, outlet)
            try:
                only = await self._first(outlet, begin, seconds)
                if only is None and self._desk.is_leaving and not outlet.is_stream and outlet.is_empty:
                    await replies.refuse(self._send, 503, "the server is shutting down")
                    return
                if only is None:
                    await replies.stream(outlet, self._send, self._desk.limits)
            finally:
                watch.cancel()
        if only is not None:
            await replies.answer(self._send, only, 200 if status is None else status(only))

    async def _first(self, outlet: Outlet, begin: Callable[[], object], seconds: float) -> bytes | None:
        """Return the answer, if it is the first that comes, and soon; otherwise begin a stream."""
        with anyio.move_on_after(seconds):
            await outlet.ready()
        only = outlet.only()
        if only is None and not outlet.is_stream and not (self._desk.is_leaving and outlet.is_over):
            begin()
        return only

    async def _malformed(self, malformed: Malformed) -> None:
        is_answered = malformed.kind not in ("notification", "response")
        request_id = malformed.id if is_answered and malformed.id is not None else UNSET
        await replies.refuse(self._send, 400, malformed.fault.reason, code=malformed.fault.code, request_id=request_id)


def _begin_stream(session: HttpSession, stream: Stream) -> None:
    stream.begin(retry_ms=session.retry_ms)
