"""What the pumps of all event loops have in common: the buffer of what is to be written, and the frames that were read.

`mcpgen.runtime.transports.stdio` has the pumps.
"""

from __future__ import annotations

import select
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import msgspec

from mcpgen.runtime.protocol.framing import OversizedLine, frame
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.protocol.framing import Frame, LineFramer
    from mcpgen.runtime.transports.descriptors import Sink, Source
    from mcpgen.runtime.transports.interfaces import Endpoint

__all__ = ["MAX_FRAMES", "Pump", "Side", "hand_over"]

Side: TypeAlias = Literal["server", "client"]

# The frames that are handed over in one turn of the loop, and on the client's side their bytes if there are several. A
# frame of four bytes that is no message takes some 50 µs to refuse, and one read has up to 16,000 of them. A request of
# 14 KiB with slow numbers takes up to 100 ms, and one read has four of them.
MAX_FRAMES: Final = 256
_MAX_TURN_BYTES: Final = 16 * 1024

_decode_any: Final = msgspec.json.Decoder(msgspec.Raw).decode

_LOG = traceback_logger("mcpgen.serving")


class Pump(ABC):
    """Hands frames to an endpoint, and is its `MessageWriter`."""

    def __init__(self, source: Source, sink: Sink, framer: LineFramer, max_buffered_bytes: int, side: Side) -> None:
        self._source = source
        self._sink = sink
        self._framer = framer
        self._max_buffered = max_buffered_bytes
        self._always_reads = side == "client"
        # A server on stdio has one client, whose messages delay no others.
        self._max_turn_bytes = _MAX_TURN_BYTES if side == "client" else sys.maxsize
        # Below the limit, so that reading does not stop and go at each message.
        self._resume_at = max_buffered_bytes // 2
        self._lines: list[bytes] = []
        self._rest: memoryview | None = None  # of a partial write; it goes out before the lines
        self._size = 0  # bytes of the rest and the lines
        self._is_abandoned = False
        self._frames: Sequence[Frame | OversizedLine] = ()  # those that wait for the next turn of the loop
        self._shrunk: anyio.Event | None = None  # set by the next write, if a task waits for it
        self._is_held = False

    @property
    def is_full(self) -> bool:
        """Whether the buffer is full. Call `drain` before the next `write`, if you can wait."""
        return self._size >= self._max_buffered

    @property
    def is_behind(self) -> bool:
        """Whether frames that were read wait to be handed over."""
        return bool(self._frames)

    @property
    def is_abandoned(self) -> bool:
        """Whether the peer does not read any more. Messages are dropped."""
        return self._is_abandoned

    def write(self, message: bytes) -> None:
        """Send *message* in this turn of the loop, or in the next."""
        if self._is_abandoned:
            return
        line = frame(message)
        self._lines.append(line)
        self._size += len(line)
        self._flush_soon()

    async def drain(self) -> None:
        """Return when the writer is no longer full, or the peer is gone."""
        if self.is_full:
            await self._wait_below(self._resume_at)

    async def flushed(self) -> None:
        """Return when everything is written, or the peer is gone."""
        await self._wait_below(0)

    @abstractmethod
    async def run(self, endpoint: Endpoint) -> None:
        """Hand frames to *endpoint* until the input ends, or the peer does not read any more.

        An unfinished last line is handed over, too, but to a client only if it is JSON: a server that dies while it
        writes leaves a part of a message. The caller calls `Endpoint.end_of_input`.
        """

    def _last_frames(self) -> Sequence[Frame | OversizedLine]:
        """Return the unfinished last line at the end of the input, if it is to be handed over."""
        frames = self._framer.finish()
        if self._always_reads and frames and not isinstance(frames[0], OversizedLine) and not _is_json(frames[0]):
            _LOG.debug("the server has ended within a message of %d bytes or more", len(frames[0]))
            return ()
        return frames

    def _next_frames(self) -> Sequence[Frame | OversizedLine]:
        """Remove the frames of one turn of the loop from those that wait, and return them."""
        count = size = 0
        for each in self._frames[:MAX_FRAMES]:
            size += 0 if isinstance(each, OversizedLine) else len(each)
            if count and size > self._max_turn_bytes:
                break
            count += 1
        frames, self._frames = self._frames[:count], self._frames[count:]
        return frames

    def hold(self) -> None:
        """Read no more until `unhold`: there is no room for what is read."""
        self._is_held = True

    def unhold(self) -> None:
        """Read again."""
        self._is_held = False

    @abstractmethod
    def _flush_soon(self) -> None:
        """Schedule a write of the buffer."""

    def abandon(self) -> None:
        """Drop the buffer, and all later messages."""
        self._is_abandoned = True
        self._lines, self._rest, self._size = [], None, 0
        self._notify_shrunk()

    async def _wait_below(self, size: int) -> None:
        while self._size > size:
            if self._shrunk is None:
                self._shrunk = anyio.Event()
            await self._shrunk.wait()

    def _notify_shrunk(self) -> None:
        if self._shrunk is not None:
            self._shrunk.set()
            self._shrunk = None

    def _take(self) -> bytes | memoryview:
        """Return everything that is to be written. It stays buffered until `_sent`."""
        if self._rest is not None:
            return self._rest
        lines, self._lines = self._lines, []
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        self._rest = memoryview(data)
        return data

    def _sent(self, data: bytes | memoryview, size: int) -> None:
        """Remove the first *size* bytes of *data* from the buffer: they are written."""
        self._size -= size
        self._rest = None if size == len(data) else memoryview(data)[size:]
        if self._shrunk is not None:
            self._notify_shrunk()

    def _flush(self) -> bool:
        """Write as much as possible without waiting. Return whether the buffer is empty."""
        while self._size:
            data = self._take()
            try:
                sent = self._sink.write(data)
            except BlockingIOError:
                return False
            except OSError as error:
                self._fail(error)
                return True
            self._sent(data, sent)
        return True

    def _read(self) -> bytes | None:
        """Return some bytes; none at the end of input, None if there is nothing yet."""
        try:
            return self._source.read()
        except BlockingIOError:
            return None
        except OSError as error:  # a closed terminal, or a connection reset
            _LOG.debug("reading the input failed, so the input is treated as closed: %s", error)
            return b""

    def _has_hung_up(self) -> bool:
        """Whether the peer has closed the input, which may still hold unread bytes.

        A full pump does not read, so it would not see the end of input behind those bytes.
        """
        if self._source.watching == "thread" or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._source.fd, getattr(select, "POLLRDHUP", 0))
        return any(events & ~select.POLLIN for _, events in poll.poll(0))

    def _fail(self, error: OSError) -> None:
        _LOG.debug("writing the output failed; all further messages are dropped: %s", error)
        self.abandon()


def hand_over(endpoint: Endpoint, frames: Sequence[Frame | OversizedLine]) -> None:
    """Hand *frames* to *endpoint*."""
    try:
        endpoint.receive(frames)
    except Exception:  # noqa: BLE001 (the boundary: one frame must not end the connection)
        _LOG.exception("processing messages of the peer failed; the messages are dropped")


def _is_json(line: Frame) -> bool:
    try:
        _decode_any(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
