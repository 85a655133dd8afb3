"""Tools that a server of 2025-11-25 runs as tasks: what a client asks, and when."""

from __future__ import annotations

from typing import Any

import pytest

from tests.specification.citation import spec
from tests.specification.client.scripted_server import opened

pytestmark = pytest.mark.anyio

REVISION = "2025-11-25"
CAN = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}
TASK = {
    "taskId": "t1",
    "status": "working",
    "ttl": 60000,
    "createdAt": "2025-11-25T10:30:00Z",
    "lastUpdatedAt": "2025-11-25T10:30:00Z",
}
DONE = {
    "content": [{"type": "text", "text": "done"}],
    "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}},
}


def listed(support: str | None) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": "x", "inputSchema": {"type": "object"}}
    return {"tools": [tool if support is None else {**tool, "execution": {"taskSupport": support}}]}


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "44899c5e")
@spec("2025-11-25", "basic/utilities/tasks#task-status-notification", "b1994032")
@spec("2025-11-25", "basic/utilities/tasks#task-notifications", "45e2e95e")
async def test_a_tool_that_requires_it_is_called_as_a_task_and_no_notification_is_needed() -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, listed("required"))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"task": TASK})
        result = await own.wire.hear("tasks/result")
        own.wire.result(result, DONE)

        assert "done" == (await errand.outcome()).text

    assert {} == call["params"]["task"]
    assert "t1" == result["params"]["taskId"]


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
@pytest.mark.parametrize("support", [None, "forbidden"])
async def test_a_tool_that_cannot_be_a_task_is_not_started_as_one(support: str | None) -> None:
    async with opened(REVISION, can=CAN) as own:
        errand, asked = await own.asked(own.client.start_tool("x"))
        own.wire.result(asked, listed(support))
        call = await own.wire.hear("tools/call")
        own.wire.result(call, {"content": []})
        await errand.outcome()

    assert "task" not in call["params"]
