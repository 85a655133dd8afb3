"""A TCP relay to one server, in the event loop of a test, that can be cut, silent or slow."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class CutConnections:
    """Connections that end, and are refused, while they are cut.

    Attributes:
        port: Where clients connect to.
        is_cut: Whether it is cut now.
        delay_seconds: How long each part of what is sent is on its way.
    """

    port: int
    is_cut: bool = False
    delay_seconds: float = 0

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._speaks = asyncio.Event()
        self._speaks.set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection to its end."""
        if self.is_cut:
            writer.close()
            return
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
        both = {writer, other_writer}
        self._writers |= both
        try:
            await asyncio.gather(self._pump(reader, other_writer), self._pump(other_reader, writer))
        finally:
            self._writers -= both

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self.is_cut = True
        for each in self._writers:
            each.transport.abort()

    def silence(self) -> None:
        """Relay nothing until `mend`; the connections stay open, as those of a network that loses all packets."""
        self._speaks.clear()

    def mend(self) -> None:
        """Relay new connections again, and what waits."""
        self.is_cut = False
        self._speaks.set()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await asyncio.sleep(self.delay_seconds)
                await self._speaks.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def cut_connections(target: int) -> AsyncGenerator[CutConnections]:
    """Relay connections to the port *target* of this machine within the block."""
    made = CutConnections(target)
    server = await asyncio.start_server(made.connected, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.mend()
        made.cut()
        await asyncio.sleep(0.05)  # the relays end
