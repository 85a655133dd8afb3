"""What may stand between a client and a server, and does not leave alone what it passes on."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_PIECE = 65536


class Proxy:
    """Passes bytes on, from a port of its own.

    Attributes:
        port: Where it listens.
        connections: How many there were.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.connections = 0
        self._is_over = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what the server says."""
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._is_over:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            theirs, ours = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        there = asyncio.ensure_future(_copy(reader, ours))
        back = asyncio.ensure_future(self.pass_on(theirs, writer))
        try:
            with suppress(asyncio.CancelledError):  # at the end, which asyncio's server would take for a failure
                await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in (writer, ours):
                end.transport.abort()
            for each in (there, back):
                each.cancel()
            await asyncio.gather(there, back, return_exceptions=True)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Proxy]:
        """Listen within the block."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self._is_over = True
            await asyncio.sleep(0)  # what has just begun sees that
            for each in list(self._tasks):
                each.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()


class Dribbling(Proxy):
    """Passes on a few bytes at a time."""

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(7):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0)


class Buffering(Proxy):
    """Holds back what the server says for a while, and passes it on at once."""

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE):
            await asyncio.sleep(0.2)
            writer.write(data)
            await writer.drain()


class Cutting(Proxy):
    """Ends a connection once a stream of events on it has had a few of them.

    Args:
        target: Where the server listens.
        most_bytes: How much of each stream it passes on.
        times: How many streams it cuts.
    """

    def __init__(self, target: int, most_bytes: int, times: int = 1000) -> None:
        super().__init__(target)
        self.most_bytes = most_bytes
        self.left = times
        self.cut = 0

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed = -1
        while data := await reader.read(_PIECE):
            if passed < 0 and b"text/event-stream" in data and self.left:
                self.left -= 1
                passed = 0
            if passed >= 0:
                data = data[: self.most_bytes - passed]
                passed += len(data)
            writer.write(data)
            await writer.drain()
            if passed >= self.most_bytes:
                self.cut += 1
                return
