"""A client of 2025-11-25 whose handlers run requests of the server as tasks of the client."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from mcpgen import ClientContext
from mcpgen.generated import v2025_11_25 as bindings
from tests.specification.citation import spec
from tests.specification.client.scripted_server import opened

pytestmark = pytest.mark.anyio

RELATED = "io.modelcontextprotocol/related-task"
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
STATE: dict[str, Any] = {
    "created_at": "2026-01-01T00:00:00Z",
    "last_updated_at": "2026-01-01T00:00:00Z",
    "ttl": None,
}


class Tasks(bindings.ClientHandlers[ClientContext]):
    def capabilities(self) -> bindings.ClientCapabilities:
        tasks: dict[str, Any] = {"cancel": {}, "requests": {"elicitation": {"create": {}}}}
        return msgspec.convert({"elicitation": {}, "tasks": tasks}, bindings.ClientCapabilities)

    async def elicit(
        self, params: bindings.ElicitRequestParams, context: ClientContext, /
    ) -> bindings.ElicitResult | bindings.CreateTaskResult:
        if params.task is UNSET:
            return bindings.ElicitResult(action="cancel")
        return bindings.CreateTaskResult(task=bindings.Task(task_id="own", status="working", **STATE))

    async def get_task(
        self, params: bindings.GetTaskRequestParams, context: ClientContext, /
    ) -> bindings.GetTaskResult | dict[str, Any]:
        return bindings.GetTaskResult(task_id=params.task_id, status="working", **STATE)

    async def cancel_task(
        self, params: bindings.CancelTaskRequestParams, context: ClientContext, /
    ) -> bindings.CancelTaskResult | dict[str, Any]:
        return bindings.CancelTaskResult(task_id=params.task_id, status="cancelled", **STATE)

    async def get_task_payload(
        self, params: bindings.GetTaskPayloadRequestParams, context: ClientContext, /
    ) -> bindings.GetTaskPayloadResult | dict[str, Any]:
        return {"action": "accept", "content": {}}


async def results_of(method: str, params: dict[str, Any]) -> tuple[Any, Any]:
    async with opened("2025-11-25", native_revision="2025-11-25", handlers=Tasks()) as own:
        created = await own.wire.ask(1, "elicitation/create", {**FORM, "task": {}})
        found = await own.wire.ask(2, method, params)
    return created["result"], found["result"]


@spec("2025-11-25", "basic/utilities/tasks#getting-tasks")
@pytest.mark.parametrize(("method", "status"), [("tasks/get", "working"), ("tasks/cancel", "cancelled")])
async def test_a_handler_may_return_the_generated_type_of_a_task(method: str, status: str) -> None:
    _, state = await results_of(method, {"taskId": "own"})

    assert state == {
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "status": status,
        "taskId": "own",
        "ttl": None,
    }


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed", "73a7d45a")
@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5", "c67e8adc")
@pytest.mark.parametrize("meta", [{}, {"_meta": {RELATED: {"taskId": "other"}}}])
async def test_the_result_of_a_task_names_the_task_of_the_params(meta: dict[str, Any]) -> None:
    _, result = await results_of("tasks/result", {"taskId": "own", **meta})

    assert result == {"action": "accept", "content": {}, "_meta": {RELATED: {"taskId": "own"}}}


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "73a7d45a")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
async def test_the_state_of_a_task_does_not_name_the_task_of_the_metadata(method: str) -> None:
    _, result = await results_of(method, {"taskId": "own", "_meta": {RELATED: {"taskId": "other"}}})

    assert result["taskId"] == "own"
    assert "_meta" not in result


@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
async def test_the_response_that_creates_a_task_names_it() -> None:
    result, _ = await results_of("ping", {})

    assert result["task"]["taskId"] == "own"
    assert result["_meta"] == {RELATED: {"taskId": "own"}}
