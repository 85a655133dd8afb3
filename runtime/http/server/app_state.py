"""The state that all requests of one application share: its server, sessions, open responses and their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.http.server.event_store import MemoryEventStore
from mcpgen.runtime.http.server.handler_host import HandlerHost
from mcpgen.runtime.http.server.session_table import SessionTable
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.server.event_store import EventStore
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.server.connection import Connection
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["AppState"]


class AppState:
    """The state that all requests of one application share.

    Args:
        engine: The server.
        limits: Bounds of the application.
        store: Stores the events of sessions' streams; by default in memory.

    Attributes:
        sessions: The sessions of handshake revisions.
        connections: The connections that end with one HTTP request: of stateless requests, and of HTTP+SSE.
        open_responses: The responses that are being sent.
        is_shutting_down: Whether new requests are refused.
    """

    def __init__(self, engine: Engine, limits: HttpLimits, store: EventStore | None) -> None:
        clock = engine.clock
        self.engine: Engine = engine
        self.limits: HttpLimits = limits
        self.store: EventStore = MemoryEventStore(clock=clock) if store is None else store
        self.sessions: SessionTable = SessionTable(limits, clock)
        self.connections: dict[Connection, None] = {}
        self.open_responses: dict[ResponseBuffer, None] = {}
        self.is_shutting_down: bool = False
        self._open_bytes = 0
        self._is_asyncio = False
        self._host = HandlerHost(engine, self.sessions.expire)

    async def open(self) -> Spawner:
        """Return the spawner of handlers, once the server's lifespan has started.

        Raises:
            Exception: The exception that the server's lifespan raised.
        """
        if self._host.spawner is not None:
            return self._host.spawner
        spawner = await self._host.open()
        self._is_asyncio = is_asyncio()
        return spawner

    @property
    def runs_inline(self) -> bool:
        """Whether a handler may start in the task of its request; see `direct_calls`."""
        return self._is_asyncio and self._host.spawner is not None

    @property
    def has_ended(self) -> bool:
        """Whether no handler can run any more: after a shutdown, a failed lifespan, or the end of the event loop."""
        return self.is_shutting_down or self._host.has_ended

    @property
    def has_lost_its_loop(self) -> bool:
        """Whether the event loop has ended without a shutdown, so that the application can start again in another."""
        return self._host.has_ended and not self.is_shutting_down and not self._host.has_failed

    def disconnect_all(self) -> None:
        """Have the engine forget all connections, which belong to an event loop that has ended."""
        for each in (*self.connections, *self.sessions):
            self.engine.remove(each)

    def unsupported_revision(self, headers: Mapping[str, str]) -> str | None:
        """Return the revision that *headers* name, if the server does not serve it; None otherwise."""
        revision = headers.get(http.REVISION, "").strip()
        return revision if http.REVISION in headers and revision not in self.engine.handlers.served else None

    def overload(self, size: int) -> str | None:
        """Return why a request with a body of *size* bytes cannot be served now; None if it can."""
        if self.is_shutting_down:
            return "the server is shutting down"
        if len(self.open_responses) >= self.limits.max_open:
            return "too many requests and streams are open (max_open)"
        if size and self._open_bytes + size > self.limits.max_open_bytes:
            return "the open requests hold too many bytes (max_open_bytes)"
        return None

    def reserve(self, size: int) -> bool:
        """Count *size* bytes more, or less if negative, of incomplete requests; return whether there is room."""
        self._open_bytes += size
        return self._open_bytes <= self.limits.max_open_bytes

    def add_response(self, response: ResponseBuffer, size: int = 0) -> None:
        """Count an open response, and the *size* of its request's body."""
        self.open_responses[response] = None
        self._open_bytes += size

    def remove_response(self, response: ResponseBuffer, size: int = 0) -> None:
        """Count it no longer, and discard what was not sent."""
        del self.open_responses[response]
        self._open_bytes -= size
        response.disconnect()

    async def close(self) -> None:
        """Shut down, and end the server's lifespan.

        Raises:
            Exception: The exception that the server's lifespan raised at its end.
        """
        await self.shutdown()
        await self._host.close()

    async def shutdown(self) -> None:
        """Give running handlers the server's grace period, then cancel them and end all streams."""
        if self.is_shutting_down:
            return
        self.is_shutting_down = True
        connections = [*self.connections, *self.sessions]
        for each in connections:
            each.end_of_input()
        with anyio.move_on_after(self.engine.limits.grace_seconds):
            for each in connections:
                await each.wait_finished()
        for session in self.sessions:
            self.sessions.end(session)
        for each in connections:
            each.close()
        for response in self.open_responses:
            response.end()
