"""Relay messages between a host on stdio and a server at a URL, and pass them to a trace.

Theory of operation. The host starts this process like a server. Messages of the host are sent by the HTTP client
transport, and messages of the server are written to standard output unchanged. If HTTP has no response to a request,
the host gets an error that says why, so that it does not wait for ever. The messages of a batch with requests are sent
one by one: the HTTP client transport reads the responses to single requests only.

Neither side is read faster than the other side reads: what waits for the host has a limit, and so has what waits for
the server (`ClientLimits.max_buffered_bytes`).

The relay ends when the host has closed our input and all its requests are answered (or shortly after), or when the
connection to the server is lost.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec import Raw

from mcpgen.runtime.cli.terminal_text import error_text
from mcpgen.runtime.cli.trace.stdio_relay import ByteReader, ByteWriter
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.framing import LineFramer, OversizedLine, frame
from mcpgen.runtime.protocol.messages import Batch, Error, ErrorResponse, Malformed, Request, Response
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.transports.spawner import open_group

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from mcpgen.runtime.cli.trace.stdio_relay import TraceSink
    from mcpgen.runtime.errors import TransportClosed
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.protocol.messages import Message, RequestId
    from mcpgen.runtime.transports.interfaces import Channel, Transport
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
        limits = self._limits
        async with self._transport.open(limits) as channel, open_group() as group:
            server = _Server(self._trace_sink, limits.max_buffered_bytes, limits.max_values)
            group.start_soon(self._receive, channel, server)
            group.start_soon(self._write, server)
            with anyio.CancelScope() as scope:
                group.start_soon(_cancel_on, self._stopped, scope)
                await self._read(channel, server)
                with anyio.move_on_after(limits.stdin_seconds):
                    await server.all_answered()
            with anyio.move_on_after(_FLUSH_SECONDS):
                await server.below(1)

    async def _read(self, channel: Channel, server: _Server) -> None:
        """Send the host's messages to the server until the host's input ends."""
        reader, framer = ByteReader(self._streams.source), LineFramer(self._limits.max_frame_bytes)
        data = b"any"
        while data:
            data = await reader.read()
            for each in framer.feed(data) if data else framer.finish():
                if isinstance(each, OversizedLine):
                    self._trace_sink.to_server(frame(each.head))  # reported as malformed
                    server.refuse(each)
                    continue
                self._trace_sink.to_server(frame(each))
                for message in server.note_requests(each):
                    channel.write(message)
                    await channel.drain()

    async def _write(self, server: _Server) -> None:
        """Write the server's messages to the host, until the host does not read any more."""
        writer = ByteWriter(self._streams.sink)
        while await writer.write_rest(writer.write_now(await server.next_line())):
            server.written()
        self._stopped.set()

    async def _receive(self, channel: Channel, server: _Server) -> None:
        await channel.run(server)
        self.failure = await channel.close_reason()
        for each in list(server.pending):
            server.request_lost(each, self.failure)
        self._stopped.set()


class _Server:
    """The endpoint for messages of the server, and their queue on the way to the host.

    Attributes:
        pending: The ids of the host's requests without a response.

    Args:
        trace_sink: The receiver of all messages.
        max_queued_bytes: With more in the queue, no more is read from the server.
        max_values: With more values, a message is passed on, but only its id is read.
    """

    def __init__(self, trace_sink: TraceSink, max_queued_bytes: int, max_values: int) -> None:
        self.pending: dict[RequestId, None] = {}
        self._trace_sink = trace_sink
        self._max_queued_bytes = max_queued_bytes
        self._max_values = max_values
        self._lines: deque[bytes] = deque()  # the first is being written
        self._size = 0
        self._changed = anyio.Event()  # set at each change, and then replaced

    def note_requests(self, message: bytes) -> list[bytes]:
        """Remember the requests in *message*, and return the messages to send for it."""
        found = envelope.decode(message, max_values=self._max_values)
        has_requests = False
        for each in found.items if isinstance(found, Batch) else (found,):
            kind, known = _kind_and_id(each)
            if kind == "request" and known is not None:
                self.pending[known] = None
                has_requests = True
        if isinstance(found, Batch) and has_requests:
            return [bytes(each) for each in msgspec.json.decode(message, type=list[Raw])]
        return [message]

    def refuse(self, line: OversizedLine) -> None:
        """Answer a request of the host that is too long to be sent."""
        found = envelope.decode_oversized(line)
        if found.kind == "request" and found.id is not None:
            self._write(envelope.encode_error(found.id, Error(found.fault.code, found.reason)))

    async def all_answered(self) -> None:
        """Wait until no request is pending."""
        while self.pending:
            await self._next_change()

    async def next_line(self) -> bytes:
        """Return the oldest line of the queue, when there is one. It counts until `written`."""
        while not self._lines:
            await self._next_change()
        return self._lines[0]

    def written(self) -> None:
        """Remove the oldest line."""
        self._size -= len(self._lines.popleft())
        self._notify()

    async def below(self, size: int) -> None:
        """Wait until the queue has less than *size* bytes."""
        while self._size >= size:
            await self._next_change()

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for each in frames:
            if isinstance(each, OversizedLine):
                continue  # the HTTP transport has none: it drops messages that are too long
            found = envelope.decode(each, max_values=self._max_values)
            for item in found.items if isinstance(found, Batch) else (found,):
                kind, known = _kind_and_id(item)
                if kind == "response" and known is not None:
                    self.pending.pop(known, None)
            self._write(each)

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        if request_id in self.pending:
            del self.pending[request_id]
            self._write(envelope.encode_error(request_id, Error(ErrorCode.INTERNAL_ERROR, error_text(failure))))

    def awaits(self, request_id: RequestId) -> bool:
        return request_id in self.pending

    def session_renewed(self) -> None:
        """Do nothing: the client does not know of the session."""

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()  # the client has the clocks

    async def ready(self) -> None:
        await self.below(self._max_queued_bytes)

    def end_of_input(self) -> None:
        """Do nothing: `HttpRelay` sees the end of the channel."""

    async def wait_finished(self) -> None:
        """Return at once: nothing runs here."""

    def close(self) -> None:
        """Do nothing: nothing is held here."""

    def _write(self, message: bytes) -> None:
        line = frame(message)
        self._trace_sink.to_client(line)
        self._lines.append(line)
        self._size += len(line)
        self._notify()

    async def _next_change(self) -> None:
        # anyio cancels no task whose event is set: a server that never stops sending would keep us running.
        await checkpoint_if_cancelled()
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _cancel_on(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _kind_and_id(message: Message | Malformed) -> tuple[str | None, RequestId | None]:
    match message:
        case Request():
            return "request", message.id
        case Response() | ErrorResponse():
            return "response", message.id
        case Malformed():
            return message.kind, message.id
        case _:
            return None, None
