"""Tasks, from the outside: what a client of 2025-11-25 sees of tool calls that run on after their first answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest

from mcpgen import Context, MemoryTaskStore, Server, UsageError
from mcpgen.generated.v2025_11_25 import CallToolRequestParams, CallToolResult, ServerHandlers, TextContent, models
from mcpgen.runtime.protocol.newest import ServerHandlers as NewestHandlers
from tests.specification.citation import spec
from tests.specification.server.revision_client import client

if TYPE_CHECKING:
    from tests.specification.server.revision_client import Client

pytestmark = pytest.mark.anyio

REVISION = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"


class Worker(ServerHandlers[Context]):
    """Handlers whose tools may be, must be or must not be tasks."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.given_up = anyio.Event()

    def capabilities(self) -> models.ServerCapabilities:
        return models.ServerCapabilities(tools=models.ServerCapabilitiesTools(), logging={})

    def task_support(self, name: str) -> str:
        return {"quick": "optional", "must": "required"}.get(name, "optional" if name != "never" else "forbidden")

    async def call_tool(self, params: CallToolRequestParams, context: Context, /) -> CallToolResult:
        if params.name == "slow":
            try:
                await self.gate.wait()
            except BaseException:
                self.given_up.set()
                raise
        if params.name == "ask":
            found = await context.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
            return CallToolResult(content=[TextContent(text=found.action)])
        await context.progress(1, 2)
        await context.log("info", "working")
        return CallToolResult(content=[TextContent(text="done")], is_error=params.name == "broken")


def served(worker: Worker | None = None) -> Server:
    return Server("worker", version="1", handlers=worker or Worker(), tasks=MemoryTaskStore())


async def created(session: Client, tool: str, *, meta: str = "") -> tuple[str, list[Any]]:
    """Call *tool* as a task; return its id, and what the server said besides."""
    said = await session.ask("tools/call", f'"name":"{tool}","task":{{"ttl":60000}}', meta)
    (answer, *rest) = said

    assert (answer["result"]["task"]["status"], answer["result"]["task"]["ttl"]) == ("working", 60000)

    return answer["result"]["task"]["taskId"], rest


async def result_of(session: Client, method: str, task: str) -> Any:
    (answer,) = await session.ask(method, f'"taskId":"{task}"')
    return answer.get("result", answer.get("error"))


@spec("2025-11-25", "basic/utilities/tasks#result-retrieval", "e8d75afa", "6acf9932")
@spec("2025-11-25", "basic/utilities/tasks#creating-tasks")
@spec("2025-11-25", "basic/utilities/tasks#retrieving-task-results")
async def test_a_call_becomes_a_task_whose_result_is_fetched_later() -> None:
    async with client(served(), REVISION) as session:
        task, said = await created(session, "quick")

        assert ["notifications/message", "notifications/tasks/status"] == [each["method"] for each in said]
        assert ("completed", task) == (said[-1]["params"]["status"], said[-1]["params"]["taskId"])

        result = await result_of(session, "tasks/result", task)

        assert [{"type": "text", "text": "done"}] == result["content"]
        assert {RELATED: {"taskId": task}} == result["_meta"]


@spec("2025-11-25", "basic/utilities/tasks#capabilities", "b7a66ce6")
@spec("2025-11-25", "basic/utilities/tasks#server-capabilities")
async def test_what_is_declared_is_what_is_served() -> None:
    async with client(served(), REVISION) as session:
        assert {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}} == (
            session.initialized["capabilities"]["tasks"]
        )


@spec("2025-11-25", "basic/utilities/tasks#getting-tasks")
@spec("2025-11-25", "basic/utilities/tasks#listing-tasks")
@spec("2025-11-25", "basic/utilities/tasks#result-retrieval")
async def test_a_running_task_can_be_looked_at_and_its_result_waits() -> None:
    worker = Worker()
    async with client(served(worker), REVISION) as session:
        task, _ = await created(session, "slow")

        assert "working" == (await result_of(session, "tasks/get", task))["status"]

        (listed,) = await session.ask("tasks/list")

        assert [task] == [each["taskId"] for each in listed["result"]["tasks"]]

        assert [] == await session.ask("tasks/result", f'"taskId":"{task}"')
        worker.gate.set()
        said = await session.wire.rest()

        assert "done" == said[-1]["result"]["content"][0]["text"]


@spec("2025-11-25", "basic/utilities/tasks#task-cancellation", "dfc75293")
async def test_a_cancelled_task_stops_its_handler_and_stays_cancelled() -> None:
    worker = Worker()
    async with client(served(worker), REVISION) as session:
        task, _ = await created(session, "slow")
        told, answer = await session.ask("tasks/cancel", f'"taskId":"{task}"')

        assert ("cancelled", "cancelled") == (told["params"]["status"], answer["result"]["status"])
        assert worker.given_up.is_set()
        assert "cancelled" == (await result_of(session, "tasks/get", task))["status"]
        assert -32602 == (await result_of(session, "tasks/cancel", task))["code"]


@spec("2025-11-25", "basic/utilities/tasks#task-support-and-handling")
@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "06c93889", "c671bef7")
async def test_tools_say_whether_they_may_be_tasks() -> None:
    async with client(served(), REVISION) as session:
        (never,) = await session.ask("tools/call", '"name":"never","task":{}')
        (must,) = await session.ask("tools/call", '"name":"must"')

        assert [-32601, -32601] == [never["error"]["code"], must["error"]["code"]]


@spec("2025-11-25", "basic/utilities/tasks#task-execution-errors")
async def test_a_tool_that_fails_makes_its_task_fail_with_the_result() -> None:
    async with client(served(), REVISION) as session:
        task, said = await created(session, "broken")

        assert ("failed", "done") == (said[-1]["params"]["status"], said[-1]["params"]["statusMessage"])
        assert (await result_of(session, "tasks/result", task))["isError"] is True


@spec("2025-11-25", "basic/utilities/tasks#input-required-status", "dd05621e")
@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "c49959de")
async def test_a_task_that_asks_says_so_and_its_question_names_it() -> None:
    async with client(served(), REVISION, '{"elicitation":{}}') as session:
        task, (status, question) = await created(session, "ask")

        assert "input_required" == status["params"]["status"]
        assert {RELATED: {"taskId": task}} == question["params"]["_meta"]

        reply = f'{{"jsonrpc":"2.0","id":{question["id"]},"result":{{"action":"decline"}}}}'
        working, completed = await session.wire.say(reply.encode())

        assert ["working", "completed"] == [each["params"]["status"] for each in (working, completed)]
        assert "decline" == (await result_of(session, "tasks/result", task))["content"][0]["text"]


@spec("2025-11-25", "basic/utilities/progress#behavior-requirements", "f47da502", "e8624e60")
@spec("2025-11-25", "basic/utilities/tasks#task-progress-notifications")
@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed")
async def test_progress_and_log_of_a_task_name_it_under_the_token_of_its_request() -> None:
    async with client(served(), REVISION) as session:
        task, (progress, entry, _status) = await created(session, "quick", meta='"progressToken":"p"')

        assert ("p", {RELATED: {"taskId": task}}) == (progress["params"]["progressToken"], progress["params"]["_meta"])
        assert {RELATED: {"taskId": task}} == entry["params"]["_meta"]


@spec("2025-11-25", "basic/utilities/tasks#task-isolation-and-access-control")
async def test_another_connection_knows_nothing_of_a_task() -> None:
    server = served()
    async with client(server, REVISION) as session, client(server, REVISION) as other:
        task, _ = await created(session, "slow")

        assert -32602 == (await result_of(other, "tasks/get", task))["code"]
        assert [] == (await other.ask("tasks/list"))[0]["result"]["tasks"]


@spec("2025-11-25", "basic/utilities/tasks#protocol-errors", "40f95fad")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_a_task_that_does_not_exist_is_an_invalid_param(method: str) -> None:
    async with client(served(), REVISION) as session:
        assert -32602 == (await result_of(session, method, "nothing"))["code"]


@spec("2025-11-25", "basic/utilities/tasks#task-cancellation")
async def test_cancelling_the_request_for_a_result_leaves_the_task_alone() -> None:
    worker = Worker()
    async with client(served(worker), REVISION) as session:
        task, _ = await created(session, "slow")
        await session.ask("tasks/result", f'"taskId":"{task}"')
        await session.wire.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}')
        worker.gate.set()

        assert all("id" not in each for each in await session.wire.rest())
        assert "completed" == (await result_of(session, "tasks/get", task))["status"]


@spec("2024-11-05", "server/tools#calling-tools")
@spec("2026-07-28", "server/tools#calling-tools")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2026-07-28"])
async def test_other_revisions_have_no_tasks_and_their_calls_run_as_usual(revision: str) -> None:
    async with client(served(), revision) as session:
        said = await session.ask("tools/call", '"name":"quick","task":{}')

        assert "done" == said[-1]["result"]["content"][0]["text"]

        (refused,) = await session.ask("tasks/list")

        assert -32601 == refused["error"]["code"]


class Newest(NewestHandlers[Context]):
    """Handlers of a revision without tasks."""


class Undecided(ServerHandlers[Context]):
    """Handlers that do not say which tools may be tasks."""


@spec("2025-11-25", "basic/utilities/tasks#capabilities")
@pytest.mark.parametrize("handlers", [Newest(), Undecided()], ids=["newest", "undecided"])
def test_a_server_that_cannot_have_tasks_is_refused(handlers: object) -> None:
    with pytest.raises(UsageError):
        Server("worker", version="1", handlers=handlers, tasks=MemoryTaskStore())


# Functions as tasks


def functions() -> tuple[Server, anyio.Event]:
    """Return a server whose functions run as tasks, and what `slow` waits for."""
    server, gate = Server("worker", version="1"), anyio.Event()

    @server.tool(task=True)
    async def bake(ctx: Context, loaves: int = 1) -> str:
        await ctx.progress(1, 2, "Kneading")
        return f"{loaves} baked"

    @server.tool(task=True)
    async def slow() -> str:
        await gate.wait()
        return "done"

    @server.tool(task="always")
    async def ferment() -> str:
        return "fermented"

    @server.tool(task=True)
    async def ask(ctx: Context) -> str:
        found = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
        return found.action

    @server.tool(task="deferred")
    async def later(ctx: Context) -> str:
        return f"{await ctx.defer()}"

    @server.tool
    async def greet() -> str:
        return "hello"

    return server, gate


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
async def test_functions_say_in_the_list_whether_they_can_be_tasks() -> None:
    async with client(functions()[0], REVISION) as session:
        tools = (await session.result("tools/list"))["tools"]

        assert {
            "bake": "optional",
            "slow": "optional",
            "ferment": "required",
            "ask": "optional",
            "later": "optional",
        } == {each["name"]: each["execution"]["taskSupport"] for each in tools if "execution" in each}
        assert {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}} == (
            session.initialized["capabilities"]["tasks"]
        )


@spec("2025-11-25", "basic/utilities/tasks#creating-tasks")
@spec("2025-11-25", "basic/utilities/tasks#retrieving-task-results")
async def test_a_function_runs_as_a_task_and_its_message_becomes_the_status_message() -> None:
    async with client(functions()[0], REVISION) as session:
        said = await session.ask(
            "tools/call", '"name":"bake","arguments":{"loaves":2},"task":{"ttl":60000}', '"progressToken":"p"'
        )
        task = said[0]["result"]["task"]["taskId"]

        assert [
            ("notifications/progress", None),
            ("notifications/tasks/status", "Kneading"),
            ("notifications/tasks/status", None),
        ] == [(each["method"], each["params"].get("statusMessage")) for each in said[1:]]
        assert "2 baked" == (await result_of(session, "tasks/result", task))["content"][0]["text"]


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation", "06c93889")
async def test_a_function_that_must_be_a_task_refuses_a_plain_call_and_one_that_cannot_refuses_a_task() -> None:
    async with client(functions()[0], REVISION) as session:
        assert -32601 == (await session.error("tools/call", '"name":"ferment"'))["code"]
        assert -32601 == (await session.error("tools/call", '"name":"greet","task":{}'))["code"]
        assert "hello" == (await session.result("tools/call", '"name":"greet"'))["content"][0]["text"]
        assert "1 baked" == (await session.result("tools/call", '"name":"bake"'))["content"][0]["text"]


@spec("2025-11-25", "basic/utilities/tasks#task-cancellation")
async def test_a_function_that_runs_as_a_task_can_be_cancelled() -> None:
    async with client(functions()[0], REVISION) as session:
        task, _ = await created(session, "slow")
        (_, answer) = await session.ask("tasks/cancel", f'"taskId":"{task}"')

        assert "cancelled" == answer["result"]["status"]
        assert -32800 == (await result_of(session, "tasks/result", task))["code"]


@spec("2025-11-25", "basic/utilities/tasks#input-required-status")
async def test_a_function_asks_inside_its_task() -> None:
    async with client(functions()[0], REVISION, '{"elicitation":{}}') as session:
        task, (status, question) = await created(session, "ask")

        assert "input_required" == status["params"]["status"]
        assert {RELATED: {"taskId": task}} == question["params"]["_meta"]

        await session.answer(question, '{"action":"decline"}')

        assert "decline" == (await result_of(session, "tasks/result", task))["content"][0]["text"]


@spec("2025-11-25", "basic/utilities/tasks#creating-tasks")
async def test_a_deferred_function_is_a_task_from_the_start_where_the_client_asks_for_one() -> None:
    async with client(functions()[0], REVISION) as session:
        task, _ = await created(session, "later")

        assert "True" == (await result_of(session, "tasks/result", task))["content"][0]["text"]
        assert "False" == (await session.result("tools/call", '"name":"later"'))["content"][0]["text"]


@spec("2025-06-18", "server/tools#listing-tools")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_before_tasks_a_function_that_must_be_one_is_not_there(revision: str) -> None:
    async with client(functions()[0], revision) as session:
        names = [each["name"] for each in (await session.result("tools/list"))["tools"]]

        assert ["bake", "slow", "ask", "later", "greet"] == names
        assert -32602 == (await session.error("tools/call", '"name":"ferment","arguments":{}'))["code"]
        assert "1 baked" == (await session.result("tools/call", '"name":"bake","arguments":{}'))["content"][0]["text"]


@spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
def test_a_task_mode_that_does_not_exist_is_refused() -> None:
    wrong: Any = "sometimes"
    with pytest.raises(UsageError, match="`task` is 'sometimes'"):
        Server("worker", version="1").tool(task=wrong)(lambda: None)


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "73a7d45a", "468c3c2e")
async def test_the_id_in_the_params_counts_and_the_one_in_the_metadata_does_not() -> None:
    async with client(served(), REVISION) as session:
        ended, _ = await created(session, "quick")
        running, _ = await created(session, "slow")
        named = f'"taskId":"{ended}"', f'"{RELATED}":{{"taskId":"{running}"}}'
        (found,) = await session.ask("tasks/get", *named)
        (result,) = await session.ask("tasks/result", *named)
        (refused,) = await session.ask("tasks/cancel", *named)

        assert ended == found["result"]["taskId"]
        assert {RELATED: {"taskId": ended}} == result["result"]["_meta"]
        assert -32602 == refused["error"]["code"]  # it has ended
        assert "working" == (await result_of(session, "tasks/get", running))["status"]


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed", "c49959de")
@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
async def test_the_cancellation_of_a_question_of_a_task_names_the_task() -> None:
    async with client(served(), REVISION, '{"elicitation":{}}') as session:
        task, (_, asked) = await created(session, "ask")
        said = await session.ask("tasks/cancel", f'"taskId":"{task}"')

    (withdrawn,) = [each["params"] for each in said if each.get("method") == "notifications/cancelled"]
    assert (asked["id"], {RELATED: {"taskId": task}}) == (withdrawn["requestId"], withdrawn["_meta"])


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed")
@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
async def test_the_end_of_an_elicitation_of_a_task_names_the_task() -> None:
    own = Server("pages", version="1")

    @own.tool(task=True)
    async def sign_in(ctx: Context) -> None:
        await ctx.elicit_url("Sign in.", "https://example.com/in", elicitation_id="page-7")
        await ctx.elicitation_completed("page-7")

    async with client(own, REVISION, '{"elicitation":{"url":{}}}') as session:
        (answer, _, asked) = await session.ask("tools/call", '"name":"sign_in","arguments":{},"task":{}')
        said = await session.answer(asked, '{"action":"accept"}')

    (ended,) = [each["params"] for each in said if each.get("method") == "notifications/elicitation/complete"]
    expected = {"elicitationId": "page-7", "_meta": {RELATED: {"taskId": answer["result"]["task"]["taskId"]}}}
    assert expected == ended


@spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed", "73a7d45a")
@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", ""),
        ("tools/call", '"name":"quick"'),
        ("tools/call", '"name":"ask"'),
        ("tools/list", ""),
    ],
)
async def test_a_result_names_the_task_of_the_client_that_its_request_belongs_to(method: str, params: str) -> None:
    own = Server("own", version="1")

    @own.tool
    async def quick() -> str:
        return "done"

    @own.tool
    async def ask(ctx: Context) -> str:
        return str(len(await ctx.roots()))

    meta = f'"{RELATED}":{{"taskId":"of the client"}}'
    async with client(own, REVISION, '{"roots":{}}') as session:
        said = await session.ask(method, params, meta)
        if params == '"name":"ask"':
            said = await session.answer(said[0], '{"roots":[]}')

    assert [{RELATED: {"taskId": "of the client"}}] == [each["result"].get("_meta") for each in said]


@spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "c67e8adc")
async def test_a_result_about_a_task_of_the_server_names_no_task_of_the_client() -> None:
    meta = f'"{RELATED}":{{"taskId":"of the client"}}'
    async with client(served(), REVISION) as session:
        task, _ = await created(session, "quick", meta=meta)
        (state,) = await session.ask("tasks/get", f'"taskId":"{task}"', meta)
        (result,) = await session.ask("tasks/result", f'"taskId":"{task}"', meta)

    assert "_meta" not in state["result"]
    assert {RELATED: {"taskId": task}} == result["result"]["_meta"]


@spec("2025-11-25", "basic/utilities/progress#behavior-requirements", "04773312")
@pytest.mark.parametrize("ended_by", ["its handler", "its client"])
async def test_there_is_no_progress_of_a_task_that_has_ended(ended_by: str) -> None:
    kept: list[Context] = []

    class Keeping(Worker):
        async def call_tool(self, params: CallToolRequestParams, context: Context, /) -> CallToolResult:
            kept.append(context)
            return await super().call_tool(params, context)

    async with client(served(Keeping()), REVISION) as session:
        task, _ = await created(session, "quick" if ended_by == "its handler" else "slow", meta='"progressToken":"p"')
        if ended_by == "its client":
            await session.ask("tasks/cancel", f'"taskId":"{task}"')
        await kept[0].progress(2)

        assert [] == await session.wire.rest()


@spec("2025-11-25", "basic/utilities/tasks#task-support-and-handling", "a5b3131d")
@spec("2025-11-25", "basic/utilities/tasks#capabilities", "b7a66ce6")
@pytest.mark.parametrize("mode", [True, "always"])
async def test_a_session_that_was_promised_no_tasks_gets_none(mode: Literal[True, "always"]) -> None:
    own = Server("growing", version="1")

    @own.tool
    async def grow() -> None:
        @own.tool(task=mode)
        async def late() -> str:
            return "grown"

    call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"late","task":{"ttl":60000}}}'
    async with client(own, REVISION) as session:
        await session.ask("tools/call", '"name":"grow"')
        said = await session.wire.say(call)

    assert {"content": [{"type": "text", "text": "grown"}]} == said[-1]["result"]
    assert not any("task" in json.dumps(each) for each in said)

    async with client(own, REVISION) as session:  # to this one, tasks are declared
        (answer, *_) = await session.wire.say(call)

    assert "working" == answer["result"]["task"]["status"]
