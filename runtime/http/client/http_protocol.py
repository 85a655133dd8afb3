"""How one conversation speaks with its server: without sessions, in a session, or by HTTP+SSE.

Theory of operation. It shows from the messages. Those of the stateless era name their revision. The answer to
`initialize` begins a session; what comes behind waits until the handshake is over. If `initialize` meets nobody, the
server may be of HTTP+SSE, and then says at once where it wants to be written to.

A session that the server has lost is replaced by another, once for all who notice; the client hears nothing of it,
except that what it was asked in the old one is cancelled. The conversation ends only with what cannot be had again: the
stream of HTTP+SSE, or a session after which no other could be begun.

Spec:
    2025-11-25, basic/transports, "Session Management" and "Backwards Compatibility"; 2026-07-28,
    basic/transports/streamable-http, "Backward Compatibility".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

import anyio
from msgspec import UnsetType

from mcpgen.runtime.errors import McpgenError, RequestLost, TransportClosed
from mcpgen.runtime.http.client.error_responses import HEADER_MISMATCH, ErrorReply
from mcpgen.runtime.http.client.get_stream import read_get_stream
from mcpgen.runtime.http.client.http_session import HttpSession
from mcpgen.runtime.http.client.incoming_messages import IncomingMessages
from mcpgen.runtime.http.client.legacy_sse import LegacySse
from mcpgen.runtime.http.client.outgoing_messages import CALL, INITIALIZE, OutgoingMessage, message_headers
from mcpgen.runtime.http.client.param_header_cache import relist
from mcpgen.runtime.http.client.post_requests import PostRequests, SessionLost
from mcpgen.runtime.http.client.session_renewal import renew_session

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["INITIALIZED", "ServerMemory", "HttpProtocol"]

INITIALIZED: Final = "notifications/initialized"
_STEPS: Final = (INITIALIZE, INITIALIZED)

# How much longer than for the probe a server may take to name its other endpoint, which it should say at once.
_PATIENCE: Final = 2

_LOG = logging.getLogger("mcpgen.client")


class ServerMemory(Protocol):
    """What is remembered of a server from one conversation to the next."""

    @property
    def is_of_before(self) -> bool:
        """Whether it was of HTTP+SSE when it was met last."""
        ...

    @is_of_before.setter
    def is_of_before(self, value: bool) -> None: ...


class HttpProtocol:
    """Sends the messages of one conversation, and hands on what comes.

    Attributes:
        incoming: What comes.
        over: Set when the conversation has ended.
        failure: Why; None if we have ended it, or it has not.

    Args:
        exchanges: Makes the requests.
        limits: The client's bounds.
        group: Runs what is done by itself.
        memory: What is remembered of the server.
    """

    def __init__(self, exchanges: HttpRequests, limits: ClientLimits, group: TaskGroup, memory: ServerMemory) -> None:
        self.incoming: IncomingMessages = IncomingMessages(limits.max_batch_length)
        self.over: anyio.Event = anyio.Event()
        self.failure: TransportClosed | None = None
        self._exchanges = exchanges
        self._limits = limits
        self._group = group
        self._memory = memory
        self._is_of_before = memory.is_of_before
        self._posts = PostRequests(exchanges, limits, self.incoming.take)
        self._pair: LegacySse | None = None
        self._step: OutgoingMessage | None = None  # of the handshake, which is under way
        self._stepped = anyio.Event()  # when there is none
        self._renewal: anyio.Event | None = None  # while another session is begun
        self._relisting = anyio.Lock()
        self._relisted = 0

    def is_stateless(self, message: OutgoingMessage) -> bool:
        """Return whether *message* belongs to no session."""
        return self.incoming.session is None and message.revision is not None

    async def ready(self, message: OutgoingMessage) -> None:
        """Return when *message*, a request, may be sent: one of a session waits for the handshake, if it has begun."""
        while self._step is not None and message.method not in _STEPS and not self.is_stateless(message):
            await self._stepped.wait()

    def begin_step(self, message: OutgoingMessage) -> None:
        """Note that *message* is under way, if it is a step of the handshake; the one before it is over then."""
        if message.method in _STEPS:
            self._step = message

    def end_step(self, message: OutgoingMessage) -> None:
        """Note that *message* has arrived or is lost, of which `begin_step` was told."""
        if message is self._step:
            self._step = None
            self._stepped.set()
            self._stepped = anyio.Event()

    async def ask(self, message: OutgoingMessage) -> None:
        """See a request through.

        Raises:
            RequestLost: Its answer will not come.
            TransportClosed: Nor that of any other.
            UsageError: It cannot be sent over HTTP.
        """
        session = self.incoming.session
        if message.method == INITIALIZE:
            await self._greet(message)
        elif self._pair is not None:
            await self._pair.post(message, {} if session is None else session.headers)
        elif session is None:
            await self._ask_alone(message)
        else:
            await self._ask_in_session(message, session)

    async def tell(self, message: OutgoingMessage, session: HttpSession | None) -> None:
        """Send what is no request.

        Args:
            message: A notification, or answers.
            session: The one that there was when it was written.

        Raises:
            RequestLost: The server has not taken it.
        """
        now = self.incoming.session
        if message.kind == "answer" and session is not now:
            _LOG.debug("an answer is not sent: the session in which it was asked for is lost")
            return
        headers = message_headers(message, None) if now is None else now.headers
        if self._pair is not None:
            await self._pair.post(message, headers)
            return
        refused = await self._posts.tell(message, headers)
        if refused is not None and refused.is_about_session and now is not None and now.id is not None:
            await self._renewed(now)
        elif refused is not None:
            raise refused.failure
        elif message.method == INITIALIZED and now is not None:
            self._group.start_soon(self._listen, now)

    async def leave(self) -> None:
        """Tell the server that nobody needs the session any more, when all else is over.

        Spec:
            2025-11-25, basic/transports, "Session Management".
        """
        session = self.incoming.session
        if session is None or session.id is None or session.is_lost or self._pair is not None:
            return
        try:
            async with self._exchanges.open("DELETE", "*/*", session.headers) as response:
                _LOG.debug("the end of the session was answered with %s", response.status_code)
        except McpgenError as error:
            _LOG.debug("the server was not told that the session is over: %s", error)

    # --- the three ways

    async def _ask_alone(self, message: OutgoingMessage) -> None:
        if self._is_of_before:
            self._memory.is_of_before = False  # until it has shown again that it is
            raise RequestLost(f"{self._exchanges.address.shown} was of HTTP+SSE when it was met last")
        mirrors, relisted = self.incoming.mirrors, self._relisted
        said = message_headers(message, mirrors.of(message.tool))
        refused = await self._posts.ask(message, said, None)
        if refused is not None and refused.code == HEADER_MISMATCH and message.method == CALL:
            await self._relist(message, relisted)
            again = message_headers(message, mirrors.of(message.tool))
            if again != said:
                refused = await self._posts.ask(message, again, None)
        self._finish(message, refused, None)

    async def _relist(self, call: OutgoingMessage, relisted: int) -> None:
        """List the tools, unless that was done since they were listed so often."""
        async with self._relisting:
            if self._relisted == relisted:
                await relist(self._posts, call, self._limits.max_pages)
                self._relisted += 1

    async def _ask_in_session(self, message: OutgoingMessage, session: HttpSession) -> None:
        try:
            refused = await self._posts.ask(message, session.headers, session)
            if refused is not None and refused.is_about_session and session.id is not None:
                session = await self._renewed(session)
                refused = await self._posts.ask(message, session.headers, session)
                if refused is not None and refused.is_about_session and session.id is not None:
                    session.is_lost = True
                    raise self._end("the server does not know the session that it has just begun")
        except SessionLost:
            await self._renewed(session)
            raise RequestLost(f"the session was lost before {message.method} was answered") from None
        self._finish(message, refused, session)

    async def _greet(self, message: OutgoingMessage) -> None:
        """Begin a session, at whichever endpoint the server has."""
        incoming, session = self.incoming, HttpSession()
        incoming.greeting = message
        if not isinstance(message.params, UnsetType):
            incoming.standing.greeting = bytes(message.params)
        if self._is_of_before:
            self._is_of_before = False
            await self._pair_up(session)
            if self._pair is not None:
                await self._pair.post(message, {})
                return
            self._memory.is_of_before = False
        refused = await self._posts.ask(message, {}, session)
        if refused is not None and refused.may_be_of_before:
            misled = await self._pair_up(session)
            if self._pair is not None:
                await self._pair.post(message, {})
                return
            if misled is not None:
                raise misled
        self._finish(message, refused, session)

    async def _pair_up(self, session: HttpSession) -> RequestLost | None:
        """Find out whether the server is of HTTP+SSE; return what is wrong with one that is, and cannot be used."""
        pair = LegacySse(self._exchanges, self._limits, self.incoming.take, session)
        self._group.start_soon(self._run_pair, pair)
        with anyio.move_on_after(self._limits.probe_seconds * _PATIENCE):
            await pair.settled.wait()
        if pair.endpoint is None:
            pair.scope.cancel()
            return pair.failure if pair.is_misleading else None
        self._pair = pair
        self._memory.is_of_before = True
        return None

    async def _run_pair(self, pair: LegacySse) -> None:
        await pair.run()
        if self._pair is pair:
            self._end(str(pair.failure))

    async def _listen(self, session: HttpSession) -> None:
        """Take what the server says by itself, as long as the session lasts."""
        try:
            if await read_get_stream(self._exchanges, self._limits, self.incoming.take, session):
                await self._renewed(session)
        except TransportClosed:
            pass  # whoever waits for anything is told
        except Exception:  # noqa: BLE001 (the boundary: of whoever gives us credentials, or of ours)
            _LOG.exception("the server's own stream is not listened to any more")

    def _finish(self, message: OutgoingMessage, refused: ErrorReply | None, session: HttpSession | None) -> None:
        """Hand on a refusal, if it is one, as what it is: an answer, or none."""
        if refused is None:
            return
        if refused.frame is None:
            raise refused.failure
        self.incoming.take(refused.frame, message, session)

    # --- sessions that are lost

    async def _renewed(self, lost: HttpSession) -> HttpSession:
        """Return the session that there is in place of *lost*.

        Raises:
            TransportClosed: There is none, and will be none.
        """
        if self.incoming.session is lost:
            if self._renewal is None:
                self._renewal = anyio.Event()
                self._group.start_soon(self._renew, lost, self._renewal)  # whoever has noticed may be cancelled
            await self._renewal.wait()
        if self.failure is not None or self.incoming.session is None:
            raise (self.failure or TransportClosed("the client was closed")).again()
        return self.incoming.session

    async def _renew(self, lost: HttpSession, over: anyio.Event) -> None:
        lost.is_lost = True
        self.incoming.void(lost)
        try:
            with anyio.fail_after(self._limits.connect_seconds):
                session = await renew_session(self._posts, self.incoming.standing, lost.revision)
            self.incoming.session = session
            self._group.start_soon(self._listen, session)
            _LOG.info("%s has lost the session, and another was begun", self._exchanges.address.shown)
        except (McpgenError, SessionLost, TimeoutError) as error:
            why = str(error) or type(error).__name__
            self._end(f"the server has lost the session, and no other could be begun: {why}")
        except Exception as error:  # noqa: BLE001 (the boundary: of whoever gives us credentials, or of ours)
            _LOG.exception("a session could not be begun again")
            self._end(f"the server has lost the session, and no other could be begun: {error!r}")
        finally:
            self._renewal = None
            over.set()

    def _end(self, why: str) -> TransportClosed:
        """End the conversation, and return what to raise."""
        if self.failure is None:
            self.failure = TransportClosed(why)
        self.over.set()
        return self.failure.again()
