"""What the specification of the task extension demands of a server, as bytes on the wire."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Context, RequestError, Server, SqliteTaskStore, ToolError
from mcpgen.runtime.transports.spawner import open_spawner
from tests.harness.server_wire import Wire
from tests.patience import PATIENCE_SECONDS
from tests.specification.server.revision_client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

spec = pytest.mark.spec
pytestmark = pytest.mark.anyio

PAGE = "specification/draft/tasks"
REVISION = "2026-07-28"
DECLARED = '{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}'
ONLY_TASKS = '{"extensions":{"io.modelcontextprotocol/tasks":{}}}'
UNDECLARED = '{"elicitation":{}}'
NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Bakery:
    """A server with a tool for each status."""

    def __init__(self, **options: Any) -> None:
        self.server: Server[Any] = Server("bakery", version="1", **options)
        self.gate = anyio.Event()
        for each in (self.bake, self.burn, self.explode, self.ask, self.ask_thrice, self.slow):
            self.server.tool(task=True)(each)
        self.server.tool(self.greet)

    async def bake(self) -> str:
        return "bread"

    async def burn(self) -> str:
        raise ToolError("It is black")

    async def explode(self) -> str:
        raise RequestError(-32603, "The oven is gone", {"since": 5})

    async def ask(self, ctx: Context) -> str:
        return (await ctx.elicit("Who?", NAME)).action

    async def ask_thrice(self, ctx: Context) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.elicit, "One?", NAME)
            group.start_soon(ctx.elicit, "Two?", NAME)
        return (await ctx.elicit("Three?", NAME)).action

    async def slow(self, ctx: Context) -> str:
        await self.gate.wait()
        await ctx.progress(1, 2, "Kneading")
        await ctx.log("error", "The oven is hot")
        return "done"

    async def greet(self) -> str:
        return "hello"


@asynccontextmanager
async def connected(bakery: Bakery) -> AsyncGenerator[Client]:
    """Connect a client that declares the extension. No recorder judges: to those, tasks are no part of the revision."""
    async with bakery.server.running(), open_spawner() as spawner:
        wire = Wire(bakery.server, spawner)
        try:
            yield Client(wire, REVISION, DECLARED)
            wire.connection.end_of_input()
            await wire.rest()
        finally:
            wire.connection.close()


async def created(session: Client, tool: str) -> str:
    """Return the id of the task that a call becomes."""
    found = await session.result("tools/call", f'"name":"{tool}","arguments":{{}}')
    assert "task" == found["resultType"], found
    return str(found["taskId"])


async def until(session: Client, task: str, status: str) -> dict[str, Any]:
    """Return the result of `tasks/get` once the task has *status*."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            found: dict[str, Any] = await session.result("tasks/get", f'"taskId":"{task}"')
            if found["status"] == status:
                return found
            await anyio.sleep(0.001)


def literal(found: dict[str, Any]) -> dict[str, Any]:
    """Return a result with placeholders for the values that differ each time."""
    assert all(STAMP.fullmatch(found[each]) for each in ("createdAt", "lastUpdatedAt")), found
    told = json.dumps(found).replace(found["taskId"], "ID").replace(found["createdAt"], "CREATED")
    members: dict[str, Any] = json.loads(told.replace(found["lastUpdatedAt"], "UPDATED"))
    members["lastUpdatedAt"] = "UPDATED"
    for key in found.get("inputRequests", {}):
        members["inputRequests"]["KEY"] = members["inputRequests"].pop(key)
    return members


SERVER = '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bakery","version":"1"}}'
COMMON = f'"taskId":"ID","createdAt":"CREATED","lastUpdatedAt":"UPDATED","ttlMs":600000,"pollIntervalMs":1000,{SERVER}'
STATUSES = {
    "slow": f'{{"resultType":"complete","status":"working",{COMMON}}}',
    "ask": f'{{"resultType":"complete","status":"input_required",{COMMON},"inputRequests":{{"KEY":'
    '{"method":"elicitation/create","params":{"message":"Who?",'
    '"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}',
    "bake": f'{{"resultType":"complete","status":"completed",{COMMON},"result":{{"resultType":"complete",'
    f'"content":[{{"type":"text","text":"bread"}}],{SERVER}}}}}',
    "burn": f'{{"resultType":"complete","status":"completed",{COMMON},"result":{{"resultType":"complete",'
    f'"content":[{{"type":"text","text":"It is black"}}],"isError":true,{SERVER}}}}}',
    "explode": f'{{"resultType":"complete","status":"failed",{COMMON},"statusMessage":"The oven is gone",'
    '"error":{"code":-32603,"message":"The oven is gone","data":{"since":5}}}',
}


@spec("ext-tasks", f"{PAGE}#response", "2966019c", "4c863142", "9f7686a9", "fe871aa6", "fe8ef11c")
@spec("ext-tasks", f"{PAGE}#task-execution-errors", "50f4c62e", "bc9378c1")
@spec("ext-tasks", f"{PAGE}#task-status")
@spec("ext-tasks", f"{PAGE}#task-polling")
@pytest.mark.parametrize("tool", STATUSES)
async def test_each_status_has_its_own_members(tool: str) -> None:
    wanted = json.loads(STATUSES[tool])
    bakery = Bakery()
    async with connected(bakery) as session:
        task = await created(session, tool)
        found = await until(session, task, wanted["status"])
        bakery.gate.set()

    assert wanted == literal(found)


@spec("ext-tasks", f"{PAGE}#response", "31acf40b", "9a084cea", "c88009df", "fe8ef11c")
@spec("ext-tasks", f"{PAGE}#task-polling")
async def test_a_cancelled_task_has_no_result_and_no_error() -> None:
    async with connected(Bakery()) as session:
        task = await created(session, "slow")
        acknowledged = await session.result("tasks/cancel", f'"taskId":"{task}"')
        found = await until(session, task, "cancelled")

    assert json.loads(f'{{"resultType":"complete",{SERVER}}}') == acknowledged
    message = '"statusMessage":"Cancelled by the client"'
    assert json.loads(f'{{"resultType":"complete","status":"cancelled",{COMMON},{message}}}') == literal(found)


@spec("ext-tasks", f"{PAGE}#capability-negotiation", "6087ef03")
async def test_only_the_capabilities_of_the_call_itself_make_it_a_task() -> None:
    answers = []
    async with connected(Bakery()) as session:
        for session.capabilities in (DECLARED, UNDECLARED, DECLARED):
            result = await session.result("tools/call", '"name":"bake","arguments":{}')
            answers.append(result["resultType"])

    assert ["task", "complete", "task"] == answers


@spec("ext-tasks", f"{PAGE}#capability-negotiation", "6087ef03")
@spec("2026-07-28", "schema#requestmetaobject", "58c00f7d")
async def test_a_repeated_retry_gets_the_task_of_the_first_only_if_it_declares_the_extension() -> None:
    bakery = Bakery()

    @bakery.server.tool(task="deferred")
    async def later(ctx: Context) -> str:
        await ctx.elicit("Who?", NAME)
        return f"{await ctx.defer()}"

    async with connected(bakery) as session:
        demand = await session.result("tools/call", '"name":"later","arguments":{}')
        (key,) = demand["inputRequests"]
        answers = f'"inputResponses":{{"{key}":{{"action":"decline"}}}}'
        retry = f'"name":"later","arguments":{{}},{answers},"requestState":"{demand["requestState"]}"'
        first = await session.result("tools/call", retry)
        session.capabilities = UNDECLARED
        error = await session.error("tools/call", retry)
        session.capabilities = DECLARED
        second = await session.result("tools/call", retry)

    needed = {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    assert (-32021, needed) == (error["code"], error["data"])
    assert "task" == first["resultType"]
    assert first == second


@spec("2026-07-28", "basic/index#meta")
async def test_a_poll_names_the_capabilities_that_the_open_requests_need() -> None:
    async with connected(Bakery()) as session:
        task = await created(session, "ask")
        await until(session, task, "input_required")
        session.capabilities = ONLY_TASKS
        error = await session.error("tasks/get", f'"taskId":"{task}"')
        session.capabilities = DECLARED
        found = await until(session, task, "input_required")

    assert (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}}) == (error["code"], error["data"])
    assert "the requests for input of this task cannot be sent to this client: " in error["message"]
    assert found["inputRequests"]


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "81edb4ae")
async def test_a_stream_gets_the_open_requests_of_a_task_only_if_it_declares_their_capabilities() -> None:
    bakery = Bakery()

    @bakery.server.tool(task=True)
    async def ask_late(ctx: Context) -> str:
        await bakery.gate.wait()
        return (await ctx.elicit("Who?", NAME)).action

    async with connected(bakery) as session:
        task = await created(session, "ask_late")
        acknowledged = {}
        for session.capabilities in (ONLY_TASKS, DECLARED):
            (said,) = await session.ask("subscriptions/listen", f'"notifications":{{"taskIds":["{task}"]}}')
            acknowledged[session.capabilities] = said["params"]["_meta"]
        bakery.gate.set()
        told = [each["params"] for each in await session.wire.rest()]

    assert [(acknowledged[DECLARED], "input_required")] == [(each["_meta"], each["status"]) for each in told]


@spec("ext-tasks", f"{PAGE}#polymorphic-results", "a4631111")
async def test_no_other_result_is_of_the_type_task() -> None:
    async with connected(Bakery()) as session:
        task = await created(session, "ask")
        (key,) = (await until(session, task, "input_required"))["inputRequests"]
        answer = f'"inputResponses":{{"{key}":{{"action":"decline"}}}}'
        results = [
            await session.result("server/discover"),
            await session.result("tools/list"),
            await session.result("tools/call", '"name":"greet","arguments":{}'),
            await session.result("tasks/get", f'"taskId":"{task}"'),
            await session.result("tasks/update", f'"taskId":"{task}",{answer}'),
            await session.result("tasks/cancel", f'"taskId":"{task}"'),
        ]
        end = await until(session, task, "completed")

    assert ["complete"] * 8 == [each["resultType"] for each in (*results, end, end["result"])]


@spec("ext-tasks", f"{PAGE}#task-creation", "5e166223", "65d7d469")
async def test_every_process_finds_the_task_when_its_receipt_is_sent(tmp_path: Path) -> None:
    bakery = Bakery(tasks=SqliteTaskStore(tmp_path / "tasks.db"))
    other = SqliteTaskStore(tmp_path / "tasks.db")
    async with connected(bakery) as session:
        task = await created(session, "slow")
        found = other.get(task)
        bakery.gate.set()
    other.close()

    assert found is not None


@spec("ext-tasks", f"{PAGE}#response", "24b349a0", "9a084cea")
@spec("ext-tasks", f"{PAGE}#task-update-requests", "2153c6b0", "56c8ae37")
async def test_no_two_requests_of_a_task_have_one_key() -> None:
    messages: dict[str, set[str]] = {}
    async with connected(Bakery()) as session:
        task = await created(session, "ask_thrice")
        for _ in range(3):
            waiting: dict[str, Any] = (await until(session, task, "input_required"))["inputRequests"]
            for key, each in waiting.items():
                messages.setdefault(key, set()).add(each["params"]["message"])
            answered = f'"inputResponses":{{"{next(iter(waiting))}":{{"action":"decline"}}}}'
            acknowledged = await session.result("tasks/update", f'"taskId":"{task}",{answered}')
        await until(session, task, "completed")

    assert json.loads(f'{{"resultType":"complete",{SERVER}}}') == acknowledged
    assert [{"One?"}, {"Three?"}, {"Two?"}] == sorted(messages.values(), key=sorted)


@pytest.mark.slow
@spec("ext-tasks", f"{PAGE}#task-update-requests", "56c8ae37")
async def test_a_request_that_another_process_has_got_the_answer_to_is_not_made_again(tmp_path: Path) -> None:
    bakeries = [Bakery(tasks=SqliteTaskStore(tmp_path / "tasks.db")) for _ in range(2)]
    async with connected(bakeries[0]) as session, connected(bakeries[1]) as other:
        task = await created(session, "ask_thrice")
        first, second = (await until(session, task, "input_required"))["inputRequests"]
        for each, key in ((other, first), (session, second)):
            answered = f'"inputResponses":{{"{key}":{{"action":"decline"}}}}'
            await each.result("tasks/update", f'"taskId":"{task}",{answered}')
        await session.wire.rest()  # until the function has its second answer
        between = await session.result("tasks/get", f'"taskId":"{task}"')
        (third,) = (await until(session, task, "input_required"))["inputRequests"]

    assert {first, second}.isdisjoint([*between.get("inputRequests", ()), third])


@spec("ext-tasks", f"{PAGE}#task-cancellation", "022a516f")
async def test_cancelling_the_call_that_created_a_task_does_not_cancel_the_task() -> None:
    bakery = Bakery()
    async with connected(bakery) as session:
        task = await created(session, "slow")
        call = session._last
        said = await session.wire.say(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}' % call
        )
        bakery.gate.set()
        end = await until(session, task, "completed")

    assert ([], "done") == (said, end["result"]["content"][0]["text"])


@spec("ext-tasks", f"{PAGE}#task-status-notifications", "b030f624")
async def test_the_stream_of_a_task_has_its_changes_and_neither_progress_nor_log() -> None:
    bakery, meta = Bakery(), '"progressToken":"p","io.modelcontextprotocol/logLevel":"debug"'
    async with connected(bakery) as session:
        result = await session.result("tools/call", '"name":"slow","arguments":{}', meta)
        task = result["taskId"]
        said = await session.ask("subscriptions/listen", f'"notifications":{{"taskIds":["{task}"]}}', meta)
        bakery.gate.set()
        said += await session.wire.rest()
        found = await session.result("tasks/get", f'"taskId":"{task}"')

    assert {task} == {each["params"]["taskId"] for each in said[1:]}
    assert ["notifications/subscriptions/acknowledged", *["notifications/tasks"] * (len(said) - 1)] == [
        each["method"] for each in said
    ]
    last = {key: each for key, each in said[-1]["params"].items() if key != "_meta"}
    assert {key: each for key, each in found.items() if key not in {"_meta", "resultType"}} == last
