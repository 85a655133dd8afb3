"""Rate limits that workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Cluster, ClusterUnavailable, HttpLimits, MemoryCluster, RateLimit, Server
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.cluster import shared_rates
from mcpgen.runtime.http.server.cluster.shared_rates import SharedRates
from mcpgen.runtime.http.server.rate_limit import RateLimiter
from mcpgen.runtime.protocol.messages import Request
from mcpgen.runtime.server.cluster.worker import ClusterWorker
from tests.runtime.http.cluster.workers import Workers, running

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that tests set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def workers_of(count: int, clock: Clock, limit: RateLimit) -> tuple[list[RateLimiter], list[SharedRates]]:
    cluster = MemoryCluster(clock=clock)
    limiters = [RateLimiter(limit, clock) for _ in range(count)]
    return limiters, [SharedRates(ClusterWorker(cluster, "s", clock=clock), each, clock) for each in limiters]


def called(limiter: RateLimiter, owner: str = "ann") -> bool:
    client = Client(owner, owner, is_known=True)
    return not limiter.wait_seconds(Request(1, "tools/call"), client)


async def settle(shared: list[SharedRates]) -> None:
    for _ in range(2):  # each then knows of all
        for each in shared:
            await each.settle()


async def test_a_client_that_calls_at_all_workers_is_limited_as_at_one() -> None:
    clock = Clock()
    limiters, shared = workers_of(4, clock, RateLimit(per_second=10, burst=20))
    allowed = 0
    for _ in range(600):
        clock.now += 0.1
        allowed += sum(called(each) for each in limiters for _ in range(5))
        if round(clock.now * 10) % 10 == 0:
            await settle(shared)

    assert 600 <= allowed <= 600 + 4 * (20 + 10)


async def test_a_client_that_goes_from_worker_to_worker_is_limited_too() -> None:
    clock = Clock()
    limiters, shared = workers_of(4, clock, RateLimit(per_second=10, burst=20))
    allowed = 0
    for second in range(60):
        clock.now += 1
        allowed += sum(called(limiters[second % 4]) for _ in range(100))
        await settle(shared)

    assert 600 <= allowed <= 600 + 4 * (20 + 10)


async def test_a_worker_hears_of_later_calls_at_another_one_while_tokens_are_missing() -> None:
    clock = Clock()
    limiters, shared = workers_of(2, clock, RateLimit(per_second=1, burst=20))
    assert called(limiters[1])
    await settle(shared)
    for _ in range(20):
        called(limiters[0])
    await settle(shared)

    assert not called(limiters[1])


async def test_a_client_that_calls_rarely_is_never_refused() -> None:
    clock = Clock()
    limiters, shared = workers_of(4, clock, RateLimit(per_second=10, burst=20))
    refused = 0
    for second in range(60):
        clock.now += 1
        refused += sum(not called(limiters[(second + each) % 4]) for each in range(9))
        await settle(shared)

    assert 0 == refused


async def test_a_client_that_calls_evenly_at_its_rate_is_never_refused() -> None:
    clock = Clock()
    limiters, shared = workers_of(4, clock, RateLimit(per_second=10, burst=2))
    refused = 0
    for step in range(600):
        clock.now += 0.11
        refused += not called(limiters[0])
        if step % 9 == 0:
            await settle(shared)

    assert 0 == refused


async def test_other_clients_are_not_affected_and_nothing_is_left_of_those_that_rest() -> None:
    clock = Clock()
    limiters, shared = workers_of(2, clock, RateLimit(per_second=10, burst=20))
    for _ in range(50):
        called(limiters[0])
    await settle(shared)

    assert [False, True] == [called(limiters[0]), called(limiters[0], "bob")]
    clock.now += 100
    await settle(shared)
    assert [{}, {}] == [each.used for each in limiters]
    assert [True] * 20 == [called(limiters[0]) for _ in range(20)]


async def test_without_the_cluster_each_worker_limits_alone_and_forgets_clients_that_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone(MemoryCluster):
        tries = 0

        async def raise_levels(self, key: str, amounts: Any) -> dict[str, float]:
            self.tries += 1
            raise ClusterUnavailable("gone")

    monkeypatch.setattr(shared_rates, "_SETTLE_SECONDS", 0.01)
    clock, cluster = Clock(), Gone()
    limiter = RateLimiter(RateLimit(per_second=1, burst=5), clock)
    shared = SharedRates(ClusterWorker(cluster, "s"), limiter, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shared.run)
        assert [True] * 5 + [False] == [called(limiter) for _ in range(6)]
        while cluster.tries < 2:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
        assert limiter.used
        clock.now += 5
        while limiter.used:  # noqa: ASYNC110 (likewise)
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()

    assert [True] * 5 + [False] == [called(limiter) for _ in range(6)]


async def test_many_clients_are_settled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_rates, "_BATCH", 3)
    clock = Clock()
    limiters, shared = workers_of(1, clock, RateLimit(per_second=1, burst=5))
    for number in range(10):
        assert called(limiters[0], str(number))
    await shared[0].settle()

    assert [clock.now + 1] * 10 == [each.settled_at for each in (limiters[0].used or {}).values()]


async def test_the_session_of_an_unknown_user_has_one_rate_at_all_workers(cluster: Callable[[], Cluster]) -> None:
    server = Server("demo", version="1")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    async def refused(workers: Workers, client: Any, worker: int) -> bool:
        other = workers.at(worker, client)
        return bool((await other.call("add", '{"a":1,"b":2}').complete()).status == 429)

    limits = HttpLimits(rate_limit=RateLimit(per_second=0.001, burst=5))
    async with running(server, cluster, limits=limits) as workers:
        client = await workers.client(0).shake_hands()
        seen = [await refused(workers, client, 0) for _ in range(6)]
        before = await refused(workers, client, 1)
        for each in (0, 1):
            await workers.cluster(each)._rates.settle()
        after = await refused(workers, client, 1)

    assert ([False] * 5 + [True], False, True) == (seen, before, after)
