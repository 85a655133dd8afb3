"""A transport of one's own: two queues between a client and a server of the same process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, assert_type

from mcpgen import Client, Transport, TransportClosed, connect, open_spawner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen import Channel, ClientEndpoint, ClientLimits, Endpoint, MessageWriter, Server, ServerInterface

Frames = asyncio.Queue[bytes | None]  # None: the end


class QueueWriter:
    """Puts messages into a queue; nothing is inherited, so that the protocol alone decides whether it fits."""

    is_full = False

    def __init__(self) -> None:
        self.frames: Frames = asyncio.Queue()

    def write(self, message: bytes) -> None:
        self.frames.put_nowait(message)

    async def drain(self) -> None: ...


class QueueChannel(QueueWriter):
    stderr = ""

    def __init__(self, incoming: Frames) -> None:
        super().__init__()
        self._incoming = incoming

    async def run(self, endpoint: ClientEndpoint, /) -> None:
        await deliver(self._incoming, endpoint)

    async def close_reason(self) -> TransportClosed:
        return TransportClosed("the queue has ended")


class QueueTransport:
    identity = None
    description = "a server behind two queues"

    def __init__(self, server: ServerInterface) -> None:
        self.answers = QueueWriter()
        self._server = server

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        del limits
        self.answers = QueueWriter()
        channel = QueueChannel(self.answers.frames)
        async with self._server.running(), open_spawner() as spawner:
            endpoint = self._server.connect(self.answers, spawner)
            delivery = asyncio.create_task(deliver(channel.frames, endpoint))
            try:
                yield channel
            finally:
                channel.frames.put_nowait(None)
                await delivery
                endpoint.close()
                await endpoint.wait_finished()


async def deliver(frames: Frames, endpoint: Endpoint) -> None:
    while (frame := await frames.get()) is not None:
        endpoint.receive([frame])


def a_server_is_what_a_transport_takes(server: Server) -> ServerInterface:
    return server


def each_class_fits_its_protocol(server: Server) -> tuple[MessageWriter, Transport]:
    return QueueWriter(), QueueTransport(server)


async def a_client_over_it(server: Server) -> None:
    async with connect(QueueTransport(server)) as client:
        assert_type(client, Client)
