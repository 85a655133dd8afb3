"""HTTP+SSE: a stream on which the server sends all its messages, and a URL to which the client posts its own.

Theory of operation. A client opens the stream with GET. Its first event names the URL to post to. From then on both
sides exchange messages as on a pipe, until the stream ends.

Spec:
    2024-11-05, basic/transports, "HTTP with SSE".
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, quote

from msgspec import UNSET

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.auth.required_scopes import refuse_scopes
from mcpgen.runtime.http.server.auth.token_expiry import ending_with_token
from mcpgen.runtime.http.server.open_requests import CountedConnection, request_count
from mcpgen.runtime.http.server.rate_limit import rate_limit_error
from mcpgen.runtime.http.server.session_table import random_id
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Fault, Malformed, Notification, Request, Response
from mcpgen.runtime.protocol.reading_policy import SUSPECT
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.dispatcher import take, take_batch

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.open_requests import Ticket
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.http.server.responses import Receive, Scope, Send
    from mcpgen.runtime.http.server.shared_state import SharedState
    from mcpgen.runtime.protocol.messages import Error, Message

__all__ = ["LegacySse"]

# A session id has some 50 bytes; a proxy may have added to them. 64 KiB of escapes take 100 ms to decode.
_MAX_QUERY_BYTES: Final = 1024


class LegacySse:
    """The sessions of clients of 2024-11-05.

    Args:
        state: The state of the application.
        path: The path to which clients post, relative to where the application is mounted.
    """

    def __init__(self, state: AppState, path: str) -> None:
        self._state = state
        self._path = path
        self._sessions: dict[str, tuple[CountedConnection, ResponseBuffer]] = {}

    async def stream(
        self, scope: Scope, headers: Mapping[str, str], client: Client, receive: Receive, send: Send
    ) -> None:
        """Serve a session until its client disconnects."""
        state = self._state
        session_id = random_id() if state.cluster is None else state.cluster.new_stream_id()
        ticket = state.open_ticket(client, headers, session=session_id, is_stream=True)
        if ticket is None:
            await responses.send_error(send, 503, state.refusal, headers=(responses.RETRY_AFTER,))
            return
        try:
            await self._stream(scope, client, receive, send, session_id, ticket)
        finally:
            ticket.release()

    async def _stream(  # noqa: PLR0913, PLR0917 (of `stream`)
        self, scope: Scope, client: Client, receive: Receive, send: Send, session_id: str, ticket: Ticket
    ) -> None:
        state = self._state
        spawner = await state.open()
        response = state.new_response(client, responses.abort_of(scope))
        ticket.on_give_way = response.give_way
        connection = CountedConnection(state.engine, response, spawner, state.open_quota, client)
        state.engine.add(connection)
        url = f"{quote(scope.get('root_path', ''))}{quote(self._path)}?session={session_id}"
        response.start_stream(partial(encode_event, name="message"), encode_event(url.encode(), name="endpoint"))
        self._sessions[session_id] = connection, response
        state.connections[connection] = None
        state.add_response(response)
        try:
            with ending_with_token(client.access, spawner, response.end):
                await responses.send_events_until_disconnect(response, receive, send, state.limits, spawner)
        finally:
            del self._sessions[session_id], state.connections[connection]
            state.remove_response(response)
            connection.close()

    async def post(self, scope: Scope, headers: Mapping[str, str], client: Client, body: bytes, send: Send) -> None:
        """Handle a message that a client posts; its answer goes to the stream."""
        query: bytes = scope.get("query_string", b"")
        found = parse_qs(query.decode("latin-1")) if len(query) <= _MAX_QUERY_BYTES else {}
        session_id = found.get("session", [""])[0]
        session = self._sessions.get(session_id)
        cluster = self._state.cluster
        if session is None and cluster is not None and await self._relay(cluster, scope, headers, client, body, send):
            return
        if session is None or session[0].client.user != client.user:
            reason = "the session does not exist or has ended; post to the URL in the stream's first event"
            await responses.send_error(send, 404, reason, body=body)
            return
        connection, response = session
        limits = self._state.engine.limits
        message = envelope.decode(body, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
        if isinstance(message, SUSPECT):
            message = self._state.engine.reading.reread(body, message, limits)
        if response.is_full and not isinstance(message, Notification | Response | ErrorResponse):
            # Some answers are written even when the buffer is full; only this keeps a client from requesting more.
            reason = "the stream holds too many unread bytes (max_buffered_bytes)"
            await responses.send_error(send, 503, reason, body=body)
            return
        ticket = self._state.open_ticket(client, headers, body, session=session_id, count=request_count(message))
        if ticket is None:
            reason, later = self._state.refusal, (responses.RETRY_AFTER,)
            await responses.send_error(send, 503, reason, headers=later, body=body)
            return
        ticket.on_give_way = partial(connection.refuse, ticket)
        try:
            if await refuse_scopes(self._state, client, send, message, is_sse=True):
                return
            rates = self._state.rates
            if rates is not None and (seconds := rates.wait_seconds(message, client, connection.bucket)):
                connection.session.output.respond(_refusal(message, rate_limit_error(seconds)), None)
            elif isinstance(message, Batch):
                await self._take_batch(connection, response, message, ticket, client)
            else:
                with _counting(connection, ticket, client):
                    take(connection.session, message)
                if isinstance(message, Malformed):
                    status = 413 if message.fault is Fault.TOO_MANY_VALUES else 400
                    await responses.send_error(send, status, message.reason, code=message.fault.code, body=body)
                    return
        finally:
            ticket.release()
        await responses.send_empty(send, 202)

    async def _relay(  # noqa: PLR0913, PLR0917 (of `post`)
        self,
        cluster: SharedState,
        scope: Scope,
        headers: Mapping[str, str],
        client: Client,
        body: bytes,
        send: Send,
    ) -> bool:
        """Return whether another worker has answered. The message counts here, too, since that worker may be slow.

        Raises:
            ClusterUnavailable: There is no room for it, or the other worker cannot be reached.
        """
        ticket = self._state.open_ticket(client, headers, body)
        if ticket is None:
            raise ClusterUnavailable(self._state.refusal)
        try:
            return await cluster.relay_message(scope, headers, client, body, send)
        finally:
            ticket.release()

    async def _take_batch(
        self, connection: CountedConnection, response: ResponseBuffer, batch: Batch, ticket: Ticket, client: Client
    ) -> None:
        """Handle the messages of *batch*, a part in each turn of the event loop, until the stream ends."""
        turns = self._state.engine.turns
        with closing(take_batch(connection.session, batch)) as parts:
            while not response.has_ended:
                with _counting(connection, ticket, client):
                    cost = next(parts, None)
                if cost is None:
                    return
                turns.spend(cost)
                await turns.wait_to_work(client.owner, connection.session.principal)


@contextmanager
def _counting(connection: CountedConnection, ticket: Ticket, client: Client) -> Generator[None]:
    """Count the handlers that start within the block for *ticket*; *client* has the token of the request."""
    connection.ticket, connection.session.access = ticket, client.access
    try:
        yield
    finally:
        connection.ticket = None


def _refusal(message: Message | Batch | Malformed, error: Error) -> bytes:
    """Return the error response to each request in *message*."""
    if isinstance(message, Batch):
        return envelope.encode_batch([_refusal(each, error) for each in message.items if isinstance(each, Request)])
    return envelope.encode_error(message.id if isinstance(message, Request) else UNSET, error)
