"""A client that has declared no tasks is asked for one."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.protocol.newest import models
from tests.specification.citation import spec
from tests.specification.client.scripted_server import opened

pytestmark = pytest.mark.anyio

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}], "maxTokens": 10}


def fill_in(*_: Any) -> models.ElicitResult:
    return models.ElicitResult(action="accept", content={})


def sample(*_: Any) -> models.CreateMessageResult:
    return models.CreateMessageResult(role="assistant", content=models.TextContent(text="So."), model="m")


@spec("2025-11-25", "basic/utilities/tasks#task-support-and-handling", "a5b3131d")
@pytest.mark.parametrize(("method", "params"), [("elicitation/create", FORM), ("sampling/createMessage", SAMPLE)])
async def test_a_request_that_wants_a_task_is_answered_as_any_other(method: str, params: dict[str, Any]) -> None:
    async with opened("2025-11-25", elicit=fill_in, sample=sample) as own:
        plain = await own.wire.ask(1, method, params)
        with_task = await own.wire.ask(2, method, {**params, "task": {"ttl": 60000}})

    assert plain["result"] == with_task["result"]
    assert "task" not in with_task["result"]
