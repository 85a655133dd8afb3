"""Our client and our server, with something between them that holds back, breaks up or cuts off what they say."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from msgspec.structs import replace

from mcpgen import ClientLimits, connect
from mcpgen.runtime.errors import McpgenError
from tests.faults import hostile_server_clients
from tests.faults.http_proxies import Buffering, Cutting, Dribbling, Proxy
from tests.faults.http_server_process import House
from tests.faults.shared_http_servers import opened
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from mcpgen import Client

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's"),
    pytest.mark.slow,
]

OLD, NEW = "2025-11-25", "2026-07-28"
LIMITS = ClientLimits(call_seconds=BUSY_SECONDS, connect_seconds=PATIENCE_SECONDS, probe_seconds=BUSY_SECONDS)
HTTP = {"stream_after_seconds": 0.001, "retry_seconds": 0.01, "keep_alive_seconds": 0.2}
both_eras = pytest.mark.parametrize("revision", [OLD, NEW])


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    with opened(http=HTTP) as made:
        yield made


@asynccontextmanager
async def through(proxy: Proxy, revision: str) -> AsyncGenerator[Client]:
    """Connect a client by way of a proxy, and see that nothing is left of either."""
    before = hostile_server_clients.standing()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with (
            proxy.running(),
            connect(f"http://127.0.0.1:{proxy.port}/mcp", revisions=[revision], limits=LIMITS) as client,
        ):
            yield client
        after = await hostile_server_clients.settled(before)

    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)


async def told(client: Client, count: int) -> tuple[str, list[float]]:
    """Return the answer of what tells of progress, and the progress."""
    found: list[float] = []

    def note(progress: float, total: float | None, words: str | None) -> None:
        found.append(progress)

    answer = await client.call_tool("tell", {"mark": "m", "count": count}, on_progress=note)
    return hostile_server_clients.words(answer), found


@both_eras
@pytest.mark.parametrize("kind", [Proxy, Dribbling, Buffering])
async def test_what_is_broken_up_or_held_back_arrives_whole(house: House, kind: type[Proxy], revision: str) -> None:
    async with through(kind(house.port), revision) as client:
        answer, progress = await told(client, 20)
        assert ("m", list(range(20))) == (answer, progress)
        assert "x" * 50_000 == hostile_server_clients.words(await client.call_tool("big", {"size": 50_000}))
        async with client.listen(tools=True) as changes:
            await client.call_tool("grow")
            assert "tools" == (await anext(aiter(changes))).kind


@pytest.mark.parametrize("most_bytes", [500, 700, 1000, 3000])
async def test_a_session_goes_on_where_its_streams_were_cut(house: House, most_bytes: int) -> None:
    proxy = Cutting(house.port, most_bytes)
    async with through(proxy, OLD) as client:
        answer, progress = await told(client, 20)

    assert ("m", list(range(20))) == (answer, progress)
    assert proxy.cut > 1


@both_eras
async def test_a_stream_that_is_always_cut_at_its_beginning_ends_in_an_error_and_not_in_waiting(
    house: House, revision: str
) -> None:
    async with through(Cutting(house.port, 10), revision) as client:
        with pytest.raises(McpgenError):
            await told(client, 5)
        assert "x" * 5 == hostile_server_clients.words(await client.call_tool("big", {"size": 5}))


async def test_an_answer_that_is_cut_is_an_error_for_a_stateless_client_and_the_next_is_not(house: House) -> None:
    async with through(Cutting(house.port, 700, times=1), NEW) as client:
        with pytest.raises(McpgenError):
            await told(client, 20)
        assert "m" == (await told(client, 20))[0]


async def heard(client: Client, changes: Any, count: int) -> None:
    """Return when so many changes have been heard of, of which there are as many as it takes."""
    each, found = aiter(changes), 0

    async def hear() -> None:
        nonlocal found
        while found < count:
            await anext(each)
            found += 1
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(hear)
        while True:
            await client.call_tool("grow")
            await anyio.sleep(0.01)


async def test_a_session_hears_of_changes_again_after_its_stream_was_cut(house: House) -> None:
    proxy = Cutting(house.port, 600, times=1)
    async with through(proxy, OLD) as client, client.listen(tools=True) as changes:
        await heard(client, changes, 10)

    assert 1 == proxy.cut


async def test_a_stream_without_a_session_that_is_cut_is_opened_again(house: House) -> None:
    proxy = Cutting(house.port, 800, times=1)
    async with through(proxy, NEW) as client, client.listen(tools=True) as changes:
        await heard(client, changes, 10)

    assert 1 == proxy.cut


@both_eras
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_client_goes_on_with_a_server_that_was_started_again(revision: str, number: int) -> None:
    first = House(http=HTTP)
    second = None
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            url = f"http://127.0.0.1:{first.port}/mcp"
            async with connect(url, revisions=[revision], limits=LIMITS) as client:
                assert "one" == hostile_server_clients.words(await client.call_tool("echo", {"text": "one"}))
                first.tell(number)
                await anyio.to_thread.run_sync(first.end)
                with pytest.raises(McpgenError):
                    await client.call_tool("echo", {"text": "nobody"})
                second = await anyio.to_thread.run_sync(lambda: House(port=first.port, http=HTTP))
                assert "two" == hostile_server_clients.words(await client.call_tool("echo", {"text": "two"}))
                assert "m" == (await told(client, 5))[0]
    finally:
        for each in (first, second):
            if each is not None:
                each.kill()


@both_eras
async def test_a_call_whose_server_is_killed_ends_in_an_error(revision: str) -> None:
    """A session's client goes on trying to come back to its stream for as long as it has time for the call."""
    house = House(http=HTTP)
    limits = replace(LIMITS, call_seconds=10)
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with connect(f"http://127.0.0.1:{house.port}/mcp", revisions=[revision], limits=limits) as client:

                async def wait() -> None:
                    with pytest.raises(McpgenError):
                        await client.call_tool("wait")

                async with anyio.create_task_group() as group:
                    group.start_soon(wait)
                    while "waiting 1" not in hostile_server_clients.words(await client.call_tool("standing")):
                        await anyio.lowlevel.checkpoint()
                    house.tell(signal.SIGKILL)
    finally:
        house.kill()
