"""The messages of one HTTP response, between the code that writes them and the code that sends them.

Theory of operation. When a request arrives, it is not known whether its response will be one JSON document or a stream
of events: that depends on whether anything is sent before the answer. So messages wait here unencoded until
`start_stream` is called, and are encoded as events from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import anyio
from msgspec import Struct

from mcpgen.runtime.server.quota import Entry, Quota
from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent, auto_reset_event

__all__ = ["SMALL_BYTES", "ResponseBuffer"]

# A response of this size is part of what an open request costs; it is not counted.
SMALL_BYTES: Final = 16 * 1024

_LOG = logging.getLogger("mcpgen.http")


class ResponseBuffer(Struct, eq=False):
    """The messages of one HTTP response; a `mcpgen.runtime.transports.interfaces.MessageWriter`.

    Attributes:
        max_bytes: How many bytes wait before it is full.
        has_ended: Whether no more messages will be written.
        is_stream: Whether the response is a stream of events.
        is_disconnected: Whether the client has closed its connection.
        has_answer: Whether the last message is the answer; the messages before it are not.
        is_sending: Whether a part of it is being sent, which takes long only if the client does not read.
        unread: Counts what waits in all responses; None for no limit.
        owner: What it counts for.
        on_abort: Closes the connection without sending what waits, if the ASGI server can.
        status: The HTTP status of the answer if it is sent as JSON; 0 for the usual one.
    """

    max_bytes: int
    has_ended: bool = False
    is_stream: bool = False
    is_disconnected: bool = False
    has_answer: bool = False
    status: int = 0
    is_sending: bool = False
    unread: Quota | None = None
    owner: str = ""
    on_abort: Callable[[], object] | None = None
    _chunks: list[bytes] = []  # all of them are taken at once, and an empty deque takes 760 bytes
    _size: int = 0
    _in_flight: int = 0
    _entry: Entry | None = None
    _encode: Callable[[bytes], bytes] | None = None
    _written: AutoResetEvent | None = None
    _drained: anyio.Event | None = None

    @property
    def is_full(self) -> bool:
        """Whether the client reads too slowly."""
        if self._size >= self.max_bytes:
            return True
        return self._size > SMALL_BYTES and self.unread is not None and self.unread.is_tight

    @property
    def is_ready(self) -> bool:
        """Whether there is something to send, or the response has ended."""
        return bool(self._chunks) or self.has_ended

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait to be sent."""
        return self._size

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._chunks

    def write(self, message: bytes) -> None:
        """Send *message*; do nothing after the end."""
        if self.has_ended:
            return
        if self._encode is not None:
            message = self._encode(message)
        self._chunks.append(message)
        self._size += len(message)
        self._count()
        self._wake()

    def start_stream(self, encode: Callable[[bytes], bytes], first: bytes = b"") -> None:
        """Make the response a stream of events.

        Args:
            encode: Encodes a message as an event; messages that wait are encoded, too.
            first: An event that is sent before all messages.
        """
        self.is_stream = True
        self._encode = encode
        waiting = [encode(each) for each in self._chunks]
        self._chunks = [first, *waiting] if first else waiting
        self._size = sum(map(len, self._chunks))
        self._wake()

    def write_event(self, event: bytes) -> None:
        """Send an event that is encoded already; do nothing after the end."""
        if not self.has_ended:
            self._chunks.append(event)
            self._size += len(event)
            self._count()
            self._wake()

    def end(self, *, has_answer: bool = False) -> None:
        """End the response when all waiting messages are sent.

        Args:
            has_answer: Whether the last message is the answer.
        """
        self.has_answer = self.has_answer or has_answer
        self.has_ended = True
        self._wake()
        self._release()

    def disconnect(self) -> None:
        """Discard all messages and end the response, since the client has closed its connection."""
        self.is_disconnected = True
        self.discard()
        self.end()

    def give_way(self) -> None:
        """End the response early; if its client does not read, close the connection."""
        if self.is_sending:
            self.abort()
        else:
            self.end()

    def abort(self) -> None:
        """Close the connection, whose client does not read, to free what waits for it."""
        self.disconnect()
        if self.on_abort is not None:
            self.on_abort()

    def discard(self) -> None:
        """Discard the messages that wait to be sent."""
        self._chunks.clear()
        self._size = 0
        self._count()

    def sole_answer(self) -> bytes | None:
        """Return the answer if it is the only message and the response is not a stream; None otherwise."""
        if self.is_stream or not self.has_answer or len(self._chunks) != 1:
            return None
        return self._chunks[0]

    def take(self) -> bytes:
        """Remove all that waits, and return it in order."""
        chunks, self._chunks = self._chunks, []
        self._in_flight += self._size
        self._size = 0
        self._release()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def sent(self) -> None:
        """Note that the client has read what `take` returned, or all but a little of it."""
        self._in_flight = 0
        self._count()

    def close(self) -> None:
        """Count it no longer; what was not sent is discarded."""
        self.disconnect()
        self.sent()

    def _count(self) -> None:
        """Count what waits; if there is no room for it in all responses, close the connection."""
        size = self._size + self._in_flight
        if self._entry is not None and size <= SMALL_BYTES:
            self._entry.release()
            self._entry = None
        elif self._entry is not None and not self._entry.resize(size):
            self._refuse()
        elif self._entry is None and size > SMALL_BYTES and self.unread is not None:
            self._entry = self.unread.admit(self.owner, size, give_way=self.abort)
            if self._entry is None:
                self._refuse()

    def _refuse(self) -> None:
        _LOG.warning("a response is not sent: clients leave too many bytes unread (max_unread_bytes)")
        self.abort()

    async def wait_ready(self, seconds: float) -> bool:
        """Return True when there is something to send, or the response has ended; False after *seconds* without that.

        Only one task may wait at a time.
        """
        while not self.is_ready:
            if self._written is None:
                self._written = auto_reset_event()
            if not await self._written.wait_at_most(seconds):
                return self.is_ready
        return True

    async def drain(self) -> None:
        """Return when the buffer is no longer full, or the response has ended."""
        while self.is_full and not self.has_ended:
            if self._drained is None:
                self._drained = anyio.Event()
            await self._drained.wait()

    def _wake(self) -> None:
        if self._written is not None:
            self._written.set()

    def _release(self) -> None:
        if self._drained is not None:
            self._drained.set()
            self._drained = None
