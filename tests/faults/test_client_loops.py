"""Event loops that end with clients which nobody has closed, and clients in loops and threads of their own."""

from __future__ import annotations

import asyncio
import gc
import threading

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint

from mcpgen import connect
from mcpgen.runtime.transports.spawner import is_asyncio
from tests.faults.hostile_server_clients import GOOD, LIMITS, NEW, OLD, attacked, villain, words
from tests.harness import child_programs

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]


@pytest.mark.parametrize("code", [GOOD, "greet()\nforever()", "greet()\nstart('forever()')\nserve()"])
async def test_a_loop_that_ends_takes_its_clients_with_it(code: str) -> None:
    backend = "asyncio" if is_asyncio() else "trio"

    async def main() -> None:
        client = await connect(villain(code), revisions=[OLD], limits=LIMITS)
        if "serve" in code:
            await client.call_tool("x")

    await anyio.to_thread.run_sync(lambda: anyio.run(main, backend=backend))

    assert [] == child_programs.clear()


# asyncio cancels tasks that it has not entered, and says that nobody awaited what they would have run.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 10, 20, 50, 200, 1000])
@pytest.mark.slow
async def test_a_loop_that_ends_while_a_client_connects_takes_it_with_it(turns: int) -> None:
    backend = "asyncio" if is_asyncio() else "trio"

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(connect(villain(GOOD), revisions=[OLD], limits=LIMITS)._start)
            for _ in range(turns):
                await checkpoint()
            group.cancel_scope.cancel()

    async def abandon() -> None:
        task = asyncio.ensure_future(connect(villain(GOOD), revisions=[OLD], limits=LIMITS)._start())
        for _ in range(turns):
            await checkpoint()
        del task

    await anyio.to_thread.run_sync(lambda: anyio.run(main, backend=backend))
    if is_asyncio():
        await anyio.to_thread.run_sync(lambda: asyncio.run(abandon()))
    gc.collect()

    assert [] == child_programs.clear()


@pytest.mark.slow
async def test_a_client_that_is_forgotten_lives_until_the_loop_ends_and_no_longer() -> None:
    backend = "asyncio" if is_asyncio() else "trio"

    async def main() -> None:
        await connect(villain(GOOD), revisions=[OLD], limits=LIMITS)
        gc.collect()
        await anyio.sleep(0.05)
        gc.collect()

    await anyio.to_thread.run_sync(lambda: anyio.run(main, backend=backend))

    assert [] == child_programs.clear()


async def test_a_loop_that_fails_takes_its_clients_with_it() -> None:
    backend = "asyncio" if is_asyncio() else "trio"

    async def main() -> None:
        await connect(villain(GOOD), revisions=[OLD], limits=LIMITS)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await anyio.to_thread.run_sync(lambda: anyio.run(main, backend=backend))

    assert [] == child_programs.clear()


@pytest.mark.slow
async def test_clients_in_threads_with_loops_of_their_own() -> None:
    found: list[str] = []

    async def main(revision: str | None) -> None:
        async with attacked(GOOD, revision) as client:
            found.extend([words(await client.call_tool("x")) for _ in range(20)])

    def run(backend: str, revision: str | None) -> None:
        anyio.run(main, revision, backend=backend)

    threads = [
        threading.Thread(target=run, args=(backend, revision))
        for backend in ("asyncio", "trio")
        for revision in (OLD, NEW, None)
    ]
    for each in threads:
        each.start()
    async with attacked(GOOD) as client:
        found.extend([words(await client.call_tool("x")) for _ in range(20)])
    for each in threads:
        await anyio.to_thread.run_sync(each.join)

    assert ["ok"] * 140 == found


async def test_a_client_can_be_used_from_a_thread_of_its_loop() -> None:
    async with attacked(GOOD) as client:
        found = await anyio.to_thread.run_sync(lambda: words(anyio.from_thread.run(client.call_tool, "x")))

    assert "ok" == found
