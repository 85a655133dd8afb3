"""A ``tasks/result`` over HTTP that waits for the end of its task."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest

from mcpgen import Server
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

TASKS = "basic/utilities/tasks"
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "client", "version": "1"},
}


@pytest.mark.spec("2025-11-25", f"{TASKS}#result-retrieval")
async def test_a_result_that_waits_is_sent_when_the_task_ends() -> None:
    gate = anyio.Event()
    server = Server("demo", version="1")

    @server.tool(task=True)
    async def wait() -> str:
        await gate.wait()
        return "done"

    app = server.asgi()
    headers = {"Accept": "application/json, text/event-stream"}
    found: list[str] = []

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:

        async def post(**body: Any) -> httpx.Response:
            return await client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", **body})

        async def wait_for_result(task: str) -> None:
            found.append((await post(id=3, method="tasks/result", params={"taskId": task})).text)

        with anyio.fail_after(PATIENCE_SECONDS):
            begun = await post(id=1, method="initialize", params=INITIALIZE)
            headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
            await post(method="notifications/initialized")
            call = {"name": "wait", "arguments": {}, "task": {}}
            task = (await post(id=2, method="tools/call", params=call)).json()["result"]["task"]["taskId"]
            engine_tasks: Any = server._engine.tasks
            async with anyio.create_task_group() as group:
                group.start_soon(wait_for_result, task)
                while not engine_tasks._tasks._waiting:  # noqa: ASYNC110 (which nothing announces)
                    await anyio.sleep(0.01)
                gate.set()
    await app._state.close()

    assert '"text":"done"' in found[0]
