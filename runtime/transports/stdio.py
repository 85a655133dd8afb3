"""Frames over a pair of descriptors: standard input and output, or the pipes of a child.

Theory of operation. On asyncio the loop calls `_LoopPump._on_readable` when there is input. The frames of one read are
handed over at once, unless there are hundreds of them: these take several turns of the loop. Responses that are there
when that returns go out in one direct write. If there are none, a flush is scheduled behind the handlers that were just
started, in the same turn of the loop; it writes the responses of all handlers that did not have to wait. Later
responses share one write in each turn. Only if a write would block, the loop watches the output. There is no task,
queue or thread in between.

Elsewhere (trio; regular files, which no loop can watch; Windows) `_TaskPump` does the same with two tasks.

A server stops reading when its buffer is full, so a client that does not read its responses has to wait. Handlers that
run still respond; the endpoint limits their number. A client always reads: if both sides stopped, they would wait for
each other for ever.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint

from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.framing import LineFramer
from mcpgen.runtime.transports.pump import MAX_FRAMES, Pump, hand_over
from mcpgen.runtime.transports.spawner import is_asyncio, open_group

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.transports.descriptors import Sink, Source
    from mcpgen.runtime.transports.interfaces import Endpoint
    from mcpgen.runtime.transports.pump import Side

__all__ = ["MAX_BUFFERED_BYTES", "open_pump"]

# Sixteen full pipes: enough for a peer that is busy for a moment, and little compared to the longest frame.
MAX_BUFFERED_BYTES: Final = 1024 * 1024


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

    def hold(self) -> None:
        super().hold()
        self._pause()

    def unhold(self) -> None:
        super().unhold()
        if self._endpoint is not None and not (self._is_reading or self.is_behind or self._over.is_set()):
            self._resume()

    def _on_readable(self) -> None:
        data = self._read()
        if data is None:
            return
        frames = self._framer.feed(data) if data else self._last_frames()
        if len(frames) > MAX_FRAMES or (len(frames) > 1 and len(data) > self._max_turn_bytes):
            self._pause()
            self._frames = frames
            self._hand_over_some()
        elif frames:
            self._hand_over(frames)
            if not self._always_reads and self.is_full:
                self._wait_for_room()
        if not data:
            self._pause()
            self._over.set()

    def _hand_over_some(self) -> None:
        """Hand over some of the frames that wait. Read on after the last ones."""
        if self._over.is_set():
            return
        self._hand_over(self._next_frames())
        if self._frames:
            self._loop.call_soon(self._hand_over_some)
        elif self._over.is_set() or self._is_held:
            pass
        elif self._always_reads or not self.is_full:
            self._resume()
        else:
            self._wait_for_room()

    def _hand_over(self, frames: Sequence[Frame | OversizedLine]) -> None:
        if self._endpoint is None:
            return
        self._is_flush_due = True
        hand_over(self._endpoint, frames)
        if self._size:
            self._flush_now()
        else:
            self._loop.call_soon(self._flush_now)  # after the handlers that were started

    def _wait_for_room(self) -> None:
        self._pause()
        self._loop.call_later(_HANGUP_CHECK_SECONDS, self._check_hangup, self._size)

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
        is_done = self._is_reading or self._is_held or self.is_behind or self._over.is_set()
        if not is_done and self._size <= self._resume_at:
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
        self._unheld = anyio.Event()  # set by `unhold`
        # Our own limiter: handlers that hang may use up the shared one.
        self._limiter = anyio.CapacityLimiter(2)

    async def run(self, endpoint: Endpoint) -> None:
        if self._is_abandoned:
            return
        with self._over:
            while True:
                if not self._always_reads and await self._is_stuck():
                    return
                while self._is_held:
                    await self._unheld.wait()
                data = await self._chunk()
                self._frames = self._framer.feed(data) if data else self._last_frames()
                while frames := self._next_frames():
                    hand_over(endpoint, frames)
                    if self._frames:
                        await checkpoint()
                if not data:
                    return

    def hold(self) -> None:
        super().hold()
        self._unheld = anyio.Event()

    def unhold(self) -> None:
        super().unhold()
        self._unheld.set()

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
