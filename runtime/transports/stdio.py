"""Frames over a pair of descriptors: standard input and output, or the pipes of a child.

Theory of operation. On asyncio the loop calls `_LoopPump._on_readable` when there is input. The frames of one read are
handed over at once. Responses that are there when that returns go out in one direct write. If there are none, a flush
is scheduled behind the handlers that were just started, in the same turn of the loop; it writes the responses of all
handlers that did not have to wait. Later responses share one write in each turn. Only if a write would block, the loop
watches the output. There is no task, queue or thread in between.

Elsewhere (trio; regular files, which no loop can watch; Windows) `_TaskPump` does the same with two tasks.

A server stops reading when its buffer is full, so a client that does not read its responses has to wait. Handlers that
run still respond; the endpoint limits their number. A client always reads: if both sides stopped, they would wait for
each other for ever.
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

# Sixteen full pipes: enough for a peer that is busy for a moment, and little compared to the longest frame.
MAX_BUFFERED_BYTES: Final = 1024 * 1024

Side: TypeAlias = Literal["server", "client"]

_LOG = logging.getLogger("mcpgen.serving")


# How often a full pump checks whether its peer has hung up. Hosts wait about a second before they kill.
_HANGUP_CHECK_SECONDS: Final = 0.1


@asynccontextmanager
async def open_pump(
    source: Source,
    sink: Sink,
    *,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    max_buffered_bytes: int = MAX_BUFFERED_BYTES,
    side: Side = "server",
) -> AsyncGenerator[Pump]:
    """Open a pump between *source*, *sink* and an endpoint, within the block.

    Args:
        source: The input. Nothing else may read it.
        sink: The output.
        max_frame_bytes: The longest line that becomes a frame.
        max_buffered_bytes: How much may be buffered for writing before the pump is full.
        side: The side of the endpoint. A full pump of a server stops reading.
    """
    framer = LineFramer(max_frame_bytes)
    if is_asyncio() and source.watching == "loop" and sink.watching != "thread":
        pump = _LoopPump(source, sink, framer, max_buffered_bytes, side)
        try:
            yield pump
        finally:
            pump.abandon()
        return
    async with open_group() as group:
        task_pump = _TaskPump(source, sink, framer, max_buffered_bytes, side)
        group.start_soon(task_pump.write_all)
        try:
            yield task_pump
        finally:
            task_pump.abandon()


class Pump(ABC):
    """Hands frames to an endpoint, and is its `MessageWriter`."""

    def __init__(self, source: Source, sink: Sink, framer: LineFramer, max_buffered_bytes: int, side: Side) -> None:
        self._source = source
        self._sink = sink
        self._framer = framer
        self._max_buffered = max_buffered_bytes
        self._always_reads = side == "client"
        # Below the limit, so that reading does not stop and go at each message.
        self._resume_at = max_buffered_bytes // 2
        self._lines: list[bytes] = []
        self._rest: memoryview | None = None  # of a partial write; it goes out before the lines
        self._size = 0  # bytes of the rest and the lines
        self._is_abandoned = False
        self._shrunk: anyio.Event | None = None  # set by the next write, if a task waits for it

    @property
    def is_full(self) -> bool:
        """Whether the buffer is full. Call `drain` before the next `write`, if you can wait."""
        return self._size >= self._max_buffered

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

        An unfinished last line is handed over, too. The caller calls `Endpoint.end_of_input`.
        """

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


def _hand_over(endpoint: Endpoint, frames: Sequence[Frame | OversizedLine]) -> None:
    try:
        endpoint.receive(frames)
    except Exception:  # noqa: BLE001 (the boundary: one frame must not end the connection)
        _LOG.exception("processing messages of the peer failed; the messages are dropped")


class _LoopPump(Pump):
    """The pump of asyncio. It consists of callbacks."""

    def __init__(self, source: Source, sink: Sink, framer: LineFramer, max_buffered_bytes: int, side: Side) -> None:
        super().__init__(source, sink, framer, max_buffered_bytes, side)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._endpoint: Endpoint | None = None
        self._is_flush_due = False  # a flush is scheduled or runs, so `write` need not schedule one
        self._is_reading = False
        self._is_stalled = False  # the loop watches the output

    async def run(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        if not self._is_abandoned:
            self._resume()
            try:
                await self._over.wait()
            finally:
                self._pause()
                self._over.set()

    def abandon(self) -> None:
        super().abandon()
        self._over.set()
        if self._is_stalled:
            self._is_stalled = False
            self._loop.remove_writer(self._sink.fd)

    def _on_readable(self) -> None:
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
                self._loop.call_soon(self._flush_now)  # after the handlers that were started
            if not self._always_reads and self.is_full:
                self._pause()
                self._loop.call_later(_HANGUP_CHECK_SECONDS, self._check_hangup, self._size)
        if not data:
            self._pause()
            self._over.set()

    def _check_hangup(self, before: int) -> None:
        """End if the peer has hung up without reading the output; otherwise check again later."""
        if self._is_reading or self._over.is_set():
            return
        if self._size >= before and self._has_hung_up():
            self._over.set()
        else:
            self._loop.call_later(_HANGUP_CHECK_SECONDS, self._check_hangup, self._size)

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._is_flush_due = False
        if not self._is_stalled and not self._flush():
            self._is_stalled = True
            self._loop.add_writer(self._sink.fd, self._on_writable)

    def _on_writable(self) -> None:
        if self._flush() and self._is_stalled:
            self._is_stalled = False
            self._loop.remove_writer(self._sink.fd)
        if not self._is_reading and not self._over.is_set() and self._size <= self._resume_at:
            self._resume()

    def _resume(self) -> None:
        self._is_reading = True
        self._loop.add_reader(self._source.fd, self._on_readable)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._source.fd)


class _TaskPump(Pump):
    """The pump of other event loops, and of files that no loop can watch. One task reads, one writes."""

    def __init__(self, source: Source, sink: Sink, framer: LineFramer, max_buffered_bytes: int, side: Side) -> None:
        super().__init__(source, sink, framer, max_buffered_bytes, side)
        self._filled = anyio.Event()
        self._over = anyio.CancelScope()
        # Our own limiter: handlers that hang may use up the shared one.
        self._limiter = anyio.CapacityLimiter(2)

    async def run(self, endpoint: Endpoint) -> None:
        if self._is_abandoned:
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
        """Wait while the pump is full. Return True if the peer has hung up without reading the output."""
        while self.is_full:
            before = self._size
            with anyio.move_on_after(_HANGUP_CHECK_SECONDS):
                await self.drain()
            if self._size >= max(before, self._max_buffered) and self._has_hung_up():
                return True
        return False

    def abandon(self) -> None:
        super().abandon()
        self._over.cancel()
        self._filled.set()

    async def write_all(self) -> None:
        """Write the buffer, until cancelled."""
        while not self._is_abandoned:
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
