"""A server that knows nothing of MCP, to test transports with; as a program, it serves on its standard streams.

A frame is ``{"id": …, "do": …, "with": …}``, and the answer ``{"id": …, "done": …}``.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol.framing import OversizedLine
from mcpgen.runtime.transports import stdio_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.transports.interfaces import MessageWriter
    from mcpgen.runtime.transports.spawner import Spawner, StartedFunction

CHILD = "import os, sys; print(repr(sys.stdin.read()), sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"


def say(text: str) -> None:
    """Write to standard error at once, for the test that reads it."""
    with suppress(OSError):  # there is none
        os.write(2, text.encode() + b"\n")


async def echo(given: Any) -> Any:
    return given


async def length(given: Any) -> int:
    await anyio.lowlevel.checkpoint()
    return len(given)


async def fill(size: int) -> str:
    return "x" * size


async def printing(text: str) -> None:
    print(text, "by print")  # noqa: T201 (what is tested)
    ctypes.CDLL(None).puts(f"{text} by C".encode())
    os.write(1, f"{text} by descriptor\n".encode())


async def child(_: Any) -> str:
    """Return what a child finds: what it can read, and which descriptors it has."""
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True, check=True)
    )
    return done.stdout


async def fork(_: Any) -> int:
    """Return the process id of a child that lives on."""
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    multiprocessing.process._children.clear()  # type: ignore[attr-defined]
    return process.pid or 0


async def terminate(times: int) -> list[int | None]:
    """Start *times* processes, one after the other, and end each at once; return their different statuses."""
    statuses = set()
    for _ in range(times):
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        process.start()
        process.terminate()
        process.join()
        statuses.add(process.exitcode)
    return [*statuses]


async def wait(_: Any) -> None:
    try:
        say("waiting")
        await anyio.sleep_forever()
    finally:
        say("cancelled")


async def swallow(_: Any) -> None:
    say("waiting")
    while True:
        try:
            await anyio.sleep(3600)
        except BaseException:  # noqa: BLE001 (a bad handler is what is tested)
            say("swallowed")


async def hang(_: Any) -> None:
    def hanging() -> None:
        say("waiting")
        time.sleep(60)

    await anyio.to_thread.run_sync(hanging, abandon_on_cancel=True)


async def block(_: Any) -> None:
    say("waiting")
    time.sleep(60)  # noqa: ASYNC251 (a bad handler is what is tested)


async def deafen(_: Any) -> None:
    """Have signals handled while the main thread waits and is not woken, as may happen to it by bad luck."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})


async def crash(_: Any) -> None:
    raise RuntimeError("as told")


async def leave(_: Any) -> None:
    sys.exit(3)


DOING: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "block": block,
    "child": child,
    "crash": crash,
    "deafen": deafen,
    "echo": echo,
    "fill": fill,
    "fork": fork,
    "hang": hang,
    "leave": leave,
    "length": length,
    "print": printing,
    "swallow": swallow,
    "terminate": terminate,
    "wait": wait,
}


class EchoEndpoint:
    """Does what frames say, and remembers how it was driven."""

    def __init__(self, writer: MessageWriter, spawner: Spawner) -> None:
        self.writer = writer
        self.received: list[Sequence[Frame | OversizedLine]] = []
        self.is_ended = False
        self.is_closed = False
        self._spawner = spawner
        self._running: dict[int, StartedFunction | None] = {}
        self._last_key = 0
        self._idle: anyio.Event | None = None

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        self.received.append(frames)
        for each in frames:
            if isinstance(each, OversizedLine):
                self.writer.write(msgspec.json.encode({"oversized": each.size_bytes}))
                continue
            self._last_key += 1
            key = self._last_key
            self._running[key] = None
            handle = self._spawner.start(self._do, key, each)
            if key in self._running:
                self._running[key] = handle

    async def _do(self, key: int, frame: Frame) -> None:
        try:
            try:
                asked = msgspec.json.decode(frame)
            except msgspec.DecodeError:
                self.writer.write(b'{"malformed":%d}' % len(frame))
                return
            done = await DOING[asked["do"]](asked.get("with"))
            self.writer.write(msgspec.json.encode({"id": asked["id"], "done": done}))
        finally:
            del self._running[key]
            if not self._running and self._idle is not None:
                self._idle.set()

    def end_of_input(self) -> None:
        self.is_ended = True

    async def wait_finished(self) -> None:
        while self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

    def close(self) -> None:
        self.is_closed = True
        for handle in list(self._running.values()):
            if handle is not None:
                handle.cancel()


class EchoServer:
    """What makes such endpoints."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = Limits() if limits is None else limits
        self.endpoints: list[EchoEndpoint] = []
        self.is_running = False

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[EchoServer]:
        self.is_running = True
        try:
            yield self
        finally:
            self.is_running = False

    def connect(self, writer: MessageWriter, spawner: Spawner) -> EchoEndpoint:
        self.endpoints.append(EchoEndpoint(writer, spawner))
        return self.endpoints[-1]


if __name__ == "__main__":
    print("before serving")  # noqa: T201 (what is tested)
    limits = Limits(grace_seconds=float(sys.argv[2])) if sys.argv[2:] else None
    stdio_server.run(EchoServer(limits), backend=sys.argv[1])
    say("run returned")
