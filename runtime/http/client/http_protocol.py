"""The HTTP protocol of one connection: Streamable HTTP without sessions, with a session, or HTTP+SSE.

Theory of operation. The messages of the client decide. Those of a stateless revision name it. The answer to
`initialize` starts a session; requests after it wait until the handshake is over. If the endpoint refuses `initialize`,
the server may use HTTP+SSE; then its GET stream names another endpoint at once.

If the server has lost the session, one new session replaces it for all requests. The client does not notice, except
that requests of the server in the old session are cancelled. The connection ends only with the stream of HTTP+SSE, or
if no new session can be started.

Spec:
    2025-11-25, basic/transports, "Session Management" and "Backwards Compatibility"; 2026-07-28,
    basic/transports/streamable-http, "Backward Compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from msgspec import UnsetType

from mcpgen.runtime.errors import McpgenError, RequestLost, TransportClosed
from mcpgen.runtime.http.client.get_stream import read_get_stream
from mcpgen.runtime.http.client.http_session import LOST_CURSOR, HttpSession
from mcpgen.runtime.http.client.incoming_messages import IncomingMessages
from mcpgen.runtime.http.client.legacy_sse import LEGACY_SERVERS, LegacySse
from mcpgen.runtime.http.client.outgoing_messages import (
    CALL,
    INITIALIZE,
    OutgoingMessage,
    cancelled_id,
    message_headers,
)
from mcpgen.runtime.http.client.param_header_cache import list_tools_again
from mcpgen.runtime.http.client.post_requests import PostRequests, SessionLost
from mcpgen.runtime.http.client.session_renewal import renew_session
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mcpgen.runtime.http.client.error_responses import ErrorReply
    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.spawner import Group

__all__ = ["HttpProtocol"]

_INITIALIZED: Final = "notifications/initialized"
_ROOTS_CHANGED: Final = "notifications/roots/list_changed"
_HANDSHAKE: Final = (INITIALIZE, _INITIALIZED)

# How many times the probe's time a server may take to name its message endpoint, which it should do at once.
_ENDPOINT_PROBES: Final = 2

_LOG = traceback_logger("mcpgen.client")


class HttpProtocol:
    """Sends the messages of one connection.

    Attributes:
        incoming: Delivers the messages of the server.
        ended: Set when the connection has ended.
        failure: Why it has ended; None if the client closed it, or it has not ended.

    Args:
        requests: Makes the HTTP requests.
        limits: The limits of the client.
        group: Runs background tasks.
        identity: The key of the server in `LEGACY_SERVERS`.
    """

    def __init__(self, requests: HttpRequests, limits: ClientLimits, group: Group, identity: Hashable) -> None:
        self.incoming: IncomingMessages = IncomingMessages(limits)
        self.ended: anyio.Event = anyio.Event()
        self.failure: TransportClosed | None = None
        self._requests = requests
        self._limits = limits
        self._group = group
        self._identity = identity
        self._uses_legacy_sse = identity in LEGACY_SERVERS
        self._posts = PostRequests(requests, limits, self.incoming)
        self._legacy_sse: LegacySse | None = None
        self._handshake: OutgoingMessage | None = None  # the message of the handshake that is being sent
        self._handshake_sent = anyio.Event()  # set when it was sent, and then replaced
        self._renewal: anyio.Event | None = None  # set when the new session has started; None if none is starting
        self._revision: str | None = None  # the stateless revision of the last request that names one
        self._unknown_methods: set[str] = set()  # those that the server refuses with 404 in each session
        self._listing = anyio.Lock()
        self._listings = 0  # how often the tools were listed again

    def is_stateless(self, message: OutgoingMessage) -> bool:
        """Return whether *message* belongs to no session."""
        return self.incoming.session is None and message.revision is not None

    async def wait_for_handshake(self, message: OutgoingMessage) -> None:
        """Return when the request *message* may be sent: in a session, after the handshake."""
        while self._handshake is not None and message.method not in _HANDSHAKE and not self.is_stateless(message):
            await self._handshake_sent.wait()

    def start_sending(self, message: OutgoingMessage) -> None:
        """Note that *message* is being sent, for `wait_for_handshake`."""
        if message.method in _HANDSHAKE:
            self._handshake = message

    def end_sending(self, message: OutgoingMessage) -> None:
        """Note that *message* has arrived or is lost."""
        if message is self._handshake:
            self._handshake = None
            self._handshake_sent.set()
            self._handshake_sent = anyio.Event()

    async def send_request(self, message: OutgoingMessage) -> None:
        """Send a request, and return when its answer was delivered.

        Raises:
            RequestLost: Its answer will not come.
            TransportClosed: The connection has ended.
            UsageError: It cannot be sent over HTTP.
        """
        session = self.incoming.session
        if message.method == INITIALIZE:
            await self._initialize(message)
        elif self._legacy_sse is not None:
            message.session = session
            await self._legacy_sse.post(message, {} if session is None else session.headers)
        elif session is None:
            await self._request_stateless(message)
        else:
            await self._request_in_session(message, session)

    async def send_message(self, message: OutgoingMessage, session: HttpSession | None) -> None:
        """Send a message that is not a request.

        Args:
            message: A notification, or answers.
            session: The session in which it was written.

        Raises:
            RequestLost: The server has refused it, or it may not have arrived.
        """
        current = self.incoming.session
        if message.kind == "answer" and session is not current:
            _LOG.debug("a response is not sent, because the session of its request is lost")
            return
        if session is not current and cancelled_id(message) is not None:
            return  # the request was lost with its session
        is_stateless = current is None and self._legacy_sse is None
        if is_stateless and message.revision is None and message.kind == "notification":
            message.revision = self._revision  # a notification need not name it, but each POST has the headers
        headers = message_headers(message, None) if current is None else current.headers
        if self._legacy_sse is not None:
            await self._legacy_sse.post(message, headers)
            return
        error = await self._posts.send_message(message, headers)
        if error is not None and error.is_about_session and current is not None and current.id is not None:
            renewed = await self._renewed(current)
            if message.method == _ROOTS_CHANGED:  # the new session may have asked for the roots before they changed
                error = await self._posts.send_message(message, renewed.headers)
                if error is not None:
                    raise error.failure
        elif error is not None:
            raise error.failure
        elif message.method == _INITIALIZED and current is not None:
            self._group.start_soon(self._read_get_stream, current)

    async def end_session(self) -> None:
        """Tell the server to end the session, after all other requests.

        Spec:
            2025-11-25, basic/transports, "Session Management".
        """
        session = self.incoming.session
        if session is None or session.id is None or session.is_lost or self._legacy_sse is not None:
            return
        try:
            async with self._requests.open("DELETE", "*/*", session.headers) as response:
                _LOG.debug("the server replied with the status %s when the client ended the session", response.status)
        except McpgenError as error:
            _LOG.debug("the client could not tell the server that the session has ended: %s", error)

    # --- requests

    async def _request_stateless(self, message: OutgoingMessage) -> None:
        if self._uses_legacy_sse:
            LEGACY_SERVERS.discard(self._identity)  # until `_initialize` finds it again
            shown = self._requests.address.shown
            raise RequestLost(
                f"{message.method} was not sent, because {shown} used HTTP+SSE at an earlier connection, and HTTP+SSE "
                "has no requests without a session; if the server is newer now, connect again"
            )
        self._revision = message.revision or self._revision
        param_headers, listings = self.incoming.param_headers, self._listings
        headers = message_headers(message, param_headers.of(message.tool))
        error = await self._posts.send_request(message, headers, None)
        if error is not None and error.code == ErrorCode.HEADER_MISMATCH and message.method == CALL:
            await self._list_tools_again(message, listings)
            corrected = message_headers(message, param_headers.of(message.tool))
            if corrected != headers:
                error = await self._posts.send_request(message, corrected, None)
        await self._deliver_error(message, error, None)

    async def _list_tools_again(self, call: OutgoingMessage, listings: int) -> None:
        """List the tools, unless another call has done so since there were that many *listings*."""
        async with self._listing:
            if self._listings == listings:
                await list_tools_again(self._posts, call, self._limits.max_pages)
                self._listings += 1

    async def _request_in_session(self, message: OutgoingMessage, session: HttpSession) -> None:
        session.check_cursor(message.cursor)
        message.session = session
        try:
            error = await self._posts.send_request(message, session.headers, session)
            if error is not None and error.may_be_about_method and message.method in self._unknown_methods:
                pass  # a new session did not help before
            elif error is not None and error.is_about_session and session.id is not None:
                session = await self._renewed(session)
                if message.is_cancelled:
                    return
                if message.cursor is not None:
                    raise RequestLost(LOST_CURSOR)
                message.session = session
                error = await self._posts.send_request(message, session.headers, session)
                if error is not None and error.may_be_about_method:
                    self._unknown_methods.add(message.method)
                elif error is not None and error.is_about_session and session.id is not None:
                    session.is_lost = True
                    raise self._end("the server does not know the session that it has just started")
        except SessionLost:
            await self._renewed(session)
            raise RequestLost(f"the session was lost before {message.method} was answered") from None
        await self._deliver_error(message, error, session)

    async def _initialize(self, message: OutgoingMessage) -> None:
        """Start a session, by Streamable HTTP or HTTP+SSE."""
        incoming, session = self.incoming, HttpSession()
        incoming.initialize = message
        if not isinstance(message.params, UnsetType):
            incoming.session_state.initialize_params = bytes(message.params)
        if self._uses_legacy_sse:
            self._uses_legacy_sse = False
            await self._try_legacy_sse(session)
            if self._legacy_sse is not None:
                await self._legacy_sse.post(message, {})
                return
            LEGACY_SERVERS.discard(self._identity)
        error = await self._posts.send_request(message, {}, session)
        if error is not None and error.may_be_legacy_sse:
            failure = await self._try_legacy_sse(session)
            if self._legacy_sse is not None:
                await self._legacy_sse.post(message, {})
                return
            if failure is not None:
                raise failure
        await self._deliver_error(message, error, session)

    async def _try_legacy_sse(self, session: HttpSession) -> RequestLost | None:
        """Use HTTP+SSE if the server does; return an error if it does, but its endpoint cannot be used.

        Raises:
            TransportClosed: Its stream has ended just after it had named the endpoint.
        """
        legacy_sse = LegacySse(self._requests, self._limits, self.incoming, session)
        self._group.start_soon(self._run_legacy_sse, legacy_sse)
        with anyio.move_on_after(self._limits.probe_seconds * _ENDPOINT_PROBES):
            await legacy_sse.ready.wait()
        if legacy_sse.endpoint is None:
            legacy_sse.scope.cancel()
            return legacy_sse.failure if legacy_sse.has_bad_endpoint else None
        self._legacy_sse = legacy_sse
        LEGACY_SERVERS.add(self._identity)
        if legacy_sse.failure is not None:  # it has ended already
            raise self._end(str(legacy_sse.failure))
        return None

    async def _run_legacy_sse(self, legacy_sse: LegacySse) -> None:
        await legacy_sse.run()
        if self._legacy_sse is legacy_sse:
            self._end(str(legacy_sse.failure))

    async def _read_get_stream(self, session: HttpSession) -> None:
        """Receive the messages of the GET stream for as long as the session lasts."""
        is_lost = False
        try:
            with anyio.CancelScope() as session.get_stream:
                is_lost = await read_get_stream(self._requests, self._limits, self.incoming, session)
            if is_lost:
                await self._renewed(session)
        except TransportClosed:
            pass  # pending requests report it
        except Exception:  # noqa: BLE001 (the boundary: a user's `httpx.Auth`, or a bug)
            _LOG.exception("reading the GET stream failed; messages that the server sends on it are lost")

    async def _deliver_error(
        self, message: OutgoingMessage, error: ErrorReply | None, session: HttpSession | None
    ) -> None:
        """Deliver the JSON-RPC error of a reply as the answer to *message*; raise its failure if it has none."""
        if error is None:
            return
        if error.frame is None:
            raise error.failure
        await self.incoming.ready(len(error.frame))
        self.incoming.receive(error.frame, message, session)

    # --- lost sessions

    async def _renewed(self, lost: HttpSession) -> HttpSession:
        """Return the session that replaces *lost*.

        Raises:
            TransportClosed: There is none, so the connection has ended.
        """
        if self.incoming.session is lost:
            if self._renewal is None:
                self._renewal = anyio.Event()
                self._group.start_soon(self._renew, lost, self._renewal)  # this task may be cancelled
            await self._renewal.wait()
        if self.failure is not None or self.incoming.session is None:
            raise (self.failure or TransportClosed("the client was closed")).again()
        return self.incoming.session

    async def _renew(self, lost: HttpSession, renewed: anyio.Event) -> None:
        lost.is_lost = True
        if lost.get_stream is not None:
            lost.get_stream.cancel()  # the server need not end it
        self.incoming.cancel_server_requests(lost)
        try:
            with anyio.fail_after(self._limits.connect_seconds):
                session = await renew_session(self._posts, self.incoming.session_state, lost)
            self.incoming.replace_session(session)
            self._group.start_soon(self._read_get_stream, session)
            _LOG.info("%s lost the session; a new one was started", self._requests.address.shown)
        except (McpgenError, SessionLost, TimeoutError) as error:
            reason = str(error)
            if isinstance(error, SessionLost):
                reason = "the server lost the new session, too"
            elif isinstance(error, TimeoutError):
                reason = f"it took longer than connect_seconds={self._limits.connect_seconds:g}"
            self._end(f"the server lost the session, and no new one could be started: {reason}")
        except Exception as error:  # noqa: BLE001 (the boundary: a user's `httpx.Auth`, or a bug)
            _LOG.exception("the server lost the session, and starting a new one failed")
            self._end(f"the server lost the session, and no new one could be started: {error!r}")
        finally:
            self._renewal = None
            renewed.set()

    def _end(self, reason: str) -> TransportClosed:
        """End the connection, and return the error to raise."""
        if self.failure is None:
            self.failure = TransportClosed(reason)
        self.ended.set()
        return self.failure.again()
