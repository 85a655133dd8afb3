"""One server at work: its handlers, its lifespan, and its open connections.

`mcpgen.runtime.api.server.Server` is what users see of it; transports and connections use this object.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from mcpgen.runtime.protocol.subscriptions import RESOURCE_UPDATED
from mcpgen.runtime.server.connection import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.server.service import HandlerTable
    from mcpgen.runtime.transports.interfaces import Writer
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["Engine"]


class Engine:
    """One server at work.

    Args:
        name: The server's name, for logs.
        service: The handlers, and what they offer to the peers of each revision.
        lifespan: Returns the context manager that is open while the server runs; None if there is none.

    Attributes:
        state: The value that the lifespan yielded, while it is open.
        is_expiring: Whether a connection already looks after requests that wait for a client's retry.
    """

    def __init__(
        self, name: str, service: HandlerTable, lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None
    ) -> None:
        self.name: str = name
        self.service: HandlerTable = service
        self.limits: Limits = service.limits
        self.native_revision: str = service.native_revision
        self.state: Any = None
        self.is_expiring: bool = False
        self.connections: dict[Connection, None] = {}
        self._lifespan = lifespan
        self._running = 0
        self._principals = 0
        self._stack = AsyncExitStack()
        self._opened = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep the lifespan open within the block; all connections of the process share it."""
        self._running += 1
        try:
            if self._running > 1:
                await self._opened.wait()  # the first to enter may still be opening it
            else:
                await self._open()
            yield
        finally:
            self._running -= 1
            if not self._running:
                self.state = None
                await self._stack.aclose()

    async def _open(self) -> None:
        opened = self._opened = anyio.Event()
        try:
            if self._lifespan is not None:
                self.state = await self._stack.enter_async_context(self._lifespan())
        finally:
            opened.set()

    def connect(self, writer: Writer, spawner: Spawner) -> Connection:
        """Return a new connection, which a transport drives."""
        made = Connection(self, writer, spawner)
        self.adopt(made)
        return made

    def adopt(self, connection: Connection) -> None:
        """Report changes to *connection* from now on, until it is closed."""
        self.connections[connection] = None

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection."""
        self.connections.pop(connection, None)

    def principal(self) -> str:
        """Return a label that distinguishes the client of a new connection from those of others."""
        self._principals += 1
        return f"connection {self._principals}"

    def hand_on(self, connection: Connection) -> None:
        """Let another connection look after requests that wait for a retry, since *connection* ends."""
        for each in self.connections:
            if each is not connection:
                each.expire_later()
                return

    async def resource_updated(self, uri: str) -> None:
        """Notify every client that is subscribed to the resource *uri* that it has changed."""
        await self._notify(RESOURCE_UPDATED, uri)

    async def tools_changed(self) -> None:
        """Notify every client that wants to know that the list of tools has changed."""
        await self._notify("notifications/tools/list_changed")

    async def prompts_changed(self) -> None:
        """Notify every client that wants to know that the list of prompts has changed."""
        await self._notify("notifications/prompts/list_changed")

    async def resources_changed(self) -> None:
        """Notify every client that wants to know that the list of resources has changed."""
        await self._notify("notifications/resources/list_changed")

    async def _notify(self, method: str, uri: str | None = None) -> None:
        for each in list(self.connections):
            each.change(method, uri)
        await anyio.lowlevel.checkpoint()  # so that a loop of changes lets them be written
