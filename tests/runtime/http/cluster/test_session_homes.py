"""The home of a session: it counts the session, whichever worker serves it, and another worker takes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import pytest

from mcpgen import Cluster, HttpLimits, MemoryCluster
from mcpgen.runtime.http.server.session_table import SESSION_BYTES
from tests.runtime.http.cluster.test_shared_sessions import demo
from tests.runtime.http.cluster.workers import Workers, eventually, running

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

IDLE_SECONDS = 12  # so that a session does not become idle because the machine is busy


async def ping(workers: Workers, worker: int, client: Any) -> int:
    at = workers.at(worker, client)
    found: int = (await at.post(at.request(1, "ping")).complete()).status
    return found


def session_of(workers: Workers, worker: int, client: Any) -> Any:
    return workers.front.apps[worker]._state.sessions.peek(client.session)


@pytest.mark.slow
async def test_sessions_that_are_used_elsewhere_count_at_their_home(cluster: Callable[[], Cluster]) -> None:
    limits = HttpLimits(max_sessions=3, idle_seconds=IDLE_SECONDS)
    async with running(demo(), cluster, workers=2, limits=limits) as workers:
        first = [await workers.client(0).shake_hands() for _ in range(3)]
        used = [session_of(workers, 0, each).last_used for each in first]

        async def home_knows_of_uses() -> bool:
            assert [200] * 3 == [await ping(workers, 1, each) for each in first]
            return all(
                session_of(workers, 0, each).last_used > before for each, before in zip(first, used, strict=True)
            )

        await eventually(home_knows_of_uses)
        second = [await workers.client(0).shake_hands() for _ in range(3)]

        async def are_three() -> bool:
            return 3 == [await ping(workers, 1, each) for each in (*first, *second)].count(200)

        await eventually(are_three)
        assert 3 == [await ping(workers, 0, each) for each in (*first, *second)].count(200)


async def test_each_worker_counts_what_it_keeps_of_a_declaration(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster, workers=2) as workers:
        client = await workers.client(0).shake_hands()
        assert 200 == await ping(workers, 1, client)
        for worker in (0, 1):
            copy = session_of(workers, worker, client)
            assert copy.record_bytes > 0
            assert SESSION_BYTES + copy.session.peer.memory_bytes + copy.record_bytes == copy.entry.size


async def test_a_copy_that_makes_room_at_another_worker_does_not_end_its_session(
    cluster: Callable[[], Cluster],
) -> None:
    async with running(demo(), cluster, workers=3, limits=HttpLimits(max_sessions=2)) as workers:
        clients = [await workers.client(worker).shake_hands() for worker in (0, 0, 2, 2)]
        for _ in range(3):
            assert [200] * 4 == [await ping(workers, 1, each) for each in clients]
            await anyio.sleep(0.05)
        assert [200] * 4 == [
            await ping(workers, each, client) for each, client in zip((0, 0, 2, 2), clients, strict=True)
        ]


@pytest.mark.slow
async def test_a_worker_becomes_the_home_of_sessions_whose_home_has_ended(cluster: Callable[[], Cluster]) -> None:
    limits = HttpLimits(idle_seconds=IDLE_SECONDS)
    async with running(demo(), cluster, workers=2, limits=limits) as workers:
        client = await workers.client(0).shake_hands()
        assert 200 == await ping(workers, 1, client)
        assert not session_of(workers, 1, client).is_home
        await workers.front.apps[0]._state.close()

        async def has_moved() -> bool:
            assert 200 == await ping(workers, 1, client)
            return bool(session_of(workers, 1, client).is_home)

        await eventually(has_moved)


async def test_messages_that_wait_for_a_home_that_does_not_listen_count(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = MemoryCluster()
    limits = HttpLimits(max_open_bytes=2_500_000)
    async with running(demo(), lambda: shared, workers=2, limits=limits) as workers:
        client = await workers.client(0).shake_hands()
        assert 200 == await ping(workers, 1, client)
        cluster = workers.cluster(1)

        async def send(_worker: int, _message: object) -> bool:
            return False

        monkeypatch.setattr(cluster._worker, "send", send)
        for _ in range(3):
            session_of(workers, 1, client).on_unheard(client.session, bytes(1_000_000))
        await anyio.lowlevel.checkpoint()
        assert 2_000_000 < cluster._state.open_quota.bytes < 2_500_000


async def test_a_stream_at_a_worker_that_is_no_longer_the_home_ends_and_cannot_be_resumed_there(
    cluster: Callable[[], Cluster],
) -> None:
    """This happens to a worker that was cut off from the cluster for some time."""
    async with running(demo(), cluster, workers=2) as workers:
        client = await workers.client(0).shake_hands()
        stream = await client.listen().begun()
        event = await stream.event()
        assert 200 == await ping(workers, 1, client)
        copies = workers.cluster(1)._copies
        await copies.move_home(session_of(workers, 1, client), workers.cluster(0)._worker.number)
        await stream.complete()
        old = await client.listen(event.event_id).complete()
        new = await client.listen().begun()
        await workers.front.apps[1]._state.engine.notify_change("notifications/tools/list_changed", None)

        assert 400 == old.status
        assert "notifications/tools/list_changed" == (await new.message())["method"]


async def test_a_client_hears_of_what_may_have_changed_when_the_home_with_its_messages_has_ended(
    cluster: Callable[[], Cluster],
) -> None:
    async with running(demo(), cluster, workers=2) as workers:
        client = await workers.client(0).shake_hands()
        for each in "ab":
            await client.result("resources/subscribe", f'"uri":"note://{each}"')
        await workers.front.apps[0]._state.engine.notify_change("notifications/resources/updated", "note://a")
        await workers.front.apps[0]._state.close()
        stream = await workers.at(1, client).listen().begun()
        told = [await uri_or_method(stream) for _ in range(4)]

    lists = ["notifications/resources/list_changed", "notifications/tools/list_changed"]
    assert [*lists, "note://a", "note://b"] == sorted(told, key=lambda each: (each.startswith("note"), each))


async def uri_or_method(stream: Any) -> str:
    message = await stream.message()
    return str(message.get("params", {}).get("uri", message["method"]))
