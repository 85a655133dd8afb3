"""What every cluster does: in memory and in Redis."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from mcpgen import Cluster, ClusterUnavailable, MemoryCluster, Redis, UsageError
from tests.harness.redis_servers import RedisServer, needs_redis, redis_server
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(params=["memory", pytest.param("redis", marks=needs_redis)])
def another(request: pytest.FixtureRequest) -> Callable[[], Cluster]:
    """What returns a cluster that shares all with those that it returned before."""
    if request.param == "memory":
        shared = MemoryCluster()
        return lambda: shared
    running: RedisServer = request.getfixturevalue("server")
    running.command("FLUSHALL")
    return lambda: Redis(running.url)


@asynccontextmanager
async def opened(make: Callable[[], Cluster]) -> AsyncGenerator[Cluster]:
    cluster = make()
    await cluster.open()
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            yield cluster
    finally:
        await cluster.close()


async def test_a_record_is_read_by_all_workers(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one, opened(another) as two:
        assert await one.create("k", {"a": b"1", "ü": b"\x00\xff"}, 60)

        assert {"a": b"1", "ü": b"\x00\xff"} == await two.read("k")
        assert {} == await two.read("other")


async def test_a_record_is_created_once(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one, opened(another) as two:
        assert await one.create("k", {"a": b"1"}, 60)

        assert not await two.create("k", {"a": b"2"}, 60)
        assert {"a": b"1"} == await one.read("k")


async def test_a_change_sets_and_removes_fields(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one, opened(another) as two:
        await one.create("k", {"a": b"1", "b": b"2", "c": b"3"}, 60)

        assert await two.change("k", {"a": b"4", "b": None, "d": b"5"})
        assert {"a": b"4", "c": b"3", "d": b"5"} == await one.read("k")


async def test_a_change_needs_a_record(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one:
        assert not await one.change("k", {"a": b"4"})
        assert {} == await one.read("k")


@pytest.mark.parametrize("expected", [{"a": b"2"}, {"a": b"1", "b": b"1"}])
async def test_a_change_that_expects_something_else_changes_nothing(
    another: Callable[[], Cluster], expected: dict[str, bytes]
) -> None:
    async with opened(another) as one:
        await one.create("k", {"a": b"1"}, 60)

        assert not await one.change("k", {"a": b"3", "c": None}, expected=expected)
        assert await one.change("k", {"c": b"4"}, expected={"a": b"1"})
        assert {"a": b"1", "c": b"4"} == await one.read("k")


async def test_one_of_many_that_expect_the_same_succeeds(another: Callable[[], Cluster]) -> None:
    won: list[int] = []

    async def change(cluster: Cluster, number: int) -> None:
        if await cluster.change("k", {"home": b"%d" % number}, expected={"home": b"0"}):
            won.append(number)

    async with opened(another) as one, opened(another) as two:
        await one.create("k", {"home": b"0"}, 60)
        async with anyio.create_task_group() as tasks:
            for number in range(1, 21):
                tasks.start_soon(change, (one, two)[number % 2], number)

        assert 1 == len(won)
        assert {"home": b"%d" % won[0]} == await one.read("k")


async def test_a_record_expires(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one:
        await one.create("short", {"a": b"1"}, 0.05)
        await one.create("changed", {"a": b"1"}, 0.05)
        await one.create("kept", {"a": b"1"}, 0.05)
        await one.change("changed", {}, seconds=60)
        await one.keep(["kept", "unknown"], 60)
        while await one.read("short"):  # noqa: ASYNC110 (the server's clock)
            await anyio.sleep(0.01)

        assert {"a": b"1"} == await one.read("changed") == await one.read("kept")
        assert {} == await one.read("unknown")
        assert await one.create("short", {"a": b"2"}, 60)


async def test_a_removed_record_is_gone(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one, opened(another) as two:
        await one.create("k", {"a": b"1"}, 60)

        assert [True, False] == [await two.remove("k"), await two.remove("k")]
        assert {} == await one.read("k")


async def test_messages_reach_those_that_listen_in_order(another: Callable[[], Cluster]) -> None:
    got: list[bytes] = []
    listens, done = anyio.Event(), anyio.Event()

    def receive(message: bytes) -> None:
        got.append(message)
        if len(got) == 102:
            done.set()

    async with opened(another) as one, opened(another) as two, anyio.create_task_group() as tasks:

        async def listen() -> None:
            await one.listen(["own", "all"], subscribed=listens.set, received=receive)

        assert 0 == await two.send("own", b"early")
        tasks.start_soon(listen)
        await listens.wait()
        for number in range(100):
            assert 1 == await two.send("own", b"%d" % number)
        assert 0 == await two.send("foreign", b"x")
        assert 1 == await two.send("all", b"\xff")
        assert 1 == await one.send("all", b"")
        await done.wait()
        tasks.cancel_scope.cancel()

    assert [*(b"%d" % number for number in range(100)), b"\xff", b""] == got


@needs_redis
async def test_a_listener_is_told_that_its_connection_broke(server: RedisServer) -> None:
    listens, failed = anyio.Event(), anyio.Event()

    async with opened(lambda: Redis(server.url)) as one, anyio.create_task_group() as tasks:

        async def listen() -> None:
            with pytest.raises(ClusterUnavailable):
                await one.listen(["own"], subscribed=listens.set, received=print)
            failed.set()

        tasks.start_soon(listen)
        await listens.wait()
        server.command("CLIENT", "KILL", "TYPE", "pubsub")
        await failed.wait()


@needs_redis
async def test_an_operation_ends_within_its_time_limit(server: RedisServer) -> None:
    async with opened(lambda: Redis(server.url, timeout_seconds=0.2)) as one:
        assert {} == await one.read("k")
        with server.paused():
            for operate in (one.read("k"), one.create("k", {}, 1), one.send("c", b""), one.keep(["k"], 1)):
                with pytest.raises(ClusterUnavailable, match="cannot reach their cluster"):
                    await operate

        assert {} == await one.read("other")


@needs_redis
async def test_a_full_server_is_one_that_cannot_be_written(server: RedisServer) -> None:
    async with opened(lambda: Redis(server.url)) as one:
        server.command("CONFIG", "SET", "maxmemory", "1")
        try:
            with pytest.raises(ClusterUnavailable, match="maxmemory"):
                await one.create("k", {"a": b"1"}, 60)
        finally:
            server.command("CONFIG", "SET", "maxmemory", "0")
        assert await one.create("k", {"a": b"1"}, 60)


@needs_redis
async def test_the_rights_that_the_guide_names_are_enough(server: RedisServer) -> None:
    page = (Path(__file__).parents[4] / "docs" / "guide" / "many-workers.md").read_text(encoding="utf-8")
    found = re.search(r"These ACL rules .*?`(.*?)`", page, re.DOTALL)
    assert found
    server.command("ACL", "SETUSER", "worker", "on", ">secret", *found[1].split())
    listens, heard = anyio.Event(), anyio.Event()
    url = server.url.replace("//", "//worker:secret@")

    async with opened(lambda: Redis(url)) as one, anyio.create_task_group() as tasks:
        server.command("SCRIPT", "FLUSH")

        async def listen() -> None:
            await one.listen(["own"], subscribed=listens.set, received=lambda _: heard.set())

        tasks.start_soon(listen)
        await listens.wait()
        assert await one.create("acl", {"a": b"1"}, 60)
        assert await one.change("acl", {"a": None, "b": b"2"}, expected={"a": b"1"})
        await one.keep(["acl"], 60)
        assert {"b": b"2"} == await one.read("acl")
        assert await one.remove("acl")
        await one.send("own", b"")
        await heard.wait()
        tasks.cancel_scope.cancel()
        assert isinstance(one, Redis)
        with pytest.raises(one._errors.NoPermissionError):
            await one._client.get("mcpgen:1:x")


def test_redis_does_not_make_a_program_trace_its_requests() -> None:
    code = """
import sys
from mcpgen import Redis
from mcpgen.runtime.protocol.spans import has_opentelemetry
Redis("redis://127.0.0.1")
is_by_redis = "opentelemetry.trace" in sys.modules  # older ones than redis-py 8 do not import it
assert not has_opentelemetry()
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
assert has_opentelemetry() is not is_by_redis
trace.set_tracer_provider(TracerProvider())
assert has_opentelemetry()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_where_no_server_is_there_is_no_cluster() -> None:
    async with opened(lambda: Redis("redis://127.0.0.1:1")) as one:
        with pytest.raises(ClusterUnavailable):
            await one.read("k")


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("http://127.0.0.1", {}, "`url` or `options` of Redis"),
        ("redis://127.0.0.1", {"timeout_seconds": 0}, "`timeout_seconds` must be greater than 0"),
        ("redis://127.0.0.1", {"max_connections": 0}, "`max_connections` at least 1"),
    ],
)
def test_an_argument_that_makes_no_sense_is_found_at_once(url: str, options: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Redis(url, **options)


def test_the_expired_records_of_memory_do_not_stay() -> None:
    now = 0.0
    cluster = MemoryCluster(clock=lambda: now)

    async def fill() -> None:
        nonlocal now
        for number in range(3000):
            now += 1
            await cluster.create(str(number), {}, 10)

    anyio.run(fill)

    assert len(cluster._records) < 1020
