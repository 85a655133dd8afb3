"""Tasks of clients whose requests arrive at any worker, of both kinds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Cluster, Context, MemoryCluster, RedisTaskStore, Server, SqliteTaskStore, TaskLimits
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.cluster.workers import Workers, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.harness.redis_servers import RedisServer

pytestmark = pytest.mark.anyio

EXTENSION = '{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}'
FORM = '{"elicitation":{}}'


class Played:
    """What the functions have done."""

    def __init__(self) -> None:
        self.runs = 0
        self.states: list[str | None] = []
        self.begun = anyio.Event()
        self.gate = anyio.Event()
        self.stopped = 0


@pytest.fixture
def new_server(request: pytest.FixtureRequest, cluster: Callable[[], Cluster], tmp_path: Path) -> Any:
    """What returns the server of one worker, and what its functions have done."""
    played = Played()
    is_memory = isinstance(cluster(), MemoryCluster)

    def new() -> Server:
        store: Any = SqliteTaskStore(tmp_path / "tasks.db", lock_seconds=PATIENCE_SECONDS)
        if not is_memory:
            running: RedisServer = request.getfixturevalue("redis")
            store = RedisTaskStore(running.url, name="demo", timeout_seconds=PATIENCE_SECONDS)
        server = Server("demo", version="1", tasks=store, task_limits=TaskLimits(lease_seconds=0.6))

        @server.tool(task=True)
        async def wait(ctx: Context) -> str:
            played.begun.set()
            try:
                await played.gate.wait()
            except BaseException:
                played.stopped += 1
                raise
            return "done"

        @server.tool(task=True, replay=True)
        async def again(ctx: Context) -> str:
            played.runs += 1
            played.states.append(ctx.request_state)
            await played.gate.wait()
            return "done again"

        @server.tool(task=True)
        async def ask(ctx: Context) -> str:
            form = await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
            return form.action

        @server.tool(task=True)
        async def ask_later(ctx: Context) -> str:
            await played.gate.wait()
            return (await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})).action

        return server

    return new, played


async def created(client: Any, tool: str) -> str:
    """Return the id of a new task, of 2025-11-25, whose clients have no `requestState`, or of the extension."""
    asked = f'"name":"{tool}","arguments":{{}}' + ("" if client.is_stateless else ',"task":{},"requestState":"made up"')
    said = await client.result("tools/call", asked)
    return str(said["taskId"] if client.is_stateless else said["task"]["taskId"])


async def asked(client: Any, method: str, task: str, more: str = "") -> Any:
    return await client.result(method, f'"taskId":"{task}"{more}')


async def until(client: Any, task: str, *statuses: str) -> Any:
    while True:
        found = await asked(client, "tasks/get", task)
        if found["status"] in statuses:
            return found
        await anyio.sleep(0.02)


async def client_of(workers: Workers, revision: str, worker: int = 0) -> Any:
    if revision == "2026-07-28":
        return workers.client(worker, revision, EXTENSION)
    return await workers.client(worker, revision, FORM).shake_hands()


REVISIONS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


@REVISIONS
async def test_a_task_is_known_at_every_worker(new_server: Any, cluster: Callable[[], Cluster], revision: str) -> None:
    new, played = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, revision)
        task = await created(client, "wait")
        seen = [(await asked(workers.at(each, client), "tasks/get", task))["status"] for each in range(3)]
        played.gate.set()
        done = await until(workers.at(2, client), task, "completed")
        if revision == "2025-11-25":
            done = {"result": await asked(workers.at(1, client), "tasks/result", task)}

    assert ["working"] * 3 == seen
    assert "done" == done["result"]["content"][0]["text"]


@REVISIONS
async def test_a_task_is_cancelled_at_another_worker(
    new_server: Any, cluster: Callable[[], Cluster], revision: str
) -> None:
    new, played = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, revision)
        task = await created(client, "wait")
        await played.begun.wait()  # a busy server starts it some turns later
        await asked(workers.at(1, client), "tasks/cancel", task)
        found = await until(workers.at(2, client), task, "cancelled")
        while not played.stopped:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.02)

    assert ("cancelled", 1) == (found["status"], played.stopped)


async def test_a_waiting_result_hears_of_the_end_at_another_worker(
    new_server: Any, cluster: Callable[[], Cluster]
) -> None:
    new, played = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, "2025-11-25")
        task = await created(client, "wait")
        waiting = workers.at(1, client).send("tasks/result", f'"taskId":"{task}"', identity=50)
        await asked(workers.at(2, client), "tasks/get", task)
        played.gate.set()
        (said,) = await (await waiting.complete()).messages()

    assert "done" == said["result"]["content"][0]["text"]


@REVISIONS
async def test_a_task_asks_its_client_through_any_worker(
    new_server: Any, cluster: Callable[[], Cluster], revision: str
) -> None:
    new, _ = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, revision)
        if revision == "2026-07-28":
            task = await created(client, "ask")
            found = await until(workers.at(1, client), task, "input_required")
            (key,) = found["inputRequests"]
            answer = f',"inputResponses":{{"{key}":{{"action":"decline"}}}}'
            await asked(workers.at(2, client), "tasks/update", task, answer)
            done = await until(workers.at(1, client), task, "completed")
        else:
            stream = workers.at(1, client).listen()
            await stream.begun()
            task = await created(workers.at(2, client), "ask")
            question = await stream.message()
            while question["method"] != "elicitation/create":
                question = await stream.message()
            body = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}).encode()
            assert 202 == (await workers.at(1, client).post(body).complete()).status
            await until(workers.at(0, client), task, "completed")
            done = {"result": await asked(workers.at(1, client), "tasks/result", task)}

    assert "decline" == done["result"]["content"][0]["text"]


@pytest.mark.parametrize("asked_first", [True, False])
async def test_a_task_asks_on_the_stream_of_its_result_at_another_worker(
    new_server: Any, cluster: Callable[[], Cluster], *, asked_first: bool
) -> None:
    """The home is the first worker, the function runs in the second, and the client waits at the third."""
    new, played = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, "2025-11-25")
        task = await created(workers.at(1, client), "ask_later")
        if asked_first:
            played.gate.set()
            await until(workers.at(0, client), task, "input_required")
        stream = workers.at(2, client).send("tasks/result", f'"taskId":"{task}"', identity=50)
        home = workers.front.apps[0]._state.sessions.peek(client.session)
        while not home.session.exchanges:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
        played.gate.set()
        question = await stream.message()
        await workers.at(0, client).answer(question, '{"action":"decline"}')
        (said,) = await stream.messages()

    assert "elicitation/create" == question["method"]
    assert "decline" == said["result"]["content"][0]["text"]


async def kill(workers: Workers, number: int) -> None:
    """End the tasks of a worker as ``kill -9`` does: it writes nothing more to the store."""
    engine = workers.front.apps[number]._state.engine
    tasks: Any = engine.tasks

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a dead worker does not write")

    tasks._worker._watch = lambda: 0.02
    tasks._worker._sync = lambda: None
    for running_task in tasks._tasks.running.values():
        running_task._change = lambda *_, **__: None
    cluster = workers.cluster(number)
    cluster._worker._running.cancel()
    await cluster._worker.cluster.remove(cluster._worker._record(cluster._worker.number))


@pytest.mark.slow
@REVISIONS
async def test_a_task_of_a_killed_worker_fails_or_runs_again(
    new_server: Any, cluster: Callable[[], Cluster], revision: str
) -> None:
    new, played = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, revision)
        await workers.at(1, client).send("tools/list").complete()
        lost, repeated = await created(client, "wait"), await created(client, "again")
        while played.runs < 1:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
        await kill(workers, 0)
        failed = await until(workers.at(1, client), lost, "failed")
        while played.runs < 2:  # noqa: ASYNC110 (which nothing announces)
            await anyio.sleep(0.01)
        played.gate.set()
        done = await until(workers.at(2, client), repeated, "completed")
        if revision == "2025-11-25":
            done = {"result": await asked(workers.at(1, client), "tasks/result", repeated)}

    assert "The process that ran the task has ended" == failed["statusMessage"]
    assert ("done again", 2) == (done["result"]["content"][0]["text"], played.runs)
    assert [None, None] == played.states


@pytest.mark.slow
async def test_another_session_does_not_find_a_task(new_server: Any, cluster: Callable[[], Cluster]) -> None:
    new, _ = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, "2025-11-25")
        other = await client_of(workers, "2025-11-25", 1)
        task = await created(client, "wait")
        said = await other.send("tasks/get", f'"taskId":"{task}"').messages()

    assert -32602 == said[-1]["error"]["code"]


async def test_a_result_outlives_the_copy_of_the_session_that_made_it(
    new_server: Any, cluster: Callable[[], Cluster]
) -> None:
    new, played = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, "2025-11-25")
        task = await created(client, "wait")
        played.gate.set()
        await until(workers.at(1, client), task, "completed")
        state = workers.front.apps[0]._state
        state.sessions.end(state.sessions.peek(client.session))  # as if this worker had no room for it
        done = await asked(workers.at(0, client), "tasks/result", task)

    assert "done" == done["content"][0]["text"]


async def test_the_tasks_of_a_session_end_with_it_but_not_with_a_copy(
    new_server: Any, cluster: Callable[[], Cluster]
) -> None:
    new, played = new_server
    async with running(new, cluster) as workers:
        client = await client_of(workers, "2025-11-25")
        task = await created(client, "wait")
        await played.begun.wait()
        state = workers.front.apps[1]._state
        assert "working" == (await asked(workers.at(1, client), "tasks/get", task))["status"]
        state.sessions.end(state.sessions.peek(client.session))  # as if this worker had no room for it
        kept = await asked(workers.at(1, client), "tasks/get", task)
        store: Any = state.engine.tasks
        assert 204 == (await workers.at(2, client).delete()).status
        with anyio.fail_after(PATIENCE_SECONDS):
            while store._tasks.store.get(task) is not None or not played.stopped:  # noqa: ASYNC110 (which nothing announces)
                await anyio.sleep(0.02)

    assert ("working", 1) == (kept["status"], played.stopped)
