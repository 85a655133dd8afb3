"""What the specification of the task extension demands of a client; the test plays the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import InvalidPayload
from mcpgen.generated.extensions import tasks
from mcpgen.generated.v2026_07_28 import ElicitResult
from tests.specification.client.scripted_server import ALL, opened

if TYPE_CHECKING:
    from collections.abc import Callable

spec = pytest.mark.spec
pytestmark = pytest.mark.anyio

PAGE = "specification/draft/tasks"
REVISION = "2026-07-28"
CAN = {**ALL, "extensions": {"io.modelcontextprotocol/tasks": {}}}
SINCE = {"createdAt": "2026-11-22T12:00:00Z", "lastUpdatedAt": "2026-11-22T12:00:00Z", "ttlMs": None}
TASK = {"taskId": "t", "status": "working", "pollIntervalMs": 1, **SINCE}
RECEIPT = {"resultType": "task", **TASK}
SCHEMA = {"type": "object", "properties": {}}


def form(message: str) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": SCHEMA}}


def state(status: str, **members: object) -> dict[str, Any]:
    """Return the result of `tasks/get`."""
    return {"resultType": "complete", **TASK, "status": status, **members}


class Played:
    """A server whose only tool is a task, which the test leads through *states*.

    Attributes:
        said: The method and the params of each message of the client since its call.
    """

    def __init__(self, other: Any, *states: dict[str, Any]) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self._other = other
        self._states = list(states)

    async def go(self, until: str) -> None:
        """Answer what the client sends, up to and with the first message of the method *until*."""
        wire = self._other.wire
        while True:
            message = await wire.hear()
            method = message["method"]
            self.said.append((method, message.get("params", {})))
            if method == "tools/call":
                wire.result(message, RECEIPT)
            elif method == "tasks/get":
                wire.result(message, self._states[0] if len(self._states) == 1 else self._states.pop(0))
            elif method in {"tasks/update", "tasks/cancel"}:
                wire.result(message, {"resultType": "complete"})
            elif "id" in message:
                wire.error(message, -32601)
            if method == until:
                return

    def of(self, method: str) -> list[dict[str, Any]]:
        """Return the params of the client's messages of *method*."""
        return [params for said, params in self.said if said == method]


@spec("ext-tasks", f"{PAGE}#capability-negotiation", "4cd366db")
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get_prompt("p"),
        lambda client: client.read_resource("a:b"),
        lambda client: client.list_tools(),
        lambda client: client.ping(),
    ],
    ids=["prompt", "resource", "tools", "ping"],
)
async def test_a_task_in_place_of_another_result_is_invalid(ask: Callable[[Any], Any]) -> None:
    async with opened(REVISION, can=CAN, tasks=True) as other:
        with pytest.raises(InvalidPayload):
            await other.answered(ask(other.client), RECEIPT)


@spec("2026-07-28", "basic/index#resulttype", "31476f83")
@pytest.mark.parametrize("kind", ["final", "", None, 1])
@pytest.mark.parametrize(
    "place", ["tools/call", "generated methods: tools/call", "tasks/get", "the result in tasks/get", "tasks/cancel"]
)
async def test_a_client_with_tasks_refuses_results_of_unknown_types(place: str, kind: object) -> None:
    typed: dict[str, Any] = {"resultType": kind, "content": []}
    answers = {
        "tools/call": typed if place.endswith("tools/call") else RECEIPT,
        "tasks/get": state("completed", result=typed if place == "the result in tasks/get" else {"content": []}),
        "tasks/cancel": {"resultType": "complete"},
    }
    if place.startswith("tasks/"):
        answers[place] = {**answers[place], "resultType": kind}

    async def use(client: Any) -> None:
        if place.startswith("generated"):
            await tasks.ClientMethods(client).call_tool(tasks.CallToolRequestParams(name="x", meta=client.meta))
        handle = await client.start_tool("x")
        await (handle.cancel() if place == "tasks/cancel" else handle.result())

    async with opened(REVISION, can=CAN, tasks=True) as other:
        errand = other.start(use(other.client))
        asked = ""
        while asked != place.rpartition(" ")[2]:
            message = await other.wire.hear()
            asked = message["method"]
            other.wire.result(message, answers[asked]) if asked in answers else other.wire.error(message, -32601)
        with pytest.raises(InvalidPayload, match="result of"):
            await errand.outcome()
        other.wire.recorder.violations.clear()  # the types are wrong on purpose


@spec("2026-07-28", "basic/index#resulttype", "2cbe7384")
async def test_a_strict_client_reads_the_result_of_a_task_without_a_type_as_complete() -> None:
    async with opened(REVISION, can=CAN, tasks=True, strict=True) as other:
        played = Played(other, state("completed", result={"content": []}))
        call = other.start(other.client.call_tool("x"))
        await played.go("tasks/get")
        result = await call.outcome()
        other.wire.recorder.violations.clear()  # it judges by the base alone, to which tasks are unknown

        assert [] == result.content


@spec("ext-tasks", f"{PAGE}#security-considerations", "7f0ed512")
@spec("ext-tasks", f"{PAGE}#task-update-requests", "2d5072f6", "2ea9b813", "6f28fb5a", "ae99ecda")
@spec("ext-tasks", f"{PAGE}#response", "d643a434")
@spec("ext-tasks", f"{PAGE}#capability-negotiation")
async def test_each_request_of_a_task_reaches_the_function_for_it_once_and_its_own_key_answers_it() -> None:
    asked: list[str] = []

    def elicit(params: Any, _context: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"heard": params.message})

    both = {"one": form("One?"), "two": form("Two?")}
    done = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
    async with opened(REVISION, can=CAN, tasks=True, elicit=elicit) as other:
        played = Played(
            other,
            state("working"),
            state("input_required", inputRequests=both),
            state("input_required", inputRequests=both),  # the server has not looked at the responses yet
            state("input_required", inputRequests={"three": form("Three?")}),
            state("completed", result=done),
        )
        call = other.start(other.client.call_tool("x"))
        for _ in range(2):
            await played.go("tasks/update")
        await played.go("tasks/get")
        result = await call.outcome()
        other.wire.recorder.violations.clear()  # it judges by the base alone, to which tasks are unknown

    assert ("done", ["One?", "Three?", "Two?"]) == (result.text, sorted(asked))
    answers = [each["inputResponses"] for each in played.of("tasks/update")]
    assert [
        {
            "one": {"action": "accept", "content": {"heard": "One?"}},
            "two": {"action": "accept", "content": {"heard": "Two?"}},
        },
        {"three": {"action": "accept", "content": {"heard": "Three?"}}},
    ] == answers
    assert {"t"} == {params["taskId"] for method, params in played.said if method.startswith("tasks/")}


@spec("ext-tasks", f"{PAGE}#task-cancellation", "022a516f")
async def test_a_cancelled_call_sends_tasks_cancel_and_no_cancellation_of_the_call() -> None:
    async with opened(REVISION, can=CAN, tasks=True) as other:
        played = Played(other, state("working"))
        call = other.start(other.client.call_tool("x"))
        await played.go("tasks/get")
        await call.cancel()
        await played.go("tasks/cancel")
        later = await other.wire.rest()
        other.wire.recorder.violations.clear()  # as above

    assert [{"taskId": "t"}] == [{"taskId": each["taskId"]} for each in played.of("tasks/cancel")]
    sent = [*played.said, *((each["method"], each.get("params", {})) for each in later)]
    assert "notifications/cancelled" not in {method for method, _ in sent}
