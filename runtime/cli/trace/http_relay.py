"""Relay messages between a host on stdio and a server at a URL, and pass them to a trace.

Theory of operation. The host starts this process like a server. Messages of the host are sent by the HTTP client
transport, and messages of the server are written to standard output unchanged. If HTTP has no response to a request,
the host gets an error that says why, so that it does not wait for ever.

The relay ends when the host has closed our input and all its requests are answered (or shortly after), or when the
connection to the server is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.framing import OversizedLine, frame
from mcpgen.runtime.protocol.messages import Batch, Error, ErrorResponse, Request, Response
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.transports.spawner import open_group
from mcpgen.runtime.transports.stdio import open_pump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.cli.trace.stdio_relay import TraceSink
    from mcpgen.runtime.errors import TransportClosed
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import Channel, MessageWriter, Transport
    from mcpgen.runtime.transports.standard_streams import StandardStreams

__all__ = ["HttpRelay"]

# To write the last messages, if the host still reads.
_FLUSH_SECONDS: Final = 0.5


class HttpRelay:
    """Move messages between the standard streams and a server at a URL.

    Attributes:
        failure: Why the connection to the server was lost; None if the host ended it.

    Args:
        transport: The transport that reaches the server.
        streams: Our standard streams.
        trace_sink: The receiver of all messages.
        limits: The limits for messages, and for the time after the host closed our input.
    """

    def __init__(
        self, transport: Transport, streams: StandardStreams, trace_sink: TraceSink, limits: ClientLimits
    ) -> None:
        self.failure: TransportClosed | None = None
        self._transport = transport
        self._streams = streams
        self._trace_sink = trace_sink
        self._limits = limits
        self._stopped = anyio.Event()

    @property
    def status(self) -> int:
        """The exit status: 1 if the connection to the server was lost."""
        return 0 if self.failure is None else 1

    def stop(self) -> None:
        """Stop at once."""
        self._stopped.set()

    async def run(self) -> None:
        """Relay messages until the host or the server ends."""
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
            server = _Server(pump, self._trace_sink)
            group.start_soon(self._receive, channel, server)
            with anyio.CancelScope() as scope:
                group.start_soon(_cancel_on, self._stopped, scope)
                await pump.run(_Host(channel, server, self._trace_sink))
                with anyio.move_on_after(limits.stdin_seconds):
                    await server.all_answered()
            with anyio.move_on_after(_FLUSH_SECONDS):
                await pump.flushed()

    async def _receive(self, channel: Channel, server: _Server) -> None:
        await channel.run(server)
        self.failure = await channel.close_reason()
        for each in list(server.pending):
            server.request_lost(each, self.failure)
        self._stopped.set()


class _Host:
    """The endpoint for messages of the host."""

    def __init__(self, channel: Channel, server: _Server, trace_sink: TraceSink) -> None:
        self._channel = channel
        self._server = server
        self._trace_sink = trace_sink

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for each in frames:
            if isinstance(each, OversizedLine):
                self._trace_sink.to_server(frame(each.head))  # reported as malformed
                continue
            self._trace_sink.to_server(frame(each))
            self._server.note_requests(each)
            self._channel.write(each)

    def end_of_input(self) -> None:
        """Do nothing: `HttpRelay.run` sees the end of the pump."""

    async def wait_finished(self) -> None:
        """Return at once: nothing runs here."""

    def close(self) -> None:
        """Do nothing: nothing is held here."""


class _Server:
    """The endpoint for messages of the server.

    Attributes:
        pending: The ids of the host's requests without a response.
    """

    def __init__(self, pump: MessageWriter, trace_sink: TraceSink) -> None:
        self.pending: dict[RequestId, None] = {}
        self._pump = pump
        self._trace_sink = trace_sink
        self._changed: anyio.Event | None = None  # while `all_answered` waits

    def note_requests(self, message: bytes) -> None:
        """Remember the requests in *message*."""
        found = envelope.decode(message)
        for each in found.items if isinstance(found, Batch) else (found,):
            if isinstance(each, Request):
                self.pending[each.id] = None

    async def all_answered(self) -> None:
        """Wait until no request is pending."""
        while self.pending:
            self._changed = anyio.Event()
            await self._changed.wait()

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for each in frames:
            if isinstance(each, OversizedLine):
                continue  # the HTTP transport has none: it drops messages that are too long
            found = envelope.decode(each)
            for item in found.items if isinstance(found, Batch) else (found,):
                if isinstance(item, Response | ErrorResponse) and item.id is not None:
                    self.pending.pop(item.id, None)
            self._write(each)

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        if request_id in self.pending:
            del self.pending[request_id]
            self._write(envelope.encode_error(request_id, Error(ErrorCode.INTERNAL_ERROR, str(failure))))

    def end_of_input(self) -> None:
        """Do nothing: `HttpRelay` sees the end of the channel."""

    async def wait_finished(self) -> None:
        """Return at once: nothing runs here."""

    def close(self) -> None:
        """Do nothing: nothing is held here."""

    def _write(self, message: bytes) -> None:
        self._trace_sink.to_client(frame(message))
        self._pump.write(message)
        if self._changed is not None and not self.pending:
            self._changed.set()


async def _cancel_on(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
