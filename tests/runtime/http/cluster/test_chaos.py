"""A worker that is cut off from Redis, clocks that differ, and a Redis that is full under load: what still holds."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import anyio
import pytest

from mcpgen import Cluster, Context, MemoryCluster, Redis, Server
from tests.harness.cut_connections import cut_connections
from tests.harness.redis_servers import RedisServer, needs_redis, redis_server
from tests.patience import BUSY_SECONDS
from tests.runtime.http.cluster.workers import Workers, eventually, running
from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, initialize

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FORM = '{"elicitation":{"form":{}}}'


class Runs(Counter[str]):
    """How many times each call has run."""


def demo(runs: Runs) -> Server:
    server = Server("chaos", version="1")

    @server.tool
    def note(name: str) -> str:
        runs[name] += 1
        return name

    @server.tool
    async def ask(name: str, ctx: Context) -> str:
        runs[name] += 1
        return (await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})).action

    @server.tool(replay=True)
    async def ask_again(name: str, ctx: Context) -> str:
        return await ask(name, ctx)

    return server


class Load:
    """Calls, and the statuses that they got."""

    def __init__(self, name: str = "call") -> None:
        self.name = name
        self.statuses: Counter[int] = Counter()
        self.slowest = 0.0
        self.count = 0

    async def call(self, client: Any) -> int:
        self.count += 1
        begun = time.monotonic()
        answer = await client.call("note", json.dumps({"name": f"{self.name} {self.count}"})).complete()
        self.slowest = max(self.slowest, time.monotonic() - begun)
        self.statuses[answer.status] += 1
        if answer.status == 503:
            assert answer.header("retry-after")
        return int(answer.status)


@needs_redis
async def test_a_worker_that_is_cut_off_refuses_sessions_and_the_others_go_on(redis: RedisServer) -> None:
    runs = Runs()
    redis.command("FLUSHALL")
    async with cut_connections(redis.port) as connections:
        ports = iter([connections.port, redis.port, redis.port])
        async with running(demo(runs), lambda: Redis(f"redis://127.0.0.1:{next(ports)}", timeout_seconds=5)) as workers:
            sessions = [await workers.client(each % 3).shake_hands() for each in range(6)]
            cut_off, others, stateless = Load("cut off"), Load("other"), Load("stateless")
            for each in sessions:
                assert 200 == await cut_off.call(workers.at(0, each))
            connections.cut()
            gone = await workers.at(1, sessions.pop()).delete()
            until = time.monotonic() + 3
            while time.monotonic() < until or others.count <= 50:
                await stateless.call(workers.client(0, STATELESS))
                for each in sessions:
                    await others.call(workers.at(1, each))
                    await others.call(workers.at(2, each))
                    await cut_off.call(workers.at(0, each))
            assert 503 == await cut_off.call(workers.at(0, sessions[0]))
            connections.mend()

            async def serves_again() -> bool:  # each broken connection of the pool may cost one call
                return {200} == {await cut_off.call(workers.at(0, each)) for each in sessions}

            with anyio.fail_after(3 + BUSY_SECONDS):
                await eventually(serves_again)

            assert 204 == gone.status
            assert {200} == set(others.statuses)
            assert {200} == set(stateless.statuses)
            assert {200, 503} == set(cut_off.statuses)
            assert cut_off.slowest < 2 + BUSY_SECONDS
            assert {1} == set(runs.values())


@needs_redis
async def test_a_session_that_ended_meanwhile_is_gone_at_the_worker_that_was_cut_off(redis: RedisServer) -> None:
    async with cut_connections(redis.port) as connections:
        ports = iter([connections.port, redis.port])
        async with running(
            demo(Runs()), lambda: Redis(f"redis://127.0.0.1:{next(ports)}", timeout_seconds=2), 2
        ) as workers:
            client = await workers.client(0).shake_hands()
            connections.cut()
            await workers.at(1, client).delete()
            connections.mend()
            load = Load()

            async def is_known() -> bool:
                return await load.call(client) != 503

            async def is_gone() -> bool:
                status = await load.call(client)
                assert status in {404, 503}  # Redis may answer too late on a busy machine
                return status == 404

            await eventually(is_known)
            await anyio.sleep(1)
            await eventually(is_gone)


@needs_redis
@pytest.mark.parametrize("silenced", [0, 1], ids=["the worker that serves", "the worker that deletes"])
async def test_a_deleted_session_is_served_for_a_second_at_most(redis: RedisServer, silenced: int) -> None:
    redis.command("FLUSHALL")
    async with cut_connections(redis.port) as connections:
        ports = iter([connections.port if each == silenced else redis.port for each in range(2)])
        async with running(
            demo(Runs()), lambda: Redis(f"redis://127.0.0.1:{next(ports)}", timeout_seconds=2), 2
        ) as workers:
            client = await workers.client(0).shake_hands()
            load, seen = Load(), []
            assert 200 == await load.call(client)
            deleting = workers.at(1, client)
            assert 200 == await load.call(deleting)
            if silenced == 0:
                connections.silence()
            assert 204 == (await deleting.delete()).status
            connections.silence()
            deleted = time.monotonic()
            while (begun := time.monotonic()) < deleted + 2:
                seen.append((begun, await load.call(client)))
                await anyio.sleep(0.02)  # within the rate limit
            connections.mend()

            async def is_gone() -> bool:
                return await load.call(client) == 404

            await eventually(is_gone)

    late = [begun - deleted for begun, status in seen if status == 200]
    assert max(late, default=0) < 1
    assert {200, 404, 503} >= {status for _, status in seen}
    assert (503 if silenced == 0 else 404) in {status for _, status in seen}


@needs_redis
@pytest.mark.parametrize(("seconds", "limit"), [(0.05, 10), (2, 1)], ids=["slow", "too slow"])
async def test_a_slow_redis_delays_sessions_or_refuses_them_in_time(
    redis: RedisServer, seconds: float, limit: float
) -> None:
    redis.command("FLUSHALL")
    runs = Runs()
    async with cut_connections(redis.port) as connections:
        url = f"redis://127.0.0.1:{connections.port}"
        async with running(demo(runs), lambda: Redis(url, timeout_seconds=limit), 3) as workers:
            known = [await workers.client(each).shake_hands() for each in range(3)]
            connections.delay_seconds = seconds
            await anyio.sleep(2)
            load, stateless = Load("slow"), Load("stateless")
            for each in known:
                for worker in range(3):
                    await load.call(workers.at(worker, each))
                    await stateless.call(workers.client(worker, STATELESS))
            begun = await workers.webs[0].ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))
            connections.delay_seconds = 0
            await mended(workers, known)

    expected = 200 if seconds < limit else 503
    assert ({expected}, expected) == (set(load.statuses), begun.status)
    assert {200} == set(stateless.statuses)
    assert load.slowest < 3 + BUSY_SECONDS
    assert stateless.slowest < BUSY_SECONDS
    assert {1} == set(runs.values())


@pytest.mark.parametrize("minutes", [5, -5])
async def test_clocks_may_be_five_minutes_apart(minutes: int) -> None:
    runs = Runs()
    shared: Cluster = MemoryCluster()
    async with running(demo(runs), lambda: shared, 2) as workers:
        other = workers.front.apps[1]
        shifted = lambda: time.time() + 60 * minutes  # noqa: E731 (a clock)
        other._engine.sealer._clock = shifted
        workers.cluster(1)._keys._clock = shifted
        await workers.cluster(1)._refresh_keys()
        outcomes = []
        for number in range(20):
            asking, answering = (workers.client(each, STATELESS, FORM) for each in (number % 2, 1 - number % 2))
            said = await asking.result("tools/call", f'"name":"ask","arguments":{{"name":"{number}"}}')
            (key,) = said["inputRequests"]
            answers = f'"inputResponses":{{"{key}":{{"action":"decline"}}}},"requestState":"{said["requestState"]}"'
            params = f'"name":"ask","arguments":{{"name":"{number}"}},{answers}'
            answer = (await answering.send("tools/call", params).messages())[-1]
            outcomes.append(answer["result"]["content"][0]["text"] if "result" in answer else answer["error"])
        client = await workers.client(0).shake_hands()
        load = Load()
        statuses = [await load.call(workers.at(each % 2, client)) for each in range(20)]

    assert ["decline"] * 20 == outcomes
    assert [200] * 20 == statuses
    assert {1} == set(runs.values())


@needs_redis
@pytest.mark.parametrize("failure", ["flushed", "restarted", "paused"])
async def test_functions_that_wait_go_on_after_a_failure_of_redis(
    tmp_path_factory: pytest.TempPathFactory, failure: str
) -> None:
    runs, outcomes = Runs(), Counter[str]()

    async def answer(client: Any, name: str, asked: dict[str, Any]) -> None:
        (key,) = asked["inputRequests"]
        answers = f'"inputResponses":{{"{key}":{{"action":"decline"}}}},"requestState":"{asked["requestState"]}"'
        params = f'"name":"{name.partition(" ")[0]}","arguments":{{"name":"{name}"}},{answers}'
        while (said := await client.send("tools/call", params).complete()).status == 503:
            assert said.header("retry-after")
            await anyio.sleep(0.05)
        assert 200 == said.status
        outcomes[json.loads(said.body)["result"]["content"][0]["text"]] += 1

    with redis_server(tmp_path_factory.mktemp("redis")) as redis:
        async with running(demo(runs), lambda: Redis(redis.url, timeout_seconds=2)) as workers:
            waiting = []
            for number in range(16):
                client, tool = workers.client(0, STATELESS, FORM), ("ask", "ask_again")[number % 2]
                name = f"{tool} {number}"
                asked = await client.result("tools/call", f'"name":"{tool}","arguments":{{"name":"{name}"}}')
                waiting.append((workers.at(1 + number // 2 % 2, client), name, asked))
            if failure == "flushed":
                redis.command("FLUSHALL")
            elif failure == "restarted":
                redis.stop()
                redis.start()
            else:
                with redis.paused():
                    await anyio.sleep(6)  # the records of the workers expire meanwhile
            async with anyio.create_task_group() as group:
                for each in waiting:
                    group.start_soon(answer, *each)

    assert {"decline": 16} == outcomes
    assert ({1}, 16) == (set(runs.values()), len(runs))


@needs_redis
@pytest.mark.parametrize("failure", ["restarted", "cut off"])
async def test_a_change_that_is_made_without_redis_is_told_later(
    tmp_path_factory: pytest.TempPathFactory, failure: str
) -> None:
    with redis_server(tmp_path_factory.mktemp("redis")) as redis:
        async with cut_connections(redis.port) as connections:
            ports = iter([connections.port, redis.port])
            async with running(
                watched, lambda: Redis(f"redis://127.0.0.1:{next(ports)}", timeout_seconds=5), 2
            ) as workers:
                uris = '"resourceSubscriptions":["note://a","note://b"]'
                listening = workers.client(1, STATELESS).send("subscriptions/listen", f'"notifications":{{{uris}}}')
                await listening.message()
                if failure == "restarted":
                    redis.stop()
                connections.cut()
                await workers.front.apps[0]._engine.notify_change("notifications/resources/updated", "note://a")
                await anyio.sleep(1)
                if failure == "restarted":
                    redis.start()
                connections.mend()
                told = [(await listening.message())["params"]["uri"]]
                # After a restart, the worker of the client does not know what has changed. It may also hear of it.
                while failure == "restarted" and "note://b" not in told:
                    told.append((await listening.message())["params"]["uri"])

    assert told in (["note://a"], ["note://a", "note://b"], ["note://a", "note://a", "note://b"])


def watched() -> Server:
    server = Server("watched", version="1")
    for name in ("a", "b"):

        @server.resource(f"note://{name}", name=name)
        def note() -> str:
            return "text"

    return server


@needs_redis
async def test_a_full_redis_refuses_sessions_under_load_and_forgets_none(redis: RedisServer) -> None:
    redis.command("FLUSHALL")
    async with running(demo(Runs()), lambda: Redis(redis.url, timeout_seconds=2)) as workers:
        known = [await workers.client(each % 3).shake_hands() for each in range(3)]
        before = Load()
        for each in known:
            for worker in range(3):
                assert 200 == await before.call(workers.at(worker, each))
        opened: Counter[int] = Counter()
        large = json.dumps({"experimental": {"padding": {"text": "x" * 10_000}}})

        async def open_some(worker: int, count: int) -> None:
            for _ in range(count):
                web = workers.webs[worker]
                answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25", large))
                opened[answer.status] += 1
                assert (answer.status == 503) == bool(answer.header("retry-after"))

        redis.command("CONFIG", "SET", "maxmemory", str(used(redis) + 5_000_000))
        try:
            async with anyio.create_task_group() as group:
                for number in range(30):
                    group.start_soon(open_some, number % 3, 40)
            full = Load()
            for each in known * 3:
                for worker in range(3):
                    await full.call(workers.at(worker, each))
        finally:
            redis.command("CONFIG", "SET", "maxmemory", "0")
        assert {200, 503} == set(opened)
        assert 1200 == opened.total()
        assert min(opened.values()) > 50
        assert {200, 503} >= set(full.statuses)
        await mended(workers, known)


async def mended(workers: Workers, known: list[Any]) -> None:
    """Check that all sessions are there, and that new ones can be opened."""
    load = Load()

    async def is_served() -> bool:
        return {200} == {await load.call(workers.at(worker, each)) for each in known for worker in range(3)}

    with anyio.fail_after(3 + BUSY_SECONDS):
        await eventually(is_served)
    assert 404 not in load.statuses
    assert 200 == await load.call(await workers.client(0).shake_hands())


def used(redis: RedisServer) -> int:
    """Return how much memory Redis uses."""
    import redis as library

    with library.Redis(port=redis.port) as client:
        return int(client.info("memory")["used_memory"])  # type: ignore[index, union-attr]
