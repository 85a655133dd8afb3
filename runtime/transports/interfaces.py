"""The protocols between a transport and the two sides of a connection. They are public: `from mcpgen import Transport`.

Theory of operation. A *transport* moves frames: one frame is one JSON-RPC message (or a batch of 2025-03-26) as bytes,
without the delimiter that the transport adds. An *endpoint* is one side of a connection; it understands frames.

* On the client's side you implement `Transport`. `connect(transport)` opens it and gets a `Channel`. It writes messages
  to the channel, and `Channel.run` hands the server's frames to a `ClientEndpoint`.
* On the server's side you call `ServerInterface.connect` with a `MessageWriter` that you implement. You get an
  `Endpoint`, and hand the client's frames to it.

All methods are called in the thread of the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from mcpgen.runtime.errors import TransportClosed
    from mcpgen.runtime.limits import ClientLimits, Limits
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = [
    "Channel",
    "ClientEndpoint",
    "Endpoint",
    "EndpointFactory",
    "MessageWriter",
    "ServerInterface",
    "Transport",
]


class MessageWriter(Protocol):
    """Sends the messages of one endpoint to its peer. A transport implements it."""

    @property
    def is_full(self) -> bool:
        """Whether the peer reads too slowly. Call `drain` before the next `write`, if you can wait."""
        ...

    def write(self, message: bytes) -> None:
        """Send *message*, in the order of the calls.

        Return at once, and do not raise. If the connection has ended, drop *message*.

        Args:
            message: The JSON of one message, without a delimiter. It may contain line breaks between tokens.
        """

    async def drain(self) -> None:
        """Return when the writer is no longer full, or when the connection has ended."""


class Endpoint(Protocol):
    """One side of a connection. It takes frames, and writes messages to its `MessageWriter`.

    A frame is the bytes of one message, or of one batch, without the delimiter of the transport.
    """

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Handle *frames* in their order. Start handlers without waiting for them, and do not raise.

        Args:
            frames: One or more frames. An `OversizedLine` stands for a frame that was too long to read.
        """

    def end_of_input(self) -> None:
        """Handle the end of input: no more frames will come. Running handlers may still answer."""

    async def wait_finished(self) -> None:
        """Return when no handler is running any more."""

    def close(self) -> None:
        """Cancel all running handlers and end the connection."""


class ClientEndpoint(Endpoint, Protocol):
    """The client's side of a connection."""

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        """Fail one request with *failure*. The connection continues.

        Only transports that send each request by itself, such as HTTP, call this.
        """

    def awaits(self, request_id: RequestId) -> bool:
        """Return whether the response to a request is still awaited: the request was neither answered nor given up.

        Only HTTP calls this.
        """
        ...

    def session_renewed(self) -> None:
        """Forget what the server has listed: a new session has replaced a lost one, maybe with a newer server.

        Only HTTP calls this.
        """

    def paused(self) -> AbstractContextManager[object]:
        """Stop the clocks of the client's requests within the block: a person is asked something, such as to log in."""
        ...

    async def ready(self) -> None:
        """Return when the endpoint can take more frames.

        A transport that can stop reading, such as HTTP, awaits this before it reads more. The endpoint of a client
        returns at once. The endpoint of a relay waits while the host, to which it passes the frames, does not read.
        """


@runtime_checkable
class EndpointFactory(Protocol):
    """Makes an endpoint for each connection."""

    def connect(self, writer: MessageWriter, spawner: Spawner, /) -> Endpoint:
        """Return a new endpoint. It writes to *writer*, and starts its handlers with *spawner*."""
        ...


@runtime_checkable
class ServerInterface(EndpointFactory, Protocol):
    """The part of a server that a transport uses. `Server` implements it."""

    @property
    def limits(self) -> Limits:
        """The limits of the server. The transport enforces `max_frame_bytes` and `max_buffered_bytes`."""
        ...

    def running(self) -> AbstractAsyncContextManager[object]:
        """Keep the server's lifespan open within the block. Call `connect` inside of it."""
        ...


class Channel(MessageWriter, Protocol):
    """One open connection to a server, from the client's side. `Transport.open` returns it."""

    async def run(self, endpoint: ClientEndpoint, /) -> None:
        """Hand each frame from the server to *endpoint*, and return when the server has ended the connection.

        A frame is the bytes of one message, or of one batch, without the delimiter of the transport. The client calls
        `run` once, and cancels it when the client closes. `run` does not call `Endpoint.close`.
        """
        ...

    async def close_reason(self) -> TransportClosed:
        """Return the error with which the pending requests fail. The client calls this after `run` has returned."""
        ...

    @property
    def stderr(self) -> str:
        """The last text that the server wrote to standard error; empty if the transport cannot read it."""
        ...


@runtime_checkable
class Transport(Protocol):
    """How a client reaches a server. Pass an implementation to `connect`."""

    @property
    def identity(self) -> Hashable | None:
        """The key of the server, which is the same for all transports to the server; None if there is no key.

        A client first probes whether the server needs `initialize`, with a request for `server/discover`. `connect`
        remembers the result under this key, and does not probe the next time. With None, it always probes.
        """
        ...

    @property
    def description(self) -> str:
        """The name of the server in error messages, such as its command or URL. It holds no secrets."""
        ...

    def open(self, limits: ClientLimits, /) -> AbstractAsyncContextManager[Channel]:
        """Open a new connection within the block, and close it at the end of the block, in a bounded time.

        A client that closes waits for the end of the block, even if its caller is cancelled. `connect` may open several
        connections, one after the other: some servers exit when they get the probe (see `identity`).
        """
        ...
