"""A function that asks its client for each item of a list at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from mcpgen import Context, Limits, MemoryTaskStore, RequestError, Server
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.server import fair_turns
from mcpgen.runtime.server.handler_table import HandlerTable
from mcpgen.runtime.transports import memory
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from mcpgen.runtime.server.tasks.task_store import TaskRecord

pytestmark = pytest.mark.anyio

MANY = 1000
META: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
}


class CountingStore(MemoryTaskStore):
    """A store that counts how often a task changes."""

    changes = 0

    def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
        self.changes += 1
        return super().replace(record, before=before)


def survey(**options: Any) -> Server[Any]:
    server: Server[Any] = Server("survey", version="1", **options)

    async def ask_all(count: int, ctx: Context) -> str:
        answers: list[str] = []

        async def ask(number: int) -> None:
            try:
                answers.append((await ctx.elicit(f"Do you like {number}?", {"properties": {}})).action)
            except RequestError as error:
                answers.append(error.message)

        async with anyio.create_task_group() as group:
            for number in range(count):
                group.start_soon(ask, number)
        return " ".join(sorted(set(answers)))

    server.tool(name="call", replay=True)(ask_all)
    server.tool(name="task", task=True)(ask_all)
    return server


def message(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}


def declined(requests: dict[str, object]) -> dict[str, object]:
    return {key: {"action": "decline"} for key in requests}


async def test_the_questions_of_a_task_change_it_once_and_so_do_the_answers() -> None:
    store = CountingStore()
    server = survey(tasks=store)
    async with server.running(), memory.wire(server) as wire:

        async def ask(method: str, **params: object) -> Any:
            await wire.send(message(method, **params))
            return (await wire.receive())["result"]

        task = (await ask("tools/call", name="task", arguments={"count": MANY}))["taskId"]
        with anyio.fail_after(PATIENCE_SECONDS):
            while len((found := await ask("tasks/get", taskId=task)).get("inputRequests", {})) < MANY:
                pass
            asked = store.changes
            await ask("tasks/update", taskId=task, inputResponses=declined(found["inputRequests"]))
            while (found := await ask("tasks/get", taskId=task))["status"] != "completed":
                pass

    assert found["result"]["content"][0]["text"] == "decline"
    assert asked < 20  # on asyncio 1; trio runs a part of the tasks in each turn
    assert store.changes - asked < 20


async def test_a_handler_asks_no_more_than_a_client_may_leave_unanswered() -> None:
    async with memory.wire(survey(limits=Limits(max_in_flight=3))) as wire:
        await wire.send(message("tools/call", name="call", arguments={"count": 5}))
        demand = (await wire.receive())["result"]
        answers = {"requestState": demand["requestState"], "inputResponses": declined(demand["inputRequests"])}
        await wire.send(message("tools/call", name="call", arguments={"count": 5}, **answers))
        result = (await wire.receive())["result"]

    assert len(demand["inputRequests"]) == 3
    refused = "too many requests wait for answers of the client (max_in_flight); try again later"
    assert result["content"][0]["text"] == f"decline {refused}"


async def test_the_answers_of_a_retry_are_kept_for_another_run_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, may_replay = 0, HandlerTable.may_replay

    def counted(table: HandlerTable, *given: Any) -> bool:
        nonlocal steps
        steps += 1
        return may_replay(table, *given)

    async with memory.wire(survey()) as wire:
        await wire.send(message("tools/call", name="call", arguments={"count": 50}))
        demand = (await wire.receive())["result"]
        monkeypatch.setattr(HandlerTable, "may_replay", counted)
        answers = {"requestState": demand["requestState"], "inputResponses": declined(demand["inputRequests"])}
        await wire.send(message("tools/call", name="call", arguments={"count": 50}, **answers))
        assert (await wire.receive())["result"]["content"][0]["text"] == "decline"

    assert (len(demand["inputRequests"]), steps) == (50, 1)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("seconds", [fair_turns._MAX_TURN_SECONDS, 0], ids=["usual turns", "one question a turn"])
async def test_over_http_a_handler_asks_a_part_of_its_questions_in_one_turn(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_turns, "_MAX_TURN_SECONDS", seconds)
    server, headers = survey(), {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": NEWEST}
    headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "call", "Content-Type": "application/json"}
    app = server.asgi()
    async with app.running(), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        params: dict[str, Any] = {"name": "call", "arguments": {"count": MANY}}
        sizes: list[int] = []
        kept: list[int] = []
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                body = json.dumps(message("tools/call", **params))
                result = (await client.post("/mcp", headers=headers, content=body)).json()["result"]
                if result["resultType"] == "complete":
                    break
                sizes.append(len(result["inputRequests"]))
                kept.append(app.kept_bytes["parked requests"])
                answers = declined(result["inputRequests"])
                params |= {"requestState": result["requestState"], "inputResponses": answers}

    assert result["content"][0]["text"] == "decline"
    assert (sum(sizes), sizes[0] < MANY / 2) == (MANY, True)
    assert min(sizes[:-1]) >= 100  # few rounds, also where a turn has time for few questions
    assert kept[0] > 2000 * MANY  # also for the questions that follow the first response
