"""HTTP+SSE: a stream on which the server sends all its messages, and a URL to which the client posts its own.

Theory of operation. A client opens the stream with GET. Its first event names the URL to post to. From then on both
sides exchange messages as on a pipe, until the stream ends.

Spec:
    2024-11-05, basic/transports, "HTTP with SSE".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import ErrorResponse, Fault, Malformed, Notification, Response
from mcpgen.runtime.server.connection import Connection
from mcpgen.runtime.server.dispatcher import take

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.responses import Receive, Scope, Send

__all__ = ["LegacySse"]


class LegacySse:
    """The sessions of clients of 2024-11-05.

    Args:
        state: The state of the application.
        path: The path to which clients post, relative to where the application is mounted.
    """

    def __init__(self, state: AppState, path: str) -> None:
        self._state = state
        self._path = path
        self._sessions: dict[str, tuple[Connection, ResponseBuffer, str]] = {}

    async def stream(self, scope: Scope, user: str, receive: Receive, send: Send) -> None:
        """Serve a session until its client disconnects."""
        state = self._state
        overload = state.overload(0)
        if overload is not None:
            await responses.send_error(send, 503, overload)
            return
        spawner = await state.open()
        response = ResponseBuffer(state.engine.limits.max_buffered_bytes)
        connection = Connection(state.engine, response, spawner)
        state.engine.add(connection)
        connection.session.user = user
        session_id = random_id()
        url = f"{quote(scope.get('root_path', ''))}{quote(self._path)}?session={session_id}"
        response.start_stream(partial(encode_event, name="message"), encode_event(url.encode(), name="endpoint"))
        self._sessions[session_id] = connection, response, user
        state.connections[connection] = None
        state.add_response(response)
        try:
            await responses.send_events_until_disconnect(response, receive, send, state.limits, spawner)
        finally:
            del self._sessions[session_id], state.connections[connection]
            state.remove_response(response)
            connection.close()

    async def post(self, scope: Scope, user: str, body: bytes, send: Send) -> None:
        """Handle a message that a client posts; its answer goes to the stream."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        session = self._sessions.get(query.get("session", [""])[0])
        if session is None or session[2] != user:
            reason = "the session does not exist or has ended; post to the URL in the stream's first event"
            await responses.send_error(send, 404, reason)
            return
        connection, response, _ = session
        overload = self._state.overload(len(body))
        if overload is not None:
            await responses.send_error(send, 503, overload)
            return
        limits = self._state.engine.limits
        message = envelope.decode(body, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
        if response.is_full and not isinstance(message, Notification | Response | ErrorResponse):
            # Some answers are written even when the buffer is full; only this keeps a client from requesting more.
            await responses.send_error(send, 503, "the stream holds too many unread bytes (max_buffered_bytes)")
            return
        take(connection.session, message)
        if isinstance(message, Malformed):
            status = 413 if message.fault is Fault.TOO_MANY_VALUES else 400
            await responses.send_error(send, status, message.reason, code=message.fault.code)
        else:
            await responses.send_empty(send, 202)
