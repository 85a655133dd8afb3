"""The relay of ``mcpgen trace -- URL`` reads neither side faster than the other side reads."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, TransportClosed
from mcpgen.runtime.cli.trace.http_relay import HttpRelay, _Server
from mcpgen.runtime.transports.descriptors import open_sink, open_source
from tests.harness.cancelled_floods import turns_until_it_ends
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

pytestmark = pytest.mark.anyio

NOTICE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}' % (b"x" * 1000)
LIMITS = ClientLimits(max_buffered_bytes=10_000, stdin_seconds=0.1)
MANY = 5000


class FakeChannel:
    """A channel to a server that sends as long as the relay is ready, and reads as long as it has room."""

    def __init__(self, to_send: int, room: int) -> None:
        self.sent = 0
        self.taken: list[bytes] = []
        self.room = room
        self.stderr = ""
        self._to_send = to_send
        self._changed = anyio.Event()

    @property
    def is_full(self) -> bool:
        return len(self.taken) >= self.room

    def write(self, message: bytes) -> None:
        self.taken.append(message)

    async def drain(self) -> None:
        while self.is_full:
            await self._changed.wait()

    def make_room(self) -> None:
        self.room = MANY + 1
        self._changed.set()

    async def run(self, endpoint: Any, /) -> None:
        while self.sent < self._to_send:
            await endpoint.ready()
            endpoint.receive([NOTICE])
            self.sent += 1
        await anyio.sleep_forever()

    async def close_reason(self) -> TransportClosed:
        raise AssertionError


class FakeTransport:
    """Opens one channel."""

    identity = None
    description = "fake"

    def __init__(self, channel: FakeChannel) -> None:
        self._channel = channel

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[FakeChannel]:
        yield self._channel


class Trace:
    """Receives all messages."""

    def to_server(self, data: bytes) -> None:
        pass

    def to_client(self, data: bytes) -> None:
        pass

    async def stderr(self, data: bytes) -> None:
        raise AssertionError


@contextmanager
def pipes() -> Generator[tuple[int, int, Any]]:
    """Yield the ends of a host, and the streams of the relay."""
    stdin, host_out = os.pipe()
    host_in, stdout = os.pipe()
    source, sink = open_source(stdin), open_sink(stdout)
    try:
        yield host_in, host_out, SimpleNamespace(source=source, sink=sink)
    finally:
        source.close()
        sink.close()
        for each in (stdin, stdout, host_in):
            os.close(each)


async def until_it_rests(count: Any, at_least: int) -> int:
    """Return the count when it is *at_least* as high and has not changed for a while."""
    before = -1
    while (now := count()) < at_least or now != before:
        before = now
        await anyio.sleep(0.1)
    return before


@pytest.mark.slow
async def test_the_server_is_not_read_while_the_host_does_not_read() -> None:
    channel = FakeChannel(MANY, MANY)
    with pipes() as (host_in, host_out, streams), anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(HttpRelay(FakeTransport(channel), streams, Trace(), LIMITS).run)
            rested = await until_it_rests(lambda: channel.sent, 1)
            received = 0
            while received < MANY * (len(NOTICE) + 1):
                received += len(await anyio.to_thread.run_sync(os.read, host_in, 65536))
            os.close(host_out)

    # At most a full pipe, and what the limit allows besides.
    assert rested < 200
    assert MANY == channel.sent


async def test_the_host_is_not_read_while_the_server_does_not_read() -> None:
    channel = FakeChannel(0, 10)
    with pipes() as (_, host_out, streams), anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(HttpRelay(FakeTransport(channel), streams, Trace(), LIMITS).run)
            with os.fdopen(host_out, "wb", buffering=0) as output:
                written = anyio.Event()
                group.start_soon(_write_all, output, written)
                taken = await until_it_rests(lambda: len(channel.taken), 10)
                was_written = written.is_set()
                channel.make_room()
                await written.wait()

    assert 10 == taken
    assert not was_written
    assert MANY == len(channel.taken)


async def test_a_request_that_is_too_long_is_answered() -> None:
    long = b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x":"%s"}}\n' % (b"x" * 2000)
    with pipes() as (host_in, host_out, streams), anyio.fail_after(PATIENCE_SECONDS):
        limits = ClientLimits(max_frame_bytes=1000, stdin_seconds=0.1)
        async with anyio.create_task_group() as group:
            group.start_soon(HttpRelay(FakeTransport(FakeChannel(0, 10)), streams, Trace(), limits).run)
            await anyio.to_thread.run_sync(os.write, host_out, long)
            with anyio.fail_after(BUSY_SECONDS):
                await anyio.wait_readable(host_in)
            answer = json.loads(os.read(host_in, 65536))
            os.close(host_out)

    assert "a" == answer["id"]
    assert "max_frame_bytes" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("batch", "taken"),
    [
        (
            b'[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"a"}, 3]',
            [b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","method":"a"}', b"3"],
        ),
        (
            b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]',
            [b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]'],
        ),
    ],
    ids=["with a request", "of answers"],
)
async def test_the_requests_of_a_batch_are_sent_one_by_one(batch: bytes, taken: list[bytes]) -> None:
    channel = FakeChannel(0, 10)
    with pipes() as (_, host_out, streams), anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(HttpRelay(FakeTransport(channel), streams, Trace(), LIMITS).run)
            os.write(host_out, batch + b"\n")
            os.close(host_out)

    assert taken == channel.taken


async def _write_all(output: Any, written: anyio.Event) -> None:
    await anyio.to_thread.run_sync(output.write, (NOTICE + b"\n") * MANY)
    written.set()


@pytest.mark.parametrize("wait", [_Server.all_answered, lambda server: server.below(1)], ids=["answers", "host"])
async def test_a_wait_can_be_cancelled_while_the_server_sends_in_each_turn(
    wait: Callable[[_Server], Awaitable[None]],
) -> None:
    server = _Server(Trace(), MANY, MANY)
    server.note_requests(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}')
    server.receive([NOTICE])

    assert await turns_until_it_ends(lambda: wait(server), lambda _: server.receive([NOTICE])) < 20
