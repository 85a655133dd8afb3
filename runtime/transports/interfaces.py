"""What a transport needs of the engine, and the engine of a transport; neither needs more of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcpgen.runtime.errors import TransportClosed
    from mcpgen.runtime.limits import ClientLimits, Limits
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["Channel", "ClientEndpoint", "Connectable", "Endpoint", "Endpoints", "Transport", "Writer"]


class Writer(Protocol):
    """Where an endpoint's messages go; a transport implements it."""

    @property
    def is_full(self) -> bool:
        """Whether the peer reads too slowly: who can wait should `drain` before it writes more."""
        ...

    def write(self, message: bytes) -> None:
        """Send *message*, which is JSON, unframed.

        It never waits and never fails; if the peer is gone, nothing happens.
        """

    async def drain(self) -> None:
        """Return when the writer is no longer full, or the peer is gone."""


class Endpoint(Protocol):
    """One side of a conversation: it takes frames, and writes messages to the writer that it was made with."""

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Act on *frames*, at least one, in their order; it must not raise. Handlers are started, not waited for."""

    def end_of_input(self) -> None:
        """Learn that no more frames will come; running handlers may still answer."""

    async def finished(self) -> None:
        """Return when no handler runs."""

    def close(self) -> None:
        """Cancel all running handlers and forget the conversation."""


class ClientEndpoint(Endpoint, Protocol):
    """The client's side of a conversation, where each request may travel, and get lost, by itself."""

    def lost(self, request_id: RequestId, failure: Exception) -> None:
        """Learn that a request will not be answered, because of *failure*; the conversation goes on."""


@runtime_checkable
class Connectable(Protocol):
    """Something that has an endpoint for each conversation."""

    def connect(self, writer: Writer, spawner: Spawner, /) -> Endpoint:
        """Return a new endpoint, whose handlers *spawner* starts."""
        ...


@runtime_checkable
class Endpoints(Connectable, Protocol):
    """A server, as a transport sees it."""

    @property
    def limits(self) -> Limits:
        """What a peer may ask of it."""
        ...

    def running(self) -> AbstractAsyncContextManager[object]:
        """Enter the server's lifespan; connections are made within."""
        ...


class Channel(Writer, Protocol):
    """A running conversation with a server, as its client sees it."""

    async def run(self, endpoint: ClientEndpoint, /) -> None:
        """Hand what comes to *endpoint*, until there will be no more."""
        ...

    async def ended(self) -> TransportClosed:
        """Return why there is no more, after `run` has returned; this takes a moment at most."""
        ...

    @property
    def stderr(self) -> str:
        """The last of what the server has printed as errors; empty where that cannot be seen."""
        ...


@runtime_checkable
class Transport(Protocol):
    """How a client reaches a server."""

    @property
    def identity(self) -> Hashable | None:
        """Equal for what is the same server: what was learnt of it is remembered under this. None: nothing is."""
        ...

    @property
    def description(self) -> str:
        """What people call it: the command."""
        ...

    def open(self, limits: ClientLimits, /) -> AbstractAsyncContextManager[Channel]:
        """Begin a conversation with a fresh server, which is ended with the block."""
        ...
