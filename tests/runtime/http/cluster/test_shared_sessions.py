"""Sessions of handshake revisions that several workers serve."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Cluster, Context, HttpLimits, Limits, MemoryCluster, Server, UsageError
from tests.harness.redis_servers import RedisServer, needs_redis
from tests.patience import BUSY_SECONDS
from tests.runtime.http.cluster.workers import Workers, eventually, running
from tests.specification.http_server.http_clients import (
    BOTH,
    INITIALIZED,
    JSON,
    OldCaller,
    cancellation,
    initialize,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

FORM = '{"elicitation":{}}'
URL = '{"elicitation":{"url":{}}}'


class Played:
    """What the functions of a server do and have done."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.waiting = anyio.Event()
        self.runs = 0
        self.cancelled = 0


def demo(played: Played | None = None) -> Server:
    """Return a server whose functions do what sessions are for."""
    own = played or Played()
    server = Server("demo", version="1")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool
    async def ask(ctx: Context) -> str:
        own.runs += 1
        form = await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
        return f"{form.action} {own.runs}"

    @server.tool
    async def ask_url(ctx: Context) -> str:
        return await ctx.elicit_url("Sign in.", "https://example.com/in", elicitation_id="page-7")

    @server.tool
    async def finish(ctx: Context) -> str:
        await ctx.elicitation_completed("page-7")
        return "finished"

    @server.tool
    async def steps(ctx: Context) -> str:
        await ctx.progress(1, 2)
        own.waiting.set()
        try:
            await own.gate.wait()
        except BaseException:
            own.cancelled += 1
            raise
        await ctx.progress(2, 2)
        return "done"

    @server.tool
    async def log(ctx: Context) -> str:
        await ctx.log("info", "an entry")
        return "logged"

    @server.tool
    async def touch(ctx: Context) -> str:
        await ctx.resource_updated("note://a")
        return "touched"

    @server.resource("note://a")
    def note() -> str:
        return "text"

    return server


async def called(client: Any, tool: str, arguments: str = "{}") -> str:
    said = await client.result("tools/call", f'"name":"{tool}","arguments":{arguments}')
    return str(said["content"][0]["text"])


async def status(client: Any) -> int:
    """Return the status of a ping."""
    found: int = (await client.send("ping").complete()).status
    return found


async def is_gone(client: Any) -> bool:
    return await status(client) == 404


async def test_every_worker_serves_a_session_at_once(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        for start in range(3):
            client = await workers.client(start).shake_hands()
            said = [await called(workers.at(each % 3, client), "add", f'{{"a":{each},"b":1}}') for each in range(9)]

            assert [str(each + 1) for each in range(9)] == said


async def test_another_user_does_not_find_it_at_any_worker(cluster: Callable[[], Cluster]) -> None:
    user = {"user": lambda scope: dict(scope["headers"]).get(b"x-user", b"ann").decode()}
    async with running(demo(), cluster, **user) as workers:
        client = await workers.client(0).shake_hands()
        for each in range(3):
            other = workers.at(each, client)
            body = other.request(5, "ping")
            answer = await other.post(body, [*other.lines(body), ("X-User", "bob")]).complete()

            assert 404 == answer.status
            assert 200 == await status(other)


async def test_a_session_that_is_deleted_at_one_worker_is_gone_at_all(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        assert [200] * 3 == [await status(workers.at(each, client)) for each in range(3)]

        assert 204 == (await workers.at(1, client).delete()).status
        for each in range(3):
            await eventually(lambda each=each: is_gone(workers.at(each, client)))
        assert 404 == (await workers.at(2, client).delete()).status


async def test_what_a_client_sets_at_one_worker_holds_at_all(cluster: Callable[[], Cluster]) -> None:
    async def entries(client: Any) -> int:
        return len(await client.call("log").messages()) - 1

    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        assert [1] * 3 == [await entries(workers.at(each, client)) for each in range(3)]
        await workers.at(1, client).result("logging/setLevel", '"level":"error"')
        for each in range(3):
            other = workers.at(each, client)
            await eventually(lambda other=other: _none(entries(other)))


async def _none(count: Any) -> bool:
    return await count == 0


async def test_a_plain_call_in_a_known_session_costs_no_round_trip() -> None:
    class Counted(MemoryCluster):
        count = 0

        async def read(self, key: str) -> dict[str, bytes]:
            self.count += "session:" in key
            return await super().read(key)

        async def change(self, key: str, *given: Any, **named: Any) -> bool:
            self.count += "session:" in key
            return await super().change(key, *given, **named)

    shared = Counted()
    async with running(demo(), lambda: shared) as workers:
        client = await workers.client(0).shake_hands()
        for each in range(3):
            await called(workers.at(each, client), "add", '{"a":1,"b":1}')
        before = shared.count
        for each in range(60):
            assert "2" == await called(workers.at(each % 3, client), "add", '{"a":1,"b":1}')

        assert before == shared.count


@pytest.mark.slow
async def test_a_session_that_one_worker_keeps_busy_does_not_expire_at_another(cluster: Callable[[], Cluster]) -> None:
    limits = HttpLimits(idle_seconds=2, handshake_seconds=60)
    async with running(demo(), cluster, limits=limits) as workers:
        used, idle = await workers.client(0).shake_hands(), workers.client(0)
        begun = await workers.webs[0].ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))
        idle.session = begun.header("mcp-session-id")
        await workers.at(1, idle).tell(INITIALIZED)  # so that worker 0 still waits for the second message
        for _ in range(10):
            await anyio.sleep(0.5)  # a busy machine needs the rest
            assert 200 == await status(workers.at(1, used))

        assert [200] * 3 == [await status(workers.at(each, used)) for each in range(3)]
        assert [404] * 3 == [await status(workers.at(each, idle)) for each in range(3)]


async def test_an_answer_reaches_the_worker_that_asked(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        client = await workers.client(0, capabilities=FORM).shake_hands()
        for asking, answering in ((0, 1), (1, 2), (2, 0), (1, 1)):
            call = workers.at(asking, client).call("ask", identity=f"{asking}{answering}")
            question = await call.message()
            assert "elicitation/create" == question["method"]
            await workers.at(answering, client).answer(question, '{"action":"decline"}')
            (said,) = await call.messages()

            assert f"decline {played.runs}" == said["result"]["content"][0]["text"]
    assert 4 == played.runs


async def test_an_answer_in_an_integer_that_was_written_as_a_text_arrives_too(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0, capabilities=FORM).shake_hands()
        call = client.call("ask")
        question = await call.message()
        await workers.at(2, client).answer({"id": str(question["id"])}, '{"action":"cancel"}')

        assert "cancel 1" == (await call.messages())[-1]["result"]["content"][0]["text"]


@pytest.mark.spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "f42a5e87")
async def test_the_end_of_an_elicitation_is_reported_at_any_worker_to_its_client_alone(
    cluster: Callable[[], Cluster],
) -> None:
    async def hears_nothing(client: Any) -> bool:
        return 1 == len(await client.call("finish").messages())

    async with running(demo(), cluster) as workers:
        client = await workers.client(0, capabilities=URL).shake_hands()
        other = await workers.client(1, capabilities=URL).shake_hands()
        assert "page-7" == (await client.call("ask_url").message())["params"]["elicitationId"]

        for each in range(3):
            await eventually(lambda each=each: hears_nothing(workers.at(each, other)))
            told = (await workers.at(each, client).call("finish").messages())[0]
            assert "notifications/elicitation/complete" == told["method"]


async def test_an_answer_of_another_user_is_not_passed_on(cluster: Callable[[], Cluster]) -> None:
    user = {"user": lambda scope: dict(scope["headers"]).get(b"x-user", b"ann").decode()}
    async with running(demo(), cluster, **user) as workers:
        client = await workers.client(0, capabilities=FORM).shake_hands()
        call = client.call("ask")
        question = await call.message()
        other = workers.at(1, client)
        body = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}).encode()
        assert 404 == (await other.post(body, [*other.lines(body), ("X-User", "bob")]).complete()).status
        await other.answer(question, '{"action":"decline"}')

        assert "decline 1" == (await call.messages())[-1]["result"]["content"][0]["text"]


async def test_a_cancellation_reaches_the_worker_that_runs_the_call(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        client = await workers.client(0).shake_hands()
        call = workers.at(1, client).call("steps", meta='"progressToken":1', identity=7)
        await played.waiting.wait()
        await workers.at(2, client).tell(cancellation(7))
        await call.returned()

    assert 1 == played.cancelled


async def test_a_batch_is_shared_like_its_messages(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0, "2025-03-26").shake_hands()
        other = workers.at(1, client)
        batch = b"[%b,%b]" % (
            other.request(1, "resources/subscribe", '"uri":"note://a"'),
            other.request(2, "logging/setLevel", '"level":"error"'),
        )
        said = await other.post(batch).messages()
        assert [{}, {}] == [each["result"] for each in said[0]]
        stream = await workers.at(2, client).listen().begun()
        await eventually(lambda: _none(_log_entries(workers.at(2, client))))
        await called(workers.at(1, client), "touch")

        assert "notifications/resources/updated" == (await stream.message())["method"]


async def _log_entries(client: Any) -> int:
    return len(await client.call("log").messages()) - 1


async def test_a_change_reaches_each_listener_once(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        await workers.at(1, client).result("resources/subscribe", '"uri":"note://a"')
        stream = await workers.at(2, client).listen().begun()
        stateless = workers.client(1, "2026-07-28")
        listening = stateless.send("subscriptions/listen", '"notifications":{"resourceSubscriptions":["note://a"]}')
        assert "notifications/subscriptions/acknowledged" == (await listening.message())["method"]
        for each in range(3):
            await called(workers.at(each, client), "touch")

            assert "notifications/resources/updated" == (await stream.message())["method"]
            assert "notifications/resources/updated" == (await listening.message())["method"]
        await anyio.sleep(0.05)
        assert [[], []] == [[each for each in one.pending if each.data] for one in (stream, listening)]

        await workers.at(2, client).result("resources/unsubscribe", '"uri":"note://a"')
        await eventually(lambda: _is_unsubscribed(workers, client))
        await called(workers.at(1, client), "touch")
        assert "notifications/resources/updated" == (await listening.message())["method"]
        assert [] == [each for each in stream.pending if each.data]


async def _is_unsubscribed(workers: Workers, client: Any) -> bool:
    copy = workers.front.apps[0]._state.sessions.peek(client.session)
    return copy is not None and not copy.session.subscriptions.uris


@pytest.mark.parametrize("worker", [0, 1], ids=["subscriber", "another"])
async def test_a_copy_keeps_the_text_of_a_subscribed_uri_once(cluster: Callable[[], Cluster], worker: int) -> None:
    """A session is charged for it once. Each copy also knows which URIs are in the record."""
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        for each in "ab":
            await client.result("resources/subscribe", f'"uri":"note://{each}"')
        await called(workers.at(worker, client), "add", '{"a":1,"b":1}')
        copy = workers.front.apps[worker]._state.sessions.peek(client.session)
        known, subscribed = copy._known_uris, copy.session.subscriptions.uris

    assert ["note://a", "note://b"] == sorted(known)
    assert {id(each) for each in known} == {id(each) for each in subscribed}


class SlowReads(MemoryCluster):
    """A cluster that needs a while to read a record."""

    seconds = 0.0

    async def read(self, key: str) -> dict[str, bytes]:
        found = await super().read(key)
        await anyio.sleep(self.seconds)
        return found


@pytest.mark.slow
@pytest.mark.parametrize("worker", [0, 1, 2], ids=["home", "subscriber", "another"])
async def test_a_change_just_after_a_subscription_at_another_worker_is_told(worker: int) -> None:
    shared = SlowReads()
    server = demo()
    async with running(server, lambda: shared) as workers:
        client = await workers.client(0).shake_hands()
        stream = await client.listen().begun()
        subscriber = workers.at(1, client)
        await called(subscriber, "add", '{"a":1,"b":1}')
        shared.seconds = 0.1
        await subscriber.result("resources/subscribe", '"uri":"note://a"')
        await workers.front.apps[worker]._engine.notify_change("notifications/resources/updated", "note://a")
        await workers.front.apps[worker]._engine.notify_change("notifications/resources/updated", "note://b")
        said = await stream.message()
        await anyio.sleep(0.3)

    assert "note://a" == said["params"]["uri"]
    assert [] == [each for each in stream.pending if each.data]


@pytest.mark.slow
async def test_a_change_just_after_the_end_of_a_subscription_at_another_worker_is_not_told() -> None:
    shared = SlowReads()
    server = demo()
    async with running(server, lambda: shared) as workers:
        client = await workers.client(0).shake_hands()
        stream = await client.listen().begun()
        for name in ("a", "b"):
            await client.result("resources/subscribe", f'"uri":"note://{name}"')
        await called(workers.at(1, client), "add", '{"a":1,"b":1}')
        shared.seconds = 0.1
        await workers.at(1, client).result("resources/unsubscribe", '"uri":"note://a"')
        for name in ("a", "b"):
            await workers.front.apps[2]._engine.notify_change("notifications/resources/updated", f"note://{name}")
        said = await stream.message()
        await anyio.sleep(0.3)

    assert "note://b" == said["params"]["uri"]
    assert [] == [each for each in stream.pending if each.data]


async def test_a_change_waits_for_a_client_that_has_not_opened_its_stream(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        await workers.at(1, client).result("resources/subscribe", '"uri":"note://a"')
        await eventually(lambda: _is_subscribed(workers, client))
        await called(workers.at(2, client), "touch")
        await anyio.sleep(0.05)
        stream = workers.at(1, client).listen()

        assert "notifications/resources/updated" == (await stream.message())["method"]


async def _is_subscribed(workers: Workers, client: Any) -> bool:
    return not await _is_unsubscribed(workers, client)


async def test_a_broken_stream_goes_on_at_any_worker(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    async with running(demo(played), cluster) as workers:
        client = await workers.client(0).shake_hands()
        call = workers.at(1, client).call("steps", meta='"progressToken":1', identity=7)
        last = (await call.seen()).event_id
        call.leave()
        await call.returned()
        again = await workers.at(2, client).listen(last).begun()
        played.gate.set()
        told, said = await again.messages()

    assert (200, 2, "done") == (again.status, told["params"]["progress"], said["result"]["content"][0]["text"])


async def test_the_stream_of_a_session_is_resumed_at_any_worker(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        await client.result("resources/subscribe", '"uri":"note://a"')
        stream = workers.at(1, client).listen()
        await stream.begun()
        await called(client, "touch")
        last = (await stream.seen()).event_id
        stream.leave()
        await stream.returned()
        await called(workers.at(2, client), "touch")
        again = workers.at(2, client).listen(last)

        assert "notifications/resources/updated" == (await again.message())["method"]


async def test_a_second_stream_takes_over_from_one_at_another_worker(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        await client.result("resources/subscribe", '"uri":"note://a"')
        first = await workers.at(1, client).listen().begun()
        second = await workers.at(2, client).listen().begun()
        await first.complete()
        await called(client, "touch")

        assert "notifications/resources/updated" == (await second.message())["method"]


async def test_if_the_home_of_a_session_has_ended_another_worker_becomes_it(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0).shake_hands()
        await workers.at(1, client).result("resources/subscribe", '"uri":"note://a"')
        last = (await workers.at(1, client).listen().event()).event_id
        await workers.front.apps[0]._state.close()
        stream = await workers.at(1, client).listen(last).begun()
        for _ in range(3):  # of all that may have changed meanwhile
            await stream.message()
        await called(workers.at(2, client), "touch")

        assert "notifications/resources/updated" == (await stream.message())["method"]
        assert "3" == await called(workers.at(2, client), "add", '{"a":1,"b":2}')


async def test_a_worker_that_shuts_down_hands_its_streams_over(cluster: Callable[[], Cluster]) -> None:
    played = Played()
    server = Server("demo", version="1", limits=Limits(grace_seconds=5))

    @server.tool
    async def wait() -> str:
        played.waiting.set()
        await played.gate.wait()
        return "done"

    async with running(server, cluster) as workers:
        client = await workers.client(0).shake_hands()
        stream = await client.listen().begun()
        call = client.call("wait")
        await played.waiting.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(workers.front.apps[0].shutdown)
            await stream.complete()
            refused = await client.send("ping").complete()

            async def is_leaving() -> bool:
                return await workers.cluster(1)._worker.is_leaving(workers.cluster(0)._worker.number)

            await eventually(is_leaving)
            other = workers.at(1, client)
            again = await other.listen().begun()
            await workers.front.apps[2]._engine.notify_change("notifications/tools/list_changed", None)
            said = await again.message()
            played.gate.set()
        (answer,) = await call.messages()

    assert b"retry: 1000" in stream.body.rpartition(b"id: ")[2]
    assert (503, 200) == (refused.status, again.status)
    assert "notifications/tools/list_changed" == said["method"]
    assert "done" == answer["result"]["content"][0]["text"]


async def test_http_sse_posts_to_any_worker(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = OldCaller(workers.webs[0], "2024-11-05")
        await client.connect()
        client.web = workers.webs[1]
        body = client.request(
            4, "initialize", '"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}'
        )
        assert 202 == (await client.post(body).complete()).status
        assert "demo" == (await client.stream.message())["result"]["serverInfo"]["name"]
        client.target = client.target.replace("session=", "session=7")

        assert 404 == (await client.post(body).complete()).status


async def test_a_client_that_declares_null_has_its_session_at_all_workers(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0, "2025-11-25", '{"roots":null,"sampling":{}}').shake_hands()

        assert {} == await workers.at(1, client).result("ping")


async def test_another_initialize_in_a_session_holds_at_all_workers(cluster: Callable[[], Cluster]) -> None:
    async with running(demo(), cluster) as workers:
        client = await workers.client(0, "2025-11-25").shake_hands()
        other = workers.at(1, client)
        params = '"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}'
        assert "2025-06-18" == (await other.result("initialize", params))["protocolVersion"]
        await eventually(lambda: _has_revision(workers, client, "2025-06-18"))


async def _has_revision(workers: Workers, client: Any, revision: str) -> bool:
    client.revision = revision
    await status(client)
    copy = workers.front.apps[0]._state.sessions.peek(client.session)
    return copy is not None and copy.session.revision == revision


@pytest.mark.slow
@needs_redis
async def test_after_a_flush_a_session_is_unknown_and_a_new_one_works(redis: RedisServer) -> None:
    from mcpgen import Redis

    async with running(demo(), lambda: Redis(redis.url, timeout_seconds=BUSY_SECONDS)) as workers:
        client = await workers.client(0).shake_hands()
        assert [200] * 3 == [await status(workers.at(each, client)) for each in range(3)]
        redis.command("FLUSHALL")
        for each in range(3):
            await eventually(lambda each=each: is_gone(workers.at(each, client)))
        again = await workers.client(1).shake_hands()

        assert "3" == await called(workers.at(2, again), "add", '{"a":1,"b":2}')


@needs_redis
@pytest.mark.slow
@pytest.mark.parametrize("outage", ["paused", "restarted"])
async def test_without_redis_what_needs_it_is_refused_and_the_rest_goes_on(
    tmp_path_factory: pytest.TempPathFactory, outage: str
) -> None:
    from mcpgen import Redis
    from tests.harness.redis_servers import redis_server

    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        async with running(demo(), lambda: Redis(server.url, timeout_seconds=2)) as workers:
            client = await workers.client(0).shake_hands()
            stateless = workers.client(1, "2026-07-28")
            if outage == "paused":
                with server.paused():
                    await _refused(workers, client, stateless)
            else:
                server.stop()
                await _refused(workers, client, stateless)
                server.start()
            await eventually(lambda: _works(workers))

            # A pause loses nothing; a restart loses the record, so that the client has to begin anew.
            await eventually(lambda: _has_status(workers.at(2, client), 200 if outage == "paused" else 404))


async def _refused(workers: Workers, client: Any, stateless: Any) -> None:
    await anyio.sleep(1.1)  # copies are trusted for a second
    started = anyio.current_time()
    answer = await workers.at(1, client).send("ping").complete()
    begun = await workers.webs[2].ask(
        "POST",
        "/mcp",
        [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")],
        client.request(
            1, "initialize", '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}'
        ),
    )

    assert [503, 503] == [answer.status, begun.status]
    assert "1" == answer.header("retry-after")
    assert anyio.current_time() - started < 4 + BUSY_SECONDS
    assert "3" == await called(stateless, "add", '{"a":1,"b":2}')


async def _works(workers: Workers) -> bool:
    answer = await workers.webs[0].ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))
    return answer.status == 200


async def _has_status(client: Any, expected: int) -> bool:
    return await status(client) == expected


def test_workers_need_a_task_store_that_they_share() -> None:
    server = Server("demo")

    @server.tool(task=True)
    def slow() -> str:
        return ""

    with pytest.raises(UsageError, match="needs a task store that its workers share"):
        server.asgi(cluster=MemoryCluster())


def test_what_is_no_cluster_is_found_when_the_application_is_made() -> None:
    with pytest.raises(UsageError, match="`cluster` must be a cluster, such as Redis"):
        Server("demo").asgi(cluster="redis://127.0.0.1")  # type: ignore[arg-type]  # the mistake


@pytest.mark.slow
def test_one_process_without_a_cluster_imports_nothing_of_it() -> None:
    code = """
import sys
from mcpgen import Server
Server("demo").asgi()
found = [each for each in sys.modules if each.startswith(("redis", "mcpgen.runtime.http.server.cluster"))]
assert not found, found
found = [each for each in sys.modules if each.startswith("mcpgen.runtime.server.cluster.")]
assert found == ["mcpgen.runtime.server.cluster.cluster"], found
"""
    subprocess.run([sys.executable, "-c", code], check=True)
