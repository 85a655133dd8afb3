"""A function that blocks the event loop for a second is logged with its place, if the server has `debug=True`."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import trio

from mcpgen import Depends, Server, connect
from mcpgen.runtime.server import loop_watchdog
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # a second is a second

# In the time that the watchdog needs at most; a machine that is busy only makes it longer.
BLOCKED_SECONDS = 1.3


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


class Logged(logging.Handler):
    """What the watchdog has logged."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._is_there = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage()
        self._is_there.set()

    def wait(self) -> None:
        """Block the event loop until the watchdog has logged it: a busy machine runs its thread late."""
        self._is_there.wait(PATIENCE_SECONDS)


@pytest.fixture
def logged() -> Generator[Logged]:
    handler = Logged()
    logging.getLogger("mcpgen.handlers").addHandler(handler)
    yield handler
    logging.getLogger("mcpgen.handlers").removeHandler(handler)


def sleep_long() -> None:
    time.sleep(BLOCKED_SECONDS)


def blocking(block: Callable[[], object] = sleep_long, *, debug: bool) -> Server:  # noqa: C901 (a list of functions)
    server = Server("blocking", debug=debug)

    @server.tool
    async def sleep() -> str:
        block()
        return "done"

    @server.tool
    async def in_a_group() -> str:
        async def member() -> None:
            block()

        async with anyio.create_task_group() as group:
            group.start_soon(member)
        return "done"

    async def slow() -> AsyncGenerator[int]:
        block()
        yield 1

    @server.tool
    async def depends(_number: int = Depends(slow)) -> str:
        return "done"

    @server.resource("it:it")
    async def resource() -> str:
        block()
        return "done"

    @server.tool
    def plain() -> str:
        block()
        return "done"

    @server.tool
    async def fair() -> str:
        ends = time.monotonic() + BLOCKED_SECONDS
        while time.monotonic() < ends:
            sum(range(1000))
            await anyio.lowlevel.checkpoint()
        return "done"

    @server.tool
    async def short() -> str:
        time.sleep(0.1)  # noqa: ASYNC251 (the point)
        return "done"

    return server


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sleep", "blocking.<locals>.sleep()"),
        ("depends", "slow()"),
        ("in_a_group", "member()"),
        ("it:it", "resource()"),
    ],
)
async def test_a_function_that_blocks_the_loop_is_logged_with_its_place(
    name: str, function: str, logged: Logged
) -> None:
    async with connect(blocking(logged.wait, debug=True)) as client:
        with anyio.fail_after(PATIENCE_SECONDS):
            await (client.read_resource(name) if ":" in name else client.call_tool(name))

    assert f"{function} has blocked the event loop for about a second, at {__file__}:" in logged.text
    assert " (block()); no other request is served meanwhile; await an asynchronous call" in logged.text


async def test_a_member_of_a_nursery_of_trio_is_logged_with_its_place(anyio_backend_name: str, logged: Logged) -> None:
    if anyio_backend_name == "asyncio":
        pytest.skip("it needs trio")
    server = Server("blocking", debug=True)

    @server.tool
    async def in_a_nursery() -> str:
        async def member() -> None:
            logged.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(member)
        return "done"

    async with connect(server) as client:
        await client.call_tool("in_a_nursery")

    assert "member() has blocked the event loop for about a second" in logged.text


@pytest.mark.parametrize("name", ["plain", "fair"])
async def test_a_function_that_lets_the_loop_go_on_is_not_logged(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with connect(blocking(debug=True)) as client:
        await client.call_tool(name)

    assert "blocked" not in caplog.text


async def test_many_short_functions_are_not_taken_for_a_long_one(caplog: pytest.LogCaptureFixture) -> None:
    async with connect(blocking(debug=True)) as client, anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(client.call_tool, "short")

    assert "blocked" not in caplog.text


@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_a_loop_that_waits_is_not_logged_if_a_busy_machine_wakes_it_late(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    def ask(_call: object) -> None:
        """Ask nothing, as if the loop never answered."""

    watchdog = loop_watchdog._Watchdog(threading.get_ident(), ask)  # pyright: ignore[reportPrivateUsage]
    thread = threading.Thread(target=watchdog.run)

    async def wait() -> None:
        thread.start()
        await anyio.sleep(BLOCKED_SECONDS)
        watchdog.stopped.set()
        await anyio.to_thread.run_sync(thread.join)

    anyio.run(wait, backend=library)

    assert "blocked" not in caplog.text


async def test_only_a_server_in_debug_has_the_watchdog_and_only_while_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    others = set(threading.enumerate())  # the watchdog of an earlier test may not have ended yet

    def watchdogs() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if "watchdog" in each.name and each not in others]

    async with connect(blocking(debug=False)) as client:
        assert [] == watchdogs()
        await client.call_tool("sleep")
    async with connect(blocking(debug=True)):
        (thread,) = watchdogs()
    thread.join(PATIENCE_SECONDS)

    assert not thread.is_alive()
    assert "blocked" not in caplog.text


def test_a_server_without_debug_does_not_import_the_watchdog() -> None:
    code = """
import sys, anyio
from mcpgen import Server, connect
server = Server("it")

@server.tool
async def it() -> str:
    return "it"

async def main():
    async with connect(server) as client:
        await client.call_tool("it")

anyio.run(main)
print(*[each for each in sys.modules if each in ("mcpgen.runtime.server.loop_watchdog", "anyio.from_thread")])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert "\n" == found.stdout
