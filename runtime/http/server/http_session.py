"""A session over HTTP: one server connection whose messages are sent over many HTTP responses.

Theory of operation. A message that belongs to a request is sent in the response to the POST that brought the request.
All other messages go to the session's GET stream, which the client opens with GET; so do messages of a request whose
own stream cannot be reached any more, unless it is a task with a stream of its own (`TaskStreams`). The requests of one
POST, several if it is a batch, share one `EventStream`, which is their `OpenRequest.stream`.

Each GET without `Last-Event-ID` opens a stream with a name of its own, in place of the GET stream before it. A client
that resumes one that was replaced is sent what it has missed there, and then a new GET stream.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

from functools import partial
from itertools import dropwhile
from typing import TYPE_CHECKING, Final, TypeVar

from mcpgen.generated.registry import REVISIONS, Labels
from mcpgen.runtime.http.server.earlier_streams import EarlierStreams, forget_streams
from mcpgen.runtime.http.server.event_streams import EventStream, end_streams, is_get_stream
from mcpgen.runtime.http.server.open_requests import CountedConnection
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.task_streams import TaskStreams, task_mark
from mcpgen.runtime.server.dispatcher import take, take_batch
from mcpgen.runtime.server.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.open_requests import Ticket
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.protocol.messages import Batch, Malformed, Message
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.event_store import EventStore
    from mcpgen.runtime.server.exchange import OpenRequest
    from mcpgen.runtime.server.quota import Entry, Quota
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["BUSY", "HALF_OPEN", "IDLE", "HttpSession"]

T = TypeVar("T")

# The ranks of sessions in their quota: those without a second request, those in which nothing is open, and all others.
HALF_OPEN: Final = 0
IDLE: Final = 1
BUSY: Final = 2

# 2025-11-25, changelog: a server may close a connection after an event without data, which tells the client an id to
# resume with. Clients of earlier revisions may take such an event for a broken message.
_POLLING: Final = Labels(each.label for each in dropwhile(lambda each: each.label != "2025-11-25", REVISIONS))


class HttpSession(CountedConnection):
    """One session over HTTP.

    Args:
        engine: The server.
        spawner: Starts its handlers.
        store: Stores the events of its streams.
        limits: Bounds of the application.
        quota: What is open in the application.
        session_id: Its id. A request with this id, and of the same user, belongs to it.
        streams_id: The prefix of its streams' names, which are in the id of each event.
        client: Who started it.

    Attributes:
        entry: Counts the session; None before it is added to the table.
        on_give_way: Ends the session early; None before it is added to the table.
        get_stream: The stream of messages that belong to no request; it is renamed when another one replaces it.
        streams: The streams of requests that have not ended, by name.
        open_requests: The number of HTTP requests that are being answered.
        last_used: When it was last used, by the application's clock.
    """

    __slots__ = (
        "_current_stream",
        "_earlier_streams",
        "_is_batch",
        "_limits",
        "_store",
        "_stream_count",
        "_streams_id",
        "_task_streams",
        "entry",
        "get_stream",
        "id",
        "last_used",
        "on_give_way",
        "open_requests",
        "streams",
    )

    def __init__(  # noqa: PLR0913 (the parts that a session is put together from)
        self,
        engine: Engine,
        spawner: Spawner,
        store: EventStore,
        limits: HttpLimits,
        quota: Quota,
        *,
        session_id: str,
        streams_id: str,
        client: Client,
    ) -> None:
        self.id: str = session_id
        self.entry: Entry | None = None
        self.on_give_way: Callable[[HttpSession], None] | None = None
        self.get_stream: EventStream = self._new_get_stream(f"{streams_id}.0", store, limits)
        super().__init__(engine, self.get_stream, spawner, quota, client)
        self.streams: dict[str, EventStream] = {}
        self.open_requests: int = 0
        self.last_used: float = 0
        self._store = store
        self._limits = limits
        self._streams_id = streams_id
        self._stream_count = 0
        self._current_stream: EventStream | None = None  # of the POST that is being read
        self._is_batch = False  # whether that POST is a batch
        self._earlier_streams: EarlierStreams | None = None
        self._task_streams: TaskStreams | None = None

    @property
    def task_streams(self) -> TaskStreams:
        """Those of ``tasks/result``; made on first use, since most sessions have no task."""
        if self._task_streams is None:
            self._task_streams = TaskStreams()
        return self._task_streams

    @property
    def earlier_streams(self) -> EarlierStreams:
        """Streams whose events the store may have; made on first use, since most sessions have none."""
        if self._earlier_streams is None:
            self._earlier_streams = EarlierStreams(self._store)
        return self._earlier_streams

    @property
    def retry_ms(self) -> int | None:
        """The reconnection time in the first event of a stream; None if the revision has no such event."""
        return round(self._limits.retry_seconds * 1000) if self.session.revision in _POLLING else None

    def _new_get_stream(self, name: str, store: EventStore, limits: HttpLimits) -> EventStream:
        return EventStream(
            name,
            store,
            max_waiting=limits.max_kept_messages,
            max_waiting_bytes=limits.max_kept_bytes,
            charge=self._charge_waiting,
        )

    def _charge_waiting(self, size: int) -> bool:
        """Count *size* bytes more, or less if negative, that wait for the GET stream; return whether there is room."""
        if self.entry is not None and not self.entry.resize(self.entry.size + size):
            return False
        self._messages.bytes += size
        return True

    @property
    def record_bytes(self) -> int:
        """The bytes that it keeps of what other workers know of it."""
        return 0

    @property
    def is_busy(self) -> bool:
        """Whether a request in it is open, or a handler runs."""
        return bool(self.open_requests or self.session.running)

    def take(self, message: Message | Malformed, ticket: Ticket | None = None) -> tuple[EventStream, ResponseBuffer]:
        """Handle the message of a POST; return the stream of its answer, and the response that it is sent over first.

        The stream may have left that response already: a handler can close the connection in its first steps.
        """
        stream, response = self._new_stream(ticket)
        self._handle(partial(take, self.session, message), stream, ticket)
        return stream, response

    def open_batch(self, _batch: Batch, ticket: Ticket) -> tuple[EventStream, ResponseBuffer]:
        """Return, as `take` does, the stream of the answer to a batch, which `take_batch` then handles."""
        return self._new_stream(ticket)

    async def take_batch(self, batch: Batch, ticket: Ticket, stream: EventStream, response: ResponseBuffer) -> None:
        """Handle the messages of *batch*, a part in each turn of the event loop; *stream* gets the answer."""
        turns, parts = self._engine.turns, take_batch(self.session, batch)
        access, hides = self.session.access, self.session.hides
        is_in_time = True
        while is_in_time and (cost := self._handle(partial(next, parts, None), stream, ticket, is_batch=True)):
            turns.spend(cost)
            await turns.wait_to_work(self.client.owner, self.session.principal)
            self.session.access, self.session.hides = access, hides  # other requests may have other tokens
            is_in_time = not (response.has_ended or stream.has_ended)  # else it had to make room
        if not stream.has_ended and not (is_in_time and self._has_open(stream)):
            self._end(stream, has_answer=is_in_time)

    def _handle(
        self, action: Callable[[], T], stream: EventStream, ticket: Ticket | None, *, is_batch: bool = False
    ) -> T:
        self._current_stream, self.ticket, self._is_batch = stream, ticket, is_batch
        self._spawner.hold()  # a request is not answered if the notification that cancels it came with it
        try:
            return action()
        finally:
            self._spawner.release()
            self._current_stream, self.ticket, self._is_batch = None, None, False

    def _has_open(self, stream: EventStream) -> bool:
        """Return whether a running request is answered on *stream*."""
        requests = (each.request if isinstance(each, Exchange) else each for each in self.session.exchanges.values())
        return any(each is not None and each.stream is stream for each in requests)

    def start_stream(self, stream: EventStream) -> None:
        """Make the response of *stream* a stream of events."""
        stream.start(retry_ms=self.retry_ms)
        if stream.has_ended:
            self._note_ended(stream)

    def open_stream(self, exchange: Exchange, ticket: Ticket) -> tuple[EventStream, ResponseBuffer]:
        """Return, as `take` does, the stream of the answer to *exchange*, which the caller runs."""
        stream, response = self._new_stream(ticket)
        self.ticket = ticket
        if exchange.request is not None:
            exchange.request.stream = stream
        return stream, response

    def _new_stream(self, ticket: Ticket | None) -> tuple[EventStream, ResponseBuffer]:
        self._stream_count += 1
        response = ResponseBuffer(self._engine.limits.max_buffered_bytes)
        stream = EventStream(f"{self._streams_id}.{self._stream_count}", self._store, response)
        self.streams[stream.name] = stream
        if ticket is not None:
            ticket.on_give_way = partial(self._give_way, ticket, stream, response)
        return stream, response

    def _give_way(self, ticket: Ticket, stream: EventStream, response: ResponseBuffer) -> None:
        """End the requests of one POST early, with errors."""
        if response.has_ended:  # its client does not read the answer
            response.abort()
        response.status = 503
        self.refuse(ticket)
        for each in list(self.session.exchanges.values()):
            if not isinstance(each, Exchange) and each.stream is stream:
                self.refuse_one(each)
        response.end()

    def open_get_stream(self, response: ResponseBuffer, earlier: Sequence[bytes] = ()) -> None:
        """Open a GET stream over *response*, in place of the one before; send the events *earlier* first."""
        stream = self.get_stream
        if stream.is_resumable:  # the client may know an id of it
            old, has_gap = stream.name, stream.has_gap
            self._stream_count += 1
            last = stream.rename(f"{self._streams_id}.0-{self._stream_count}")
            lost = [old] if has_gap else self.earlier_streams.add_replaced(old, last)
            if lost:
                self._spawner.start(forget_streams, self._store, lost)
        stream.attach(response, retry_ms=self.retry_ms, earlier=earlier)

    def _is_own(self, name: str) -> bool:
        return name.startswith(f"{self._streams_id}.")

    async def resume(self, name: str, number: int, response: ResponseBuffer) -> int | None:
        """Resume the stream *name* behind the event *number*; return the bytes sent, or None if that fails."""
        if name == self.get_stream.name:
            return await self.get_stream.resume(response, number)
        if name in self.earlier_streams.replaced:
            missed = await self.earlier_streams.missed(name, number)
            if missed is None:
                return None
            self.open_get_stream(response, missed)
            return sum(map(len, missed))
        stream = self.streams.get(name)
        if stream is None:
            if not self._is_own(name) or is_get_stream(name):
                return None
            stream = EventStream(name, self._store)  # it has ended, and its events may still be in the store
            stream.has_ended = True
        return await stream.resume(response, number)

    def handler_started(self, exchange: Exchange) -> None:
        """Count the handler of *exchange* as running."""
        super().handler_started(exchange)
        if self._current_stream is None:  # the only one of its POST, which `open_stream` was called for
            self.ticket = None

    async def serve(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*, and answer it."""
        try:
            await super().serve(exchange)
        finally:
            if self.entry is not None and not self.is_busy:
                self.entry.move(IDLE)

    def held(self, request: OpenRequest, /) -> None:
        """Note the stream on which *request* is answered later."""
        if self._current_stream is not None:
            request.stream = self._current_stream

    def follow_task(self, request: OpenRequest, task_id: str, /) -> None:
        """Send the messages of a task on the stream of *request*, its open ``tasks/result``."""
        if request.stream is not None:
            self.task_streams.add(task_id, request.stream, self.get_stream)

    def start(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*."""
        if exchange.request is not None and self._current_stream is not None:
            exchange.request.stream = self._current_stream
        super().start(exchange)

    def send(self, message: bytes, about: Exchange | OpenRequest | None, /) -> None:
        """Write *message* to the stream of its request, or else of its task, or else to the GET stream."""
        self._target(about).write(message)

    def respond(self, message: bytes, request: OpenRequest | None, /) -> None:
        """Write an answer, which is the last message of its stream."""
        stream = self._stream(request)
        if stream is None:
            return
        stream.write(message)
        if request is not None or not self._is_batch:  # an invalid message of a batch does not end its stream
            self._end(stream, has_answer=True)

    def drop(self, request: OpenRequest | None, /) -> None:
        """End the stream of a request that will not be answered."""
        stream = self._stream(request)
        if stream is not None:
            self._end(stream)

    async def drain(self, about: Exchange | OpenRequest | None, /) -> None:
        """Wait until the stream of *about* is no longer full, and for a turn that has time to encode more."""
        await self.wait_turn()
        if (stream := self._target(about)).is_full:
            await stream.drain()
            await self.wait_turn()  # many handlers may have waited for the client, which may have left

    def disconnect(self, exchange: Exchange, retry_ms: int | None, /) -> bool:
        """Close the connection over which *exchange* would be answered; its client can resume the stream."""
        stream = self._stream(exchange.request)
        if stream is None or stream.has_ended or stream.response is None or self.session.revision not in _POLLING:
            return False
        retry_ms = self.retry_ms if retry_ms is None else retry_ms
        if not stream.is_resumable:
            stream.start(retry_ms=retry_ms)
        stream.detach(retry_ms=retry_ms)
        return True

    def detach(self, response: ResponseBuffer) -> None:
        """Detach the stream that is sent over *response*, since its client has disconnected."""
        for each in (self.get_stream, *self.streams.values()):
            each.detach(response)

    def give_way(self) -> None:
        """End the session early."""
        if self.on_give_way is not None:
            self.on_give_way(self)

    def end_of_input(self) -> None:
        """Handle the shutdown of the application: fail pending requests to the client, and end the GET stream."""
        super().end_of_input()
        self.get_stream.detach(retry_ms=self.retry_ms)

    def close(self) -> None:
        """Cancel all handlers, end all streams, and drop their stored events."""
        super().close()
        streams = [self.get_stream, *self.streams.values()]
        self.get_stream.forget_waiting()
        self.get_stream.charge = None  # it refers to this session, in a cycle
        end_streams(streams, self._spawner)
        self.streams.clear()
        stored = [*self.earlier_streams.take_all(), *(each.name for each in streams if each.is_resumable)]
        if stored:
            self._spawner.start(forget_streams, self._store, stored)

    def _end(self, stream: EventStream, *, has_answer: bool = False) -> None:
        stream.end(has_answer=has_answer)
        self.streams.pop(stream.name, None)
        if self._task_streams is not None:
            self._task_streams.remove(stream)
        if stream.is_resumable:
            self._note_ended(stream)

    def _note_ended(self, stream: EventStream) -> None:
        if stream.has_gap:  # a client must not resume it from the events that the store has
            self._spawner.start(forget_streams, self._store, [stream.name])
        else:
            self.earlier_streams.add_ended(stream.name)

    def _stream(self, about: OpenRequest | None) -> EventStream | None:
        """Return the stream of a request, or of the POST that is being read."""
        stream: EventStream | None = None if about is None else about.stream
        return self._current_stream if stream is None else stream

    def _target(self, about: Exchange | OpenRequest | None) -> EventStream:
        request, task = (about.request, about.task) if isinstance(about, Exchange) else (about, None)
        stream = None if request is None else self._stream(request)
        if stream is not None and stream.is_reachable:
            return stream
        return (None if task is None else self.task_streams.find(task_mark(task.task_id))) or self.get_stream
