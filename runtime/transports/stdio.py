"""Frames over a pair of descriptors: standard input and output, or the pipes of a child.

Theory of operation. On asyncio the loop calls `_LoopPump._readable` when there is something to read. What one read
brings is handed over at once; what was answered meanwhile goes out in one write, directly, without asking the loop
first. If nothing was, a flush is put behind the handlers that were just started, in the same turn of the loop, and
takes the answers of all those that did not have to wait. Later answers share one write per turn. Only if a write would
have to wait is the loop asked to watch the output. No task, no queue and no thread lies in between.

Elsewhere (trio; regular files, which no loop can watch; Windows) `_TaskPump` does the same with two tasks.

A server does not read from a client that does not read: when the buffer is full, the input waits, and with it the
client. What was started before still answers; how much that can be is the endpoint's to bound. A client always reads:
if both sides waited for each other, it would be for good.
"""

from __future__ import annotations

import asyncio
import logging
import select
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import anyio.to_thread

from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.framing import LineFramer, frame
from mcpgen.runtime.transports.spawner import is_asyncio, open_group

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.transports.descriptors import Sink, Source
    from mcpgen.runtime.transports.interfaces import Endpoint

__all__ = ["MAX_BUFFERED_BYTES", "Pump", "open_pump"]

# Sixteen full pipes: enough for a peer that is busy for a moment, and little beside what one frame may be.
MAX_BUFFERED_BYTES: Final = 1024 * 1024

Side: TypeAlias = Literal["server", "client"]

_LOG = logging.getLogger("mcpgen.serving")


# How often a pump that is full looks whether its peer has hung up: well within the second that a host waits.
_LOOK_SECONDS: Final = 0.1


@asynccontextmanager
async def open_pump(
    source: Source,
    sink: Sink,
    *,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    max_buffered_bytes: int = MAX_BUFFERED_BYTES,
    side: Side = "server",
) -> AsyncGenerator[Pump]:
    """Make a pump between *source*, *sink* and an endpoint, which can be used within the block.

    Args:
        source: What to read; nobody else may read it meanwhile.
        sink: What to write to.
        max_frame_bytes: The longest line that becomes a frame.
        max_buffered_bytes: How much may wait to be written before the pump is full.
        side: Who we are; a server's pump that is full stops reading.
    """
    framer = LineFramer(max_frame_bytes)
    if is_asyncio() and source.watching == "loop" and sink.watching != "thread":
        pump = _LoopPump(source, sink, framer, max_buffered_bytes, side)
        try:
            yield pump
        finally:
            pump.lose()
        return
    async with open_group() as group:
        slow = _TaskPump(source, sink, framer, max_buffered_bytes, side)
        group.start_soon(slow.write_all)
        try:
            yield slow
        finally:
            slow.lose()


class Pump(ABC):
    """Moves frames to an endpoint, and is the writer of its messages."""

    def __init__(self, source: Source, sink: Sink, framer: LineFramer, max_buffered_bytes: int, side: Side) -> None:
        self._source = source
        self._sink = sink
        self._framer = framer
        self._most = max_buffered_bytes
        self._always_reads = side == "client"
        self._few = max_buffered_bytes // 2  # where reading goes on: not to stop and go with every message
        self._lines: list[bytes] = []
        self._rest: memoryview | None = None  # of what was written in part, before the lines
        self._size = 0  # of the rest and the lines
        self._is_lost = False
        self._moved: anyio.Event | None = None  # if somebody waits for the size to shrink

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be written that whoever can wait should."""
        return self._size >= self._most

    @property
    def is_lost(self) -> bool:
        """Whether nobody reads what is written: it is dropped."""
        return self._is_lost

    def write(self, message: bytes) -> None:
        """Send *message* in this turn of the loop, or the next."""
        if self._is_lost:
            return
        line = frame(message)
        self._lines.append(line)
        self._size += len(line)
        self._flush_soon()

    async def drain(self) -> None:
        """Return when the writer is no longer full, or the peer is gone."""
        if self.is_full:
            await self._shrunk(self._few)

    async def flushed(self) -> None:
        """Return when all is written, or the peer is gone."""
        await self._shrunk(0)

    @abstractmethod
    async def run(self, endpoint: Endpoint) -> None:
        """Hand what comes to *endpoint* until the input ends or nobody reads what is written.

        An unfinished line at the end is handed over too; that there will be no more is for the caller to say.
        """

    @abstractmethod
    def _flush_soon(self) -> None:
        """See that what is buffered gets written."""

    def lose(self) -> None:
        """Drop what is buffered, and what will be."""
        self._is_lost = True
        self._lines, self._rest, self._size = [], None, 0
        self._tell()

    async def _shrunk(self, size: int) -> None:
        while self._size > size:
            if self._moved is None:
                self._moved = anyio.Event()
            await self._moved.wait()

    def _tell(self) -> None:
        if self._moved is not None:
            self._moved.set()
            self._moved = None

    def _take(self) -> bytes | memoryview:
        """Return what is to be written next, all that there is; it stays buffered until `_sent`."""
        if self._rest is not None:
            return self._rest
        lines, self._lines = self._lines, []
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        self._rest = memoryview(data)
        return data

    def _sent(self, data: bytes | memoryview, size: int) -> None:
        """Note that the first *size* bytes of *data*, which was taken, are written."""
        self._size -= size
        self._rest = None if size == len(data) else memoryview(data)[size:]
        if self._moved is not None:
            self._tell()

    def _flush(self) -> bool:
        """Write what can be written without waiting; return whether that was all."""
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
        """Return some bytes, none at the end of the input; or None if there is nothing yet."""
        try:
            return self._source.read()
        except BlockingIOError:
            return None
        except OSError as error:  # a terminal that was closed, a peer that reset
            _LOG.debug("the input ends with an error: %s", error)
            return b""

    def _has_hung_up(self) -> bool:
        """Whether the peer has closed the input, which may still hold what was not read.

        A pump that is full does not read, so the end of the input would be hidden behind what was sent before it.
        """
        if self._source.watching == "thread" or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._source.fd, getattr(select, "POLLRDHUP", 0))
        return any(events & ~select.POLLIN for _, events in poll.poll(0))

    def _fail(self, error: OSError) -> None:
        _LOG.debug("nobody reads the output: %s", error)
        self.lose()


def _hand_over(endpoint: Endpoint, frames: Sequence[Frame | OversizedLine]) -> None:
    try:
        endpoint.receive(frames)
    except Exception:  # noqa: BLE001 (it promised not to; one frame must not cost the peer its connection)
        _LOG.exception("frames were not handled")


class _LoopPump(Pump):
    """The pump of asyncio, all callbacks."""

    def __init__(self, source: Source, sink: Sink, framer: LineFramer, max_buffered_bytes: int, side: Side) -> None:
        super().__init__(source, sink, framer, max_buffered_bytes, side)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._endpoint: Endpoint | None = None
        self._is_flush_due = False  # or being done: what is written meanwhile needs no call of its own
        self._is_reading = False
        self._is_stalled = False  # the loop watches the sink

    async def run(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        if not self._is_lost:
            self._resume()
            try:
                await self._over.wait()
            finally:
                self._pause()
                self._over.set()

    def lose(self) -> None:
        super().lose()
        self._over.set()
        if self._is_stalled:
            self._is_stalled = False
            self._loop.remove_writer(self._sink.fd)

    def _readable(self) -> None:
        data = self._read()
        if data is None:
            return
        frames = self._framer.feed(data) if data else self._framer.finish()
        if frames and self._endpoint is not None:
            self._is_flush_due = True
            _hand_over(self._endpoint, frames)
            if self._size:
                self._flush_now()
            else:
                self._loop.call_soon(self._flush_now)  # behind the handlers that were started
            if self.is_full and not self._always_reads:
                self._pause()
                self._loop.call_later(_LOOK_SECONDS, self._look, self._size)
        if not data:
            self._pause()
            self._over.set()

    def _look(self, before: int) -> None:
        """End, if the peer has hung up without reading what is written to it; otherwise look again later."""
        if self._is_reading or self._over.is_set():
            return
        if self._size >= before and self._has_hung_up():
            self._over.set()
        else:
            self._loop.call_later(_LOOK_SECONDS, self._look, self._size)

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._is_flush_due = False
        if not self._is_stalled and not self._flush():
            self._is_stalled = True
            self._loop.add_writer(self._sink.fd, self._writable)

    def _writable(self) -> None:
        if self._flush() and self._is_stalled:
            self._is_stalled = False
            self._loop.remove_writer(self._sink.fd)
        if not self._is_reading and not self._over.is_set() and self._size <= self._few:
            self._resume()

    def _resume(self) -> None:
        self._is_reading = True
        self._loop.add_reader(self._source.fd, self._readable)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._source.fd)


class _TaskPump(Pump):
    """The pump of any other event loop, and of what no loop can watch: one task reads, one writes."""

    def __init__(self, source: Source, sink: Sink, framer: LineFramer, max_buffered_bytes: int, side: Side) -> None:
        super().__init__(source, sink, framer, max_buffered_bytes, side)
        self._filled = anyio.Event()
        self._over = anyio.CancelScope()
        # Our own: the usual one may be taken by handlers that hang, and then nothing more would come or go.
        self._limiter = anyio.CapacityLimiter(2)

    async def run(self, endpoint: Endpoint) -> None:
        if self._is_lost:
            return
        with self._over:
            while True:
                if not self._always_reads and await self._is_stuck():
                    return
                data = await self._chunk()
                if frames := self._framer.feed(data) if data else self._framer.finish():
                    _hand_over(endpoint, frames)
                if not data:
                    return

    async def _is_stuck(self) -> bool:
        """Wait until the pump is no longer full, or the peer has hung up without reading what is written to it."""
        while self.is_full:
            before = self._size
            with anyio.move_on_after(_LOOK_SECONDS):
                await self.drain()
            if self._size >= max(before, self._most) and self._has_hung_up():
                return True
        return False

    def lose(self) -> None:
        super().lose()
        self._over.cancel()
        self._filled.set()

    async def write_all(self) -> None:
        """Write what is buffered, until cancelled."""
        while not self._is_lost:
            if not self._size:
                self._filled = anyio.Event()
                await self._filled.wait()
            elif self._sink.watching == "thread":
                await self._write_in_thread()
            elif not self._flush():
                await anyio.wait_writable(self._sink.fd)

    def _flush_soon(self) -> None:
        self._filled.set()

    async def _chunk(self) -> bytes:
        while True:
            if self._source.watching == "thread":
                data = await anyio.to_thread.run_sync(self._read, limiter=self._limiter, abandon_on_cancel=True)
            else:
                await anyio.wait_readable(self._source.fd)
                data = self._read()
            if data is not None:
                return data

    async def _write_in_thread(self) -> None:
        data = self._take()
        try:
            sent = await anyio.to_thread.run_sync(self._sink.write, data, limiter=self._limiter, abandon_on_cancel=True)
        except OSError as error:
            self._fail(error)
        else:
            self._sent(data, sent)
