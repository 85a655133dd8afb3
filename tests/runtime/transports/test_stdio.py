"""Frames over descriptors: chunks in, one write out, nobody waits, and what other processes share is left as it was."""

from __future__ import annotations

import fcntl
import logging
import os
import select
import socket
import stat
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from mcpgen.runtime.protocol.framing import LineFramer
from mcpgen.runtime.transports import descriptors
from mcpgen.runtime.transports.descriptors import Sink, Source, open_sink, open_source
from mcpgen.runtime.transports.spawner import open_spawner
from mcpgen.runtime.transports.stdio import open_pump
from tests.harness.echo_server import EchoEndpoint
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

    from mcpgen.runtime.transports.pump import Pump

pytestmark = pytest.mark.anyio

KINDS = ("pipe", "foreign pipe", "socket", "terminal")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class Line:
    """A line with two directions; the far ends are the test's."""

    source: int
    sink: int
    far_in: int  # what is written here comes out of the source
    far_out: int  # what is written to the sink comes out here


@contextmanager
def line(kind: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Line]:
    with ExitStack() as stack:
        if kind == "socket":
            near, far = socket.socketpair()
            stack.enter_context(near)
            stack.enter_context(far)
            made = Line(near.fileno(), near.fileno(), far.fileno(), far.fileno())
        elif kind == "terminal":
            (far_in, source), (far_out, sink) = os.openpty(), os.openpty()
            for each in (source, sink):
                raw(each)
            made = Line(source, sink, far_in, far_out)
        else:
            if kind == "foreign pipe":
                monkeypatch.setattr(descriptors, "_reopen", lambda *_: None)
            (source, far_in), (far_out, sink) = os.pipe(), os.pipe()
            made = Line(source, sink, far_in, far_out)
        if kind != "socket":
            for each in (made.source, made.sink, made.far_in, made.far_out):
                stack.callback(close, each)
        os.set_blocking(made.far_in, False)
        os.set_blocking(made.far_out, False)
        yield made


def raw(terminal: int) -> None:
    import tty

    tty.setraw(terminal)


def close(fd: int) -> None:
    with suppress(OSError):  # the test did already
        os.close(fd)


@pytest.fixture(params=KINDS)
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[Line]:
    with line(request.param, monkeypatch) as made:
        yield made


@pytest.fixture
def pipes(monkeypatch: pytest.MonkeyPatch) -> Generator[Line]:
    with line("pipe", monkeypatch) as made:
        yield made


@dataclass
class Talk:
    """A pump at work, and what it is connected with."""

    pump: Pump
    endpoint: EchoEndpoint
    sink: Sink
    over: anyio.Event
    written: list[bytes]  # by each write


@asynccontextmanager
async def talking(
    wire: Line, *, change_source: Callable[[Source], Source] = lambda source: source, **options: Any
) -> AsyncGenerator[Talk]:
    source, sink = change_source(open_source(wire.source)), open_sink(wire.sink)
    written: list[bytes] = []

    def write(data: bytes | memoryview) -> int:
        size = sink.write(data)
        written.append(bytes(data[:size]))
        return size

    async with AsyncExitStack() as stack:
        stack.callback(source.close)
        stack.callback(sink.close)
        stack.enter_context(anyio.fail_after(PATIENCE_SECONDS))
        spawner = await stack.enter_async_context(open_spawner())
        group = await stack.enter_async_context(anyio.create_task_group())
        pump = await stack.enter_async_context(open_pump(source, replace(sink, write=write), **options))
        endpoint = EchoEndpoint(pump, spawner)
        over = anyio.Event()

        async def run() -> None:
            await pump.run(endpoint)
            over.set()

        group.start_soon(run)
        yield Talk(pump, endpoint, sink, over, written)
        group.cancel_scope.cancel()


async def send(wire: Line, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(wire.far_in, rest) :]
        except BlockingIOError:
            await anyio.wait_writable(wire.far_in)


async def lines(wire: Line, count: int) -> list[Any]:
    """Return the next *count* lines that come out, decoded."""
    framer = LineFramer(1 << 30)
    found: list[Any] = []
    while len(found) < count:
        await anyio.wait_readable(wire.far_out)
        found += framer.feed(os.read(wire.far_out, 1 << 20))
    return [msgspec.json.decode(each) for each in found]


def ask(number: int, do: str = "echo", given: object = None) -> bytes:
    return msgspec.json.encode({"id": number, "do": do, "with": given}) + b"\n"


async def test_frames_go_in_and_answers_come_out(wire: Line) -> None:
    async with talking(wire):
        for number in range(3):
            await send(wire, ask(number, "echo", "ä"))

            assert [{"id": number, "done": "ä"}] == await lines(wire, 1)


async def test_what_a_handler_answers_later_comes_out_too(wire: Line) -> None:
    async with talking(wire):
        await send(wire, ask(1, "length", "four"))

        assert [{"id": 1, "done": 4}] == await lines(wire, 1)


async def test_a_frame_may_come_in_pieces(wire: Line) -> None:
    async with talking(wire) as talk:
        for byte in ask(1):
            await send(wire, bytes([byte]))
            await anyio.lowlevel.checkpoint()

        assert [{"id": 1, "done": None}] == await lines(wire, 1)
        assert [[ask(1)[:-1]]] == talk.endpoint.received


@pytest.mark.parametrize("do", ["echo", "length"])
async def test_what_comes_at_once_is_handed_over_at_once_and_answered_with_one_write(pipes: Line, do: str) -> None:
    async with talking(pipes) as talk:
        await send(pipes, b"".join(ask(number, do, "x") for number in range(200)))
        answers = await lines(pipes, 200)

    assert list(range(200)) == sorted(each["id"] for each in answers)
    assert [200] == [len(each) for each in talk.endpoint.received]
    assert 1 == len(talk.written)


@pytest.mark.slow
async def test_hundreds_of_frames_of_one_read_are_handed_over_in_several_turns(pipes: Line) -> None:
    os.write(pipes.far_in, b'{"id":1}\n' * 1000)
    async with talking(pipes) as talk:
        while sum(map(len, talk.endpoint.received)) < 1000:
            await anyio.lowlevel.checkpoint()

    assert 256 == max(map(len, talk.endpoint.received))


@pytest.mark.parametrize(
    ("side", "length", "at_once"), [("client", 6000, 2), ("client", 40_000, 1), ("server", 6000, 10)]
)
async def test_frames_of_many_bytes_of_one_read_are_handed_to_a_client_in_several_turns(
    pipes: Line, side: str, length: int, at_once: int
) -> None:
    sent = (b'{"id":1,"a":"' + b"x" * length + b'"}\n') * (60_000 // length)
    async with talking(pipes, side=side) as talk:
        await send(pipes, sent)
        while sum(map(len, talk.endpoint.received)) < sent.count(b"\n"):
            await anyio.lowlevel.checkpoint()

    assert at_once == max(map(len, talk.endpoint.received))


async def test_long_messages_pass_in_both_directions(wire: Line) -> None:
    async with talking(wire) as talk, anyio.create_task_group() as group:
        group.start_soon(send, wire, ask(1, "echo", "x" * 3_000_000))

        assert [{"id": 1, "done": "x" * 3_000_000}] == await lines(wire, 1)
        assert [[ask(1, "echo", "x" * 3_000_000)[:-1]]] == talk.endpoint.received


async def test_too_long_a_line_is_handed_over_as_such(pipes: Line) -> None:
    async with talking(pipes, max_frame_bytes=100):
        await send(pipes, b"x" * 101 + b"\n" + ask(1))

        assert [{"oversized": 101}, {"id": 1, "done": None}] == sorted(await lines(pipes, 2), key=len)


@pytest.mark.parametrize("kind", ["pipe", "foreign pipe", "socket"])
async def test_the_end_of_the_input_ends_the_run_and_its_last_line(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with line(kind, monkeypatch) as wire:
        async with talking(wire) as talk:
            await send(wire, ask(1) + b'{"id": 2, "do"')
            if kind == "socket":
                far = socket.socket(fileno=os.dup(wire.far_in))
                far.shutdown(socket.SHUT_WR)
                far.close()
            else:
                os.close(wire.far_in)
            await talk.over.wait()

            assert [{"malformed": 14}, {"id": 1, "done": None}] == sorted(await lines(wire, 2), key=str, reverse=True)
            assert not talk.pump.is_abandoned


async def test_a_terminal_that_hangs_up_ends_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with line("terminal", monkeypatch) as wire:
        async with talking(wire) as talk:
            await send(wire, ask(1))
            await lines(wire, 1)
            os.close(wire.far_in)
            await talk.over.wait()


async def test_a_regular_file_is_read_to_its_end_from_where_it_is(pipes: Line, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"read before\n" + b"".join(ask(number, "length", "x" * 5000) for number in range(50)))
    with path.open("rb", buffering=0) as file:
        file.seek(len(b"read before\n"))
        async with talking(replace(pipes, source=file.fileno())) as talk:
            answers = await lines(pipes, 50)
            await talk.over.wait()

    assert [{"id": number, "done": 5000} for number in range(50)] == sorted(answers, key=lambda each: int(each["id"]))


async def test_the_null_device_is_at_its_end() -> None:
    with open(os.devnull, "r+b", buffering=0) as null:  # noqa: ASYNC230, PTH123 (it never waits; a device is no path)
        async with talking(Line(null.fileno(), null.fileno(), -1, -1)) as talk:
            await talk.over.wait()

            assert [] == talk.endpoint.received


async def test_a_regular_file_can_be_written(pipes: Line, tmp_path: Path) -> None:
    path = tmp_path / "output"
    with path.open("wb", buffering=0) as file:
        async with talking(replace(pipes, sink=file.fileno())) as talk:
            await send(pipes, ask(1) + ask(2, "fill", 100_000))
            while not (talk.written and path.stat().st_size > 100_000):
                await anyio.lowlevel.checkpoint()

    assert [{"id": 1, "done": None}, {"id": 2, "done": "x" * 100_000}] == sorted(
        (msgspec.json.decode(each) for each in path.read_bytes().splitlines()), key=lambda each: int(each["id"])
    )


async def test_nothing_is_set_on_what_other_processes_may_share(wire: Line) -> None:
    before = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (wire.source, wire.sink)]
    async with talking(wire):
        await send(wire, ask(1))
        await lines(wire, 1)
        during = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (wire.source, wire.sink)]

    assert before == during
    assert [0, 0] == [flags & os.O_NONBLOCK for flags in during]


async def test_both_given_descriptors_stay_open(wire: Line) -> None:
    async with talking(wire):
        pass

    assert all(os.fstat(fd) for fd in (wire.source, wire.sink))


def open_count() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 (one way on every system)


async def test_what_was_opened_is_closed(wire: Line) -> None:
    async with talking(wire):
        pass
    before = open_count()
    async with talking(wire):
        await send(wire, ask(1))
        await lines(wire, 1)

    assert before == open_count()


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_source_does_not_wait_if_somebody_else_has_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with line(kind, monkeypatch) as wire:
        source = open_source(wire.source)
        try:
            with pytest.raises(BlockingIOError):
                source.read()
        finally:
            source.close()


@pytest.mark.parametrize("kind", ["pipe", "foreign pipe", "socket"])
def test_a_sink_does_not_wait_for_a_reader(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with line(kind, monkeypatch) as wire:
        sink = open_sink(wire.sink)
        size = 0
        with suppress(BlockingIOError):
            while size < 3_000_000:
                size += sink.write(b"x" * 1_000_000)
        sink.close()

        assert select.PIPE_BUF <= size < 3_000_000


def test_what_is_found_in_proc_must_be_the_same_pipe(pipes: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    before = open_count()
    monkeypatch.setattr(os, "open", lambda *_: os.dup(reading))
    source = open_source(pipes.source)
    try:
        assert (pipes.source, before) == (source.fd, open_count())
        assert stat.S_ISFIFO(os.fstat(source.fd).st_mode)
    finally:
        os.close(reading)
        os.close(writing)


async def fill_until_it_waits(wire: Line, talk: Talk, given: bytes) -> int:
    """Send *given* again and again until the pump stops reading; return how often that was."""
    count = 0
    while True:
        try:
            count += os.write(wire.far_in, given) // len(given)
        except BlockingIOError:
            # Full for a moment is not yet full for good: a task that writes may only be about to.
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            if talk.pump.is_full and not select.select([], [wire.far_in], [], 0)[1]:
                return count


async def test_a_peer_that_does_not_read_is_not_read_from(pipes: Line) -> None:
    given = ask(1, "echo", "x" * 900)
    given += b" " * (1023 - len(given)) + b"\n"  # a divisor of PIPE_BUF, so that no write is partial
    async with talking(pipes, max_buffered_bytes=50_000) as talk:
        count = await fill_until_it_waits(pipes, talk, given)
        for _ in range(100):
            await anyio.lowlevel.checkpoint()

        # Full pipes, the buffer, and what one read brings more.
        assert count * 1024 < 2 * 65536 + 50_000 + 2 * 65536
        with anyio.move_on_after(0.05) as scope:
            await talk.pump.drain()
        assert scope.cancelled_caught

        answers = await lines(pipes, count)
        await talk.pump.drain()
        assert count == len(answers)
        assert not talk.pump.is_full


async def test_a_client_reads_whatever_it_has_to_write(pipes: Line) -> None:
    async with talking(pipes, max_buffered_bytes=1000, side="client") as talk:
        talk.pump.write(b'"' + b"x" * 300_000 + b'"')
        await send(pipes, ask(1))
        while not talk.endpoint.received:
            await anyio.lowlevel.checkpoint()

        assert talk.pump.is_full


async def test_a_client_that_is_held_reads_no_more_until_it_is_not(pipes: Line) -> None:
    async with talking(pipes, side="client") as talk:
        await send(pipes, ask(1))
        while not talk.endpoint.received:
            await anyio.lowlevel.checkpoint()
        talk.pump.hold()
        for number in range(2, 6):
            await send(pipes, ask(number))
            talk.pump.write(b"1")  # a write does not make it read
            for _ in range(20):
                await anyio.lowlevel.checkpoint()

        assert len(talk.endpoint.received) <= 2  # on trio, it already waited for the next chunk

        talk.pump.unhold()
        while sum(map(len, talk.endpoint.received)) < 5:
            await anyio.lowlevel.checkpoint()


async def test_flushed_returns_when_all_is_written(wire: Line) -> None:
    async with talking(wire) as talk:
        await talk.pump.flushed()
        talk.pump.write(b'"' + b"x" * 300_000 + b'"')
        with anyio.move_on_after(0.02) as scope:
            await talk.pump.flushed()
        assert scope.cancelled_caught
        await lines(wire, 1)
        await talk.pump.flushed()


async def test_if_nobody_reads_the_run_ends_and_what_is_written_is_dropped(pipes: Line) -> None:
    async with talking(pipes) as talk:
        await send(pipes, ask(1))
        await lines(pipes, 1)
        os.close(pipes.far_out)
        await send(pipes, ask(2))
        await talk.over.wait()
        talk.pump.write(b"{}")

        assert (True, False) == (talk.pump.is_abandoned, talk.pump.is_full)
        await talk.pump.drain()
        await talk.pump.flushed()
        with anyio.fail_after(PATIENCE_SECONDS):
            await talk.pump.run(talk.endpoint)


async def test_who_waits_for_a_peer_that_leaves_goes_on(pipes: Line) -> None:
    async with talking(pipes, max_buffered_bytes=1000) as talk:
        talk.pump.write(b'"' + b"x" * 300_000 + b'"')
        await anyio.lowlevel.checkpoint()
        assert talk.pump.is_full
        os.close(pipes.far_out)
        await talk.pump.drain()
        await talk.over.wait()

        assert talk.pump.is_abandoned


async def test_a_defect_of_the_endpoint_costs_one_chunk_and_not_the_connection(
    pipes: Line, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talking(pipes) as talk:
        working = talk.endpoint.receive

        def failing(frames: object) -> None:
            monkeypatch.setattr(talk.endpoint, "receive", working)
            raise RuntimeError(frames)

        monkeypatch.setattr(talk.endpoint, "receive", failing)
        await send(pipes, ask(1))
        while not caplog.records:
            await anyio.lowlevel.checkpoint()
        await send(pipes, ask(2))

        assert [{"id": 2, "done": None}] == await lines(pipes, 1)
    assert [logging.ERROR] == [each.levelno for each in caplog.records]


async def test_what_cannot_be_watched_is_read_and_written_in_threads(
    pipes: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "_reopen", lambda *_: None)
    monkeypatch.setattr("mcpgen.runtime.transports.descriptors.sys", SimpleNamespace(platform="win32"))
    async with talking(pipes) as talk:
        for number in range(3):
            await send(pipes, ask(number, "fill", 200_000))

            assert [{"id": number, "done": "x" * 200_000}] == await lines(pipes, 1)
        os.close(pipes.far_out)
        await send(pipes, ask(4))
        await send(pipes, ask(5))
        await talk.over.wait()

        assert talk.pump.is_abandoned


async def test_reading_can_be_cancelled_and_writing_goes_on(pipes: Line) -> None:
    async with talking(pipes) as talk:
        await send(pipes, ask(1))
        await lines(pipes, 1)
        with anyio.move_on_after(0.01):
            await talk.over.wait()
        talk.pump.write(b"{}")

        assert [{}] == await lines(pipes, 1)
