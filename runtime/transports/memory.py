"""Connections within one process: between two endpoints, or between a server and a test that plays the client.

Messages are encoded and decoded as on a pipe, but not copied. The limits are those of a pipe, too: a message that is
too long arrives as an `OversizedLine`, and a writer whose messages are not taken becomes full.

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
import anyio.lowlevel
import msgspec

from mcpgen.runtime.errors import TransportClosed
from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.framing import END_BYTES, OversizedLine
from mcpgen.runtime.transports.spawner import is_asyncio, open_group, open_spawner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.transports.interfaces import Channel, Endpoint, EndpointFactory, ServerInterface

__all__ = ["MAX_QUEUED_BYTES", "Memory", "Wire", "pair", "wire"]

# As the buffer of a pipe.
MAX_QUEUED_BYTES: Final = 1024 * 1024

# For handlers to end when a connection does, as on a pipe.
_GRACE_SECONDS: Final = 0.5
_CLEANUP_SECONDS: Final = 0.2

# Longer than a response takes on a busy machine. A test that fails must not hang.
_WAIT_SECONDS: Final = 10.0


class _Queue:
    """The messages in one direction: the `MessageWriter` of one endpoint."""

    def __init__(self, max_frame_bytes: int, max_queued_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._max_queued_bytes = max_queued_bytes
        self._messages: deque[bytes] = deque()
        self._size = 0
        self.is_closed: bool = False
        self._changed: anyio.Event | None = None  # set by the next change, if a task waits for it
        self._watcher: Callable[[], None] | None = None

    @property
    def is_full(self) -> bool:
        return self._size >= self._max_queued_bytes

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call *watcher* now, after each message, and when the queue is closed."""
        self._watcher = watcher
        watcher()

    def write(self, message: bytes) -> None:
        if not self.is_closed:
            self._messages.append(message)
            self._size += len(message)
            if self._changed is not None:
                self._notify()
            if self._watcher is not None:
                self._watcher()

    async def drain(self) -> None:
        while self.is_full:
            await self._wait_change()

    def close(self) -> None:
        """Accept no more messages. Queued messages can still be taken."""
        self.is_closed = True
        self._notify()
        if self._watcher is not None:
            self._watcher()

    async def wait_message(self) -> bool:
        """Return True when there is a message; False when the queue is closed and empty."""
        while not self._messages and not self.is_closed:
            await self._wait_change()
        return bool(self._messages)

    def take(self) -> bytes:
        """Return the oldest message."""
        message = self._messages.popleft()
        self._size -= len(message)
        self._notify()
        return message

    def take_all(self) -> list[Frame | OversizedLine]:
        """Return all messages, oldest first."""
        messages, self._messages, self._size = self._messages, deque(), 0
        if self._changed is not None:
            self._notify()
        limit = self._max_frame_bytes
        return [each if len(each) <= limit else self.as_frame(each) for each in messages]

    def as_frame(self, message: bytes) -> Frame | OversizedLine:
        """Return *message* as a pipe would deliver it."""
        if len(message) <= self._max_frame_bytes:
            return message
        return OversizedLine(len(message), self._max_frame_bytes, message[:END_BYTES], message[-END_BYTES:])

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _wait_change(self) -> None:
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()


@asynccontextmanager
async def pair(
    first: EndpointFactory,
    second: EndpointFactory,
    *,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    max_queued_bytes: int = MAX_QUEUED_BYTES,
) -> AsyncGenerator[tuple[Endpoint, Endpoint]]:
    """Connect two endpoints to each other within the block. At its end, the input of both ends.

    An endpoint receives messages in a later turn of the event loop, all that were written until then. So the queues are
    empty after each turn, and the endpoints cannot wait for each other.

    Args:
        first: One side. The lifespan of a server must be open.
        second: The other side.
        max_frame_bytes: The longest message that is delivered.
        max_queued_bytes: How much may be queued in one direction before its writer is full.
    """
    to_second, to_first = (_Queue(max_frame_bytes, max_queued_bytes) for _ in range(2))
    async with open_spawner() as spawner, open_group() as group:
        ends = first.connect(to_second, spawner), second.connect(to_first, spawner)
        group.start_soon(_deliver, to_second, ends[1])
        group.start_soon(_deliver, to_first, ends[0])
        try:
            yield ends
        finally:
            to_second.close()
            to_first.close()
            for end in ends:
                await _finish(end)


async def _deliver(queue: _Queue, end: Endpoint) -> None:
    if is_asyncio():
        delivery = _Delivery(queue, end)
        try:
            await delivery.over.wait()
        finally:
            delivery.is_over = True
        return
    while await queue.wait_message():
        end.receive(queue.take_all())


class _Delivery:
    """Delivery on asyncio: a callback in a later turn of the loop, which is cheaper than waking a task."""

    def __init__(self, queue: _Queue, end: Endpoint) -> None:
        self.over = asyncio.Event()
        self.is_over = False  # reading an event takes a call
        self._queue = queue
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._is_due = False
        queue.watch(self._schedule)

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._deliver_now)

    def _deliver_now(self) -> None:
        self._is_due = False
        if self.is_over:
            return
        if frames := self._queue.take_all():
            self._end.receive(frames)
        if self._queue.is_closed and self._queue.is_empty:
            self.is_over = True
            self.over.set()


async def _finish(end: Endpoint) -> None:
    try:
        end.end_of_input()
        with anyio.move_on_after(_GRACE_SECONDS):
            await end.wait_finished()
    finally:
        end.close()
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            await end.wait_finished()


class Memory:
    """The transport to a server of the same process.

    Args:
        server: The server. Connections that overlap share its lifespan.
    """

    def __init__(self, server: ServerInterface) -> None:
        self._server = server

    def __repr__(self) -> str:
        return f"Memory({self.description!r})"

    @property
    def identity(self) -> Hashable | None:
        """None: a probe of this server costs nothing."""
        return None

    @property
    def description(self) -> str:
        """The name of the server."""
        return str(getattr(self._server, "name", "server"))

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        """Open a connection within the block."""
        server = self._server
        to_server = _Queue(server.limits.max_frame_bytes, limits.max_buffered_bytes)
        to_client = _Queue(limits.max_frame_bytes, server.limits.max_buffered_bytes)
        async with server.running(), open_spawner() as spawner, open_group() as group:
            end = server.connect(to_client, spawner)
            group.start_soon(_deliver, to_server, end)
            try:
                yield _MemoryChannel(to_server, to_client)
            finally:
                to_server.close()
                await _finish(end)
                to_client.close()


class _MemoryChannel:
    """The client's end of a connection."""

    def __init__(self, to_server: _Queue, to_client: _Queue) -> None:
        self._to_server = to_server
        self._to_client = to_client
        self.write = to_server.write
        self.drain = to_server.drain

    @property
    def is_full(self) -> bool:
        return self._to_server.is_full

    @property
    def stderr(self) -> str:
        return ""

    async def run(self, endpoint: Endpoint) -> None:
        await _deliver(self._to_client, endpoint)

    async def close_reason(self) -> TransportClosed:
        return TransportClosed("the server has ended the connection")


class Wire:
    """The client's end of a connection, for tests: messages out and in, as JSON values or as bytes."""

    def __init__(self, end: Endpoint, answers: _Queue) -> None:
        self._end = end
        self._answers = answers
        self._is_ended = False

    async def send(self, message: object) -> None:
        """Send *message*, encoded unless it is bytes. Its handler is started when this returns.

        Wait first, if the server has written more than its limit and the test has not received it.

        Raises:
            TransportClosed: `end_input` was called before.
        """
        await self.send_all(message)

    async def send_all(self, *messages: object) -> None:
        """Send *messages* at once, as if one read of a pipe had delivered them.

        Raises:
            TransportClosed: `end_input` was called before.
        """
        if self._is_ended:
            raise TransportClosed("the input of the server has ended: `end_input` was called")
        with anyio.fail_after(_WAIT_SECONDS):
            await self._answers.drain()
        encoded = (each if isinstance(each, bytes) else msgspec.json.encode(each) for each in messages)
        self._end.receive([self._answers.as_frame(each) for each in encoded])

    async def receive(self) -> Any:  # noqa: ANN401 (any JSON value)
        """Return the next message of the server, decoded.

        Raises:
            TransportClosed: The server has ended the connection.
            TimeoutError: No message comes within ten seconds.
        """
        return msgspec.json.decode(await self.receive_bytes())

    async def receive_bytes(self) -> bytes:
        """Return the next message of the server, undecoded.

        Raises:
            TransportClosed: The server has ended the connection.
            TimeoutError: No message comes within ten seconds.
        """
        # A response may be here at once. Other tasks need a turn, or a test that polls would keep them waiting forever.
        await anyio.lowlevel.checkpoint()
        with anyio.fail_after(_WAIT_SECONDS):
            if not await self._answers.wait_message():
                raise TransportClosed("the server has ended the connection")
        return self._answers.take()

    async def end_input(self) -> None:
        """End the input. Return when all handlers have ended; they are cancelled after a while."""
        if not self._is_ended:
            self._is_ended = True
            await _finish(self._end)
            self._answers.close()


@asynccontextmanager
async def wire(server: ServerInterface) -> AsyncGenerator[Wire]:
    """Run *server*, with its lifespan, and open one connection to it, within the block.

    Its limits apply as on a pipe.
    """
    async with server.running(), open_spawner() as spawner:
        answers = _Queue(server.limits.max_frame_bytes, server.limits.max_buffered_bytes)
        opened = Wire(server.connect(answers, spawner), answers)
        try:
            yield opened
        finally:
            await opened.end_input()
