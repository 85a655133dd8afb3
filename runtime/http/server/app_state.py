"""What all requests of one application share: its server, its sessions, what is open, and how much there may be."""

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
    """What all requests of one application share.

    Args:
        engine: The server.
        limits: Bounds of the application.
        store: Keeps what streams of sessions send; by default in memory.

    Attributes:
        sessions: Those of clients that shake hands.
        passing: The connections that last as long as one request.
        outlets: What is being sent.
        is_leaving: Whether nothing new is begun any more.
    """

    def __init__(self, engine: Engine, limits: HttpLimits, store: EventStore | None) -> None:
        clock = engine.service.clock
        self.engine: Engine = engine
        self.limits: HttpLimits = limits
        self.store: EventStore = MemoryEventStore(clock=clock) if store is None else store
        self.sessions: SessionTable = SessionTable(limits, clock)
        self.passing: dict[Connection, None] = {}
        self.outlets: dict[ResponseBuffer, None] = {}
        self.is_leaving: bool = False
        self._bytes = 0
        self._is_asyncio = False
        self._hall = HandlerHost(engine, self.sessions.expire)

    async def open(self) -> Spawner:
        """Return what starts handlers.

        Raises:
            Exception: Whatever the server's lifespan raised.
        """
        if self._hall.spawner is not None:
            return self._hall.spawner
        opened = await self._hall.open()
        self._is_asyncio = is_asyncio()
        return opened

    @property
    def may_step(self) -> bool:
        """Whether handlers may begin in the task of their request."""
        return self._is_asyncio and self._hall.spawner is not None

    @property
    def is_over(self) -> bool:
        """Whether handlers cannot run any more: it was closed, or the event loop has ended, or the lifespan failed."""
        return self.is_leaving or self._hall.is_over

    @property
    def is_left(self) -> bool:
        """Whether an event loop has ended under it, so that another may begin anew."""
        return self._hall.is_over and not self.is_leaving and not self._hall.has_failed

    def abandon(self) -> None:
        """Have the server forget whom it served in an event loop that has ended: nothing can be said there any more."""
        for each in (*self.passing, *self.sessions):
            self.engine.disconnect(each)

    def unserved(self, headers: Mapping[str, str]) -> str | None:
        """Return the revision that *headers* name, if it is none that is served."""
        said = headers.get(http.REVISION, "").strip()
        return said if http.REVISION in headers and said not in self.engine.service.served else None

    def refusal(self, size: int) -> str | None:
        """Return why a request with a body of *size* bytes cannot be served now; None if it can."""
        if self.is_leaving:
            return "the server is shutting down"
        if len(self.outlets) >= self.limits.max_open:
            return "too many requests and streams are open (max_open)"
        if size and self._bytes + size > self.limits.max_open_bytes:
            return "the open requests hold too much (max_open_bytes)"
        return None

    def hold(self, size: int) -> bool:
        """Note that *size* bytes more, or less, are held of incomplete requests; return whether there is room."""
        self._bytes += size
        return self._bytes <= self.limits.max_open_bytes

    def enter(self, outlet: ResponseBuffer, size: int = 0) -> None:
        """Note that something is being answered."""
        self.outlets[outlet] = None
        self._bytes += size

    def leave(self, outlet: ResponseBuffer, size: int = 0) -> None:
        """Note that it is not any more."""
        del self.outlets[outlet]
        self._bytes -= size
        outlet.lose()

    async def close(self) -> None:
        """End all streams, let what runs finish within the grace of the server, and cancel the rest.

        Raises:
            Exception: Whatever the server's lifespan raised at its end.
        """
        await self.dismiss()
        await self._hall.close()

    async def dismiss(self) -> None:
        """End all streams, and let what runs finish within the grace of the server; then nothing is open any more."""
        if self.is_leaving:
            return
        self.is_leaving = True
        connections = [*self.passing, *self.sessions]
        for each in connections:
            each.end_of_input()
        with anyio.move_on_after(self.engine.limits.grace_seconds):
            for each in connections:
                await each.finished()
        for session in self.sessions:
            self.sessions.end(session)
        for each in connections:
            each.close()
        for outlet in self.outlets:
            outlet.end()
