"""Tasks of tools that need scopes: a token of the same user without these scopes cannot use them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Server
from tests.patience import PATIENCE_SECONDS
from tests.runtime.http.cluster.workers import Unwatched
from tests.specification.http_server.asgi_exchange import Web
from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, mirrored
from tests.specification.http_server.protected_site import (
    TASKS,
    ask_in_session,
    ask_tasks,
    challenge,
    protect,
    session,
    stateless,
    token,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def serving() -> AsyncGenerator[Any]:
    """Serve a tool that needs a scope, without the checks of the core protocol, which has no such tasks."""
    server = Server("tasks")

    @server.tool(task=True, scopes=["files:write"])
    async def secret() -> str:
        return "found"

    @server.tool(task=True)
    async def own() -> str:
        return "found"

    app = server.asgi(auth=protect())
    with anyio.fail_after(PATIENCE_SECONDS):
        async with app.running(), anyio.create_task_group() as group:
            web = Web(app, group, Unwatched(), "")
            yield web
            for each in web.exchanges:
                each.leave()


async def created(web: Any, revision: str) -> tuple[Any, str]:
    """Have a task made with the scope; return what sends requests like this, and the id of the task."""
    call = {"name": "secret", "arguments": {}}
    if revision == STATELESS:
        made = await ask_tasks(web, "ann-writes", "tools/call", **call)
        return partial(ask_tasks, web), made.json["result"]["taskId"]
    send = partial(ask_in_session, web, await session(web, "ann-writes", revision))
    (said,) = await (await send("ann-writes", "tools/call", **call, task={})).messages()
    return send, said["result"]["task"]["taskId"]


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_a_task_needs_the_scopes_of_its_tool(revision: str) -> None:
    """Else a token without them reads its result, answers its questions, or cancels it."""
    last = ("tasks/update", {"inputResponses": {}}) if revision == STATELESS else ("tasks/result", {})
    async with serving() as web:
        send, task_id = await created(web, revision)
        refused = [
            await send("ann", method, taskId=task_id, **more)
            for method, more in (("tasks/get", {}), ("tasks/cancel", {}), last)
        ]
        got = await send("ann-writes", "tasks/get", taskId=task_id)

    assert [(403, "files:write mcp")] * 3 == [(each.status, challenge(each)["scope"]) for each in refused]
    assert "completed" == got.json["result"]["status"]


@pytest.mark.parametrize("thief", ["bob", "ann-app2", "ann-elsewhere"])
async def test_a_task_belongs_to_issuer_client_and_subject(thief: str) -> None:
    async with serving() as web:
        made = await ask_tasks(web, "ann", "tools/call", name="own", arguments={})
        task_id = made.json["result"]["taskId"]
        stolen = [await ask_tasks(web, thief, method, taskId=task_id) for method in ("tasks/get", "tasks/cancel")]
        renewed = await ask_tasks(web, "ann-writes", "tasks/get", taskId=task_id)

    assert [-32602, -32602] == [each.json["error"]["code"] for each in stolen]
    assert "completed" == renewed.json["result"]["status"]


@pytest.mark.spec("ext-tasks", "specification/draft/tasks#protocol-errors", "1e0d2290")
@pytest.mark.parametrize("thief", ["bob", "ann-app2", "ann-elsewhere"])
async def test_the_scopes_of_a_task_do_not_tell_another_user_that_it_exists(thief: str) -> None:
    async with serving() as web:
        _, task_id = await created(web, STATELESS)
        own = await session(web, thief, "2025-11-25")
        answers = [
            await send(thief, "tasks/get", taskId=each)
            for send in (partial(ask_tasks, web), partial(ask_in_session, web, own))
            for each in (task_id, "unknown")
        ]

    assert [(200, -32602)] * 4 == [(each.status, each.json["error"]["code"]) for each in answers]


async def test_a_list_leaves_out_the_tasks_whose_scopes_the_token_lacks() -> None:
    async with serving() as web:
        send, task_id = await created(web, "2025-11-25")
        shown = [(await send(each, "tasks/list")).json["result"]["tasks"] for each in ("ann", "ann-writes")]

    assert [[], [task_id]] == [[each["taskId"] for each in tasks] for tasks in shown]


async def test_a_subscription_leaves_out_the_tasks_whose_scopes_the_token_lacks() -> None:
    async with serving() as web:
        _, task_id = await created(web, STATELESS)
        accepted: list[list[str]] = []
        for each in ("ann", "ann-writes"):
            body = stateless("subscriptions/listen", TASKS, notifications={"taskIds": [task_id]})
            stream = web.open("POST", "/mcp", [JSON, BOTH, *mirrored(json.loads(body)), *token(each)], body)
            accepted.append((await stream.message())["params"]["notifications"].get("taskIds", []))

    assert [[], [task_id]] == accepted
