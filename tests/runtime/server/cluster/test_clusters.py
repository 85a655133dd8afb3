"""What every cluster does: in memory and in Redis."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import anyio.lowlevel
import pytest

from mcpgen import Cluster, ClusterUnavailable, EventLimits, MemoryCluster, Redis, UsageError
from mcpgen.runtime.server.cluster.fair_gate import FairGate, requester
from tests.harness.redis_servers import RedisServer, needs_redis, redis_server, rights
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
    return lambda: patient(running.url)


patient: Final = partial(Redis, timeout_seconds=PATIENCE_SECONDS)


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
        await one.create("changed", {"a": b"1"}, 2)
        await one.create("kept", {"a": b"1"}, 2)
        await one.change("changed", {}, seconds=60)
        await one.keep(["kept", "unknown"], 60)
        await one.create("short", {"a": b"1"}, 2)
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


async def test_a_change_is_announced_in_the_same_step_and_only_if_it_is_made(another: Callable[[], Cluster]) -> None:
    got: list[bytes] = []
    listens, done = anyio.Event(), anyio.Event()

    def receive(message: bytes) -> None:
        got.append(message)
        if message == b"last":
            done.set()

    async with opened(another) as one, opened(another) as two, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: one.listen(["all"], subscribed=listens.set, received=receive))
        await listens.wait()
        assert not await two.change("k", {"a": b"1"}, announced=("all", b"of no record"))
        await two.create("k", {"a": b"1"}, 60)
        assert await two.change("k", {"a": b"2"}, expected={"a": b"1"}, announced=("all", b"\x00\xff"))
        assert not await two.change("k", {"a": b"3"}, expected={"a": b"1"}, announced=("all", b"unexpected"))
        assert await two.change("k", {"b": b"3"})
        assert await two.remove("k", announced=("all", b"removed"))
        assert not await two.remove("k", announced=("all", b"removed again"))
        await two.send("all", b"last")
        await done.wait()
        tasks.cancel_scope.cancel()

    assert [b"\x00\xff", b"removed", b"removed again", b"last"] == got


NewLimited: TypeAlias = "Callable[..., Cluster]"


@pytest.fixture(params=["memory", pytest.param("redis", marks=needs_redis)])
def limited(request: pytest.FixtureRequest) -> NewLimited:
    """What returns an empty cluster with limits on events."""
    if request.param == "memory":
        return lambda **limits: MemoryCluster(event_limits=EventLimits(**limits))
    running: RedisServer = request.getfixturevalue("server")
    running.command("FLUSHALL")
    return lambda **limits: patient(running.url, event_limits=EventLimits(**limits))


async def stored(cluster: Cluster, stream: str, after: int = 0, key: str = "{s}:events") -> list[int] | None:
    found = await cluster.events_after(key, stream, after)
    return None if found is None else [number for number, _ in found]


async def test_events_are_read_by_all_workers_from_where_a_client_was(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one, opened(another) as two:
        await one.add_events("{s}:events", [("a", 1, b"1"), ("b", 1, b"\x00\xff"), ("a", 2, b"")])
        await two.add_events("{s}:events", [("a", 3, b"3")])

        assert [(2, b""), (3, b"3")] == await two.events_after("{s}:events", "a", 1)
        assert [(1, b"\x00\xff")] == await two.events_after("{s}:events", "b", 0)
        assert [] == await one.events_after("{s}:events", "a", 3)
        assert (None, None) == (await stored(one, "a", 4), await stored(one, "unknown"))
        assert await stored(one, "a", key="{other}:events") is None


async def test_events_that_are_sent_twice_are_stored_once(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one:
        for _ in range(2):
            await one.add_events("{s}:events", [("a", 1, b"1"), ("a", 2, b"2")])

        assert [(1, b"1"), (2, b"2")] == await one.events_after("{s}:events", "a", 0)


async def test_events_are_removed_with_their_stream(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one:
        await one.add_events("{s}:events", [("a", 1, b"1"), ("b", 1, b"1")])
        await one.remove_events("{s}:events", ["a", "unknown"])

        assert (None, [1]) == (await stored(one, "a"), await stored(one, "b"))


async def test_the_oldest_events_of_a_long_stream_are_dropped(limited: NewLimited) -> None:
    async with opened(lambda: limited(max_events_per_stream=3)) as one:
        await one.add_events("{s}:events", [("a", number, b"x") for number in range(1, 6)])

        assert (None, [3, 4, 5], [5]) == (
            await stored(one, "a", 1),
            await stored(one, "a", 2),
            await stored(one, "a", 4),
        )


async def test_the_owner_with_the_most_bytes_makes_room(limited: NewLimited) -> None:
    async with opened(lambda: limited(max_bytes=10 * 420)) as one:
        await one.add_events("{s}:events", [("small.s.1", 1, b"x" * 100)])
        await one.add_events("{s}:events", [("large.s.1", number, b"x" * 100) for number in range(1, 10)])
        await one.add_events("{s}:events", [("large.s.2", number, b"x" * 100) for number in range(1, 4)])
        await one.add_events("{s}:events", [("small.s.2", 1, b"x" * 100)])

        assert ([1], [1]) == (await stored(one, "small.s.1"), await stored(one, "small.s.2"))
        assert (None, [5, 6, 7, 8, 9]) == (await stored(one, "large.s.1", 3), await stored(one, "large.s.1", 4))
        assert [1, 2, 3] == await stored(one, "large.s.2")


async def test_a_stream_alone_keeps_its_last_events(limited: NewLimited) -> None:
    async with opened(lambda: limited(max_bytes=3 * 420)) as one:
        for number in range(1, 20):
            await one.add_events("{s}:events", [("a.s.1", number, b"x" * 100)])
        assert (None, [17, 18, 19]) == (await stored(one, "a.s.1", 15), await stored(one, "a.s.1", 16))

        await one.add_events("{s}:events", [("a.s.1", 20, b"x" * 1000)])
        assert (None, []) == (await stored(one, "a.s.1", 19), await stored(one, "a.s.1", 20))
        await one.add_events("{s}:events", [("a.s.1", 21, b"x")])
        assert (None, [21]) == (await stored(one, "a.s.1", 19), await stored(one, "a.s.1", 20))


async def test_many_events_do_not_exceed_the_limits(limited: NewLimited) -> None:
    async with opened(lambda: limited(max_bytes=5 * 420, max_streams=4)) as one:
        for number in range(1, 60):
            streams = [f"{'ab'[number % 2]}.s.{number % 7}", f"{'abc'[number % 3]}.s.{number % 5}"]
            await one.add_events("{s}:events", [(each, number, b"x" * 100) for each in dict.fromkeys(streams)])
            found = [await stored(one, f"{owner}.s.{count}", 0) for owner in "abc" for count in range(7)]
            kept = [
                await one.events_after("{s}:events", f"{owner}.s.{count}", number - 1)
                for owner in "abc"
                for count in range(7)
            ]

            assert any(kept)
            assert sum(len(each or ()) for each in found) <= 5


async def test_the_owner_with_the_most_streams_loses_the_least_recently_used(limited: NewLimited) -> None:
    async with opened(lambda: limited(max_streams=4)) as one:
        for stream in ("small.s.1", "many.s.1", "many.s.2", "many.s.3"):
            await one.add_events("{s}:events", [(stream, 1, b"x")])
            await anyio.sleep(0.003)  # Redis counts milliseconds
        await one.add_events("{s}:events", [("many.s.1", 2, b"x"), ("small.s.2", 1, b"x")])

        assert ([1], [1, 2], None) == tuple([await stored(one, each) for each in ("small.s.1", "many.s.1", "many.s.2")])
        assert ([1], [1]) == (await stored(one, "many.s.3"), await stored(one, "small.s.2"))


async def test_streams_expire(limited: NewLimited) -> None:
    async with opened(lambda: limited(lifetime_seconds=0.2, max_streams=3)) as one:
        await one.add_events("{s}:events", [("a", 1, b"x"), ("b", 1, b"x")])
        for each in ("a", "b"):
            while await stored(one, each) is not None:  # noqa: ASYNC110 (the server's clock)
                await anyio.sleep(0.01)
        await one.add_events("{s}:events", [("c", 1, b"x")])

        assert [1] == await stored(one, "c")


@needs_redis
async def test_nothing_is_left_of_events_that_nothing_is_added_to(server: RedisServer) -> None:
    server.command("FLUSHALL")
    limits = EventLimits(lifetime_seconds=0.1)
    async with opened(lambda: patient(server.admin_url, event_limits=limits)) as one:
        assert isinstance(one, Redis)
        await one.add_events("{s}:events", [("a.s.1", 1, b"x"), ("b.s.1", 1, b"x"), ("b.s.1", 2, b"x")])
        keys = await one._client.keys("*")
        assert len(keys) > 3
        assert {True} == {each.startswith(b"mcpgen:1:{s}:events:") for each in keys}
        while await one._client.dbsize():  # noqa: ASYNC110 (the server's clock)
            await anyio.sleep(0.01)


@needs_redis
async def test_the_index_of_events_holds_what_is_stored(server: RedisServer) -> None:
    server.command("FLUSHALL")
    limits = EventLimits(max_bytes=20 * 420, max_streams=6, max_events_per_stream=5)
    async with opened(lambda: patient(server.url, event_limits=limits)) as one:
        assert isinstance(one, Redis)
        for number in range(1, 200):
            await one.add_events("{s}:e", [(f"{number % 3}.s.{number % 11}", number, b"x" * (number * 37 % 600))])
            if number % 13 == 0:
                await one.remove_events("{s}:e", [f"{number % 3}.s.{number % 11}"])
        own, prefix = one._client, "mcpgen:1:{s}:e:"
        sizes = {name: int(size) for name, size in (await own.hgetall(f"{prefix}sizes")).items()}
        owners = {name: int(size) for name, size in await own.zrange(f"{prefix}owner-bytes", 0, -1, withscores=True)}
        read = {name: await own.xrange(f"{prefix}stream:{name.decode()}") for name in sizes}

        assert {name: sum(len(each[b"event"]) + 320 for _, each in read[name]) for name in sizes} == sizes
        assert sum(sizes.values()) == sum(owners.values()) == int(await own.get(f"{prefix}total")) <= 20 * 420
        assert set(sizes) == set(await own.zrange(f"{prefix}used", 0, -1)) == set(await own.hkeys(f"{prefix}lasts"))
        assert len(sizes) == sum(
            int(count) for _, count in await own.zrange(f"{prefix}owner-streams", 0, -1, withscores=True)
        )


async def test_levels_are_raised_by_all_workers_and_fall(another: Callable[[], Cluster]) -> None:
    async with opened(another) as one, opened(another) as two:
        first = await one.raise_levels("{s}:rate", {"a": 100.5, "b": 0.0})
        second = await two.raise_levels("{s}:rate", {"b": 0.2, "a": 20})
        other = await two.raise_levels("{other}:rate", {"a": 0})
        while (await one.raise_levels("{s}:rate", {"b": 0.0}))["b"] > 0:  # noqa: ASYNC110 (the server's clock)
            await anyio.sleep(0.01)
        last = await one.raise_levels("{s}:rate", {"a": 0})

    assert (100.5, 0) == (pytest.approx(first["a"]), first["b"])
    assert (120.5, 0.2) == (pytest.approx(second["a"], abs=10), pytest.approx(second["b"]))
    assert (0, last["a"] < second["a"] - 0.1) == (other["a"], True)


@needs_redis
async def test_a_listener_is_told_that_its_connection_broke(server: RedisServer) -> None:
    listens, failed = anyio.Event(), anyio.Event()

    async with opened(lambda: patient(server.url)) as one, anyio.create_task_group() as tasks:

        async def listen() -> None:
            with pytest.raises(ClusterUnavailable):
                await one.listen(["own"], subscribed=listens.set, received=print)
            failed.set()

        tasks.start_soon(listen)
        await listens.wait()
        server.command("CLIENT", "KILL", "TYPE", "pubsub")
        await failed.wait()


@needs_redis
@pytest.mark.slow
async def test_an_operation_ends_within_its_time_limit(server: RedisServer) -> None:
    async with opened(lambda: Redis(server.url, timeout_seconds=1)) as one:
        assert {} == await one.read("k")
        with server.paused():
            for operate in (one.read("k"), one.create("k", {}, 1), one.send("c", b""), one.keep(["k"], 1)):
                with pytest.raises(ClusterUnavailable, match="the cluster of this server cannot be used"):
                    await operate

        assert {} == await one.read("other")


@needs_redis
async def test_a_full_server_is_one_that_cannot_be_written(server: RedisServer) -> None:
    async with opened(lambda: patient(server.url)) as one:
        server.command("CONFIG", "SET", "maxmemory", "1")
        try:
            with pytest.raises(ClusterUnavailable, match="maxmemory"):
                await one.create("k", {"a": b"1"}, 60)
        finally:
            server.command("CONFIG", "SET", "maxmemory", "0")
        assert await one.create("k", {"a": b"1"}, 60)


@needs_redis
async def test_the_rights_that_the_guide_names_for_workers_are_enough_and_no_more(server: RedisServer) -> None:
    server.command("ACL", "SETUSER", "without-tasks", "on", ">secret", *rights()[0])
    listens, heard = anyio.Event(), anyio.Event()
    url = server.admin_url.replace("//", "//without-tasks:secret@")

    limits = EventLimits(max_events_per_stream=2, max_bytes=350)
    async with opened(lambda: patient(url, event_limits=limits)) as one:
        async with anyio.create_task_group() as tasks:
            server.command("SCRIPT", "FLUSH")

            async def listen() -> None:
                await one.listen(["own"], subscribed=listens.set, received=lambda _: heard.set())

            tasks.start_soon(listen)
            await listens.wait()
            assert await one.create("acl", {"a": b"1"}, 60)
            assert await one.change("acl", {"a": None, "b": b"2"}, expected={"a": b"1"}, announced=("other", b""))
            await one.keep(["acl"], 60)
            assert {"b": b"2"} == await one.read("acl")
            assert await one.remove("acl", announced=("other", b""))
            await one.add_events("{s}:events", [("a.s.1", number, b"x") for number in range(1, 4)])
            assert [(3, b"x")] == await one.events_after("{s}:events", "a.s.1", 2)
            await one.remove_events("{s}:events", ["a.s.1"])
            assert 5 == pytest.approx((await one.raise_levels("{s}:rate", {"acl": 5}))["acl"])
            await one.send("own", b"")
            await heard.wait()
            tasks.cancel_scope.cancel()
        assert isinstance(one, Redis)
        for other in ("GET other", "HSET mcpgen x y", "PUBLISH other x", "KEYS mcpgen:*", "FLUSHALL", "SELECT 1"):
            with pytest.raises(one._errors.NoPermissionError):
                await one._client.execute_command(*other.split())


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import redis", "from mcpgen import Redis; Redis('redis://127.0.0.1')"])
def test_redis_does_not_make_a_program_trace_its_requests(first: str) -> None:
    """redis-py 8 imports OpenTelemetry, which a program does that wants spans."""
    code = f"""
{first}
from mcpgen.runtime.protocol.spans import has_opentelemetry
assert not has_opentelemetry()
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
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
        (3, {}, "`url` must be a string, such as .redis://127.0.0.1:6379., not 3"),
        ("redis://127.0.0.1", {"timeout_seconds": 0}, "`timeout_seconds` must be greater than 0"),
        ("redis://127.0.0.1", {"max_connections": 0}, "`max_connections` at least 1"),
    ],
)
def test_an_argument_that_makes_no_sense_is_found_at_once(url: Any, options: dict[str, int], said: str) -> None:
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


@needs_redis
async def test_an_operation_of_one_client_waits_for_few_of_another_client(server: RedisServer) -> None:
    """A client can have thousands of requests that ask Redis; at two connections, all others waited behind them."""
    ended: list[str] = []

    async def read(cluster: Cluster, owner: str) -> None:
        requester.set(owner)
        await cluster.read("k")
        ended.append(owner)

    async with opened(lambda: patient(server.url, max_connections=3)) as cluster, anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(read, cluster, "many")
        await anyio.lowlevel.checkpoint()
        group.start_soon(read, cluster, "one")

    assert 201 == len(ended)
    assert ended.index("one") < 20


@pytest.mark.parametrize("cancelled", range(3))
async def test_an_operation_that_is_cancelled_gives_its_turn_to_another(cancelled: int) -> None:
    gate, ended = FairGate(1), list[int]()

    async def operate(number: int) -> None:
        async with gate:
            await anyio.lowlevel.checkpoint()
            ended.append(number)

    tasks = [asyncio.ensure_future(operate(each)) for each in range(3)]
    await anyio.lowlevel.checkpoint()
    tasks[cancelled].cancel()
    await asyncio.wait(tasks)
    await operate(3)

    assert [each for each in range(4) if each != cancelled] == ended
