"""Tasks of views: each view has tasks of its own, which other clients and workers of the same store leave alone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import MemoryTaskStore, RequestRefused, Server, SqliteTaskStore, TaskLimits, connect
from mcpgen.generated.extensions import tasks
from mcpgen.runtime.server.tasks.task_store import StoreFailed
from tests.faults.test_task_faults import ask, bakery, create, declared, when
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from mcpgen import Client

pytestmark = pytest.mark.anyio

NO_TASK = "There is no such task"
NO_STORE = "The task store failed; try again later"


def engine_tasks(server: Server[Any]) -> Any:
    return server._engine.tasks


def tick(server: Server[Any], times: int = 1) -> None:
    """Let the worker of *server* look at the other workers."""
    worker = engine_tasks(server)._worker
    for _ in range(times):
        worker._next_beat = -1.0
        worker.tick()


@asynccontextmanager
async def as_user(server: Server[Any], revision: str, name: str = "ann") -> AsyncGenerator[Client]:
    """Connect a client that the transport has authenticated."""
    extensions = [tasks.EXTENSION] if revision == "2026-07-28" else []
    async with connect(server, revisions=[revision], extensions=extensions) as client:
        (*_, connection) = server._engine.connections
        connection.session.user = name  # type: ignore[attr-defined]  # that of a connection
        yield client


def fail(*_: object, **__: object) -> bool:
    raise StoreFailed("locked")


async def begin(client: Client, tool: str = "forever") -> str:
    """Create a task of either kind."""
    if client.revision == "2026-07-28":
        return await create(client, tool)
    return str((await ask(client, "tools/call", name=tool, arguments={}, task={}))["task"]["taskId"])


# --- workers


async def test_the_worker_of_a_view_leaves_the_tasks_of_the_server_to_one_that_has_all_tools(tmp_path: Path) -> None:
    stopped, shown, server = (bakery(tmp_path / "tasks.db") for _ in range(3))
    view = shown.only(names=["forever"])
    worker = engine_tasks(shown)._worker_of(shown._engine)
    worker._watch = lambda: 1.0  # this is about the worker of the view
    async with stopped.running(), declared(stopped) as client:
        task = await create(client, "again", name="bread")
        await when(client, task, lambda found: "inputRequests" in found)
    store = SqliteTaskStore(tmp_path / "tasks.db")
    before = store.get(task)

    async with view.running():
        tick(view, 3)
        after = store.get(task)
    async with server.running(), declared(server) as client:
        found = await when(client, task, lambda found: "inputRequests" in found)
    store.close()

    assert before == after
    assert "input_required" == found["status"]


async def test_the_worker_of_a_server_leaves_the_tasks_of_a_view_to_the_same_view(tmp_path: Path) -> None:
    first, second = bakery(tmp_path / "tasks.db"), bakery(tmp_path / "tasks.db")
    before = first.only(names=["again"])
    async with before.running(), declared(before) as client:
        task = await create(client, "again", name="bread")
        await when(client, task, lambda found: "inputRequests" in found)

    after = second.only(names=["again"])
    async with second.running():
        tick(second, 3)
        assert {} == engine_tasks(second)._tasks.running
        async with after.running(), declared(after) as client:
            found = await when(client, task, lambda found: task in engine_tasks(after)._tasks.running)

    assert "input_required" == found["status"]


async def test_a_worker_of_a_view_that_had_no_tasks_is_forgotten_by_any_other(tmp_path: Path) -> None:
    store = SqliteTaskStore(tmp_path / "tasks.db")
    store.beat("view gone token")
    server = bakery(tmp_path / "tasks.db")
    async with server.running():
        engine_tasks(server)._worker._monotonic = count(10**9, 10).__next__
        tick(server, 3)
        workers = store.beat("another")
    store.close()

    assert "view gone token" not in workers


# --- clients


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.slow
async def test_clients_of_a_server_and_its_views_do_not_find_the_tasks_of_each_other(
    tmp_path: Path, revision: str
) -> None:
    server = bakery(tmp_path / "tasks.db")
    one, other = server.only(names=["forever"]), server.only(components=["tool"])
    async with as_user(server, revision) as a, as_user(one, revision) as b, as_user(other, revision) as c:
        clients = [a, b, c]
        created = [await begin(each) for each in clients]
        for client in clients:
            for task in created:
                for method in ("tasks/get", "tasks/cancel") if clients.index(client) != created.index(task) else ():
                    with pytest.raises(RequestRefused, match=NO_TASK):
                        await ask(client, method, taskId=task)
        alive = [
            (await ask(client, "tasks/get", taskId=task))["status"]
            for client, task in zip(clients, created, strict=True)
        ]

    assert ["working"] * 3 == alive


@pytest.mark.slow
async def test_the_list_of_a_view_has_its_own_tasks(tmp_path: Path) -> None:
    server = bakery(tmp_path / "tasks.db")
    view = server.only(names=["forever"])
    async with as_user(server, "2025-11-25") as a, as_user(view, "2025-11-25") as b:
        created = [await begin(a), await begin(b)]
        lists = [(await ask(each, "tasks/list"))["tasks"] for each in (a, b)]

    assert [[each] for each in created] == [[each["taskId"] for each in listed] for listed in lists]


async def test_a_client_of_a_view_cannot_answer_the_questions_of_a_task_of_the_server_or_watch_it(
    tmp_path: Path,
) -> None:
    server = bakery(tmp_path / "tasks.db")
    view = server.only(names=["forever"])
    async with server.running(), view.running(), declared(server) as a, declared(view) as b:
        task = await create(a, "again", name="bread")
        (key,) = (await when(a, task, lambda found: "inputRequests" in found))["inputRequests"]
        with pytest.raises(RequestRefused, match=NO_TASK):
            await ask(b, "tasks/update", taskId=task, inputResponses={key: {"action": "decline"}})
        context: Any = type("Context", (), {"user": "", "peer": type("Peer", (), {"revision": "2026-07-28"})})
        wanted = tasks.SubscriptionFilter(task_ids=[task])
        accepted = [engine_tasks(each).extension.accept_subscription(wanted, context) for each in (server, view)]

    assert [[task], []] == [each.task_ids for each in accepted]


# --- one store in one process


@pytest.mark.slow
async def test_a_task_that_expires_stops_though_a_view_of_the_same_store_removes_it(tmp_path: Path) -> None:
    store, ended = MemoryTaskStore(), anyio.Event()
    server = Server("bakery", tasks=store, task_limits=TaskLimits(min_ttl_ms=1, default_ttl_ms=300))

    @server.tool(task=True)
    async def forever() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    view = server.only(names=["forever"])
    async with view.running(), as_user(server, "2025-11-25") as client:
        task = await begin(client)
        found = store.get(task)
        assert found is not None
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:

                async def result() -> None:
                    with pytest.raises(RequestRefused, match="The task has expired"):
                        await ask(client, "tasks/result", taskId=task)

                group.start_soon(result)
                while not engine_tasks(server)._tasks._waiting:  # noqa: ASYNC110 (the request waits then)
                    await anyio.sleep(0.01)
                assert [found] == engine_tasks(view)._tasks.store.expire(found.expires_ms)
            await ended.wait()


async def test_a_request_waits_for_the_result_of_a_task_that_another_process_runs(tmp_path: Path) -> None:
    one, other = bakery(tmp_path / "tasks.db"), bakery(tmp_path / "tasks.db")
    async with as_user(one, "2025-11-25") as runs, as_user(other, "2025-11-25") as waits:
        task = await begin(runs)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:

                async def result() -> None:
                    with pytest.raises(RequestRefused, match="The task was cancelled"):
                        await ask(waits, "tasks/result", taskId=task)

                group.start_soon(result)
                while not engine_tasks(other)._tasks._waiting:  # noqa: ASYNC110 (the request waits then)
                    await anyio.sleep(0.01)
                await ask(runs, "tasks/cancel", taskId=task)


# --- a store that fails, at 2025-11-25


@pytest.mark.parametrize("method", ["tasks/list", "tasks/get", "tasks/result"])
@pytest.mark.slow
async def test_a_store_that_fails_is_an_error_of_each_request_for_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    server = bakery(tmp_path / "tasks.db")
    async with as_user(server, "2025-11-25") as client:
        task = await begin(client)
        for each in ("get", "page"):
            monkeypatch.setattr(engine_tasks(server)._tasks.store, each, fail)
        with pytest.raises(RequestRefused, match=NO_STORE) as refused:
            await ask(client, method, **({} if method == "tasks/list" else {"taskId": task}))
        monkeypatch.undo()

    assert -32603 == refused.value.code


async def test_a_store_that_fails_is_an_error_of_a_response_to_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = bakery(tmp_path / "tasks.db")
    async with server.running(), declared(server) as client:
        task = await create(client, "again", name="bread")
        (key,) = (await when(client, task, lambda found: "inputRequests" in found))["inputRequests"]
        answer = {"taskId": task, "inputResponses": {key: {"action": "decline"}}}
        monkeypatch.setattr(engine_tasks(server)._tasks.store, "replace", fail)
        with pytest.raises(RequestRefused, match=NO_STORE):
            await ask(client, "tasks/update", **answer)
        monkeypatch.undo()
        await ask(client, "tasks/update", **answer)

        assert "completed" == (await when(client, task, lambda found: found["status"] == "completed"))["status"]


async def test_a_cancellation_that_cannot_be_stored_stops_the_function_and_is_stored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = bakery(tmp_path / "tasks.db")
    async with as_user(server, "2025-11-25") as client:
        task = await begin(client)
        lifecycle = engine_tasks(server)._tasks

        monkeypatch.setattr(lifecycle.store, "replace", fail)
        with pytest.raises(RequestRefused, match=NO_STORE):
            await ask(client, "tasks/cancel", taskId=task)
        monkeypatch.undo()
        with anyio.fail_after(PATIENCE_SECONDS):
            while lifecycle.running:  # noqa: ASYNC110 (until its function has ended)
                await anyio.sleep(0.01)
        engine_tasks(server)._worker.wake()
        found = await when(client, task, lambda found: found["status"] != "working")

    assert "cancelled" == found["status"]
