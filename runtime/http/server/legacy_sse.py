"""HTTP+SSE: a stream on which a server says all it has to say, and an address for what a client says.

Theory of operation. A client opens the stream, and is told where to post. From then on it is a conversation as on a
pipe, which lasts as long as the stream does.

Spec:
    2024-11-05, basic/transports, "HTTP with SSE".
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import ErrorResponse, Malformed, Notification, Response

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.responses import Receive, Scope, Send
    from mcpgen.runtime.server.connection import Connection

__all__ = ["LegacySse"]


class LegacySse:
    """The conversations of clients of 2024-11-05.

    Args:
        desk: What they share with others.
        path: Where messages are posted, below where the application is mounted.
    """

    def __init__(self, desk: AppState, path: str) -> None:
        self._desk = desk
        self._path = path
        self._talks: dict[str, tuple[Connection, ResponseBuffer, str]] = {}

    async def stream(self, scope: Scope, user: str, receive: Receive, send: Send) -> None:
        """Hold a conversation, until its client goes."""
        desk = self._desk
        busy = desk.refusal(0)
        if busy is not None:
            await responses.send_error(send, 503, busy)
            return
        spawner = await desk.open()
        outlet = ResponseBuffer(desk.engine.limits.max_buffered_bytes)
        connection = desk.engine.connect(outlet, spawner)
        connection.session.user = user
        talk = random_id()
        address = f"{quote(scope.get('root_path', ''))}{quote(self._path)}?session={talk}"
        outlet.begin(_message, encode_event(address.encode(), name="endpoint"))
        self._talks[talk] = connection, outlet, user
        desk.passing[connection] = None
        desk.enter(outlet)
        try:
            await responses.send_events_until_disconnect(outlet, receive, send, desk.limits, spawner)
        finally:
            del self._talks[talk], desk.passing[connection]
            desk.leave(outlet)
            connection.close()

    async def post(self, scope: Scope, user: str, body: bytes, send: Send) -> None:
        """Take what a client posts."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        talk = self._talks.get(query.get("session", [""])[0])
        if talk is None or talk[2] != user:
            await responses.send_error(send, 404, "there is no such conversation; the stream says where to post")
            return
        connection, outlet, _ = talk
        busy = self._desk.refusal(len(body))
        if busy is not None:
            await responses.send_error(send, 503, busy)
            return
        message = envelope.decode(body, max_batch_length=self._desk.engine.limits.max_batch_length)
        if outlet.is_full and not isinstance(message, Notification | Response | ErrorResponse):
            # Not all that is answered waits for room, and here nothing else keeps a client from asking.
            await responses.send_error(send, 503, "too much waits to be read (max_buffered_bytes)")
            return
        connection.session.take(message)
        if isinstance(message, Malformed):
            await responses.send_error(send, 400, message.fault.reason, code=message.fault.code)
        else:
            await responses.send_empty(send, 202)


def _message(message: bytes) -> bytes:
    return encode_event(message, name="message")
