"""A host's standard streams on one side, a server at a URL on the other: messages go through, and are looked on at.

Theory of operation. A host that starts its servers speaks with this as with one of them. What it writes goes the way
that a client's messages go, and what comes back is written as it came. Where HTTP has no answer to a request, the host
gets an error that says why; without, it would wait.

It is over when the host has closed our input and has what it asked for, or a moment later, and when the server cannot
be spoken with any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.framing import OversizedLine, frame
from mcpgen.runtime.protocol.messages import Batch, Code, Error, ErrorResponse, Request, Response
from mcpgen.runtime.transports.spawner import open_group
from mcpgen.runtime.transports.stdio import open_pump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.cli.stdio_relay import Streams, TraceSink
    from mcpgen.runtime.errors import TransportClosed
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import Channel, Transport, Writer

__all__ = ["HttpRelay"]

# For what was said last, if the host still reads.
_FLUSH_SECONDS: Final = 0.5


class HttpRelay:
    """Moves messages between the standard streams and a server.

    Attributes:
        failure: Why the server cannot be spoken with any more; None if the host has ended it.

    Args:
        transport: How the server is reached.
        streams: Our standard streams.
        onlooker: Who sees what goes through.
        limits: How long a message may be, and how long a host that has gone is answered.
    """

    def __init__(self, transport: Transport, streams: Streams, onlooker: TraceSink, limits: ClientLimits) -> None:
        self.failure: TransportClosed | None = None
        self._transport = transport
        self._streams = streams
        self._onlooker = onlooker
        self._limits = limits
        self._over = anyio.Event()

    @property
    def status(self) -> int:
        """The exit status: 1 if the server could not be spoken with any more."""
        return 0 if self.failure is None else 1

    def hurry(self) -> None:
        """End it at once."""
        self._over.set()

    async def run(self) -> None:
        """Let everything through until it is over."""
        limits, streams = self._limits, self._streams
        async with (
            open_pump(
                streams.source,
                streams.sink,
                max_frame_bytes=limits.max_frame_bytes,
                max_buffered_bytes=limits.max_buffered_bytes,
            ) as pump,
            self._transport.open(limits) as channel,
            open_group() as group,
        ):
            server = _Server(pump, self._onlooker)
            group.start_soon(self._hear, channel, server)
            with anyio.CancelScope() as scope:
                group.start_soon(_when, self._over, scope)
                await pump.run(_Host(channel, server, self._onlooker))
                with anyio.move_on_after(limits.stdin_seconds):
                    await server.answered()
            with anyio.move_on_after(_FLUSH_SECONDS):
                await pump.flushed()

    async def _hear(self, channel: Channel, server: _Server) -> None:
        await channel.run(server)
        self.failure = await channel.ended()
        for each in list(server.open):
            server.lost(each, self.failure)
        self._over.set()


class _Host:
    """The endpoint of what the host writes."""

    def __init__(self, channel: Channel, server: _Server, onlooker: TraceSink) -> None:
        self._channel = channel
        self._server = server
        self._onlooker = onlooker

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for each in frames:
            if isinstance(each, OversizedLine):
                self._onlooker.to_server(frame(each.head))  # it is not JSON, and is told as such
                continue
            self._onlooker.to_server(frame(each))
            self._server.note_asked(each)
            self._channel.write(each)

    def end_of_input(self) -> None:
        """Nothing: whoever runs the pump knows."""

    async def finished(self) -> None:
        """Return: nothing runs here."""

    def close(self) -> None:
        """Nothing is held here."""


class _Server:
    """The endpoint of what the server says.

    Attributes:
        open: The requests of the host that have no answer yet.
    """

    def __init__(self, pump: Writer, onlooker: TraceSink) -> None:
        self.open: dict[RequestId, None] = {}
        self._pump = pump
        self._onlooker = onlooker
        self._changed: anyio.Event | None = None  # if somebody waits

    def note_asked(self, message: bytes) -> None:
        """Note what the host asks in *message*."""
        found = envelope.decode(message)
        for each in found.items if isinstance(found, Batch) else (found,):
            if isinstance(each, Request):
                self.open[each.id] = None

    async def answered(self) -> None:
        """Return when every request has its answer."""
        while self.open:
            self._changed = anyio.Event()
            await self._changed.wait()

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for each in frames:
            if isinstance(each, OversizedLine):
                continue  # a server at a URL has none: what is too long is lost
            found = envelope.decode(each)
            for item in found.items if isinstance(found, Batch) else (found,):
                if isinstance(item, Response | ErrorResponse) and item.id is not None:
                    self.open.pop(item.id, None)
            self._write(each)

    def lost(self, request_id: RequestId, failure: Exception) -> None:
        if request_id in self.open:
            del self.open[request_id]
            self._write(envelope.encode_error(request_id, Error(Code.INTERNAL_ERROR, str(failure))))

    def end_of_input(self) -> None:
        """Nothing: whoever runs the channel knows."""

    async def finished(self) -> None:
        """Return: nothing runs here."""

    def close(self) -> None:
        """Nothing is held here."""

    def _write(self, message: bytes) -> None:
        self._onlooker.to_client(frame(message))
        self._pump.write(message)
        if self._changed is not None and not self.open:
            self._changed.set()


async def _when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
