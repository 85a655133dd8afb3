"""A stream of events in a session, which a client can resume on another connection without gaps or repetitions.

Theory of operation. A stream outlives its connections. Each message goes to the current connection, if there is one,
and to the store. Events are numbered; a client that resumes the stream names the last event that it has seen, and gets
the missed ones from the store and then new ones. Before its first event, a stream has no id with which a client could
resume it.

A message that arrives while the GET stream of a session has no connection is stored, for a client that resumes the
stream, and is also kept, for a client that opens another stream. If the client does so, the stream is renamed: the
messages that were sent over no connection belong to the new name only. If a message is sent on another stream instead,
which `TaskStreams` does, a client that resumes this one does not get it again; the last 256 such messages are
remembered.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.sse import encode_event
from mcpgen.runtime.protocol.envelope import encode_notification
from mcpgen.runtime.server.event_store import EventStore, event_id
from mcpgen.runtime.server.request_results import wait_for_client
from mcpgen.runtime.transports.spawner import Spawner, turn
from mcpgen.runtime.transports.tracebacks import traceback_logger

__all__ = ["EventStream", "end_streams", "is_get_stream"]

# How many streams of a session end in one turn of the event loop. The response of each ends, too, and thousands of them
# would occupy the loop for half a second.
_ENDS_PER_TURN: Final = 64

# What a message that waits takes beside its bytes.
_WAITING_BYTES: Final = 120

# How many of the messages that were sent on another stream are remembered.
_MAX_MOVED: Final = 256

# How the messages begin that need special care while they wait.
_PROGRESS: Final = encode_notification("notifications/progress").removesuffix(b"}")
_REQUEST: Final = b'{"jsonrpc":"2.0","id":'

_LOG = traceback_logger("mcpgen.http")


class EventStream(Struct, eq=False):
    """A stream of messages to one client; a `mcpgen.runtime.transports.interfaces.MessageWriter`.

    Attributes:
        name: Unique among the streams of all sessions, and not guessable.
        store: Stores its events.
        response: The HTTP response that it is sent over; None while it has no connection.
        max_waiting: How many different messages wait for a connection.
        max_waiting_bytes: How many bytes these take.
        charge: Called with the bytes that they take more, or less if negative; returns whether there is room.
        has_ended: Whether no more messages will be written.
        is_resumable: Whether an event was sent, so that the client knows an id to resume it with.
        has_gap: Whether the store has failed to store an event.
        unsent: How many events at its end were sent over no connection.
    """

    name: str
    store: EventStore
    response: ResponseBuffer | None = None
    max_waiting: int = 0
    max_waiting_bytes: int = 0
    charge: Callable[[int], bool] | None = None
    has_ended: bool = False
    is_resumable: bool = False
    has_gap: bool = False
    unsent: int = 0
    _number: int = 0
    _waiting: dict[bytes, int] | None = None  # with the numbers of their events; 0 for what was not stored
    _waiting_bytes: int = 0
    _moved: deque[int] | None = None  # the numbers of events that were sent on another stream

    @property
    def is_reachable(self) -> bool:
        """Whether a message that is written now can reach the client."""
        return not self.has_ended and (self.is_connected or self.is_resumable)

    @property
    def is_connected(self) -> bool:
        """Whether a connection takes messages; a response may have ended some turns before it is detached."""
        return self.response is not None and not self.response.has_ended

    @property
    def is_full(self) -> bool:
        """Whether the client reads too slowly."""
        return self.response is not None and self.response.is_full

    def write(self, message: bytes) -> None:
        """Send *message* now, or when the client resumes the stream."""
        if self.has_ended:
            return
        if self.response is not None and self.is_connected:
            self.response.write(message)
            return
        if self.is_resumable:
            self._store_event(message)
            self.unsent += 1
        if self.max_waiting:
            self._keep(message, self._number if self.is_resumable else 0)

    def _keep(self, message: bytes, number: int) -> None:
        """Keep *message* for the next connection; drop the oldest ones if there is no room, and requests last.

        Progress is not kept, since its request or task may have ended until then.

        Spec:
            2025-11-25, basic/utilities/progress, "Progress Flow": it MUST stop after completion.
        """
        if message.startswith(_PROGRESS):
            return
        waiting = self._waiting = self._waiting or {}
        size = len(message) + _WAITING_BYTES
        if message in waiting or size > self.max_waiting_bytes:  # equal ones, such as of one change, are sent once
            return
        while (
            len(waiting) >= self.max_waiting
            or self._waiting_bytes + size > self.max_waiting_bytes
            or not self._charge(size)
        ):
            if not waiting:  # all sessions keep too much
                return
            oldest = next((each for each in waiting if not each.startswith(_REQUEST)), next(iter(waiting)))
            del waiting[oldest]
            self._charge(-len(oldest) - _WAITING_BYTES)
        waiting[message] = number

    def _charge(self, size: int) -> bool:
        if self.charge is not None and not self.charge(size):
            return False
        self._waiting_bytes += size
        return True

    def take_waiting(self, mark: bytes) -> list[bytes]:
        """Return the messages with *mark* that wait for a connection. They are not sent on this stream any more."""
        waiting = self._waiting or {}
        found = [each for each in waiting if mark in each]
        for each in found:
            self._moved = self._moved or deque(maxlen=_MAX_MOVED)
            self._moved.append(waiting.pop(each))
            self._charge(-len(each) - _WAITING_BYTES)
        return found

    def forget_waiting(self) -> None:
        """Drop the messages that wait for a connection."""
        self._waiting = None
        self._charge(-self._waiting_bytes)

    async def drain(self) -> None:
        """Return when the connection is no longer full, or has ended."""
        if self.response is not None:
            await wait_for_client(self.response.drain)

    def start(self, *, retry_ms: int | None, earlier: Sequence[bytes] = ()) -> None:
        """Make the current response a stream of events.

        Args:
            retry_ms: If given, an event without data is sent first, which tells the client an id and this reconnection
                time.
            earlier: Events, encoded already, that are sent before that.

        Spec:
            2025-11-25, basic/transports, "Sending Messages to the Server": the server SHOULD immediately send one.
        """
        if self.response is None:
            return
        self.is_resumable = True
        first = b"" if retry_ms is None else self._store_event(b"", retry_ms)
        self.response.start_stream(self._store_event, b"".join((*earlier, first)))
        waiting = self._waiting
        self.forget_waiting()
        for each in waiting or ():
            self.response.write(each)

    def attach(self, response: ResponseBuffer, *, retry_ms: int | None, earlier: Sequence[bytes] = ()) -> None:
        """Send waiting and new messages over *response*, and end the connection before it.

        Args:
            response: The response.
            retry_ms: As for `start`.
            earlier: Likewise.
        """
        self.detach()
        self.response = response
        self.start(retry_ms=retry_ms, earlier=earlier)

    def rename(self, name: str) -> int:
        """Become the stream *name*, which takes over the messages that were sent over no connection.

        Returns:
            The number of the last event that was sent under the old name.
        """
        self.detach()
        sent = self._number - self.unsent
        self.name, self._number, self.unsent, self.has_gap, self._moved = name, 0, 0, False, None
        return sent

    async def resume(self, response: ResponseBuffer, number: int) -> int | None:
        """Send the messages behind *number* over *response*, and end the connection before it.

        Those that were sent on another stream are left out.

        Messages that still waited on that connection are sent over *response* only.

        Returns:
            How many bytes were sent; None, with no change, if the store does not have all messages.
        """
        name = self.name
        missed: list[tuple[int, bytes]] = []
        seen = number
        while True:
            if self.has_gap:
                return None
            sent = self._number
            found = await self.store.after(name, seen)
            if found is None or self.name != name:
                return None
            missed += found
            seen = max([seen, *(each for each, _ in found)])
            if seen < sent:
                return None  # the store has lost an event that it was given
            if seen >= self._number:  # no event was sent while the store was read
                break
        if self.response is not None:
            self.response.discard()  # these messages are among the missed ones
        self.detach()
        self.response = response
        self.unsent = 0
        self.forget_waiting()  # they are among the missed ones, too
        response.start_stream(self._store_event)
        moved = self._moved or ()  # also while the store was read
        events = [self._encode(each, message) for each, message in missed if message and each not in moved]
        for event in events:
            response.write_event(event)
        if self.has_ended:
            response.end()
        return sum(map(len, events))

    def detach(self, response: ResponseBuffer | None = None, *, retry_ms: int | None = None) -> None:
        """End the current connection when its waiting messages are sent.

        Args:
            response: If given, nothing is done unless this is the current one.
            retry_ms: If given, the client is sent this reconnection time first.
        """
        if self.response is None or response not in (None, self.response):
            return
        if retry_ms is not None and self.is_connected:
            self.response.write_event(self._store_event(b"", retry_ms))
        self.response.end()
        self.response = None

    def end(self, *, has_answer: bool = False) -> None:
        """End the stream when its waiting messages are sent.

        Args:
            has_answer: Whether the last message is the answer.
        """
        self.has_ended = True
        if self.response is not None:
            self.response.end(has_answer=has_answer)

    def _store_event(self, message: bytes, retry_ms: int | None = None) -> bytes:
        """Number and store *message*, and return it encoded."""
        self._number += 1
        if not self.has_gap:
            try:
                self.store.append(self.name, self._number, message)
            except Exception:  # noqa: BLE001 (the boundary: a store that fails must not cost the client its answer)
                _LOG.exception("the event store failed; the stream cannot be resumed")
                self.has_gap = True
        return self._encode(self._number, message, retry_ms)

    def _encode(self, number: int, message: bytes, retry_ms: int | None = None) -> bytes:
        return encode_event(message, event_id=event_id(self.name, number), retry_ms=retry_ms)


def is_get_stream(name: str) -> bool:
    """Return whether *name* is that of a GET stream of a session: its count begins with 0."""
    return name.rpartition(".")[2].startswith("0")


def end_streams(streams: Sequence[EventStream], spawner: Spawner) -> None:
    """End *streams*, whose session ends: a part at once, and the others in the next turns of the event loop."""
    rest = iter(streams)
    _end_all(islice(rest, _ENDS_PER_TURN))
    if len(streams) > _ENDS_PER_TURN:
        spawner.start(_end_in_turns, rest)


async def _end_in_turns(streams: Iterator[EventStream]) -> None:
    try:
        while True:
            await turn()
            part = [*islice(streams, _ENDS_PER_TURN)]
            if not part:
                return
            _end_all(part)
    finally:  # if the server stops meanwhile
        _end_all(streams)


def _end_all(streams: Iterable[EventStream]) -> None:
    for each in streams:
        each.end()
        each.detach()
