"""Frames within one process: two endpoints that talk to each other, or a test that plays one of them.

A message is encoded by its writer and decoded by its reader, once each, and not copied between. Otherwise it is as on a
pipe: too long a message arrives as an `OversizedLine`, and a writer whose messages are not taken is full.

    async with memory.wire(server) as wire:
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert {"jsonrpc": "2.0", "id": 1, "result": {}} == await wire.receive()
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from mcpgen.runtime.errors import TransportClosed
from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.framing import END_BYTES, OversizedLine
from mcpgen.runtime.transports.spawner import is_asyncio, open_group, open_spawner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable
    from contextlib import AbstractAsyncContextManager

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.transports.interfaces import Channel, Connectable, Endpoint, Endpoints

__all__ = ["MAX_QUEUED_BYTES", "Memory", "Wire", "pair", "wire"]

# As for the buffer in front of a pipe.
MAX_QUEUED_BYTES: Final = 1024 * 1024

# What handlers get to end when a conversation does: as on a pipe.
_GRACE_SECONDS: Final = 0.5
_SETTLE_SECONDS: Final = 0.2

# Longer than a test's answer takes on a busy machine; a test that fails should not hang.
_WAIT_SECONDS: Final = 10.0


class _Queue:
    """Messages on their way in one direction: the writer of one endpoint."""

    def __init__(self, max_frame_bytes: int, max_queued_bytes: int) -> None:
        self._longest = max_frame_bytes
        self._most = max_queued_bytes
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._is_closed = False
        self._changed: anyio.Event | None = None  # if somebody waits
        self._watcher: Callable[[], None] | None = None

    @property
    def is_full(self) -> bool:
        return self._size >= self._most

    @property
    def is_empty(self) -> bool:
        return not self._messages

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call *watcher* whenever there is something to take, or will never be; and now."""
        self._watcher = watcher
        watcher()

    def write(self, message: bytes) -> None:
        if not self._is_closed:
            self._messages.append(message)
            self._size += len(message)
            self._tell()
            if self._watcher is not None:
                self._watcher()

    async def drain(self) -> None:
        while self.is_full:
            await self._change()

    def close(self) -> None:
        """Take no more; what is queued can still be taken."""
        self._is_closed = True
        self._tell()
        if self._watcher is not None:
            self._watcher()

    async def some(self) -> bool:
        """Return when there is something to take, or (False) never will be."""
        while not self._messages and not self._is_closed:
            await self._change()
        return bool(self._messages)

    def take(self) -> bytes:
        """Return the oldest message."""
        message = self._messages.popleft()
        self._size -= len(message)
        self._tell()
        return message

    def take_all(self) -> list[Frame | OversizedLine]:
        """Return what is queued, oldest first."""
        messages, self._messages, self._size = self._messages, deque(), 0
        self._tell()
        return [self.framed(each) for each in messages]

    def framed(self, message: bytes) -> Frame | OversizedLine:
        """Return *message* as it would come out of a pipe."""
        if len(message) <= self._longest:
            return message
        return OversizedLine(len(message), self._longest, message[:END_BYTES], message[-END_BYTES:])

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()


@asynccontextmanager
async def pair(
    first: Connectable,
    second: Connectable,
    *,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    max_queued_bytes: int = MAX_QUEUED_BYTES,
) -> AsyncGenerator[tuple[Endpoint, Endpoint]]:
    """Connect the two to each other within the block. At its end the input of both ends.

    What one writes, the other receives in a later turn of the event loop, together with all else that was written until
    then. So a queue is empty after each turn: neither side needs to be held back, as a pipe's would be, and no two can
    wait for each other.

    Args:
        first: One side; a server's lifespan must have been entered.
        second: The other side.
        max_frame_bytes: The longest message that is delivered.
        max_queued_bytes: How much may be on its way in one direction before its writer is full.
    """
    ahead, back = (_Queue(max_frame_bytes, max_queued_bytes) for _ in range(2))
    async with open_spawner() as spawner, open_group() as group:
        ends = first.connect(ahead, spawner), second.connect(back, spawner)
        group.start_soon(_deliver, ahead, ends[1])
        group.start_soon(_deliver, back, ends[0])
        try:
            yield ends
        finally:
            ahead.close()
            back.close()
            for end in ends:
                await _settle(end)


async def _deliver(queue: _Queue, end: Endpoint) -> None:
    if is_asyncio():
        delivery = _Delivery(queue, end)
        try:
            await delivery.over.wait()
        finally:
            delivery.over.set()
        return
    while await queue.some():
        end.receive(queue.take_all())


class _Delivery:
    """What delivers on asyncio: a callback in a later turn of the loop, where an event would wake a task."""

    def __init__(self, queue: _Queue, end: Endpoint) -> None:
        self.over = anyio.Event()
        self._queue = queue
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._is_due = False
        queue.watch(self._soon)

    def _soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._now)

    def _now(self) -> None:
        self._is_due = False
        if self.over.is_set():
            return
        if not self._queue.is_empty:
            self._end.receive(self._queue.take_all())
        if self._queue.is_closed and self._queue.is_empty:
            self.over.set()


async def _settle(end: Endpoint) -> None:
    try:
        end.end_of_input()
        with anyio.move_on_after(_GRACE_SECONDS):
            await end.finished()
    finally:
        end.close()
        with anyio.move_on_after(_SETTLE_SECONDS, shield=True):
            await end.finished()


class Memory:
    """How a client reaches a server of its own process.

    Args:
        server: The server; its lifespan is entered for each conversation, and shared by those that overlap.
    """

    def __init__(self, server: Endpoints) -> None:
        self._server = server

    @property
    def identity(self) -> Hashable | None:
        """None: to ask such a server costs nothing."""
        return None

    @property
    def description(self) -> str:
        """Its name."""
        return str(getattr(self._server, "name", "a server"))

    def open(self, limits: ClientLimits) -> AbstractAsyncContextManager[Channel]:
        """Begin a conversation."""
        return _conversation(self._server, limits)


@asynccontextmanager
async def _conversation(server: Endpoints, limits: ClientLimits) -> AsyncGenerator[Channel]:
    ahead = _Queue(server.limits.max_frame_bytes, limits.max_buffered_bytes)
    back = _Queue(limits.max_frame_bytes, server.limits.max_buffered_bytes)
    async with server.running(), open_spawner() as spawner, open_group() as group:
        end = server.connect(back, spawner)
        group.start_soon(_deliver, ahead, end)
        try:
            yield _Line(ahead, back)
        finally:
            ahead.close()
            await _settle(end)
            back.close()


class _Line:
    """The client's end of a conversation in one process."""

    def __init__(self, ahead: _Queue, back: _Queue) -> None:
        self._ahead = ahead
        self._back = back
        self.write = ahead.write
        self.drain = ahead.drain

    @property
    def is_full(self) -> bool:
        return self._ahead.is_full

    @property
    def stderr(self) -> str:
        return ""

    async def run(self, endpoint: Endpoint) -> None:
        await _deliver(self._back, endpoint)

    async def ended(self) -> TransportClosed:
        return TransportClosed("the server has ended the conversation")


class Wire:
    """A test's end of a conversation with a server: messages out and in, as JSON values or as bytes."""

    def __init__(self, end: Endpoint, answers: _Queue) -> None:
        self._end = end
        self._answers = answers
        self._is_ended = False

    async def send(self, message: object) -> None:
        """Hand *message* over, encoded unless it is bytes; its handler has been started when this returns.

        Waits if the server has written more than was received.

        Raises:
            TransportClosed: The input was ended before.
        """
        await self.send_all(message)

    async def send_all(self, *messages: object) -> None:
        """Hand *messages* over at once, as if they came out of a pipe with one read.

        Raises:
            TransportClosed: The input was ended before.
        """
        if self._is_ended:
            raise TransportClosed("the input was ended")
        with anyio.fail_after(_WAIT_SECONDS):
            await self._answers.drain()
        encoded = (each if isinstance(each, bytes) else msgspec.json.encode(each) for each in messages)
        self._end.receive([self._answers.framed(each) for each in encoded])

    async def receive(self) -> Any:  # noqa: ANN401 (any JSON value)
        """Return the next message of the server, decoded.

        Raises:
            TransportClosed: There is none, and will be none.
            TimeoutError: There is none for ten seconds.
        """
        return msgspec.json.decode(await self.receive_bytes())

    async def receive_bytes(self) -> bytes:
        """Return the next message of the server as it wrote it.

        Raises:
            TransportClosed: There is none, and will be none.
            TimeoutError: There is none for ten seconds.
        """
        with anyio.fail_after(_WAIT_SECONDS):
            if not await self._answers.some():
                raise TransportClosed("the server is gone")
        return self._answers.take()

    async def end_input(self) -> None:
        """Say that no more will come, and return when nothing runs any more, or was cancelled after a while."""
        if not self._is_ended:
            self._is_ended = True
            await _settle(self._end)
            self._answers.close()


@asynccontextmanager
async def wire(server: Endpoints) -> AsyncGenerator[Wire]:
    """Run *server*, its lifespan included, and open one conversation with it, within the block.

    Its limits hold as on a pipe.
    """
    async with server.running(), open_spawner() as spawner:
        answers = _Queue(server.limits.max_frame_bytes, server.limits.max_buffered_bytes)
        opened = Wire(server.connect(answers, spawner), answers)
        try:
            yield opened
        finally:
            await opened.end_input()
