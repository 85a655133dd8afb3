"""Event ids, and the store of the events with which clients resume their streams.

Theory of operation. A stream has messages with rising numbers, and can be sent over several connections, one after the
other. The id of an event names its stream and number. A store returns all messages after such an id, or None: a
client must never get a stream with a gap. So for each stream the store keeps, besides messages, the last number that it
has dropped and the last number that was appended. For a number below the first or above the second, it returns None.

Ids are neither secret nor proof that the client was sent the event. The session checks that a stream is its own.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Resumability and Redelivery". 2026-07-28 has no resumable streams.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict, defaultdict, deque
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.argument_checks import check_numbers, check_whole_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Container

__all__ = [
    "EVENT_OVERHEAD_BYTES",
    "EventStore",
    "MAX_STREAM_NAME_CHARS",
    "MemoryEventStore",
    "event_id",
    "parse_event_id",
]

# The memory of a stored message beyond its own bytes; 300 bytes were measured on 64-bit CPython 3.11. Without it, a
# store of empty messages would hold many times its limit.
EVENT_OVERHEAD_BYTES: Final = 320

# Names of streams are short: a random id and a count. Each event carries one, and so does a request header.
MAX_STREAM_NAME_CHARS: Final = 200

_MIN_QUEUE: Final = 64  # keys, which take little memory

# To drop one takes 2 µs. After a flood, 150,000 messages expire together.
_MAX_EXPIRED_AT_ONCE: Final = 1000

_MAX_NUMBER: Final = 10**15  # no stream has so many messages, and short numbers are parsed fast
_ID: Final = re.compile(rf"([!-~]{{1,{MAX_STREAM_NAME_CHARS}}}):(0|[1-9][0-9]{{0,14}})")
_STREAM: Final = re.compile(rf"[!-~]{{1,{MAX_STREAM_NAME_CHARS}}}")


def event_id(stream: str, number: int) -> str:
    """Return the id of the event that carries message *number* of *stream*.

    Raises:
        UsageError: The name of the stream is empty, longer than 200 characters or not visible ASCII, so no header can
            carry it; or the number is negative or has more than 15 digits.
    """
    if _STREAM.fullmatch(stream) is None or not 0 <= number < _MAX_NUMBER:
        raise UsageError(
            f"`stream` must be 1 to {MAX_STREAM_NAME_CHARS} characters of visible ASCII, and `number` 0 to "
            f"{_MAX_NUMBER - 1}; they are {stream[:MAX_STREAM_NAME_CHARS]!r} and {number}"
        )
    return f"{stream}:{number}"


def parse_event_id(text: str) -> tuple[str, int] | None:
    """Return the stream and number in an event id, which need not exist; None if it is malformed."""
    match = _ID.fullmatch(text)
    return None if match is None else (match[1], int(match[2]))


class EventStore(Protocol):
    """A store of the messages that a server sends on its HTTP streams (server-sent events).

    A client whose stream breaks names the last message that it received, and gets the later ones from this store.
    """

    def append(self, stream: str, number: int, message: bytes) -> None:
        """Store a message of a stream. This must not wait, so a store on another machine needs a local buffer.

        If there is no room, drop the message; `after` must then return None. The first message creates the stream. An
        event without a message is stored as an empty message.

        Args:
            stream: The name of the stream.
            number: The number of the message: higher than all earlier numbers of the stream, normally by one. If the
                first number of the stream is n, then ``after(stream, n - 1)`` returns this message, and `after` with a
                lower number returns None.
            message: The JSON of the message.
        """
        ...

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return all messages of *stream* with higher numbers than *number*, in order, with their numbers.

        Return None if the stream is unknown, if some of these messages were dropped, or if *number* is higher than the
        last number of the stream.
        """
        ...

    async def forget(self, stream: str) -> None:
        """Remove a stream, because it will not be resumed; do nothing if it is unknown."""
        ...


class _StoredEvent(Struct, gc=False):
    stream: str
    number: int
    message: bytes
    expires: float


class _Stream(Struct):
    dropped: int  # the last number that is not stored any more
    last: int  # the last number that was appended
    sequence: deque[int]  # the keys of its messages in the store, oldest first


class _Queue:
    """The keys of messages, oldest first. A key stays until it is the first one, or most keys are of dropped messages.

    An OrderedDict, which needs neither, takes 100 bytes more for each key.
    """

    __slots__ = ("_keys", "count")

    def __init__(self) -> None:
        self._keys: deque[int] = deque()
        self.count = 0  # of the messages that are stored

    def append(self, key: int) -> None:
        self._keys.append(key)
        self.count += 1

    def first(self, stored: Container[int]) -> int | None:
        """Return the oldest key that is among the *stored* ones."""
        keys = self._keys
        while keys:
            if keys[0] in stored:
                return keys[0]
            keys.popleft()
        return None

    def note_dropped(self, stored: Container[int]) -> None:
        """Note that one of the messages is not among the *stored* ones any more."""
        self.count -= 1
        if not self.count:
            self._keys.clear()
        elif len(self._keys) > 2 * self.count + _MIN_QUEUE:
            self._keys = deque(each for each in self._keys if each in stored)


class MemoryEventStore(EventStore):
    """An `EventStore` in this process, with limits on the number, the size and the age of its messages.

    When there is no room, the store drops the oldest message of the client that has the most. It still knows a stream
    whose messages have all been dropped, so a client that has received them all can resume the stream. If there
    are too many streams, the store removes the least recently used one of the client that has the most.

    Args:
        max_streams: The largest number of streams of all sessions together. Each takes about one kilobyte.
        max_events_per_stream: The largest number of messages of one stream. A long operation may report progress some
            hundreds of times.
        max_bytes: The total size of all messages, at most. Each message counts `EVENT_OVERHEAD_BYTES` more than its own
            size.
        lifetime_seconds: The time that a message is stored. Networks recover within minutes. Each use of the
            store drops at most 1,000 messages that are older.
        clock: A function that returns monotonic time in seconds.

    Raises:
        UsageError: A limit is not greater than 0.
    """

    def __init__(
        self,
        *,
        max_streams: int = 10_000,
        max_events_per_stream: int = 1000,
        max_bytes: int = 64 * 1024 * 1024,
        lifetime_seconds: float = 600,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_numbers(lifetime_seconds=lifetime_seconds)
        check_whole_numbers(max_streams=max_streams, max_events_per_stream=max_events_per_stream, max_bytes=max_bytes)
        if min(max_streams, max_events_per_stream, max_bytes) < 1 or not lifetime_seconds > 0:
            raise UsageError(
                "`max_streams`, `max_events_per_stream`, `max_bytes` and `lifetime_seconds` must all be greater than 0"
            )
        self._max_streams = max_streams
        self._max_events = max_events_per_stream
        self._max_bytes = max_bytes
        self._lifetime = lifetime_seconds
        self._clock = clock
        # OrderedDict, since a dict takes longer to find its first entry after each removal of the first.
        self._streams: OrderedDict[str, _Stream] = OrderedDict()  # least recently used first
        self._events: dict[int, _StoredEvent] = {}  # by count
        self._queue = _Queue()
        # Of each owner: its messages, and what they hold.
        self._owned: defaultdict[str, _Queue] = defaultdict(_Queue)
        self._owned_bytes: dict[str, int] = {}
        self._owned_streams: defaultdict[str, OrderedDict[str, None]] = defaultdict(
            OrderedDict
        )  # least recently used first
        self._count = 0  # of all messages ever appended
        self._bytes = 0

    @property
    def stream_count(self) -> int:
        """The number of known streams."""
        return len(self._streams)

    @property
    def event_count(self) -> int:
        """The number of stored messages."""
        return len(self._events)

    @property
    def held_bytes(self) -> int:
        """The bytes that count towards `max_bytes`."""
        return self._bytes

    def append(self, stream: str, number: int, message: bytes) -> None:
        """Store a message; see `EventStore`.

        Raises:
            UsageError: The number is not higher than the last one of the stream.
        """
        now = self._clock()
        self._expire(now)
        known = self._streams.get(stream)
        if known is None:
            if len(self._streams) >= self._max_streams:
                self._drop_stream(self._least_used())
            known = self._streams[stream] = _Stream(number - 1, number - 1, deque())
        elif number <= known.last:
            raise UsageError(
                f"`number` is {number}; it must be higher than {known.last}, the last number of the stream"
            )
        self._use(stream)
        known.last = number
        size = len(message) + EVENT_OVERHEAD_BYTES
        if size > self._max_bytes:  # without it, the messages before it are of no use
            self._drop_messages(known)
            known.dropped = number
            return
        if self._bytes + size > self._max_bytes:
            self._make_room(size)
        if len(known.sequence) >= self._max_events:
            self._drop(known.sequence.popleft(), known)
        self._count += 1
        self._events[self._count] = _StoredEvent(stream, number, message, now + self._lifetime)
        known.sequence.append(self._count)
        owner = _owner(stream)
        self._queue.append(self._count)
        self._owned[owner].append(self._count)
        self._owned_bytes[owner] = self._owned_bytes.get(owner, 0) + size
        self._bytes += size

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the messages of *stream* after *number*; see `EventStore`."""
        self._expire(self._clock())
        known = self._streams.get(stream)
        if known is None or not known.dropped <= number <= known.last:
            return None
        self._use(stream)
        found = (self._events[each] for each in known.sequence)
        return [(each.number, each.message) for each in found if each.number > number]

    async def forget(self, stream: str) -> None:
        """Remove a stream; see `EventStore`."""
        if stream in self._streams:
            self._drop_stream(stream)

    def _expire(self, now: float) -> None:
        for _ in range(_MAX_EXPIRED_AT_ONCE):
            first = self._queue.first(self._events)
            if first is None or self._events[first].expires > now:
                return
            self._drop_first(self._queue)

    def _make_room(self, size: int) -> None:
        """Drop the oldest messages of the owners that have the most bytes until *size* bytes fit."""
        owned = self._owned_bytes
        richest = max(owned, key=owned.__getitem__)
        self._drop_first(self._owned[richest])  # most often, one is enough
        if self._bytes + size <= self._max_bytes:
            return
        ranked = [(-kept, owner) for owner, kept in owned.items()]  # one message may need the room of 10,000
        heapify(ranked)
        while self._bytes + size > self._max_bytes:
            owner = ranked[0][1]
            self._drop_first(self._owned[owner])
            heapreplace(ranked, (-owned.get(owner, 0), owner))

    def _drop_first(self, queue: _Queue) -> None:
        """Drop the oldest message of all, or of one owner, which is also the oldest of its stream."""
        first = queue.first(self._events)
        if first is not None:
            known = self._streams[self._events[first].stream]
            self._drop(known.sequence.popleft(), known)

    def _least_used(self) -> str:
        """Return the least recently used stream of the owner that has the most streams."""
        owned = max(self._owned_streams.values(), key=len)
        return next(iter(owned))

    def _use(self, stream: str) -> None:
        self._streams.move_to_end(stream)
        owned = self._owned_streams[_owner(stream)]
        owned[stream] = None
        owned.move_to_end(stream)

    def _drop_stream(self, stream: str) -> None:
        self._drop_messages(self._streams.pop(stream))
        owner = _owner(stream)
        del self._owned_streams[owner][stream]
        if not self._owned_streams[owner]:
            del self._owned_streams[owner]

    def _drop_messages(self, known: _Stream) -> None:
        while known.sequence:
            self._drop(known.sequence.popleft(), known)

    def _drop(self, count: int, known: _Stream) -> None:
        event = self._events.pop(count)
        known.dropped = event.number
        size = len(event.message) + EVENT_OVERHEAD_BYTES
        self._bytes -= size
        owner = _owner(event.stream)
        self._owned_bytes[owner] -= size
        self._queue.note_dropped(self._events)
        self._owned[owner].note_dropped(self._events)
        if not self._owned[owner].count:
            del self._owned[owner], self._owned_bytes[owner]


def _owner(stream: str) -> str:
    """Return whose stream it is: the first of three parts of its name, as `HttpSession` makes it; empty if unknown."""
    return stream.partition(".")[0] if stream.count(".") == 2 else ""  # noqa: PLR2004 (three parts)
