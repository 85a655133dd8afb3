"""Two endpoints in one process, or one and a test: in order, without copies, and bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen.runtime.errors import TransportClosed
from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol.framing import OversizedLine
from mcpgen.runtime.transports import memory
from tests.harness.echo_server import EchoServer
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.transports.interfaces import MessageWriter
    from mcpgen.runtime.transports.spawner import Spawner

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class Listener:
    """A side that only notes what it gets."""

    writer: Any = None
    chunks: list[Sequence[Frame | OversizedLine]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    got: anyio.Event = field(default_factory=anyio.Event)

    def connect(self, writer: MessageWriter, spawner: Spawner) -> Listener:
        del spawner
        self.writer = writer
        return self

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        self.chunks.append(frames)
        self.got.set()

    def end_of_input(self) -> None:
        self.told.append("end")

    async def wait_finished(self) -> None:
        self.told.append("finished")

    def close(self) -> None:
        self.told.append("closed")

    async def received(self, count: int) -> list[Frame | OversizedLine]:
        while sum(map(len, self.chunks)) < count:
            self.got = anyio.Event()
            await self.got.wait()
        return [each for chunk in self.chunks for each in chunk]


async def test_what_one_side_writes_the_other_receives_and_answers() -> None:
    listener = Listener()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.pair(listener, EchoServer()):
            listener.writer.write(b'{"id":1,"do":"echo","with":"a"}')
            listener.writer.write(b'{"id":2,"do":"length","with":"abc"}')

            assert [b'{"id":1,"done":"a"}', b'{"id":2,"done":3}'] == sorted(await listener.received(2))  # type: ignore[type-var] # (bytes)


async def test_a_message_is_not_copied() -> None:
    one, other = Listener(), Listener()
    message = b'{"id":1}'
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.pair(one, other):
            one.writer.write(message)
            (received,) = await other.received(1)

    assert received is message


async def test_messages_arrive_in_their_order_and_never_within_the_write() -> None:
    one, other = Listener(), Listener()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.pair(one, other):
            for number in range(100):
                one.writer.write(b"%d" % number)
            assert [] == other.chunks

            assert [b"%d" % number for number in range(100)] == await other.received(100)
    assert 1 == len(other.chunks)


async def test_too_long_a_message_arrives_as_such() -> None:
    one, other = Listener(), Listener()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.pair(one, other, max_frame_bytes=10):
            one.writer.write(b"x" * 10)
            one.writer.write(b"y" * 11)

            assert [b"x" * 10, OversizedLine(11, 10, b"y" * 11, b"y" * 11)] == await other.received(2)


async def test_a_writer_is_full_until_what_it_wrote_was_received_and_two_never_wait_for_each_other() -> None:
    one, other = Listener(), Listener()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.pair(one, other, max_queued_bytes=100):
            one.writer.write(b"x" * 100)
            other.writer.write(b"y" * 100)
            assert one.writer.is_full
            await one.writer.drain()
            await other.writer.drain()

            assert not one.writer.is_full


async def test_at_the_end_both_sides_are_told() -> None:
    one, other = Listener(), Listener()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.pair(one, other):
            pass
    one.writer.write(b"too late")

    assert ["end", "finished", "closed", "finished"] == one.told == other.told


async def test_the_error_of_a_block_comes_out_plain() -> None:
    with pytest.raises(KeyError, match="plain"):
        async with memory.pair(Listener(), EchoServer()):
            raise KeyError("plain")
    with pytest.raises(KeyError, match="plain"):
        async with memory.wire(EchoServer()):
            raise KeyError("plain")


async def test_a_test_sends_values_or_bytes_and_receives_answers() -> None:
    async with memory.wire(EchoServer()) as wire:
        await wire.send({"id": 1, "do": "echo", "with": ["a"]})
        assert {"id": 1, "done": ["a"]} == await wire.receive()
        await wire.send(b'{"id":2,"do":"length","with":"abc"}')
        assert b'{"id":2,"done":3}' == await wire.receive_bytes()


async def test_a_wire_runs_the_server_as_long_as_it_is_open() -> None:
    server = EchoServer()
    async with memory.wire(server) as wire:
        await wire.send({"id": 1, "do": "echo"})
        await wire.receive()
        assert server.is_running
    (endpoint,) = server.endpoints

    assert (False, True, True) == (server.is_running, endpoint.is_ended, endpoint.is_closed)


async def test_a_chunk_is_handed_over_at_once() -> None:
    server = EchoServer()
    async with memory.wire(server) as wire:
        await wire.send_all({"id": 1, "do": "echo"}, b'{"id":2,"do":"echo"}')
        answers = [await wire.receive(), await wire.receive()]

    assert [1, 2] == sorted(each["id"] for each in answers)
    assert [[b'{"id":1,"do":"echo"}', b'{"id":2,"do":"echo"}']] == server.endpoints[0].received


async def test_other_tasks_have_their_turns_while_messages_are_there() -> None:
    taken = anyio.Event()

    async def take_a_turn() -> None:
        taken.set()

    async with memory.wire(EchoServer()) as wire, anyio.create_task_group() as group:
        await wire.send_all(*({"id": number, "do": "echo"} for number in range(4)))
        await anyio.wait_all_tasks_blocked()
        group.start_soon(take_a_turn)
        for _ in range(4):
            await wire.receive()
        assert taken.is_set()


async def test_the_servers_limits_hold_on_a_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_WAIT_SECONDS", 0.05)
    async with memory.wire(EchoServer(Limits(max_frame_bytes=50, max_buffered_bytes=1000))) as wire:
        await wire.send(b"x" * 51)
        assert {"oversized": 51} == await wire.receive()
        await wire.send({"id": 1, "do": "fill", "with": 1000})
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        with pytest.raises(TimeoutError):
            await wire.send({"id": 2, "do": "echo"})
        assert 1 == (await wire.receive())["id"]
        await wire.send({"id": 3, "do": "echo"})
        assert 3 == (await wire.receive())["id"]


async def test_at_the_end_of_the_input_running_handlers_still_answer() -> None:
    async with memory.wire(EchoServer()) as wire:
        await wire.send({"id": 1, "do": "length", "with": "abc"})
        await wire.end_input()

        assert {"id": 1, "done": 3} == await wire.receive()
        with pytest.raises(TransportClosed):
            await wire.receive()
        with pytest.raises(TransportClosed):
            await wire.send({"id": 2, "do": "echo"})


async def test_handlers_that_do_not_end_are_cancelled(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory, "_GRACE_SECONDS", 0.01)
    async with memory.wire(EchoServer()) as wire:
        await wire.send({"id": 1, "do": "wait"})
        await anyio.lowlevel.checkpoint()

    assert "waiting\ncancelled\n" == capfd.readouterr().err


async def test_a_test_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_WAIT_SECONDS", 0.01)
    async with memory.wire(EchoServer()) as wire:
        with pytest.raises(TimeoutError):
            await wire.receive()
