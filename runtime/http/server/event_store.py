"""Where the messages of streams are kept for clients that lost their connection, and the ids that they come back with.

Theory of operation. A stream is what a client would have got on one connection; its messages have numbers that rise.
An event's id names the stream and the number, so that it says by itself where a client stands. A store answers such a
place with all that came behind it, or not at all: a client must never get a stream with a hole in it and not know. So
of each stream the store remembers, besides messages, the last number that it does *not* have any more, and the last
number that there was. A place before the one or behind the other is not answered.

Ids are not secret, and nothing proves that a client got the one that it sends: whether a stream is the client's own is
for the session to say.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Resumability and Redelivery". 2026-07-28 has no streams to resume.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "EVENT_OVERHEAD_BYTES",
    "EventStore",
    "MAX_STREAM_NAME_CHARS",
    "MemoryEventStore",
    "event_id",
    "parse_event_id",
]

# What a kept message costs besides its own bytes, measured at 280 on 64-bit CPython 3.11; without it, a store full of
# empty messages would hold many times what it is allowed.
EVENT_OVERHEAD_BYTES: Final = 320

# A session and a stream in it, which are random or counted. An id travels in a header, and with every event.
MAX_STREAM_NAME_CHARS: Final = 200

_MOST: Final = 10**15  # numbers of an id are below it: nobody sends so much, and short numbers are read fast
_ID: Final = re.compile(rf"([!-~]{{1,{MAX_STREAM_NAME_CHARS}}}):(0|[1-9][0-9]{{0,14}})")
_STREAM: Final = re.compile(rf"[!-~]{{1,{MAX_STREAM_NAME_CHARS}}}")


def event_id(stream: str, number: int) -> str:
    """Return the id of a stream's message of that number.

    Raises:
        UsageError: The name of the stream is empty, over 200 characters or not all visible ASCII, which a header can
            hold; or the number is negative, or has over 15 digits.
    """
    if _STREAM.fullmatch(stream) is None or not 0 <= number < _MOST:
        raise UsageError(
            f"no event can have an id of the stream {stream[:MAX_STREAM_NAME_CHARS]!r} and a number {number}"
        )
    return f"{stream}:{number}"


def parse_event_id(text: str) -> tuple[str, int] | None:
    """Return stream and number of an id, or None if it is none of ours. They need not exist: a client says so."""
    match = _ID.fullmatch(text)
    return None if match is None else (match[1], int(match[2]))


class EventStore(Protocol):
    """What streams need of a store."""

    def append(self, stream: str, number: int, message: bytes) -> None:
        """Keep a message that a stream sends. It does not wait: a store that is elsewhere keeps it here until then.

        A message that finds no room is no error; whoever comes back for it is not answered. A stream that was not known
        is known from now on; the event that only tells its id is appended, too, with an empty message.

        Args:
            stream: Any name.
            number: Higher than those of the stream before, and best by one. Of a stream that is not known, all below
                count as lost but the one right below.
            message: What the event's data is.
        """
        ...

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the messages of *stream* behind *number*, all of them and in order, with their numbers.

        None if that cannot be: the stream is not known, some of them are gone, or there never was such a number yet.
        """
        ...

    async def forget(self, stream: str) -> None:
        """Drop a stream, if it is there: nobody will come back."""
        ...


class _Kept(Struct, gc=False):
    stream: str
    number: int
    message: bytes
    expires: float


class _Stream(Struct):
    lost: int  # the last number that is not kept any more
    last: int  # the last number that there was
    kept: deque[int]  # as the store counts them


class MemoryEventStore(EventStore):
    """Keeps messages in this process, bounded in number, bytes and time.

    The oldest message goes first, whosever it is. A stream that has none left is still known, so that a client which
    has seen them all can come back, until it is the one that was used least recently.

    Args:
        max_streams: Of all sessions together; each takes about a kilobyte, whether it has messages or not.
        max_events_per_stream: What a client can miss of one stream; the progress of long work is some hundred messages.
        max_bytes: What all messages may take, with `EVENT_OVERHEAD_BYTES` for each.
        lifetime_seconds: How long a message is kept. Networks come back within minutes.
        clock: Seconds that only ever grow.

    Raises:
        UsageError: A bound is not above zero.
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
        if min(max_streams, max_events_per_stream, max_bytes) < 1 or not lifetime_seconds > 0:
            raise UsageError("a store of events needs room and time for one at least")
        self._max_streams = max_streams
        self._max_events = max_events_per_stream
        self._max_bytes = max_bytes
        self._lifetime = lifetime_seconds
        self._clock = clock
        # Not dicts, which take ever longer to find the first of their entries while these are removed one by one.
        self._streams: OrderedDict[str, _Stream] = OrderedDict()  # that used least recently comes first
        self._kept: OrderedDict[int, _Kept] = OrderedDict()  # oldest first
        self._count = 0  # of all messages ever
        self._bytes = 0

    @property
    def stream_count(self) -> int:
        """How many streams are known."""
        return len(self._streams)

    @property
    def event_count(self) -> int:
        """How many messages are kept."""
        return len(self._kept)

    @property
    def held_bytes(self) -> int:
        """What they take, as `max_bytes` counts."""
        return self._bytes

    def append(self, stream: str, number: int, message: bytes) -> None:
        """Keep a message; see `EventStore`.

        Raises:
            UsageError: The number is not higher than the last one of the stream.
        """
        now = self._clock()
        self._expire(now)
        known = self._streams.get(stream)
        if known is None:
            if len(self._streams) >= self._max_streams:
                self._drop_stream(next(iter(self._streams)))
            known = self._streams[stream] = _Stream(number - 1, number - 1, deque())
        elif number <= known.last:
            raise UsageError(f"a stream's messages have rising numbers; {number} comes after {known.last}")
        self._streams.move_to_end(stream)
        known.last = number
        size = len(message) + EVENT_OVERHEAD_BYTES
        if size > self._max_bytes:  # nor is there any use in those before, which nobody could get without it
            self._drop_kept(known)
            known.lost = number
            return
        while self._bytes + size > self._max_bytes:
            self._drop_oldest()
        if len(known.kept) >= self._max_events:
            self._drop(known.kept.popleft(), known)
        self._count += 1
        self._kept[self._count] = _Kept(stream, number, message, now + self._lifetime)
        known.kept.append(self._count)
        self._bytes += size

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the messages of *stream* behind *number*; see `EventStore`."""
        self._expire(self._clock())
        known = self._streams.get(stream)
        if known is None or not known.lost <= number <= known.last:
            return None
        self._streams.move_to_end(stream)
        kept = (self._kept[each] for each in known.kept)
        return [(each.number, each.message) for each in kept if each.number > number]

    async def forget(self, stream: str) -> None:
        """Drop a stream, if it is there."""
        if stream in self._streams:
            self._drop_stream(stream)

    def _expire(self, now: float) -> None:
        while self._kept and next(iter(self._kept.values())).expires <= now:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        known = self._streams[next(iter(self._kept.values())).stream]
        self._drop(known.kept.popleft(), known)  # the oldest of all is the oldest of its stream

    def _drop_stream(self, stream: str) -> None:
        self._drop_kept(self._streams.pop(stream))

    def _drop_kept(self, known: _Stream) -> None:
        while known.kept:
            self._drop(known.kept.popleft(), known)

    def _drop(self, count: int, known: _Stream) -> None:
        gone = self._kept.pop(count)
        known.lost = gone.number
        self._bytes -= len(gone.message) + EVENT_OVERHEAD_BYTES
