"""A conversation with a server over HTTP, as its client sees it: messages go out, messages come in.

Theory of operation. The client writes messages, and does not know that each becomes a request of HTTP. Requests travel
side by side, each in a task of its own, up to a number; a stream of changes is not counted, since it may stay as long
as the client. What is no request travels one after the other, since what a client tells has an order, and never waits
for a request: an answer of ours may be what the server needs to go on with one.

A request that fails is lost alone. To cancel one of the stateless era is to close its response; in a session, the
server is told, and then the response is closed, for which nobody waits.

Spec:
    2024-11-05 to 2025-11-25, basic/transports; 2026-07-28, basic/transports/streamable-http, "Cancellation".
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.errors import McpgenError, RequestLost, TransportClosed
from mcpgen.runtime.http.client.http_protocol import HttpProtocol
from mcpgen.runtime.http.client.outgoing_messages import (
    INITIALIZE,
    LISTEN,
    OutgoingMessage,
    cancelled_id,
    parse_message,
)

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from mcpgen.runtime.http.client.http_protocol import ServerMemory
    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import ClientEndpoint

__all__ = ["HttpChannel"]

_LOG = logging.getLogger("mcpgen.client")

# What is no request is taken or refused at once; nobody waits for it but what comes behind it.
_TELL_SECONDS: Final = 30.0


class _Asked:
    """A request on its way.

    Attributes:
        message: The request.
        scope: Ends its way.
        is_held: Whether it has not been sent yet.
    """

    __slots__ = ("is_held", "message", "scope")

    def __init__(self, message: OutgoingMessage) -> None:
        self.message = message
        self.scope = anyio.CancelScope()
        self.is_held = True


class HttpChannel:
    """One conversation; a `mcpgen.runtime.transports.interfaces.Channel`.

    Args:
        exchanges: Makes the requests.
        limits: The client's bounds.
        group: Runs what the channel does by itself, until the conversation is closed.
        memory: What is remembered of the server.
    """

    def __init__(self, exchanges: HttpRequests, limits: ClientLimits, group: TaskGroup, memory: ServerMemory) -> None:
        self._limits = limits
        self._group = group
        self._speaking = HttpProtocol(exchanges, limits, group, memory)
        self._slots = anyio.Semaphore(limits.max_connections)
        self._asked: dict[RequestId, _Asked] = {}
        self._lane: deque[tuple[OutgoingMessage, HttpSession | None]] = deque()
        self._lane_moved = anyio.Event()
        self._held = 0  # bytes of messages that have not been sent
        self._room: anyio.Event | None = None  # if somebody waits for it
        group.start_soon(self._tell_all)

    @property
    def is_full(self) -> bool:
        """Whether too much waits to be sent."""
        return self._held >= self._limits.max_buffered_bytes and not self._speaking.over.is_set()

    @property
    def stderr(self) -> str:
        """Empty: what such a server prints, we cannot see."""
        return ""

    def write(self, message: bytes) -> None:
        """Send *message*, now or in its turn."""
        if self._speaking.over.is_set():
            return
        found, session = parse_message(message), self._speaking.incoming.session
        self._speaking.begin_step(found)
        if found.kind == "request" and found.id is not None:
            asked = self._asked[found.id] = _Asked(found)
            self._held += len(message)
            self._group.start_soon(self._see_through, asked)
            return
        cancelled = cancelled_id(found)
        if cancelled is not None and session is None:
            self._stop(cancelled)
            return
        if found.kind == "answer" and found.id is not None and session is not None:
            session.asked.pop(found.id, None)
        self._held += len(message)
        self._lane.append((found, session))
        self._lane_moved.set()

    async def drain(self) -> None:
        """Return when there is room again, or nobody to write to."""
        while self.is_full:
            if self._room is None:
                self._room = anyio.Event()
            await self._room.wait()

    async def run(self, endpoint: ClientEndpoint, /) -> None:
        """Hand what comes to *endpoint*, until the conversation has ended."""
        self._speaking.incoming.begin(endpoint)
        await self._speaking.over.wait()
        self._release(0)

    async def ended(self) -> TransportClosed:
        """Return why it has ended."""
        return self._speaking.failure or TransportClosed("the client was closed")

    def close(self) -> None:
        """Take no more messages."""
        self._speaking.over.set()
        self._release(0)

    async def leave(self) -> None:
        """Say good-bye, when nothing else goes on any more."""
        await self._speaking.leave()

    def _release(self, size: int) -> None:
        self._held -= size
        if self._room is not None and not self.is_full:
            self._room.set()
            self._room = None

    # --- requests

    async def _see_through(self, asked: _Asked) -> None:
        message = asked.message
        try:
            with asked.scope:
                await self._ask(asked)
        except McpgenError as failure:
            self._lose(message, failure)
        except Exception as failure:  # noqa: BLE001 (the boundary: of whoever gives us credentials, or of ours)
            _LOG.exception("%s could not be sent", message.method)
            lost = RequestLost(f"{message.method} could not be sent: {failure!r}")
            lost.__cause__ = failure
            self._lose(message, lost)
        finally:
            self._begin(asked)
            self._speaking.end_step(message)
            if message.id is not None and self._asked.get(message.id) is asked:
                del self._asked[message.id]

    async def _ask(self, asked: _Asked) -> None:
        message, speaking = asked.message, self._speaking
        if message.method == LISTEN and speaking.is_stateless(message):
            self._begin(asked)
            await speaking.ask(message)
            return
        await speaking.ready(message)
        async with self._slots:
            self._begin(asked)
            await speaking.ask(message)
        if message.method == INITIALIZE and speaking.incoming.session is not None:
            self._stop_probes()

    def _begin(self, asked: _Asked) -> None:
        """Note that a request does not wait for its turn any more."""
        if asked.is_held:
            asked.is_held = False
            self._release(len(asked.message.body))

    def _lose(self, message: OutgoingMessage, failure: McpgenError) -> None:
        if message.id is not None:
            self._speaking.incoming.lose(message.id, failure)

    def _stop(self, request_id: RequestId) -> None:
        """Close the response to a request for which nobody waits."""
        asked = self._asked.get(request_id)
        if asked is not None:
            asked.scope.cancel()

    def _stop_probes(self) -> None:
        """Close the responses to what was asked in the other era, which this server is not of."""
        for asked in list(self._asked.values()):
            if asked.message.revision is not None:
                asked.scope.cancel()

    # --- what is no request

    async def _tell_all(self) -> None:
        while True:
            while self._lane:
                message, session = self._lane.popleft()
                await self._tell(message, session)
                self._release(len(message.body))
            self._lane_moved = anyio.Event()
            await self._lane_moved.wait()

    async def _tell(self, message: OutgoingMessage, session: HttpSession | None) -> None:
        what = message.method or "an answer"
        try:
            with anyio.move_on_after(_TELL_SECONDS) as scope:
                await self._speaking.tell(message, session)
            if scope.cancelled_caught:
                _LOG.warning("%s was not taken by the server within %g seconds", what, _TELL_SECONDS)
        except McpgenError as error:
            _LOG.warning("%s was not taken by the server: %s", what, error)
        except Exception:  # noqa: BLE001 (the boundary: of whoever gives us credentials, or of ours)
            _LOG.exception("%s could not be sent", what)
        self._speaking.end_step(message)
        cancelled = cancelled_id(message)
        if cancelled is not None:
            self._stop(cancelled)
