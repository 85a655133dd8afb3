"""Shares of limits, which are judged by what clients have at all workers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Cluster, ClusterUnavailable, HttpLimits, MemoryCluster, Server
from mcpgen.runtime.http.server.cluster import shared_shares
from mcpgen.runtime.http.server.cluster.shared_shares import SharedShares
from mcpgen.runtime.server.cluster.worker import ClusterWorker
from mcpgen.runtime.server.cluster.worker_messages import SharesKept, encode_message
from mcpgen.runtime.server.quota import Quota
from tests.runtime.http.cluster.workers import Workers, eventually, running

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that tests set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def one_worker(clock: Clock) -> AsyncGenerator[tuple[ClusterWorker, Quota, SharedShares]]:
    """Run a worker, which tells and forgets only when the test says so."""
    quota, worker = Quota(10, 1000), ClusterWorker(MemoryCluster(), "s")
    shared = SharedShares(worker, {"open": quota}, clock)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        await worker.wait_joined()
        yield worker, quota, shared
        group.cancel_scope.cancel()


async def test_what_workers_tell_is_added_up_and_forgotten_after_some_seconds() -> None:
    clock = Clock()
    async with one_worker(clock) as (worker, quota, shared):

        async def told(sender: int, **owners: tuple[int, int]) -> None:
            await worker.send_to_all(SharesKept(sender, "open", owners))

        await told(worker.number + 1, ann=(6, 60))
        clock.now += 3
        await told(worker.number + 2, ann=(3, 30), bob=(1, 1))
        await told(worker.number, ann=(9, 9))
        await worker.send_to_all(SharesKept(1, "of a newer version", {"ann": (1, 1)}))
        assert quota._elsewhere == {"ann": (9, 90), "bob": (1, 1)}

        shared._forget_old()
        assert quota._elsewhere == {"ann": (9, 90), "bob": (1, 1)}
        clock.now += 1
        shared._forget_old()
        assert quota._elsewhere == {"ann": (3, 30), "bob": (1, 1)}
        await told(worker.number + 2)
        assert quota._elsewhere == {}


async def test_a_worker_tells_nothing_while_no_client_has_much(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    async with one_worker(Clock()) as (worker, quota, shared):

        async def send_to_all(message: Any) -> None:
            sent.append(message)

        monkeypatch.setattr(worker, "send_to_all", send_to_all)
        entry = quota.admit("ann", 5)
        await shared.tell()
        assert entry
        entry.release()
        for _ in range(3):
            await shared.tell()

    assert [{"ann": (1, 5)}, {}] == [each.owners for each in sent], "that nothing is left is told once"


def test_a_message_about_the_most_owners_that_can_have_much_is_small() -> None:
    quota = Quota(10_000, 10_000_000)
    for number in range(49):
        for _ in range(200):
            assert quota.admit(f"{number:x>64}", 0)
    for number in range(50):
        assert quota.admit(f"{number:y>64}", 200_000)
    shares = quota.large_shares(shared_shares._NOTABLE)

    assert 99 == len(shares)
    assert len(encode_message(SharesKept(1 << 20, "sessions", shares))) < 16 * 1024


async def test_workers_that_cannot_be_reached_do_not_end_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_shares, "_TELL_SECONDS", 0.001)
    failures: list[int] = []
    async with one_worker(Clock()) as (worker, quota, shared):

        async def fail(message: Any) -> None:
            failures.append(1)
            raise ClusterUnavailable("gone")

        monkeypatch.setattr(worker, "send_to_all", fail)
        assert quota.admit("ann", 5)
        async with anyio.create_task_group() as group:
            group.start_soon(shared.run)
            while len(failures) < 3:  # noqa: ASYNC110 (which nothing announces)
                await anyio.sleep(0.001)
            group.cancel_scope.cancel()


def user_of(scope: Any) -> str:
    return dict(scope["headers"])[b"x-user"].decode()


def waiting_server() -> tuple[Server, dict[str, int]]:
    server, running_calls = Server("demo"), dict.fromkeys("abc", 0)

    @server.tool
    async def wait(user: str) -> str:
        running_calls[user] += 1
        try:
            await anyio.sleep_forever()
        finally:
            running_calls[user] -= 1
        return ""

    return server, running_calls


def calls(workers: Workers, worker: int, user: str, count: int) -> list[Any]:
    client = workers.client(worker, "2026-07-28")
    found = []
    for each in range(count):
        arguments = f'"name":"wait","arguments":{{"user":"{user}"}}'
        body = client.request(each, "tools/call", arguments)
        found.append(client.post(body, [*client.lines(body), ("X-User", user)]))
    return found


async def test_a_full_worker_ends_the_requests_of_the_client_that_has_the_most_at_all_workers(
    cluster: Callable[[], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_shares, "_TELL_SECONDS", 0.05)
    server, now = waiting_server()
    async with running(server, cluster, workers=2, user=user_of, limits=HttpLimits(max_open=4)) as workers:
        quotas = [each._state.open_quota for each in workers.front.apps]
        calls(workers, 0, "a", 4)
        (victim,) = calls(workers, 1, "a", 1)
        calls(workers, 1, "b", 3)

        async def is_known() -> bool:
            return quotas[1]._elsewhere.get("user a", (0, 0))[0] == 4 and now == {"a": 5, "b": 3, "c": 0}

        await eventually(is_known)
        calls(workers, 1, "c", 1)
        ended = await victim.complete()

        async def is_served() -> bool:
            return now == {"a": 4, "b": 3, "c": 1}

        await eventually(is_served)

    assert 503 == ended.status
    assert "max_open" in ended.json["error"]["message"]
