"""What stands between a host and a server: how its server ends in any case, and that nothing is lost or held."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator  # noqa: TC003 (pytest looks at it)
from typing import Final

import anyio
import anyio.lowlevel
import pytest

from mcpgen.runtime.cli.trace import stdio_relay
from mcpgen.runtime.cli.trace.output_buffer import OutputBuffer
from mcpgen.runtime.cli.trace.stdio_relay import StdioRelay
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.transports.descriptors import Sink, Source, open_sink, open_source
from mcpgen.runtime.transports.process_transport import Process
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.turns import Turns, counted_turns

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's")

DEAF: Final = "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"


class Host:
    """The near ends of our standard streams, and the far ones."""

    source: Source
    sink: Sink

    def __init__(self) -> None:
        self._in, self.stdin = os.pipe()
        self.stdout, self._out = os.pipe()
        self.source, self.sink = open_source(self._in), open_sink(self._out)

    def close(self) -> None:
        self.source.close()
        self.sink.close()
        for each in (self._in, self.stdin, self.stdout, self._out):
            os.close(each)


class Eyes:
    """Sees what goes through."""

    def __init__(self) -> None:
        self.said = b""
        self.has_said = anyio.Event()

    def to_server(self, data: bytes) -> None:
        pass

    def to_client(self, data: bytes) -> None:
        self.said += data
        self.has_said.set()

    async def stderr(self, data: bytes) -> None:
        pass


@pytest.fixture
def host() -> Generator[Host]:
    made = Host()
    yield made
    made.close()


def relay_of(host: Host, eyes: Eyes, program: str) -> StdioRelay:
    return StdioRelay(Process([sys.executable, "-c", program]), host, eyes, ClientLimits())


def test_the_server_does_not_outlive_a_relay_that_is_cancelled(host: Host) -> None:
    async def run() -> StdioRelay:
        eyes = Eyes()
        relay = relay_of(host, eyes, DEAF)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(relay.run)
                await eyes.has_said.wait()
                group.cancel_scope.cancel()
        return relay

    assert -9 == anyio.run(run).status


def test_the_second_stop_is_immediate(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_relay, "_STOP_SECONDS", 2 * BUSY_SECONDS)  # what it would get otherwise

    async def run() -> tuple[int | None, float]:
        eyes = Eyes()
        relay = relay_of(host, eyes, DEAF)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(relay.run)
                await eyes.has_said.wait()
                begin = anyio.current_time()
                relay.stop()
                relay.stop()
        return relay.status, anyio.current_time() - begin

    status, took = anyio.run(run)
    assert -9 == status
    assert took < BUSY_SECONDS


@pytest.mark.slow
def test_what_was_said_last_waits_for_a_host_that_reads_slowly(host: Host) -> None:
    size = 200_000  # more than both pipes and we ourselves hold

    async def run() -> int:
        eyes = Eyes()
        relay = relay_of(host, eyes, f"import sys; sys.stdout.write('x' * {size}); sys.stdout.flush()")
        read = 0
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(relay.run)
                await eyes.has_said.wait()
                while read < size:
                    await anyio.sleep(0.3)  # what is tested is that we are slow
                    read += len(os.read(host.stdout, 65536))
        return read

    assert size == anyio.run(run)


def test_a_turn_of_the_loop_looks_at_few_of_many_short_lines(host: Host) -> None:
    size = 60_000  # what one read has

    class Slices(Eyes):
        def __init__(self, turns: Turns) -> None:
            super().__init__()
            self.by_turn: dict[int, int] = {}
            self._turns = turns

        def to_client(self, data: bytes) -> None:
            super().to_client(data)
            self.by_turn[self._turns.count] = self.by_turn.get(self._turns.count, 0) + len(data)

    async def run() -> dict[int, int]:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with counted_turns() as turns, anyio.create_task_group() as group:
                eyes = Slices(turns)
                relay = relay_of(host, eyes, f"import os; os.write(1, b'1\\n' * {size // 2})")
                group.start_soon(relay.run)
                while len(eyes.said) < size:
                    await eyes.has_said.wait()
                    await anyio.lowlevel.checkpoint()
                    os.read(host.stdout, 65536)
        return eyes.by_turn

    by_turn = anyio.run(run)
    assert size == sum(by_turn.values())
    assert max(by_turn.values()) <= 8192


@pytest.mark.slow
def test_a_host_that_reads_nothing_does_not_keep_us(host: Host) -> None:
    flood = "import os\nwhile True: os.write(1, b'x' * 65536)"

    async def run() -> int | None:
        limits = ClientLimits(stdin_seconds=0.2, term_seconds=5)
        relay = StdioRelay(Process([sys.executable, "-c", flood]), host, Eyes(), limits)
        os.close(host.stdin)
        host.stdin = os.open(os.devnull, os.O_RDONLY)  # for `close`
        with anyio.fail_after(PATIENCE_SECONDS):
            await relay.run()
        return relay.status

    assert -15 == anyio.run(run)


@pytest.mark.slow
def test_what_holds_the_output_open_does_not_keep_us(host: Host) -> None:
    program = f"import subprocess; subprocess.Popen(['sleep', '{2 * BUSY_SECONDS:g}'], start_new_session=True)"

    async def run() -> float:
        begin = anyio.current_time()
        with anyio.fail_after(PATIENCE_SECONDS):
            await relay_of(host, Eyes(), program).run()
        return anyio.current_time() - begin

    assert anyio.run(run) < BUSY_SECONDS


@pytest.mark.slow
def test_output_that_is_not_read_is_skipped_when_the_buffer_is_full() -> None:
    far, near = os.pipe()
    piece = b"x" * 1_000_000 + b"\n"

    async def run() -> bytes:
        output = OutputBuffer(near, lambda count: b"(%d skipped)\n" % count)
        for _ in range(30):
            output.write(piece)
        read = b""
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(output.run)
                while len(read) < 17 * len(piece):
                    await anyio.wait_readable(far)
                    read += os.read(far, 1 << 20)
                await output.flushed()
                output.write(b"again\n")
                await output.flushed()
                group.cancel_scope.cancel()
        read += os.read(far, 1 << 20)
        output.close()
        return read

    assert 17 * piece + b"(13 skipped)\nagain\n" == anyio.run(run)
    os.close(far)
    os.close(near)


def test_an_output_without_a_reader_holds_nothing() -> None:
    far, near = os.pipe()

    async def run() -> None:
        output = OutputBuffer(near, lambda _: b"")
        os.close(far)
        output.write(b"x")
        with anyio.fail_after(PATIENCE_SECONDS):
            await output.flushed()
        output.close()

    anyio.run(run)
    os.close(near)
