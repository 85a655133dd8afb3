"""Tasks of the extension ``io.modelcontextprotocol/tasks``: what a client of 2026-07-28 sees of them, as JSON."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest

from mcpgen import (
    Client,
    Context,
    Extension,
    Limits,
    MemoryTaskStore,
    RequestError,
    RequestRefused,
    Server,
    ToolError,
    connect,
)
from mcpgen.generated.extensions import tasks
from mcpgen.generated.v2026_07_28 import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.server.functions.worker_threads import CALLER, Caller
from mcpgen.runtime.server.tasks import extension_tasks
from mcpgen.runtime.server.tasks.extension_tasks import MAX_LOOKS, MAX_TASK_IDS, ExtensionTasks
from mcpgen.runtime.server.tasks.lifecycle import TaskLifecycle
from mcpgen.runtime.server.tasks.task_contents import contents_of
from mcpgen.runtime.server.tasks.task_store import MAX_READ_BYTES, Outcome, TaskRecord
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence


spec = pytest.mark.spec
pytestmark = [pytest.mark.anyio]

PAGE = "specification/draft/tasks"
NO_TASK = (-32602, "There is no such task; it may have expired")
NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


class Bakery:
    """A server with a function for each way in which a task can go."""

    def __init__(self, **options: Any) -> None:
        self.server: Server[Any] = Server("bakery", version="1", **options)
        self.gate = anyio.Event()
        self.given_up = anyio.Event()
        for each in (self.bake, self.slow, self.burn, self.explode, self.ask, self.ask_twice, self.demand):
            self.server.tool(task=True)(each)
        self.server.tool(task="always")(self.ferment)
        self.server.tool(task="deferred")(self.later)
        self.server.tool(self.greet)

    async def bake(self, ctx: Context, loaves: int = 1) -> str:
        await ctx.progress(2, 2, "Cooling")
        return f"{loaves} baked"

    async def slow(self, ctx: Context) -> str:
        await ctx.progress(1, 2)
        await ctx.log("error", "The oven is hot")
        try:
            await self.gate.wait()
        except BaseException:
            self.given_up.set()
            raise
        return "done"

    async def burn(self) -> str:
        raise ToolError("It is black")

    async def explode(self) -> str:
        raise RequestError(-32603, "The oven is gone")

    async def ask(self, ctx: Context) -> str:
        answer = await ctx.elicit("Who?", NAME)
        return f"{answer.action} {answer.content}"

    async def ask_twice(self, ctx: Context) -> str:
        answers: dict[str, str] = {}

        async def one(what: str) -> None:
            answers[what] = (await ctx.elicit(what, NAME)).action

        async with anyio.create_task_group() as group:
            group.start_soon(one, "first")
            group.start_soon(one, "second")
        return f"{answers['first']} {answers['second']}"

    async def demand(self, ctx: Context) -> str | InputRequiredResult:
        answer = ctx.input_responses.get("name")
        if not isinstance(answer, ElicitResult):
            form = ElicitRequest(params=ElicitRequestFormParams(message="Who?", requested_schema=NAME))
            return InputRequiredResult(input_requests={"name": form})
        return f"demanded {answer.action}"

    async def ferment(self) -> str:
        return "fermented"

    async def later(self, ctx: Context) -> str:
        answer = await ctx.elicit("Who?", NAME)
        is_task = await ctx.defer()
        return f"{answer.action} {is_task} {await ctx.defer()}"

    def greet(self) -> str:
        return "hello"


class Peer:
    """A client that sends and gets JSON."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, method: str, /, **params: Any) -> dict[str, Any]:
        return await self.client.request_json(method, params)

    async def refusal(self, method: str, /, **params: Any) -> tuple[int, str]:
        with pytest.raises(RequestRefused) as caught:
            await self.ask(method, **params)
        return caught.value.code, caught.value.message

    async def create(self, tool: str, **arguments: Any) -> str:
        created = await self.ask("tools/call", name=tool, arguments=arguments)
        assert "task" == created["resultType"], created
        return str(created["taskId"])

    async def get(self, task: str) -> dict[str, Any]:
        return await self.ask("tasks/get", taskId=task)

    async def when(self, task: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                found = await self.get(task)
                if is_so(found):
                    return found
                await anyio.sleep(0.001)

    async def until(self, task: str, *statuses: str) -> dict[str, Any]:
        return await self.when(task, lambda found: found["status"] in statuses)

    async def end_of(self, task: str) -> dict[str, Any]:
        return await self.until(task, "completed", "failed", "cancelled")


def connected(bakery: Bakery, *, with_extension: bool = True, **options: Any) -> Any:
    """Connect a client that can take tasks and forms, unless it is told not to."""
    extensions = [tasks.EXTENSION] if with_extension else []
    return connect(
        bakery.server, extensions=extensions, revisions=["2026-07-28"], elicit=lambda _params, _context: None, **options
    )


@spec("ext-tasks", f"{PAGE}#capability-negotiation")
async def test_the_extension_is_declared_and_the_tasks_of_2025_11_25_are_not() -> None:
    async with connected(Bakery()) as client:
        discovered = await client.request_json("server/discover")

    assert {tasks.EXTENSION: {}} == discovered["capabilities"]["extensions"]
    assert "tasks" not in discovered["capabilities"]


@spec("ext-tasks", f"{PAGE}#capability-negotiation")
async def test_a_server_without_such_a_function_does_not_declare_the_extension() -> None:
    async with connect(Server("plain")) as client:
        assert {} == dict(client.extensions)


@spec("2026-07-28", "basic/versioning#extension-negotiation", "72c01f9a")
@spec("ext-tasks", f"{PAGE}#capability-negotiation")
async def test_a_client_that_has_not_declared_the_extension_gets_a_plain_result() -> None:
    async with connected(Bakery(), with_extension=False) as client:
        result = await client.request_json("tools/call", {"name": "bake", "arguments": {}})

    assert ("complete", "1 baked") == (result["resultType"], result["content"][0]["text"])


@spec("ext-tasks", f"{PAGE}#capability-negotiation", "1e262c0c")
async def test_a_function_that_must_be_a_task_refuses_a_client_without_the_extension() -> None:
    async with connected(Bakery(), with_extension=False) as client:
        with pytest.raises(RequestRefused) as refused:
            await client.request_json("tools/call", {"name": "ferment", "arguments": {}})

    assert (-32021, {"requiredCapabilities": {"extensions": {tasks.EXTENSION: {}}}}) == (
        refused.value.code,
        refused.value.data,
    )


@spec("ext-tasks", f"{PAGE}#capability-negotiation")
async def test_a_function_without_tasks_answers_a_client_with_the_extension_at_once() -> None:
    async with connected(Bakery()) as client:
        result = await client.request_json("tools/call", {"name": "greet", "arguments": {}, "task": {"ttl": 5}})

    assert ("complete", "hello") == (result["resultType"], result["content"][0]["text"])


@spec("ext-tasks", f"{PAGE}#polymorphic-results", "4dc02eb4")
@spec("ext-tasks", f"{PAGE}#task-creation")
async def test_a_call_is_answered_with_a_flat_task_that_can_be_found_at_once() -> None:
    bakery = Bakery()
    async with connected(bakery) as client:
        peer = Peer(client)
        created = await peer.ask("tools/call", name="slow", arguments={})
        found = await peer.get(created["taskId"])
        bakery.gate.set()

    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert ("task", "working", 600_000, 1000) == tuple(
        created[key] for key in ("resultType", "status", "ttlMs", "pollIntervalMs")
    )
    assert re.fullmatch(stamp, created["createdAt"])
    assert re.fullmatch(stamp, created["lastUpdatedAt"])
    assert {"resultType", "status", "ttlMs", "pollIntervalMs", "createdAt", "lastUpdatedAt", "taskId", "_meta"} == set(
        created
    )
    assert ("complete", "working", created["taskId"]) == (found["resultType"], found["status"], found["taskId"])


@spec("ext-tasks", f"{PAGE}#security-considerations", "b8c830e8")
async def test_an_id_has_256_random_bits() -> None:
    async with connected(Bakery()) as client:
        ids = {await Peer(client).create("bake") for _ in range(3)}

    assert 3 == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", each) for each in ids)


@spec("ext-tasks", f"{PAGE}#task-polling")
async def test_a_task_completes_with_the_result_of_its_call() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        found = await peer.end_of(await peer.create("bake", loaves=2))

    assert ("complete", "completed") == (found["resultType"], found["status"])
    assert ("complete", "2 baked") == (found["result"]["resultType"], found["result"]["content"][0]["text"])
    assert not {"error", "inputRequests"} & set(found)
    assert "io.modelcontextprotocol/related-task" not in found["result"]["_meta"]


async def test_a_poll_keeps_nothing_of_a_result_while_its_response_waits() -> None:
    bakery, kept = Bakery(), list[int]()

    @bakery.server.tool(task=True)
    async def write() -> str:
        return "x" * 100_000

    @bakery.server.middleware
    async def measure(params: Any, context: Context, call_next: Any) -> Any:
        result = await call_next(params, context)
        kept.extend([len(msgspec.json.encode(result))] if context.method == "tasks/get" else [])
        return result

    async with connected(bakery) as client:
        peer = Peer(client)
        found = await peer.end_of(await peer.create("write"))

    assert "x" * 100_000 == found["result"]["content"][0]["text"]
    assert max(kept) < 1000


async def test_a_poll_whose_task_completes_before_its_response_is_written_has_the_result() -> None:
    bakery, polled = Bakery(), list[str]()

    @bakery.server.middleware
    async def complete(params: Any, context: Context, call_next: Any) -> Any:
        result = await call_next(params, context)
        if context.method == "tasks/get" and not polled:
            polled.append(result.status)
            (key,) = (await peer.get(params.task_id))["inputRequests"]
            await peer.ask("tasks/update", taskId=params.task_id, inputResponses={key: {"action": "decline"}})
            await peer.end_of(params.task_id)
        return result

    async with connected(bakery) as client:
        peer = Peer(client)
        task = await peer.create("ask")
        await anyio.wait_all_tasks_blocked()
        found = await peer.get(task)

    assert (["input_required"], "completed") == (polled, found["status"])
    assert "inputRequests" not in found
    assert "decline None" == found["result"]["content"][0]["text"]


@spec("ext-tasks", f"{PAGE}#task-status-notifications")
async def test_progress_becomes_the_status_message_and_neither_progress_nor_log_is_sent() -> None:
    heard: list[Any] = []
    async with connected(Bakery(), log=lambda params, _context: heard.append(params)) as client:
        peer = Peer(client)
        task = await peer.create("slow")
        found = await peer.when(task, lambda found: "statusMessage" in found)
        await client.ping()

    assert ("1 of 2", []) == (found["statusMessage"], heard)


@spec("ext-tasks", f"{PAGE}#task-execution-errors", "0ef24a18", "97775e84")
@spec("ext-tasks", f"{PAGE}#task-status", "e8e60bd4")
async def test_a_tool_that_reports_an_error_completes() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        found = await peer.end_of(await peer.create("burn"))

    assert ("completed", True) == (found["status"], found["result"]["isError"])


@spec("ext-tasks", f"{PAGE}#task-execution-errors", "c131b24e")
async def test_an_error_of_the_protocol_fails_the_task() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        found = await peer.end_of(await peer.create("explode"))

    assert ("failed", {"code": -32603, "message": "The oven is gone"}) == (found["status"], found["error"])
    assert ("The oven is gone", False) == (found["statusMessage"], "result" in found)


@spec("ext-tasks", f"{PAGE}#task-cancellation")
async def test_cancelling_is_acknowledged_and_stops_the_function() -> None:
    bakery = Bakery()
    async with connected(bakery) as client:
        peer = Peer(client)
        task = await peer.create("slow")
        acknowledged = await peer.ask("tasks/cancel", taskId=task)
        found = await peer.end_of(task)
        with anyio.fail_after(PATIENCE_SECONDS):
            await bakery.given_up.wait()
        again = await peer.ask("tasks/cancel", taskId=task)

    assert {"resultType", "_meta"} == set(acknowledged) == set(again)
    assert ("complete", "cancelled") == (acknowledged["resultType"], found["status"])
    assert not {"result", "error"} & set(found)


@spec("ext-tasks", f"{PAGE}#protocol-errors", "1e0d2290", "cf0f1e4d", "e3c5f03b")
@spec("ext-tasks", f"{PAGE}#response", "bcb06e6a")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_task_that_does_not_exist_is_an_invalid_param(method: str) -> None:
    more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
    async with connected(Bakery()) as client:
        assert NO_TASK == await Peer(client).refusal(method, taskId="unknown", **more)


@spec("ext-tasks", f"{PAGE}#protocol-errors", "096bacff", "b80b6d79")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_client_without_the_extension_cannot_use_tasks(method: str) -> None:
    more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
    async with connected(Bakery(), with_extension=False) as client:
        assert -32021 == (await Peer(client).refusal(method, taskId="unknown", **more))[0]


@spec("ext-tasks", f"{PAGE}#protocol-errors")
@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
async def test_the_methods_of_2025_11_25_are_gone(method: str) -> None:
    async with connected(Bakery()) as client:
        assert -32601 == (await Peer(client).refusal(method, taskId="unknown"))[0]


@spec("ext-tasks", f"{PAGE}#task-polling")
@spec("ext-tasks", f"{PAGE}#task-update-requests")
@spec("ext-tasks", f"{PAGE}#response", "e87c65cf")
async def test_a_function_asks_inside_its_task() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        task = await peer.create("ask")
        found = await peer.until(task, "input_required")
        ((key, request),) = found["inputRequests"].items()
        ignored = await peer.ask("tasks/update", taskId=task, inputResponses={"never issued": {"a": 1}})
        still = await peer.get(task)
        answer = {"action": "accept", "content": {"name": "Luca"}}
        acknowledged = await peer.ask("tasks/update", taskId=task, inputResponses={key: answer})
        end = await peer.end_of(task)
        late = await peer.ask("tasks/update", taskId=task, inputResponses={key: answer})

    assert ("elicitation/create", "Who?") == (request["method"], request["params"]["message"])
    assert "input_required" == still["status"]
    assert {"resultType", "_meta"} == set(ignored) == set(acknowledged) == set(late)
    assert "accept {'name': 'Luca'}" == end["result"]["content"][0]["text"]


async def test_a_response_that_the_store_has_no_room_for_is_refused_with_the_limit() -> None:
    bakery = Bakery(tasks=MemoryTaskStore(max_outcome_bytes_per_principal=0))
    bakery.server.tool(name="insist", task=True, replay=True)(bakery.ask)
    async with connected(bakery) as client:
        peer = Peer(client)
        task = await peer.create("insist")
        found = await peer.until(task, "input_required")
        (key,) = found["inputRequests"]
        answer = {"action": "accept", "content": {"name": "x" * 10_000}}
        code, message = await peer.refusal("tasks/update", taskId=task, inputResponses={key: answer})

    assert (-32603, True) == (code, "max_outcome_bytes_per_principal" in message)


@spec("ext-tasks", f"{PAGE}#response", "a2875462")
@spec("ext-tasks", f"{PAGE}#task-update-requests")
async def test_a_task_needs_input_until_every_request_is_answered() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        task = await peer.create("ask_twice")
        first, second = (await peer.when(task, lambda found: len(found.get("inputRequests", ())) == 2))["inputRequests"]
        await peer.ask("tasks/update", taskId=task, inputResponses={first: {"action": "accept", "content": {}}})
        between = await peer.get(task)
        await peer.ask("tasks/update", taskId=task, inputResponses={second: {"action": "decline"}})
        end = await peer.end_of(task)

    assert ("input_required", [second]) == (between["status"], list(between["inputRequests"]))
    assert {"accept", "decline"} == set(end["result"]["content"][0]["text"].split())


@spec("ext-tasks", f"{PAGE}#task-update-requests")
async def test_an_invalid_response_to_an_open_request_is_refused_and_changes_nothing() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        task = await peer.create("ask")
        (key,) = (await peer.until(task, "input_required"))["inputRequests"]
        code, _ = await peer.refusal("tasks/update", taskId=task, inputResponses={key: {"action": 5}})
        missing, _ = await peer.refusal("tasks/update", taskId=task)
        found = await peer.get(task)

    assert (-32602, -32602, "input_required") == (code, missing, found["status"])


@spec("ext-tasks", f"{PAGE}#task-update-requests")
async def test_a_result_that_demands_input_is_answered_inside_the_task() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        task = await peer.create("demand")
        (key,) = (await peer.until(task, "input_required"))["inputRequests"]
        await peer.ask("tasks/update", taskId=task, inputResponses={key: {"action": "accept", "content": {}}})
        end = await peer.end_of(task)

    assert "demanded accept" == end["result"]["content"][0]["text"]


@spec("ext-tasks", f"{PAGE}#task-creation")
async def test_a_deferred_function_asks_in_its_call_before_it_becomes_a_task() -> None:
    async with connected(Bakery()) as client:
        peer = Peer(client)
        required = await peer.ask("tools/call", name="later", arguments={})
        (key,) = required["inputRequests"]
        created = await peer.ask(
            "tools/call",
            name="later",
            arguments={},
            requestState=required["requestState"],
            inputResponses={key: {"action": "decline"}},
        )
        end = await peer.end_of(created["taskId"])

    assert ("input_required", "task") == (required["resultType"], created["resultType"])
    assert not {"requestState", "inputRequests"} & set(created)
    assert "decline True True" == end["result"]["content"][0]["text"]


async def test_a_deferred_function_stays_a_call_where_the_client_has_no_tasks() -> None:
    async with connected(Bakery(), with_extension=False) as client:
        peer = Peer(client)
        required = await peer.ask("tools/call", name="later", arguments={})
        (key,) = required["inputRequests"]
        result = await peer.ask(
            "tools/call",
            name="later",
            arguments={},
            requestState=required["requestState"],
            inputResponses={key: {"action": "decline"}},
        )

    assert "decline False False" == result["content"][0]["text"]


class Watcher(tasks.ClientHandlers[Any]):
    """Keeps what it is notified of."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.is_over = anyio.Event()

    async def task_status(self, params: Any, context: Any, /) -> None:
        self.told.append(params)
        if params.status in {"completed", "failed", "cancelled"}:
            self.is_over.set()


@spec("ext-tasks", f"{PAGE}#task-status-notifications")
async def test_a_subscriber_gets_each_change_of_its_tasks_and_nothing_of_others() -> None:
    bakery, watcher = Bakery(), Watcher()
    extension = Extension(tasks, handlers=watcher)
    async with connect(bakery.server, extensions=[extension], elicit=lambda _params, _context: None) as client:
        peer = Peer(client)
        task, other = await peer.create("ask"), await peer.create("slow")
        async with client.listen(tasks.SubscriptionFilter(task_ids=[task, "unknown"])) as changes:
            accepted = changes.accepted["taskIds"]
            (key,) = (await peer.until(task, "input_required"))["inputRequests"]
            await peer.ask("tasks/cancel", taskId=other)
            await peer.ask("tasks/update", taskId=task, inputResponses={key: {"action": "decline"}})
            with anyio.fail_after(PATIENCE_SECONDS):
                await watcher.is_over.wait()
        end = await peer.get(task)

    assert [task] == accepted
    assert {task} == {each.task_id for each in watcher.told}
    last = watcher.told[-1]
    assert ("completed", end["result"], end["lastUpdatedAt"]) == (last.status, last.result, last.last_updated_at)


@spec("ext-tasks", f"{PAGE}#protocol-errors", "a9e0a1c9")
@spec("ext-tasks", f"{PAGE}#task-status-notifications", "06e3c42c")
async def test_a_client_without_the_extension_cannot_subscribe_to_tasks() -> None:
    async with connected(Bakery(), with_extension=False) as client:
        refused = await Peer(client).refusal("subscriptions/listen", notifications={"taskIds": ["unknown"]})

    assert -32021 == refused[0]


class CountingStore(MemoryTaskStore):
    """Counts how often a record is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def get(self, task_id: str) -> TaskRecord | None:
        self.reads += 1
        return super().get(task_id)


async def test_a_filter_with_too_many_tasks_is_refused_before_one_is_read() -> None:
    store = CountingStore()
    bakery = Bakery(tasks=store, limits=Limits(max_subscriptions=10))
    async with connect(bakery.server, extensions=[Extension(tasks, handlers=Watcher())]) as client:
        peer = Peer(client)
        task = await peer.create("bake")
        await peer.end_of(task)
        store.reads = 0
        refused = await peer.refusal("subscriptions/listen", notifications={"taskIds": [task] * 11})
        after_refusal = store.reads
        async with client.listen(tasks.SubscriptionFilter(task_ids=[task] * 10)) as changes:
            accepted = changes.accepted["taskIds"]

    assert "more than 10 entries (max_subscriptions)" in refused[1]
    assert (0, 1) == (after_refusal, store.reads)
    assert [task] == accepted


async def test_one_stream_is_about_a_limited_number_of_tasks() -> None:
    store = CountingStore()
    async with connect(Bakery(tasks=store).server, extensions=[Extension(tasks, handlers=Watcher())]) as client:
        unknown = [f"unknown {number}" for number in range(MAX_TASK_IDS + 1)]
        refused = await Peer(client).refusal("subscriptions/listen", notifications={"taskIds": unknown})

    assert f"more than {MAX_TASK_IDS} entries in `taskIds`" in refused[1]
    assert 0 == store.reads


class SharedStore(CountingStore):
    """Looks like a store that processes share."""

    @property
    def is_shared(self) -> bool:
        return True


class NotedTurns(FairTurns):
    """Notes what is spent."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def spend(self, size: int) -> None:
        self.sizes.append(size)


async def test_the_results_that_a_shared_store_reads_for_a_filter_count_for_the_turn() -> None:
    turns = NotedTurns()
    CALLER.set(Caller("client", turns))
    store = SharedStore()
    async with connect(Bakery(tasks=store).server, extensions=[Extension(tasks, handlers=Watcher())]) as client:
        peer = Peer(client)
        task = await peer.create("bake")
        await peer.end_of(task)
        ended = store.get(task)
        assert ended is not None
        turns.sizes.clear()
        async with client.listen(tasks.SubscriptionFilter(task_ids=[task])):
            pass

    assert ended.content_bytes in turns.sizes
    assert 0 < ended.content_bytes


async def test_each_look_at_tasks_of_other_processes_reads_some_of_them_in_turn() -> None:
    store = SharedStore()
    lifecycle = TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes)
    watching = ExtensionTasks(lifecycle)
    for number in range(2 * MAX_LOOKS + 1):
        record = TaskRecord(
            task_id=f"{number}", principal="anyone", status="working", created_ms=0, updated_ms=0, ttl_ms=1000
        )
        store.add(record)
        watching._seen[record.task_id] = 0
    store.reads = 0
    watching.watch()
    after_one = store.reads
    first = store.get("0")
    assert first is not None
    store.replace(msgspec.structs.replace(first, status="cancelled"))
    watching.watch()
    watching.watch()

    assert MAX_LOOKS == after_one
    assert 3 * MAX_LOOKS + 1 == store.reads  # one of them by this test
    assert "0" not in watching._seen
    assert 2 * MAX_LOOKS == len(watching._seen)


async def test_a_change_is_encoded_once_for_all_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    bakery, watcher, encoded = Bakery(), Watcher(), list[str]()

    def counted(record: TaskRecord) -> Any:
        encoded.append(record.status)
        return contents_of(record)

    async with connect(bakery.server, extensions=[Extension(tasks, handlers=watcher)]) as client:
        task = await Peer(client).create("slow")
        wanted = tasks.SubscriptionFilter(task_ids=[task])
        async with client.listen(wanted), client.listen(wanted), client.listen(wanted):
            monkeypatch.setattr(extension_tasks, "contents_of", counted)
            bakery.gate.set()
            with anyio.fail_after(PATIENCE_SECONDS):
                while True:
                    if len([each for each in watcher.told if each.status == "completed"]) == 3:
                        break
                    await anyio.sleep(0.001)

    assert ["completed"] == [each for each in encoded if each == "completed"]
    assert 3 == len({str(each.meta) for each in watcher.told if each.status == "completed"})


async def test_a_question_that_is_asked_while_the_call_becomes_a_task_is_in_the_task() -> None:
    bakery = Bakery()

    @bakery.server.tool(task="deferred")
    async def ask_and_defer(ctx: Context) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(bakery.ask, ctx)
            group.start_soon(ctx.defer)
        return "asked"

    async with connected(bakery) as client:
        peer = Peer(client)
        task = await peer.create("ask_and_defer")
        (key,) = (await peer.until(task, "input_required"))["inputRequests"]
        await peer.ask("tasks/update", taskId=task, inputResponses={key: {"action": "decline"}})
        ended = await peer.end_of(task)

    assert "asked" == ended["result"]["content"][0]["text"]


@asynccontextmanager
async def as_user(bakery: Bakery, name: str) -> AsyncGenerator[Peer]:
    """Connect a client that the transport has authenticated."""
    async with connected(bakery) as client:
        (*_, connection) = bakery.server._engine.connections
        connection.session.user = name
        yield Peer(client)


@spec("ext-tasks", f"{PAGE}#security-considerations", "92c8f63f")
async def test_the_task_of_another_user_does_not_exist() -> None:
    bakery = Bakery()
    async with as_user(bakery, "alice") as alice, as_user(bakery, "bob") as bob, as_user(bakery, "alice") as again:
        task = await alice.create("slow")

        assert NO_TASK == await bob.refusal("tasks/get", taskId=task)
        assert NO_TASK == await bob.refusal("tasks/cancel", taskId=task)
        assert NO_TASK == await bob.refusal("tasks/update", taskId=task, inputResponses={})
        assert "working" == (await again.get(task))["status"]


async def test_a_task_outlives_the_connection_that_created_it() -> None:
    bakery = Bakery()
    async with bakery.server.running():
        async with connected(bakery) as client:
            task = await Peer(client).create("slow")
        bakery.gate.set()
        async with connected(bakery) as client:
            end = await Peer(client).end_of(task)

    assert "done" == end["result"]["content"][0]["text"]


class BriefStore(SharedStore):
    """Has briefs, as a store in Redis."""

    def briefs(self, task_ids: Sequence[str]) -> list[TaskRecord]:
        found = [MemoryTaskStore.get(self, each) for each in task_ids]
        return [each.brief() for each in found if each is not None]


async def test_a_filter_for_tasks_with_large_results_reads_none_of_them() -> None:
    store = BriefStore()
    async with connect(Bakery(tasks=store).server, extensions=[Extension(tasks, handlers=Watcher())]) as client:
        peer = Peer(client)
        created = [await peer.create("bake") for _ in range(3)]
        for each in created:
            await peer.end_of(each)
        store.reads = 0
        async with client.listen(tasks.SubscriptionFilter(task_ids=created)) as changes:
            accepted = changes.accepted["taskIds"]

    assert (created, 0) == (accepted, store.reads)


async def test_large_results_of_other_processes_are_read_one_in_each_turn() -> None:
    store = BriefStore()
    watching = ExtensionTasks(TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes))
    for number in range(5):
        record = TaskRecord(
            task_id=f"{number}", principal="anyone", status="working", created_ms=0, updated_ms=0, ttl_ms=1000
        )
        store.add(record)
        watching._seen[record.task_id] = 0
        outcome = Outcome(b" " * MAX_READ_BYTES)
        store.replace(msgspec.structs.replace(record, status="completed", updated_ms=1, outcome=outcome))
    turns = []
    for _ in range(5):
        store.reads = 0
        turns.append((watching.watch(), store.reads))

    assert [(0.0, 1)] * 4 + [(None, 1)] == turns
    assert not watching._seen


async def test_a_change_by_a_process_whose_clock_is_behind_is_seen() -> None:
    store = BriefStore()
    of_owner = TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes)
    of_other = TaskLifecycle(store, clock=lambda: 300.0, random_bytes=bytes)
    watching = ExtensionTasks(TaskLifecycle(store, clock=lambda: 0.0, random_bytes=bytes))
    told: list[Any] = []
    watching._notify = told.append  # type: ignore[method-assign]
    store.add(
        TaskRecord(task_id="a", principal="anyone", status="working", created_ms=0, updated_ms=0, ttl_ms=1_000_000)
    )
    watching._seen["a"] = 0
    of_other.change("a", "input_required", input_requests=b"{}")
    watching.watch()
    of_owner.change("a", "completed", outcome=Outcome(b"{}"))
    watching.watch()

    assert ["input_required", "completed"] == [each.status for each in told]


async def test_the_record_of_a_task_that_asks_is_read_again_only_after_a_change() -> None:
    store = BriefStore()
    bakery = Bakery(tasks=store)
    async with connected(bakery) as client:
        peer = Peer(client)
        task = await peer.create("ask")
        await peer.until(task, "input_required")
        worker: Any = bakery.server._engine.tasks._worker  # type: ignore[union-attr]
        worker._sync()
        store.reads = 0
        for _ in range(3):
            worker._sync()
        without_change = store.reads
        found = MemoryTaskStore.get(store, task)
        assert found is not None
        store.replace(msgspec.structs.replace(found, updated_ms=found.updated_ms + 1))
        for _ in range(3):
            worker._sync()
        after_change = store.reads

    assert (0, 1) == (without_change, after_change)
