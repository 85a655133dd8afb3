"""Whole programs with a client: interrupted, terminated, killed, forked, or at their end without having closed it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.faults import hostile_server
from tests.faults.hostile_server_clients import PATIENCE_SECONDS
from tests.harness import child_programs
from tests.patience import BUSY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.usefixtures("no_process_is_left"),
    pytest.mark.parametrize("backend", ["asyncio", "trio"]),
    pytest.mark.slow,
]

LEAVE_SECONDS: Final = BUSY_SECONDS  # for the end of a program and its server

PREAMBLE: Final = """
import asyncio, gc, os, signal, sys, threading, time
from contextlib import AsyncExitStack
from functools import partial
import anyio
from mcpgen import *
from mcpgen.runtime.protocol.newest import models

MARK, VILLAIN, BACKEND = sys.argv[1:4]
LIMITS = ClientLimits(stdin_seconds=0.5, term_seconds=0.5)

# A client that offers both eras logs a hint if the server takes two seconds to start.
connect = partial(connect, revisions=["2026-07-28"])

def target(code):
    return Process([sys.executable, "-I", "-S", VILLAIN, code], environment={MARK: "1"})

def ready():
    print("ready", flush=True)

GOOD = "greet()\\nserve()"
ASKING = '''
greet()
call = asked()
ask(1, "elicitation/create", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
ignore_all()
'''
"""


def _heed_signals() -> None:
    for each in (signal.SIGINT, signal.SIGHUP):  # which a shell, or nohup, has ignored for what runs in the background
        signal.signal(each, signal.SIG_DFL)


class Script:
    """A program of ours."""

    def __init__(self, code: str, backend: str) -> None:
        root = Path(__file__).parents[2] / ".package"
        self.popen = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + code, child_programs.MARK, str(Path(hostile_server.__file__)), backend],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1"},
            preexec_fn=_heed_signals,  # noqa: PLW1509 (nothing else runs in this process)
        )

    def ready(self) -> None:
        """Return when it says that it is."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert b"ready\n" == line, self.end()

    def end(self) -> tuple[int, str, float]:
        """Wait for its end; return its status, what it has printed as errors, and how long that took."""
        begin = time.monotonic()
        _, stderr = self.popen.communicate(timeout=PATIENCE_SECONDS)
        return self.popen.returncode, stderr.decode(), time.monotonic() - begin

    def send(self, number: int) -> tuple[int, str, float]:
        """Send it a signal, and wait for its end."""
        self.popen.send_signal(number)
        return self.end()


@pytest.fixture(autouse=True)
def scripts_end() -> Generator[None]:
    yield
    for each in _SCRIPTS:
        with suppress(ProcessLookupError):
            each.popen.kill()
        each.popen.wait()
        for stream in (each.popen.stdout, each.popen.stderr):
            if stream is not None:
                stream.close()
    _SCRIPTS.clear()


_SCRIPTS: list[Script] = []


def script(code: str, backend: str) -> Script:
    made = Script(code, backend)
    _SCRIPTS.append(made)
    return made


def gone() -> bool:
    """Return whether the servers end soon."""
    until = time.monotonic() + LEAVE_SECONDS
    while (left := child_programs.marked()) and time.monotonic() < until:
        time.sleep(0.01)
    return not left


BUSY = {
    "connecting": """
async def main():
    ready()
    async with connect(target("ignore_all()"), limits=LIMITS):
        pass
""",
    "calling": """
async def main():
    async with connect(target("greet()\\nignore_all()"), limits=LIMITS) as client:
        ready()
        await client.call_tool("x")
""",
    "doing nothing": """
async def main():
    async with connect(target(GOOD), limits=LIMITS) as client:
        ready()
        await anyio.sleep_forever()
""",
    "in a handler": """
async def elicit(params, context):
    ready()
    await anyio.sleep_forever()

async def main():
    async with connect(target(ASKING), revisions=["2025-06-18"], elicit=elicit, limits=LIMITS) as client:
        await client.call_tool("x")
""",
    "told of progress": """
async def slow(*_):
    ready()
    await anyio.sleep_forever()

async def main():
    code = "greet()\\ncall = asked()\\ntell('notifications/progress', progress=1, " \\
           "progressToken=call['params']['_meta']['progressToken'])\\nignore_all()"
    async with connect(target(code), limits=LIMITS) as client:
        await client.call_tool("x", on_progress=slow)
""",
    "with a stubborn server": """
async def main():
    async with connect(target("greet()\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nforever()"), limits=LIMITS):
        ready()
        await anyio.sleep_forever()
""",
    "with ten servers": """
async def main():
    async with AsyncExitStack() as stack:
        for _ in range(10):
            await stack.enter_async_context(connect(target(GOOD), limits=LIMITS))
        ready()
        await anyio.sleep_forever()
""",
}
RUN = "\nanyio.run(main, backend=BACKEND)\n"


@pytest.mark.parametrize("doing", BUSY)
def test_an_interrupt_is_an_interrupt_and_nothing_else(doing: str, backend: str) -> None:
    made = script(BUSY[doing] + RUN, backend)
    made.ready()
    time.sleep(0.05)
    status, stderr, took = made.send(signal.SIGINT)

    assert gone()
    assert -signal.SIGINT == status
    assert "KeyboardInterrupt" == stderr.strip().splitlines()[-1]
    assert "never awaited" not in stderr
    assert took < LEAVE_SECONDS


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 20, 40, 60, 100])
def test_an_interrupt_while_it_connects_leaves_nothing(milliseconds: int, backend: str) -> None:
    made = script("async def main():\n    ready()\n    async with connect(target(GOOD), limits=LIMITS):\n"
                  "        await anyio.sleep_forever()\n" + RUN, backend)  # fmt: skip
    made.ready()
    time.sleep(milliseconds / 1000)
    status, stderr, took = made.send(signal.SIGINT)

    assert gone()
    assert (-signal.SIGINT, "KeyboardInterrupt") == (status, stderr.strip().splitlines()[-1])
    assert took < LEAVE_SECONDS


@pytest.mark.parametrize("where", ["handler", "log"])
def test_an_interrupt_of_a_busy_handler_ends_the_program(where: str, backend: str) -> None:
    code = """
def busy(params, context):
    ready()
    until = time.monotonic() + 0.4
    while time.monotonic() < until:
        pass
    return models.ElicitResult(action="cancel")

async def main():
    telling = "greet()\\ntell('notifications/message', level='info', data=1)\\nignore_all()"
    code = ASKING if WHERE == "handler" else telling
    async with connect(target(code), revisions=["2025-06-18"], elicit=busy, log=busy, limits=LIMITS) as client:
        await client.call_tool("x")
"""
    made = script(f"WHERE = {where!r}\n" + code + RUN, backend)
    made.ready()
    status, stderr, took = made.send(signal.SIGINT)

    assert gone()
    assert -signal.SIGINT == status, stderr
    assert took < LEAVE_SECONDS + 1


@pytest.mark.parametrize("doing", BUSY)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_program_that_is_ended_from_outside_takes_its_good_servers_with_it(
    number: signal.Signals, doing: str, backend: str
) -> None:
    if "stubborn" in doing:
        pytest.skip("nobody is left to end it")
    made = script(BUSY[doing] + RUN, backend)
    made.ready()
    status, stderr, took = made.send(number)

    assert gone()
    assert (-number, "") == (status, stderr)
    assert took < 1 + BUSY_SECONDS


ENDS = {
    "main returns": """
async def main():
    client = await connect(target(GOOD), limits=LIMITS)
    await client.call_tool("x")
""",
    "main fails": """
async def main():
    client = await connect(target(GOOD), limits=LIMITS)
    await client.call_tool("x")
    sys.exit(5)
""",
    "sys.exit in the block": """
async def main():
    async with connect(target(GOOD), limits=LIMITS):
        sys.exit(5)
""",
    "os._exit": """
async def main():
    client = await connect(target(GOOD), limits=LIMITS)
    os._exit(5)
""",
    "sys.exit in a handler of a demand": """
def elicit(params, context):
    sys.exit(5)

async def main():
    code = '''
greet()
form = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
wishes = {"a": {"method": "elicitation/create", "params": form}}
answer(asked(), {"resultType": "input_required", "inputRequests": wishes})
ignore_all()
'''
    async with connect(target(code), revisions=["2026-07-28"], elicit=elicit, limits=LIMITS) as client:
        await client.call_tool("x")
""",
    "sys.exit in on_progress": """
def leave(*_):
    sys.exit(5)

async def main():
    code = "greet()\\ncall = asked()\\ntell('notifications/progress', progress=1, " \\
           "progressToken=call['params']['_meta']['progressToken'])\\nignore_all()"
    async with connect(target(code), limits=LIMITS) as client:
        await client.call_tool("x", on_progress=leave)
""",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_program_that_ends_without_closing_takes_its_servers_with_it(how: str, backend: str) -> None:
    status, stderr, took = script(ENDS[how] + RUN, backend).end()

    assert gone()
    assert (0 if how == "main returns" else 5, "") == (status, stderr)
    assert took < LEAVE_SECONDS + 1


def test_a_program_that_forks_while_connected_closes_as_ever(backend: str) -> None:
    code = """
async def main():
    limits = ClientLimits(stdin_seconds=0.5, term_seconds=60)  # no end of input comes, so SIGTERM ends the server
    async with connect(target("greet()\\nserve()"), limits=limits) as client:
        await client.call_tool("x")
        pid = os.fork()
        if not pid:
            time.sleep(60)  # holds the other end of all pipes
            os._exit(0)
        await client.call_tool("x")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""
    status, stderr, took = script(code + RUN, backend).end()

    assert gone()
    assert (0, "") == (status, stderr)
    assert took < LEAVE_SECONDS + 1


def test_a_child_that_was_forked_does_not_end_the_server(backend: str) -> None:
    code = """
async def main():
    async with connect(target(GOOD), limits=LIMITS) as client:
        await client.call_tool("x")
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        await client.call_tool("x")
"""
    status, stderr, _ = script(code + RUN, backend).end()

    assert gone()
    assert (0, "") == (status, stderr)


def test_loops_one_after_the_other_have_clients_of_their_own(backend: str) -> None:
    code = """
async def main():
    async with connect(target(GOOD), limits=LIMITS) as client:
        await client.call_tool("x")

for _ in range(5):
    anyio.run(main, backend=BACKEND)
"""
    status, stderr, _ = script(code, backend).end()

    assert gone()
    assert (0, "") == (status, stderr)


def test_a_program_without_standard_streams_can_have_clients(backend: str) -> None:
    code = """
for fd in range(3):
    os.close(fd)

async def main():
    async with connect(target(GOOD), limits=LIMITS) as client:
        await client.call_tool("x")
    os._exit(17)
"""
    status, _, _ = script(code + RUN, backend).end()

    assert gone()
    assert 17 == status


def test_a_program_that_ignores_its_children_can_have_clients(backend: str) -> None:
    code = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

async def main():
    async with connect(target("greet()\\ntext(asked(), 'ok')\\nos._exit(3)"), limits=LIMITS) as client:
        await client.call_tool("x")
        try:
            await client.call_tool("x")
        except ServerExited as error:
            assert error.status in (None, 3)
"""
    status, stderr, _ = script(code + RUN, backend).end()

    assert gone()
    assert (0, "") == (status, stderr)
