"""What goes wrong with tasks: their process dies, their store fails, their clients never answer, clocks are set."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import sys
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen import (
    Client,
    Context,
    Process,
    RedisTaskStore,
    RequestRefused,
    Server,
    SqliteTaskStore,
    TaskCancelled,
    TaskLimits,
    TransportClosed,
    connect,
)
from mcpgen.generated.extensions import tasks
from mcpgen.generated.v2026_07_28 import ElicitResult
from mcpgen.runtime.server.tasks.task_requests import steady_clock
from mcpgen.runtime.server.tasks.task_store import StoreFailed
from tests.harness.redis_servers import RedisServer, needs_redis, redis_server
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.specification.citation import spec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

pytestmark = [pytest.mark.anyio]

NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
# A worker is dead after this time without a beat.
LEASE_SECONDS = 0.6

WORKER = """
import os, sys, anyio
from mcpgen import Context, RedisTaskStore, Server, SqliteTaskStore, TaskLimits

place = sys.argv[1]
is_redis = place.startswith("redis:")
store = RedisTaskStore(place, name="bakery", timeout_seconds=20) if is_redis else SqliteTaskStore(place)
server = Server("bakery", tasks=store, task_limits=TaskLimits(lease_seconds=0.6))

@server.tool(task=True)
async def forever() -> str:
    await anyio.sleep(3600)
    return "never"

@server.tool(task=True, replay=True)
async def again(ctx: Context, name: str) -> str:
    form = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    if os.environ.get("STUCK"):
        await anyio.sleep(3600)
    return f"{name}: {form.action} {form.content}"

@server.tool(task="deferred", replay=True)
async def later(ctx: Context) -> str:
    before = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    await ctx.defer()
    after = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    return f"{before.action} {after.action}"

@server.tool
def process() -> int:
    return os.getpid()

server.run()
"""

HTTP_WORKER = """
import socket, sys, anyio, uvicorn
from mcpgen import Server, SqliteTaskStore, TaskLimits

server = Server("kitchen", tasks=SqliteTaskStore(sys.argv[1]), task_limits=TaskLimits(lease_seconds=0.6))

@server.tool(task=True, replay=True)
async def again() -> str:
    await anyio.sleep(3600)
    return "never"

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = server.asgi(user=lambda _scope: "alice")
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
"""


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=needs_redis)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where processes share their tasks: a file, or the URL of Redis."""
    if request.param == "sqlite":
        return str(tmp_path / "tasks.db")
    running: RedisServer = request.getfixturevalue("redis")
    running.command("FLUSHALL")
    return running.url


def bakery(place: str | Path, **options: Any) -> Server[Any]:
    """Return the server of `WORKER`, for this process."""
    is_redis = str(place).startswith("redis:")
    store = (
        RedisTaskStore(str(place), name="bakery", timeout_seconds=PATIENCE_SECONDS)
        if is_redis
        else SqliteTaskStore(place)
    )
    server = Server("bakery", tasks=store, task_limits=TaskLimits(lease_seconds=LEASE_SECONDS, **options))

    @server.tool(task=True)
    async def forever() -> str:
        await anyio.sleep(3600)
        return "never"

    @server.tool(task=True, replay=True)
    async def again(ctx: Context, name: str) -> str:
        form = await ctx.elicit("Who?", NAME)
        return f"{name}: {form.action} {form.content}"

    @server.tool(task="deferred", replay=True)
    async def later(ctx: Context) -> str:
        before = await ctx.elicit("Who?", NAME)
        await ctx.defer()
        after = await ctx.elicit("Who?", NAME)
        return f"{before.action} {after.action}"

    return server


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    return await client.request_json(method, params)


async def create(client: Client, tool: str, **arguments: Any) -> str:
    return str((await ask(client, "tools/call", name=tool, arguments=arguments))["taskId"])


async def when(client: Client, task: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            found = await ask(client, "tasks/get", taskId=task)
            if is_so(found):
                return found
            await anyio.sleep(0.02)


def declared(target: Any) -> Any:
    return connect(
        target, extensions=[tasks.EXTENSION], revisions=["2026-07-28"], elicit=lambda _params, _context: None
    )


@asynccontextmanager
async def worker(folder: Path, place: str, *, is_stuck: bool) -> AsyncGenerator[tuple[Client, int]]:
    """Run a server in a process of its own, and yield its client and the id of the process."""
    program = folder / "worker.py"
    program.write_text(WORKER, encoding="utf-8")
    environment = {"STUCK": "1"} if is_stuck else {}
    target = Process([sys.executable, str(program), place], environment=environment)
    async with declared(target) as client:
        yield client, await client.call_tool("process", returns=int)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills the process with a signal of POSIX")
async def test_a_task_whose_process_is_killed_fails_or_runs_again(tmp_path: Path, place: str) -> None:
    async with worker(tmp_path, place, is_stuck=True) as (client, process):
        lost = await create(client, "forever")
        repeated = await create(client, "again", name="bread")
        (key,) = (await when(client, repeated, lambda found: "inputRequests" in found))["inputRequests"]
        answer = {"action": "accept", "content": {"name": "Luca"}}
        await ask(client, "tasks/update", taskId=repeated, inputResponses={key: answer})
        await when(client, repeated, lambda found: found["status"] == "working")
        os.kill(process, signal.SIGKILL)

    server = bakery(place)
    async with server.running(), declared(server) as client:
        failed = await when(client, lost, lambda found: found["status"] == "failed")
        done = await when(client, repeated, lambda found: found["status"] == "completed")

    assert {"code": -32603, "message": "The process that ran the task has ended"} == failed["error"]
    assert "bread: accept {'name': 'Luca'}" == done["result"]["content"][0]["text"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills the process with a signal of POSIX")
@spec("ext-tasks", "specification/draft/tasks#task-update-requests", "2153c6b0")
async def test_a_deferred_task_that_runs_again_does_not_repeat_a_question_of_its_call(
    tmp_path: Path, place: str
) -> None:
    call: dict[str, Any] = {"name": "later", "arguments": {}}
    async with worker(tmp_path, place, is_stuck=False) as (client, process):
        required = await ask(client, "tools/call", **call)
        (first,) = required["inputRequests"]
        answers = {"requestState": required["requestState"], "inputResponses": {first: {"action": "accept"}}}
        task = str((await ask(client, "tools/call", **call, **answers))["taskId"])
        (second,) = (await when(client, task, lambda found: "inputRequests" in found))["inputRequests"]
        os.kill(process, signal.SIGKILL)

    server = bakery(place)
    async with server.running(), declared(server) as client:
        await when(client, task, lambda _: task in server._engine.tasks._tasks.running)  # type: ignore[union-attr]
        asking = server._engine.tasks._tasks.running[task]  # type: ignore[union-attr]
        await when(client, task, lambda _: asking.is_asking)
        (key,) = (await ask(client, "tasks/get", taskId=task))["inputRequests"]
        await ask(client, "tasks/update", taskId=task, inputResponses={key: {"action": "decline"}})
        done = await when(client, task, lambda found: found["status"] != "working")

    assert first != second == key
    assert "accept decline" == done["result"]["content"][0]["text"]


async def test_two_processes_share_a_task(place: str) -> None:
    one, other = bakery(place), bakery(place)
    async with one.running(), other.running(), declared(one) as runs, declared(other) as asks:
        task, stopped = await create(runs, "again", name="bread"), await create(runs, "forever")
        (key,) = (await when(asks, task, lambda found: "inputRequests" in found))["inputRequests"]
        await ask(asks, "tasks/update", taskId=task, inputResponses={key: {"action": "decline"}})
        await ask(asks, "tasks/cancel", taskId=stopped)
        done = await when(asks, task, lambda found: found["status"] == "completed")
        running = one._engine.tasks._tasks.running  # type: ignore[union-attr]  # of this process
        with anyio.fail_after(PATIENCE_SECONDS):
            while running:  # noqa: ASYNC110 (the worker looks for cancellations every half second)
                await anyio.sleep(0.02)

    assert "bread: decline None" == done["result"]["content"][0]["text"]


async def test_a_subscriber_hears_of_a_task_that_another_process_runs(place: str) -> None:
    one, other = bakery(place), bakery(place)
    async with one.running(), other.running(), declared(one) as runs, connect(other, tasks=True) as waits:
        task = await create(runs, "forever")
        handle = waits.task(task)
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                tool_tasks: Any = waits._engine.tool_tasks
                while not tool_tasks._watcher.waits:  # noqa: ASYNC110 (the subscription is open then)
                    await anyio.sleep(0.01)
                await ask(runs, "tasks/cancel", taskId=task)

            group.start_soon(cancel)
            with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(TaskCancelled):
                await handle.result()


async def test_a_server_that_stops_leaves_its_task_to_another(place: str) -> None:
    first = bakery(place)
    async with first.running(), declared(first) as client:
        task, lost = await create(client, "again", name="bread"), await create(client, "forever")
        await when(client, task, lambda found: "inputRequests" in found)

    second = bakery(place)
    async with second.running(), declared(second) as client:
        found = await when(client, task, lambda found: "inputRequests" in found)
        ended = await when(client, lost, lambda found: found["status"] == "failed")
        (key,) = found["inputRequests"]
        await ask(client, "tasks/update", taskId=task, inputResponses={key: {"action": "decline"}})
        done = await when(client, task, lambda found: found["status"] == "completed")

    assert "bread: decline None" == done["result"]["content"][0]["text"]
    assert -32603 == ended["error"]["code"]


@pytest.mark.slow
async def test_a_worker_that_was_only_suspended_gives_up_its_tasks(place: str) -> None:
    one, other = bakery(place), bakery(place)
    async with one.running(), declared(one) as client:
        task = await create(client, "forever")
        engine_tasks: Any = one._engine.tasks
        worker, running = engine_tasks._worker, engine_tasks._tasks.running
        worker._watch = lambda: 0.02  # it counts no beats
        async with other.running(), declared(other) as asks:
            failed = await when(asks, task, lambda found: found["status"] == "failed")
            with anyio.fail_after(PATIENCE_SECONDS):
                while running:  # noqa: ASYNC110 (the worker looks every half second)
                    await anyio.sleep(0.02)
            again = await ask(asks, "tasks/get", taskId=task)

    assert failed == again


@needs_redis
@pytest.mark.slow
async def test_without_redis_a_request_is_refused_at_once_and_later_served(redis: RedisServer) -> None:
    server = Server("bakery", tasks=RedisTaskStore(redis.url, name="bakery", timeout_seconds=2))
    gate = anyio.Event()

    @server.tool(task=True)
    async def slow() -> str:
        await gate.wait()
        return "done"

    async with server.running(), declared(server) as client:
        task = await create(client, "slow")
        with redis.paused():
            with pytest.raises(RequestRefused, match="The task store failed; try again later"):
                await create(client, "slow")
            started = time.monotonic()
            for _ in range(20):
                with pytest.raises(RequestRefused, match="The task store failed; try again later"):
                    await ask(client, "tasks/get", taskId=task)
            elapsed = time.monotonic() - started
            gate.set()
            await anyio.sleep(0.1)  # the function ends while its result cannot be stored
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                with suppress(RequestRefused):
                    done = await when(client, task, lambda found: found["status"] == "completed")
                    break
                await anyio.sleep(0.05)

    assert "done" == done["result"]["content"][0]["text"]
    assert elapsed < BUSY_SECONDS  # 40, if each of them had waited for Redis


@pytest.mark.spec("ext-tasks", "specification/draft/tasks#protocol-errors", "8bd22fbb")
@pytest.mark.slow
async def test_a_locked_store_is_an_error_of_the_request_and_recovers(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    server = Server("bakery", tasks=SqliteTaskStore(path, lock_seconds=0.01))
    gate = anyio.Event()

    @server.tool(task=True)
    async def slow() -> str:
        await gate.wait()
        return "done"

    async with server.running(), declared(server) as client:
        task = await create(client, "slow")
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RequestRefused, match="The task store failed; try again later") as refused:
            await create(client, "slow")
        gate.set()
        await anyio.sleep(0.1)  # the function ends while its result cannot be stored
        blocker.execute("ROLLBACK")
        blocker.close()
        done = await when(client, task, lambda found: found["status"] == "completed")

    assert (-32603, "done") == (refused.value.code, done["result"]["content"][0]["text"])


async def test_a_damaged_store_is_an_error_of_each_request(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    server = bakery(path)
    path.write_bytes(b"this is not a database, but it is long enough to look like one" * 20)
    async with server.running(), declared(server) as client:
        with pytest.raises(RequestRefused, match="The task store failed") as refused:
            await create(client, "forever")
        assert -32603 == refused.value.code
        assert {"tools"} <= set(await ask(client, "tools/list"))


async def test_a_full_store_refuses_new_startedand_a_result_that_does_not_fit(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db", max_tasks=2, max_outcome_bytes=5000)
    server = Server("bakery", tasks=store)

    @server.tool(task=True)
    async def large(size: int) -> str:
        return "x" * size

    async with server.running(), declared(server) as client:
        small, big = await create(client, "large", size=10), await create(client, "large", size=10_000)
        with pytest.raises(RequestRefused, match="The task store is full: it has 2 tasks"):
            await create(client, "large", size=1)
        failed = await when(client, big, lambda found: found["status"] != "working")
        done = await when(client, small, lambda found: found["status"] != "working")

    assert ("failed", "completed") == (failed["status"], done["status"])
    assert "too large for the task store" in failed["error"]["message"]


def test_a_store_of_another_layout_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "tasks.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(StoreFailed, match="written by another version of mcpgen"):
        SqliteTaskStore(tmp_path / "tasks.db").get("any")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_its_user_can_read_a_store(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db")
    assert store.get("any") is None
    store.close()

    assert 0o600 == (tmp_path / "tasks.db").stat().st_mode & 0o777


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_store_that_others_could_write_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    path.touch()
    path.chmod(0o666)
    store = SqliteTaskStore(path)
    assert store.get("any") is None
    store.close()

    assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.filterwarnings("error::ResourceWarning")
@pytest.mark.slow
def test_a_store_that_is_dropped_leaves_no_open_file(tmp_path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list the open files of a process")

    def open_files() -> list[Path]:
        found = [each.resolve() for each in descriptors.iterdir()]
        return [each for each in found if each.name == "tasks.db"]

    store = SqliteTaskStore(tmp_path / "tasks.db")
    assert store.get("any") is None
    assert open_files()
    del store
    gc.collect()

    assert [] == open_files()


@pytest.mark.slow
async def test_a_thousand_startedwait_for_input_within_the_limits() -> None:
    server = Server("bakery", task_limits=TaskLimits(max_running_per_principal=1000))

    @server.tool(task=True)
    async def wait(ctx: Context) -> str:
        return (await ctx.elicit("Who?", NAME)).action

    async with server.running(), declared(server) as client:
        created = [await create(client, "wait") for _ in range(1000)]
        with pytest.raises(RequestRefused, match="Too many tasks are running"):
            await create(client, "wait")
        kept = server._engine.ledger.by_kind()["tasks"]
        assert "hello" != await ask(client, "tools/list")  # the server still answers
        for task in created:
            await ask(client, "tasks/cancel", taskId=task)
        again = await create(client, "wait")
        await ask(client, "tasks/cancel", taskId=again)

    assert 1000 * 600 < kept < 1000 * 2000
    engine_tasks: Any = server._engine.tasks
    assert {} == engine_tasks._tasks.running


async def test_by_default_one_owner_cannot_run_more_than_its_share() -> None:
    server = Server("bakery")

    @server.tool(task=True)
    async def forever() -> str:
        await anyio.sleep(3600)
        return "never"

    async with declared(server) as client:
        for _ in range(64):
            await create(client, "forever")
        with pytest.raises(RequestRefused, match="Too many tasks are running"):
            await create(client, "forever")


async def test_the_arguments_of_running_startedcount_until_their_functions_have_ended() -> None:
    limits = TaskLimits(max_running_bytes=300_000, max_running_bytes_per_principal=120_000)
    server = Server("bakery", task_limits=limits)

    @server.tool(task=True)
    async def keep(text: str) -> str:
        await anyio.sleep(3600)
        return text

    async def fill(owner: str) -> list[str]:
        """Return the tasks of *owner* that were created before one was refused, and the reason."""
        connection: Any = list(server._engine.connections)[-1]
        connection.session.owner = owner
        made: list[str] = []
        while len(made) < 10:
            try:
                made.append(await create(client, "keep", text="x" * 20_000))
            except RequestRefused as refused:
                return [*made, refused.message]
        return [*made, "none was refused"]

    async def cancel(made: list[str]) -> None:
        """Cancel tasks, and return when their functions have ended."""
        for task in made:
            await ask(client, "tasks/cancel", taskId=task)
        engine_tasks: Any = server._engine.tasks
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                if not any(each in engine_tasks._tasks.running for each in made):
                    return
                await anyio.lowlevel.checkpoint()

    async with server.running(), declared(server) as client:
        *first, own = await fill("first")
        others = [await fill(owner) for owner in ("second", "third", "fourth")]
        await cancel(first)
        *again, _ = await fill("first")
        await cancel([*again, *(each for found in others for each in found[:-1])])
        alone = await create(client, "keep", text="x" * 400_000)

    reason = "The calls of running tasks keep too many bytes ({}); try again later"
    assert reason.format("max_running_bytes_per_principal") == own
    assert reason.format("max_running_bytes") == others[-1][-1]
    assert 1 <= len(first) < 10
    assert len(again) >= 1
    assert alone


def test_a_clock_that_is_set_forward_or_back_expires_no_task() -> None:
    wall, monotonic = [1000.0], [5.0]
    clock = steady_clock(lambda: wall[0], lambda: monotonic[0])
    assert 1000 == clock()

    wall[0] += 86_400
    assert 1000 == clock()
    wall[0] -= 2 * 86_400
    monotonic[0] += 7
    assert 1007 == clock()


@pytest.mark.slow
async def test_a_question_without_an_answer_ends_with_its_task() -> None:
    server = Server("bakery", task_limits=TaskLimits(default_ttl_ms=1000))
    ended = anyio.Event()

    @server.tool(task=True)
    async def wait(ctx: Context) -> str:
        try:
            return (await ctx.elicit("Who?", NAME)).action
        finally:
            ended.set()

    async with declared(server) as client:
        task = await create(client, "wait")
        with anyio.fail_after(PATIENCE_SECONDS):
            await ended.wait()
        with pytest.raises(RequestRefused, match="There is no such task"):
            await ask(client, "tasks/get", taskId=task)


async def test_the_functions_of_a_client_are_not_asked_twice_for_one_request() -> None:
    asked: list[str] = []

    async def elicit(params: Any, _context: Any) -> ElicitResult:
        asked.append(params.message)
        await anyio.sleep(0.05)
        return ElicitResult(action="decline")

    server = Server("bakery", task_limits=TaskLimits(poll_interval_ms=1))

    @server.tool(task=True)
    async def wait(ctx: Context) -> str:
        first = await ctx.elicit("First?", NAME)
        second = await ctx.elicit("Second?", NAME)
        return f"{first.action} {second.action}"

    async with connect(server, tasks=True, elicit=elicit) as client:
        assert "decline decline" == (await client.call_tool("wait")).text
    assert ["First?", "Second?"] == asked


async def test_a_server_that_stops_and_runs_again_takes_up_its_tasks(tmp_path: Path) -> None:
    server = bakery(tmp_path / "tasks.db")
    async with server.running(), declared(server) as client:
        task = await create(client, "again", name="bread")
        (key,) = (await when(client, task, lambda found: "inputRequests" in found))["inputRequests"]
    async with server.running(), declared(server) as client:
        await when(client, task, lambda _: task in server._engine.tasks._tasks.running)  # type: ignore[union-attr]
        await ask(client, "tasks/update", taskId=task, inputResponses={key: {"action": "decline"}})
        done = await when(client, task, lambda found: found["status"] == "completed")

    assert "bread: decline None" == done["result"]["content"][0]["text"]


async def test_what_a_full_disk_does_not_take_can_be_tried_again(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db")
    database = store._connection()
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    names = (f"{number:0100}" for number in range(1000))
    with pytest.raises(StoreFailed, match="database or disk is full"):  # not `StoreFull`, which no beat may raise
        all(store.beat(each) for each in names)
    store.close()


@pytest.mark.slow
async def test_a_full_disk_is_an_error_of_the_request_and_recovers(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db")
    server = Server("bakery", tasks=store)
    gate = anyio.Event()

    @server.tool(task=True)
    async def large() -> str:
        await gate.wait()
        return "x" * 100_000

    async def fill(client: Client) -> None:
        """Create tasks until there is no room in the last page."""
        for _ in range(1000):
            await create(client, "large")

    async with server.running(), declared(server) as client:
        task = await create(client, "large")
        database = store._connection()
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}")
        gate.set()
        await anyio.sleep(0.1)  # the function ends while its result cannot be stored
        still = await ask(client, "tasks/get", taskId=task)
        with pytest.raises(RequestRefused, match="The task store failed; try again later") as refused:
            await fill(client)
        database.execute("PRAGMA max_page_count = 1000000")
        done = await when(client, task, lambda found: found["status"] != "working")

    assert ("working", -32603, "completed") == (still["status"], refused.value.code, done["status"])


async def test_a_store_that_is_damaged_while_it_is_used_is_an_error_of_each_request(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    server = bakery(path)
    async with server.running(), declared(server) as client:
        task = await create(client, "forever")
        store: Any = server._engine.tasks._tasks.store  # type: ignore[union-attr]  # of this process
        store._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.close()
        path.write_bytes(path.read_bytes()[:4096] + b"damage" * 2000)
        with pytest.raises(RequestRefused, match="The task store failed") as refused:
            await ask(client, "tasks/get", taskId=task)
        assert {"tools"} <= set(await ask(client, "tools/list"))

    assert -32603 == refused.value.code


async def test_a_clock_of_the_system_that_is_set_forward_expires_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    jump = [0.0]
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + jump[0])
    server = Server("bakery", task_limits=TaskLimits(default_ttl_ms=60_000))

    @server.tool(task=True)
    async def forever() -> str:
        await anyio.sleep(3600)
        return "never"

    async with server.running(), declared(server) as client:
        task = await create(client, "forever")
        for jump[0] in (86_400.0, -86_400.0):
            later = await create(client, "forever")
            found = [await ask(client, "tasks/get", taskId=each) for each in (task, later)]
            assert ["working", "working"] == [each["status"] for each in found]
            assert found[0]["createdAt"] <= found[1]["createdAt"] < found[0]["createdAt"][:17] + "99"


@asynccontextmanager
async def of_alice(server: Server[Any]) -> AsyncGenerator[Client]:
    """Connect a client of 2025-11-25 that the transport has authenticated."""
    async with connect(server, revisions=["2025-11-25"], elicit=lambda _params, _context: None) as client:
        (*_, connection) = server._engine.connections
        connection.session.user = "alice"
        yield client


async def start(client: Client, tool: str, **arguments: Any) -> str:
    created = await ask(client, "tools/call", name=tool, arguments=arguments, task={})
    return str(created["task"]["taskId"])


def kitchen(path: Path, runs: list[str]) -> Server[Any]:
    """Return a server whose functions wait in the first run, and note each run in *runs*."""
    server = Server("kitchen", tasks=SqliteTaskStore(path), task_limits=TaskLimits(lease_seconds=LEASE_SECONDS))

    async def run(name: str, ctx: Context) -> str:
        runs.append(name)
        await ctx.progress(1, 2, "Kneading")
        await ctx.log("info", "kneading")
        if runs.count(name) == 1:
            await anyio.sleep(3600)
        return f"{name} done"

    @server.tool(task=True, replay=True)
    async def again(ctx: Context) -> str:
        return await run("again", ctx)

    @server.tool(task=True)
    async def once(ctx: Context) -> str:
        return await run("once", ctx)

    @server.tool(task=True, replay=True)
    async def asking(ctx: Context) -> str:
        await run("asking", ctx)
        return (await ctx.elicit("Who?", NAME)).action

    return server


@pytest.mark.slow
async def test_the_handshake_task_of_a_user_runs_again_when_its_worker_has_died(tmp_path: Path) -> None:
    runs: list[str] = []
    one, other = kitchen(tmp_path / "tasks.db", runs), kitchen(tmp_path / "tasks.db", runs)
    async with one.running(), of_alice(one) as client:
        started = [await start(client, each) for each in ("again", "once", "asking")]
        engine_tasks: Any = one._engine.tasks
        engine_tasks._worker_of(one._engine)._watch = lambda: 3600.0  # it counts no beats
        async with other.running(), of_alice(other) as asks:
            again, once, asking = [
                await when(asks, each, lambda found: found["status"] != "working") for each in started
            ]
            done = await ask(asks, "tasks/result", taskId=started[0])
            refused = await ask(asks, "tasks/result", taskId=started[2])

    assert ("completed", "failed", "failed") == (again["status"], once["status"], asking["status"])
    assert "again done" == done["content"][0]["text"]
    assert {"io.modelcontextprotocol/related-task": {"taskId": started[0]}} == done["_meta"]
    assert "The process that ran the task has ended" == once["statusMessage"]
    assert refused["isError"]
    assert ["again", "once", "asking", "again", "asking"] == runs[:3] + sorted(runs[3:])


@pytest.mark.slow
async def test_the_handshake_task_of_a_user_runs_again_when_its_session_has_ended(tmp_path: Path) -> None:
    runs: list[str] = []
    server = kitchen(tmp_path / "tasks.db", runs)
    async with server.running():
        async with of_alice(server) as client:
            started = [await start(client, each) for each in ("again", "once")]
            with anyio.fail_after(PATIENCE_SECONDS):
                while len(runs) < 2:  # noqa: ASYNC110 (the functions have no event)
                    await anyio.sleep(0.001)
        async with of_alice(server) as client:
            again, once = [await when(client, each, lambda found: found["status"] != "working") for each in started]

    assert ("completed", "failed", ["again", "once", "again"]) == (again["status"], once["status"], runs)


@pytest.mark.slow
async def test_the_handshake_task_of_a_connection_ends_with_it(tmp_path: Path) -> None:
    runs: list[str] = []
    server = kitchen(tmp_path / "tasks.db", runs)
    async with server.running():
        async with connect(server, revisions=["2025-11-25"]) as client:
            task = await start(client, "again")
            record = server._engine.tasks._tasks.store.get(task)  # type: ignore[union-attr]  # of this process
            assert record.call is None
        async with connect(server, revisions=["2025-11-25"]) as client:
            with pytest.raises(RequestRefused, match="There is no such task"):
                await ask(client, "tasks/get", taskId=task)

    assert ["again"] == runs


@pytest.mark.slow
async def test_a_server_that_stops_leaves_the_handshake_task_of_a_user_to_another(tmp_path: Path) -> None:
    runs: list[str] = []
    first, second = kitchen(tmp_path / "tasks.db", runs), kitchen(tmp_path / "tasks.db", runs)
    async with first.running(), of_alice(first) as client:
        started = [await start(client, each) for each in ("again", "once")]
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(runs) < 2:  # noqa: ASYNC110 (the functions have no event)
                await anyio.sleep(0.001)
    async with second.running(), of_alice(second) as client:
        again, once = [await when(client, each, lambda found: found["status"] != "working") for each in started]

    assert ("completed", "failed") == (again["status"], once["status"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills the process with a signal of POSIX")
async def test_the_handshake_task_of_a_user_runs_again_when_its_process_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "worker.py"
    program.write_text(HTTP_WORKER, encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path / "tasks.db")]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        with anyio.fail_after(PATIENCE_SECONDS):
            port = int(await process.stdout.receive())
        with suppress(TransportClosed):  # the goodbye of the client does not reach the server
            async with connect(f"http://127.0.0.1:{port}/mcp", revisions=["2025-11-25"]) as client:
                task = await start(client, "again")
                process.kill()
                await process.wait()

    runs = ["again"]  # of the process that was killed
    server = kitchen(tmp_path / "tasks.db", runs)
    async with server.running(), of_alice(server) as client:
        found = await when(client, task, lambda found: found["status"] != "working")

    assert ("completed", ["again", "again"]) == (found["status"], runs)
