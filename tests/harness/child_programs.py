"""Programs that are servers as far as a process goes, a client of them, and the certainty that none is left behind."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio
import msgspec

from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.transports.process_transport import Process
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.transports.interfaces import Channel

# What our processes, and those that they start, have in their environment.
MARK: Final = f"MCPGEN_TESTED_BY_{uuid4().hex}"

# How long servers get, so that the tests of those that do not end take little time.
LIMITS: Final = ClientLimits(stdin_seconds=0.2, term_seconds=0.3)


_PREAMBLE: Final = """
import json, os, signal, subprocess, sys, time

def say(value):
    os.write(1, json.dumps(value).encode() + b"\\n")

def note(text):
    with open(os.environ["NOTES"], "a") as file:
        file.write(text + "\\n")

def start(code, **options):  # a child with the same preamble; returns its number
    argv = [sys.executable, "-I", "-S", "-c", PREAMBLE + code]
    return subprocess.Popen(argv, env={**os.environ, "PREAMBLE": PREAMBLE}, **options).pid

def on_term(action):  # To end, it calls os._exit: Python ignores SystemExit if the signal comes in Popen.__del__.
    signal.signal(signal.SIGTERM, lambda *_: action())

def forever():
    while True:
        time.sleep(60)

PREAMBLE = os.environ["PREAMBLE"]
"""


def server(code: str) -> list[str]:
    """Return the command of a program with the preamble's functions."""
    return [sys.executable, "-I", "-S", "-c", _PREAMBLE + textwrap.dedent(code)]


class Listener:
    """An endpoint that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[Frame | OversizedLine] = []
        self._changed = anyio.Event()

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        self.heard += frames
        self._changed.set()
        self._changed = anyio.Event()

    async def messages(self, number: int) -> list[Any]:
        """Return the first *number* messages, when they have come."""
        while len(self.heard) < number:
            await self._changed.wait()
        return [msgspec.json.decode(each) for each in self.heard[:number] if isinstance(each, bytes)]

    def end_of_input(self) -> None:
        pass

    async def wait_finished(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Talk:
    """A client at work."""

    channel: Channel
    listener: Listener
    over: anyio.Event  # nothing more will come

    async def hear(self) -> Any:
        """Return the first message."""
        return (await self.listener.messages(1))[0]


def process(command: str | Sequence[str], notes: Path | None = None, **options: Any) -> Process:
    """Return a marked process, which may take notes."""
    environment = {MARK: "1", "PREAMBLE": _PREAMBLE, "NOTES": str(notes), **options.pop("environment", {})}
    return Process(command, environment=environment, **options)


@asynccontextmanager
async def talking(made: Process, limits: ClientLimits = LIMITS) -> AsyncGenerator[Talk]:
    """Open *made* and run it within the block."""
    async with AsyncExitStack() as stack:
        stack.enter_context(anyio.fail_after(PATIENCE_SECONDS))
        channel = await stack.enter_async_context(made.open(limits))
        group = await stack.enter_async_context(anyio.create_task_group())
        talk = Talk(channel, Listener(), anyio.Event())

        async def run() -> None:
            await channel.run(talk.listener)
            talk.over.set()

        group.start_soon(run)
        yield talk
        group.cancel_scope.cancel()


async def tell(made: Process, limits: ClientLimits = LIMITS) -> tuple[Any, float]:
    """Return what it says first, and how long it took to end it then."""
    async with talking(made, limits) as talk:
        said = await talk.hear()
        begin = time.monotonic()
    return said, time.monotonic() - begin


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it is not dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    except OSError:
        return False


def is_there(pid: int) -> bool:
    """Whether there is such a process, and be it dead."""
    return Path(f"/proc/{pid}").exists()


def marked() -> list[int]:
    """Return all processes that were started here, directly or not, and still live."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdecimal() and MARK.encode() in (each / "environ").read_bytes():
                found.append(int(each.name))
    return found


def clear(seconds: float = BUSY_SECONDS) -> list[int]:
    """Kill what is left after *seconds*, and return what that was; what was killed may take a moment to end."""
    until = time.monotonic() + seconds
    while (left := marked()) and time.monotonic() < until:
        time.sleep(0.01)
    for pid in left:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return left


async def until(condition: Callable[[], object]) -> None:
    """Return when *condition* holds, of which no event tells."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 (as said above)
            await anyio.sleep(0.001)


def read(notes: Path) -> str:
    """Return what was noted."""
    return notes.read_text(encoding="utf-8")


def own_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (a count, quickly)


def own_zombies() -> list[int]:
    """Return children of ours that nobody has waited for."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdecimal():
                state, parent = (each / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                if state == b"Z" and int(parent) == os.getpid():
                    found.append(int(each.name))
    return found
