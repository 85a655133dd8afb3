"""Streams that are resumed after the worker that had them has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Cluster, Context, MemoryCluster, MemoryEventStore, Server
from mcpgen.runtime.http.server.cluster import shared_events
from mcpgen.runtime.http.server.cluster.shared_events import SharedEvents
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.worker import ClusterWorker
from tests.harness.redis_servers import RedisServer, needs_redis
from tests.runtime.http.cluster.workers import Workers, eventually, running

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio


def demo() -> Server:
    """Return a server whose functions write to streams."""
    server = Server("demo", version="1")

    @server.tool
    async def forever(ctx: Context) -> str:
        for step in range(1, 4):
            await ctx.progress(step)
        await anyio.sleep_forever()
        return "never"

    @server.tool
    async def steps(ctx: Context) -> str:
        for step in range(1, 4):
            await ctx.progress(step)
        return "done"

    @server.tool
    async def touch(ctx: Context) -> str:
        await ctx.resource_updated("note://a")
        return "touched"

    @server.tool
    async def log(ctx: Context, text: str) -> str:
        await ctx.log("info", text)
        return "logged"

    @server.resource("note://a")
    def note() -> str:
        return "text"

    return server


async def kill(workers: Workers, number: int) -> None:
    """End a worker as ``kill -9`` does, but let what it has sent arrive."""
    cluster = workers.cluster(number)
    await cluster._events.flush()
    worker = cluster._worker
    worker._running.cancel()
    while await worker.cluster.send(worker._channel(worker.number), b""):  # noqa: ASYNC110 (which nothing announces)
        await anyio.sleep(0.01)
    await worker.cluster.remove(worker._record(worker.number))
    for each in range(len(workers.webs)):
        workers.cluster(each)._worker._others._known.clear()


async def began(workers: Workers, tool: str) -> tuple[Any, list[Any]]:
    """Call *tool* at the first worker, and return the client with the first events."""
    client = await workers.client(0).shake_hands()
    call = client.call(tool, meta='"progressToken":1', identity=7)
    events = [await call.event() for _ in range(4)]  # the first has no data
    return client, events


@pytest.mark.slow
async def test_a_stream_of_a_killed_worker_ends_with_an_error_for_its_request(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client, events = await began(workers, "forever")
        await kill(workers, 0)
        resumed = await workers.at(1, client).listen(events[1].event_id).complete()
        second, third, error = await resumed.messages()
        last = await workers.at(2, client).listen(events[3].event_id).complete()

    assert [200, 2, 3, 7] == [resumed.status, second["params"]["progress"], third["params"]["progress"], error["id"]]
    assert {"reason": "lost"} == error["error"]["data"]
    assert "The function may have run" in error["error"]["message"]
    assert [error] == await last.messages()


async def test_an_answer_that_a_worker_wrote_before_it_was_killed_is_delivered(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client, events = await began(workers, "steps")
        await kill(workers, 0)
        resumed = await workers.at(1, client).listen(events[2].event_id).complete()
        third, answer = await resumed.messages()

    assert (3, "done") == (third["params"]["progress"], answer["result"]["content"][0]["text"])


async def test_the_events_of_a_batch_with_long_ids_are_not_copied(
    cluster: Callable[[], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    monkeypatch.setattr(SharedEvents, "add", lambda *given: copied.append(len(given[3])))
    async with running(demo(), cluster) as workers:
        client = workers.client(0, "2025-03-26")
        await client.shake_hands()
        for length, count in ((4, 4), (1000, 0)):
            ids = [json.dumps("0" * length + str(number)) for number in range(40)]
            steps = '"name":"steps","arguments":{},"_meta":{"progressToken":1}'
            calls = [client.request(ids[0], "tools/call", steps), *(client.request(each, "ping") for each in ids[1:])]
            body = b"[" + b",".join(calls) + b"]"
            answered = await client.post(body, client.lines(body)).complete()
            assert 4 == len(await answered.messages())
            assert count == sum(size > 0 for size in copied)
            copied.clear()


@pytest.mark.slow
async def test_each_request_of_a_batch_without_an_answer_gets_an_error(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = workers.client(0, "2025-03-26")
        await client.shake_hands()
        calls = [
            client.request(each, "tools/call", f'"name":"{tool}","arguments":{{}},"_meta":{{"progressToken":{each}}}')
            for each, tool in ((1, "forever"), (2, "steps"))
        ]
        body = b"[" + b",".join(calls) + b"]"
        batch = client.post(body, client.lines(body))
        event = await batch.event()
        await kill(workers, 0)
        resumed = await workers.at(1, client).listen(event.event_id).complete()
        found = await resumed.messages()

    assert {1: "lost", 2: "lost"} == {each["id"]: each["error"]["data"]["reason"] for each in found if "error" in each}


@pytest.mark.slow
async def test_another_session_and_another_user_cannot_read_it(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        _, events = await began(workers, "forever")
        other = await workers.client(1).shake_hands()
        await kill(workers, 0)
        stolen = await workers.at(1, other).listen(events[1].event_id).complete()

    assert 400 == stolen.status


async def test_the_stream_of_a_session_goes_on_where_it_was_after_its_worker(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        await client.result("resources/subscribe", '"uri":"note://a"')
        stream = client.listen()
        last = (await stream.event()).event_id
        stream.leave()
        await stream.returned()
        await workers.at(1, client).result("tools/call", '"name":"touch","arguments":{}')
        await eventually(lambda: _has_event(workers, client))
        await kill(workers, 0)
        again = workers.at(1, client).listen(last)
        missed = await again.message()
        perhaps_lost = sorted([(await again.message())["method"] for _ in range(3)])
        await workers.at(2, client).result("tools/call", '"name":"touch","arguments":{}')
        new = await again.message()

    updated = "notifications/resources/updated"
    lists = ["notifications/resources/list_changed", "notifications/tools/list_changed"]
    assert [updated] * 2 == [missed["method"], new["method"]]
    assert [lists[0], updated, lists[1]] == perhaps_lost


async def _has_event(workers: Workers, client: Any) -> bool:
    copy = workers.front.apps[0]._state.sessions.peek(client.session)
    return copy is not None and copy.get_stream._number > 1


async def replaced(workers: Workers) -> tuple[Any, str, str]:
    """Open two GET streams at other workers than the home; return the client, and the last id of each that it has.

    It has missed a change of resources on the first one, and a change of tools on the second one.
    """
    client = await workers.client(0).shake_hands()
    engine = workers.front.apps[2]._state.engine
    last = []
    for worker, method in ((1, "resources"), (2, "tools")):
        stream = workers.at(worker, client).listen()
        last.append((await stream.event()).event_id)
        await engine.notify_change(f"notifications/{method}/list_changed", None)
        await stream.message()
        stream.leave()
        await stream.returned()
    return client, last[0], last[1]


RESOURCES = b'data: {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}\n\n'
TOOLS = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'


async def test_a_get_stream_that_another_replaced_is_sent_its_own_events(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client, first, second = await replaced(workers)
        other = await workers.at(2, client).listen().begun()
        again = workers.at(1, client).listen(first)
        await other.complete()
        await workers.front.apps[1]._state.engine.notify_change("notifications/tools/list_changed", None)
        told = [(await again.message())["method"] for _ in range(2)]
        number = int(first.rpartition(":")[2]) + 1

    assert ["notifications/resources/list_changed", "notifications/tools/list_changed"] == told
    assert again.body.startswith(f"id: {first.rpartition(':')[0]}:{number}\n".encode() + RESOURCES)
    assert (1, True) == (again.body.count(TOOLS), again.body.endswith(TOOLS))
    assert first.rpartition(":")[0] != second.rpartition(":")[0]


async def test_a_get_stream_that_was_replaced_is_sent_its_own_events_after_its_worker(
    cluster: Callable[[], Cluster],
) -> None:
    async with running(demo(), cluster) as workers:
        client, first, second = await replaced(workers)
        await kill(workers, 0)
        again = [workers.at(1, client).listen(first)]
        await again[0].message()
        again.append(workers.at(1, client).listen(second))
        await again[1].message()

    number = int(first.rpartition(":")[2]) + 1
    assert again[0].body.startswith(f"id: {first.rpartition(':')[0]}:{number}\n".encode() + RESOURCES)
    assert f"{second.rpartition(':')[0]}:".encode() not in again[0].body
    assert f"{first.rpartition(':')[0]}:".encode() not in again[1].body


async def test_what_waited_for_a_new_get_stream_is_not_sent_on_the_one_before_after_its_worker(
    cluster: Callable[[], Cluster],
) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        first = client.listen()
        last = (await first.event()).event_id
        first.leave()
        await first.returned()
        await workers.front.apps[0]._state.engine.notify_change("notifications/tools/list_changed", None)
        second = await workers.at(1, client).listen().begun()
        told = await second.message()
        alive = await workers.at(2, client).listen(last).begun()
        await kill(workers, 0)
        dead = await workers.at(1, client).listen(last).complete()

    assert "notifications/tools/list_changed" == told["method"]
    assert (200, 0) == (alive.status, alive.body.count(b"list_changed"))
    assert 400 == dead.status


async def test_a_message_that_the_home_does_not_take_reaches_the_next_home(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        await client.result("resources/subscribe", '"uri":"note://a"')
        other = workers.at(1, client)
        await other.result("ping")
        await kill(workers, 0)
        copy = workers.front.apps[1]._state.sessions.peek(client.session)
        copy.get_stream.write(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')

        assert "notifications/tools/list_changed" == (await workers.at(2, client).listen().message())["method"]


async def test_a_worker_that_stops_leaves_its_events_to_the_others(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client, events = await began(workers, "steps")
        await workers.front.apps[0]._state.close()
        resumed = await workers.at(1, client).listen(events[3].event_id).complete()
        (answer,) = await resumed.messages()

    assert "done" == answer["result"]["content"][0]["text"]


async def test_a_deleted_session_leaves_no_events(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client, events = await began(workers, "steps")
        shared = workers.cluster(0)._events
        await shared.flush()
        stream, _, number = events[1].event_id.rpartition(":")
        assert await shared.read(stream, int(number)) is not None
        await workers.at(1, client).delete()

        async def is_gone() -> bool:
            return await shared.read(stream, int(number)) is None

        await eventually(is_gone)


@pytest.mark.slow
@needs_redis
async def test_a_resumption_without_redis_is_tried_again(redis: RedisServer, cluster: Callable[[], Cluster]) -> None:
    if isinstance(cluster(), MemoryCluster):
        return
    async with running(demo(), cluster) as workers:
        client, events = await began(workers, "forever")
        await kill(workers, 0)
        with redis.paused():
            refused = await workers.at(1, client).listen(events[1].event_id).complete()
        await eventually(lambda: _is_resumed(workers, client, events[1].event_id))

    assert 503 == refused.status


async def _is_resumed(workers: Workers, client: Any, last: str) -> bool:
    return bool((await workers.at(1, client).listen(last).complete()).status == 200)


# --- the copies of one worker


class Failing(MemoryCluster):
    """A cluster whose events cannot be written for a while."""

    is_down = False
    calls = 0

    async def add_events(self, key: str, events: Any) -> None:
        self.calls += 1
        if self.is_down:
            await super().add_events(key, events[:1])  # an operation that failed may have been carried out
            raise ClusterUnavailable("down")
        await super().add_events(key, events)


def events_of(cluster: Cluster) -> SharedEvents:
    return SharedEvents(ClusterWorker(cluster, "s"), MemoryEventStore(), is_closing=lambda: False)


async def test_events_wait_for_a_cluster_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_events, "_RETRY_SECONDS", 0.01)
    cluster = Failing()
    cluster.is_down = True
    events = events_of(cluster)
    store = events.store_for([1])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(events.run)
        for number in range(1, 501):
            store.append("a", number, b"{}")
        while cluster.calls < 3:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
        cluster.is_down = False
        while events._waiting:  # noqa: ASYNC110 (likewise)
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    found = await events.read("a", 1)

    assert found is not None
    assert (499, 1) == (len(found.missed), len(found.unanswered))


async def test_a_stream_with_a_gap_is_not_resumed_across_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_events, "_MAX_WAITING", 5)
    events = events_of(MemoryCluster())
    store = events.store_for([1])
    for number in range(1, 4):
        store.append("a", number, b"{}")
    await events.flush()
    for number in range(4, 11):
        store.append("a", number, b"{}")
    assert 5 == len(events._waiting)
    await events.flush()
    behind = await events.read("a", 6)

    assert await events.read("a", 2) is None
    assert behind is not None
    assert 4 == len(behind.missed)


async def test_the_bytes_that_wait_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_events, "_MAX_WAITING_BYTES", 1000)
    events = events_of(MemoryCluster())
    store = events.store_for([1])
    for number in range(1, 100):
        store.append("a", number, json.dumps("x" * 100).encode())
        assert sum(len(each) for _, _, each in events._waiting) == events._waiting_bytes <= 1000
    await events.flush()

    assert (0, 0) == (len(events._waiting), events._waiting_bytes)
