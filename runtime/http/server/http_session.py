"""A session over HTTP: one connection of a server, whose messages go over many requests.

Theory of operation. What belongs to a request goes over the response to the POST that brought it; what belongs to none
goes over the session's own stream, which a client opens with GET, and so does what belongs to a request whose own way
is closed. The requests of one POST, which are several in a batch, have one `EventStream`, and know it (`Origin.via`).

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.http.server.event_streams import EventStream
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.protocol.messages import Batch
from mcpgen.runtime.server.connection import Connection
from mcpgen.runtime.server.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.server.event_store import EventStore
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.protocol.messages import Malformed, Message
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Origin
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["HttpSession"]

# 2025-11-25, changelog: a server may close connections, and says first where to come back. Clients of before may take
# an event without data for a broken message.
_POLLING: Final = frozenset(each.label for each in REVISIONS if each.label >= "2025-11-25")


# Of a session that lasts long, the store has forgotten the others by then.
_MOST_KEPT: Final = 1000


class HttpSession(Connection):
    """One session.

    Args:
        engine: The server.
        spawner: Starts its handlers.
        store: Keeps what its streams send.
        limits: Bounds.
        session_id: Names it. Whoever knows it, and is the same user, is its client.
        streams_id: What the names of its streams begin with; they travel with every event.
        user: Whose it is.

    Attributes:
        own: The stream for what belongs to no request.
        streams: The open ones of requests, by name.
        open: How many requests of HTTP are being answered.
        used: When it was used last.
    """

    def __init__(  # noqa: PLR0913 (the parts that a session is put together from)
        self,
        engine: Engine,
        spawner: Spawner,
        store: EventStore,
        limits: HttpLimits,
        *,
        session_id: str,
        streams_id: str,
        user: str,
    ) -> None:
        self.id: str = session_id
        self.user: str = user
        self.own: EventStream = EventStream(f"{streams_id}.0", store, most_waiting=limits.max_kept_messages)
        super().__init__(engine, self.own, spawner)
        self.session.user = user
        self.streams: dict[str, EventStream] = {}
        self.open: int = 0
        self.used: float = 0
        self._store = store
        self._limits = limits
        self._streams_id = streams_id
        self._stream_count = 0
        self._taking: EventStream | None = None
        self._is_batch = False  # what is being taken
        self._kept: list[str] = []  # streams that are over, and may be in the store

    @property
    def retry_ms(self) -> int | None:
        """What the first event of a stream says about coming back; None if there is no such event."""
        return round(self._limits.retry_seconds * 1000) if self.session.revision in _POLLING else None

    def take(self, message: Message | Batch | Malformed) -> tuple[EventStream, ResponseBuffer]:
        """Take what a POST brought; return the stream of the answer, and the connection that it goes over at first.

        The stream may have left it by then: a handler that runs at once can close the connection in its first steps.
        """
        stream, outlet = self._new_stream()
        self._taking = stream
        self._is_batch = isinstance(message, Batch)
        try:
            self.session.take(message)
        finally:
            self._taking = None
        if self._is_batch and not stream.is_over and not self._has_open(stream):
            self._end(stream, has_answer=True)
        if not stream.is_over:
            self.streams[stream.name] = stream
        return stream, outlet

    def _has_open(self, stream: EventStream) -> bool:
        """Whether a request is open that is answered on *stream*."""
        origins = (each.origin if isinstance(each, Exchange) else each for each in self.session.exchanges.values())
        return any(each is not None and each.via is stream for each in origins)

    def begin(self, stream: EventStream) -> None:
        """Make *stream* one of events."""
        stream.begin(retry_ms=self.retry_ms)
        if stream.is_over:
            self._keep(stream)

    def open_stream(self, exchange: Exchange) -> tuple[EventStream, ResponseBuffer]:
        """Return likewise what *exchange* will be answered by, which is run elsewhere."""
        stream, outlet = self._new_stream()
        if exchange.origin is not None:
            exchange.origin.via = stream
        self.streams[stream.name] = stream
        return stream, outlet

    def _new_stream(self) -> tuple[EventStream, ResponseBuffer]:
        self._stream_count += 1
        outlet = ResponseBuffer(self._engine.limits.max_buffered_bytes)
        return EventStream(f"{self._streams_id}.{self._stream_count}", self._store, outlet), outlet

    async def resume(self, name: str, number: int, outlet: ResponseBuffer) -> bool:
        """Go on with the stream of that *name*, if it is one of this session; return whether it is known."""
        if name == self.own.name:
            return await self.own.resume(outlet, number)
        stream = self.streams.get(name)
        if stream is None:
            if not name.startswith(f"{self._streams_id}."):
                return False
            stream = EventStream(name, self._store)  # it is over, and what it said may still be known
            stream.is_over = True
        return await stream.resume(outlet, number)

    def start(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*."""
        if exchange.origin is not None and self._taking is not None:
            exchange.origin.via = self._taking
        super().start(exchange)

    def send(self, message: bytes, about: Exchange | Origin | None) -> None:
        """Write *message* where its request is answered, or else to the session's own stream."""
        self._way(about).write(message)

    def answer(self, message: bytes, origin: Origin | None) -> None:
        """Write an answer, which is the last that its stream has to say."""
        stream = self._stream(origin)
        if stream is None:
            return
        stream.write(message)
        if origin is not None or not self._is_batch:  # of a batch, one may be refused that has no part in its answer
            self._end(stream, has_answer=True)

    def dropped(self, origin: Origin | None) -> None:
        """End the stream on which the answer would have come."""
        stream = self._stream(origin)
        if stream is not None:
            self._end(stream)

    async def drain(self, about: Exchange | None) -> None:
        """Wait until the client has read most of what was sent about *about*."""
        stream = self._way(about)
        if stream.is_full:
            await stream.drain()

    def disconnect(self, exchange: Exchange, retry_ms: int | None) -> bool:
        """Close the connection that the answer to *exchange* would go over, for the client to come back."""
        stream = self._stream(exchange.origin)
        if stream is None or stream.is_over or stream.outlet is None or self.session.revision not in _POLLING:
            return False
        retry_ms = self.retry_ms if retry_ms is None else retry_ms
        if not stream.is_numbered:
            stream.begin(retry_ms=retry_ms)
        stream.detach(retry_ms=retry_ms)
        return True

    def leave(self, outlet: ResponseBuffer) -> None:
        """Take it that nobody reads *outlet* any more."""
        for each in (self.own, *self.streams.values()):
            each.detach(outlet)

    def end_of_input(self) -> None:
        """Take it that the application ends: questions stay unanswered, and streams without an answer to come end."""
        super().end_of_input()
        self.own.detach()

    def close(self) -> None:
        """Cancel all handlers, end all streams, and forget the session, with what its streams have sent."""
        super().close()
        streams = [self.own, *self.streams.values()]
        for each in streams:
            each.end()
            each.detach()
        self.streams.clear()
        kept = [*self._kept, *(each.name for each in streams if each.is_numbered)]
        if kept:
            self._kept = []
            self._spawner.start(self._forget, kept)

    async def _forget(self, names: Sequence[str]) -> None:
        for each in names:
            await self._store.forget(each)

    def _end(self, stream: EventStream, *, has_answer: bool = False) -> None:
        stream.end(has_answer=has_answer)
        self.streams.pop(stream.name, None)
        if stream.is_numbered:
            self._keep(stream)

    def _keep(self, stream: EventStream) -> None:
        if stream.is_broken:  # or whoever comes back would take what is in the store for all of it
            self._spawner.start(self._forget, [stream.name])
            return
        self._kept.append(stream.name)
        del self._kept[:-_MOST_KEPT]

    def _stream(self, about: Origin | None) -> EventStream | None:
        """Return the stream of a request, or of what is being taken."""
        found: EventStream | None = None if about is None else about.via
        return self._taking if found is None else found

    def _way(self, about: Exchange | Origin | None) -> EventStream:
        origin = about.origin if isinstance(about, Exchange) else about
        stream = None if origin is None else self._stream(origin)
        return self.own if stream is None or not stream.is_reachable else stream
