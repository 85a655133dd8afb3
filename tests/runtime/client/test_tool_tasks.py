"""Tools that run as tasks, from the side of the client: it waits as for a call, or takes up the result later."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec import Raw

from mcpgen import (
    ClientLimits,
    Context,
    InvalidPayload,
    Limits,
    McpgenError,
    RequestError,
    RequestRefused,
    RequestTimedOut,
    Server,
    TaskCancelled,
    TaskHandle,
    TaskLimits,
    TaskState,
    ToolError,
    ToolFailed,
    UnexpectedResult,
    UnsupportedByPeer,
    UsageError,
    connect,
)
from mcpgen.generated.extensions import tasks as bindings
from mcpgen.generated.v2026_07_28 import ElicitResult
from mcpgen.runtime.client import tool_tasks
from mcpgen.runtime.client.changes import Changes
from mcpgen.runtime.client.task_state import DescribedTask, TaskWait
from mcpgen.runtime.client.task_watcher import TaskWatcher
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio]

BOTH = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


class Bakery:
    """A server whose tools run as tasks, and what it was asked."""

    def __init__(self, **options: Any) -> None:
        self.server: Server[Any] = Server("bakery", version="1", **options)
        self.gate = anyio.Event()
        self.stopped = anyio.Event()
        for each in (self.bake, self.ask, self.burn, self.explode, self.slow):
            self.server.tool(task="always")(each)
        self.server.tool(task=True)(self.knead)
        self.server.tool(self.greet)
        self.was_task: list[bool] = []

    async def bake(self, ctx: Context, loaves: int = 1) -> int:
        await anyio.sleep(0.02)
        await ctx.progress(1, 2, "Kneading")
        await anyio.sleep(0.02)
        return loaves

    async def knead(self, ctx: Context) -> str:
        exchange = ctx._exchange
        self.was_task.append(exchange is not None and exchange.task is not None)
        return "kneaded"

    async def ask(self, ctx: Context) -> str:
        answer = await ctx.elicit("Who?", NAME)
        return f"{answer.action} {answer.content}"

    async def burn(self) -> str:
        raise ToolError("It is black")

    async def explode(self) -> str:
        raise RequestError(-32603, "The oven is gone")

    async def slow(self) -> str:
        try:
            await self.gate.wait()
        except BaseException:
            self.stopped.set()
            raise
        return "done"

    async def greet(self) -> str:
        return "hello"


def connected(bakery: Bakery, revision: str, **options: Any) -> Any:
    return connect(bakery.server, revisions=[revision], tasks=True, **options)


async def eventually(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110 (another task makes it so, without an event)
            await anyio.sleep(0.001)


@pytest.mark.spec("ext-tasks", "specification/draft/tasks#capability-negotiation", "109f419a")
@BOTH
@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
async def test_a_call_waits_for_its_task(revision: str) -> None:
    async with connected(Bakery(), revision) as client:
        assert 3 == await client.call_tool("bake", {"loaves": 3}, returns=int)
        assert "hello" == (await client.call_tool("greet")).text


@BOTH
async def test_a_call_reports_the_progress_of_its_task(revision: str) -> None:
    heard: list[str | None] = []
    async with connected(Bakery(), revision) as client:
        await client.call_tool("bake", on_progress=lambda _progress, _total, message: heard.append(message))

    assert ["Kneading"] == heard


@BOTH
@pytest.mark.spec("ext-tasks", "specification/draft/tasks#task-update-requests")
async def test_the_functions_of_the_client_answer_a_task(revision: str) -> None:
    asked: list[str] = []

    def elicit(params: Any, _context: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "Luca"})

    async with connected(Bakery(), revision, elicit=elicit) as client:
        result = await client.call_tool("ask")

    assert ("accept {'name': 'Luca'}", ["Who?"]) == (result.text, asked)


async def test_a_task_that_asks_without_end_is_cancelled() -> None:
    asked: list[str] = []
    bakery = Bakery()

    @bakery.server.tool(task="always")
    async def pester(ctx: Context) -> None:
        try:
            for _ in range(20):
                await ctx.elicit("Who?", NAME)
        except BaseException:
            bakery.stopped.set()
            raise

    def elicit(params: Any, _context: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "Luca"})

    async with connected(bakery, "2026-07-28", elicit=elicit, limits=ClientLimits(max_rounds=3)) as client:
        with pytest.raises(InvalidPayload, match=r"more than `max_rounds` times \(3\)"):
            await client.call_tool("pester")
        with anyio.fail_after(PATIENCE_SECONDS):
            await bakery.stopped.wait()

    assert ["Who?"] * 3 == asked


@pytest.mark.slow
async def test_the_time_of_a_task_ends_also_while_it_asks() -> None:
    bakery = Bakery(limits=Limits(max_rounds=10_000))

    @bakery.server.tool(task="always")
    async def pester(ctx: Context) -> None:
        while True:
            await ctx.elicit("Who?", NAME)

    limits = ClientLimits(max_rounds=10_000, max_call_seconds=1)
    async with connected(
        bakery, "2026-07-28", elicit=lambda *_: ElicitResult(action="decline"), limits=limits
    ) as client:
        with pytest.raises(RequestTimedOut):
            await client.call_tool("pester", timeout_seconds=0.2)


@BOTH
async def test_a_tool_that_fails_in_its_task_fails_as_in_a_call(revision: str) -> None:
    async with connected(Bakery(), revision) as client:
        assert (True, "It is black") == ((result := await client.call_tool("burn")).is_error, result.text)
        with pytest.raises(ToolFailed):
            await client.call_tool("burn", returns=str)
        with pytest.raises(RequestRefused, match="The oven is gone") as refused:
            await client.call_tool("explode")

    assert -32603 == refused.value.code


@BOTH
@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#cancelling-tasks")
@pytest.mark.spec("ext-tasks", "specification/draft/tasks#task-cancellation")
async def test_a_call_that_takes_too_long_cancels_its_task(revision: str) -> None:
    bakery = Bakery()
    async with bakery.server.running(), connected(bakery, revision) as client:
        with pytest.raises(RequestTimedOut):
            await client.call_tool("slow", timeout_seconds=0.1)
        with anyio.fail_after(PATIENCE_SECONDS):
            await bakery.stopped.wait()


@BOTH
@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#cancelling-tasks")
async def test_a_call_that_is_cancelled_cancels_its_task(revision: str) -> None:
    bakery = Bakery()
    async with bakery.server.running(), connected(bakery, revision) as client:
        with anyio.move_on_after(0.1):
            await client.call_tool("slow")
        with anyio.fail_after(PATIENCE_SECONDS):
            await bakery.stopped.wait()


@BOTH
async def test_the_hard_limit_of_a_call_holds_for_its_task(revision: str) -> None:
    limits = ClientLimits(call_seconds=0.1, max_call_seconds=0.2)
    bakery = Bakery()
    async with connected(bakery, revision, limits=limits) as client:
        with pytest.raises(RequestTimedOut):
            await client.call_tool("slow")


async def test_the_time_limit_of_a_call_holds_for_the_list_of_tools_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bakery = Bakery()
    async with connected(bakery, "2025-11-25", limits=ClientLimits(max_call_seconds=2)) as client:
        monkeypatch.setattr(client._engine.tool_tasks, "_list_tools", anyio.sleep_forever)
        for call in (client.call_tool, client.start_tool):
            with pytest.raises(RequestTimedOut, match=r"tools/list was not answered within 0\.1 seconds"):
                await call("slow", timeout_seconds=0.1)


@pytest.mark.slow
async def test_the_time_limit_of_a_call_holds_while_the_server_does_not_describe_its_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with connected(Bakery(), "2026-07-28") as client:
        monkeypatch.setattr(client._engine.tool_tasks, "get", lambda _: anyio.sleep_forever())
        with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(RequestTimedOut, match=r"within 0\.1 seconds"):
            await client.call_tool("slow", timeout_seconds=0.1)


@pytest.mark.slow
async def test_the_time_limit_of_a_call_holds_while_the_server_does_not_take_the_input_of_its_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with connected(Bakery(), "2026-07-28", elicit=lambda *_: ElicitResult(action="decline")) as client:
        tasks = client._engine.tool_tasks
        ask = tasks._ask

        async def silent(method: str, params: Any, **options: Any) -> Any:
            return await (anyio.sleep_forever() if method == "tasks/update" else ask(method, params, **options))

        monkeypatch.setattr(tasks, "_ask", silent)
        with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(RequestTimedOut, match="the task of the tool did not"):
            await client.call_tool("ask", timeout_seconds=0.5)


async def test_the_keys_of_answered_requests_are_not_kept_until_the_server_takes_the_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[int] = []
    answered: list[dict[str, Any]] = []
    async with connected(Bakery(), "2026-07-28", elicit=lambda *_: ElicitResult(action="decline")) as client:
        tasks = client._engine.tool_tasks
        ask, answer = tasks._ask, tasks._answer

        async def answer_noted(task_id: str, new: dict[str, Any], wait: TaskWait) -> None:
            answered.append(new)
            await answer(task_id, new, wait)

        async def ask_noted(method: str, params: Any, **options: Any) -> Any:
            if method == "tasks/update":
                kept.append(len(answered[-1]) + isinstance(params["inputResponses"], dict))
            return await ask(method, params, **options)

        monkeypatch.setattr(tasks, "_answer", answer_noted)
        monkeypatch.setattr(tasks, "_ask", ask_noted)
        assert "decline None" == (await client.call_tool("ask")).text

    assert [0] == kept


@pytest.fixture
def has_slept(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Return an event that is set when a wait for a task sleeps, for hours unless it is woken."""
    event = anyio.Event()
    sleep = TaskWait.sleep

    async def sleep_noted(wait: TaskWait, seconds: float) -> None:
        event.set()
        await sleep(wait, seconds)

    monkeypatch.setattr(TaskWait, "sleep", sleep_noted)
    monkeypatch.setattr(tool_tasks, "_BACKSTOP_SECONDS", 10_000)
    return event


async def test_a_wait_for_a_task_ends_with_the_client(has_slept: anyio.Event) -> None:
    failures: list[McpgenError] = []

    async def wait(handle: TaskHandle) -> None:
        try:
            await handle.result()
        except McpgenError as failure:
            failures.append(failure)

    async with anyio.create_task_group() as group:
        async with connected(Bakery(), "2026-07-28") as client:
            group.start_soon(wait, await client.start_tool("slow"))
            await has_slept.wait()
        await eventually(lambda: bool(failures))

    assert ["the client was closed"] == [str(each) for each in failures]


async def test_a_task_is_polled_once_the_server_has_ended_the_subscription(
    has_slept: anyio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls: list[str] = []
    get = tool_tasks.ToolTasks.get

    async def get_noted(tasks: tool_tasks.ToolTasks, task_id: str) -> DescribedTask:
        polls.append(task_id)
        return await get(tasks, task_id)

    monkeypatch.setattr(tool_tasks.ToolTasks, "get", get_noted)
    async with connected(Bakery(), "2026-07-28") as client, anyio.create_task_group() as group:
        handle = await client.start_tool("slow")
        group.start_soon(handle.result)
        await has_slept.wait()
        session = client._engine.session
        (stream_id,) = session.subscriptions.streams
        session.resolve(session.pending[stream_id], Raw(b'{"resultType":"complete"}'))
        await eventually(lambda: len(polls) > 1)
        group.cancel_scope.cancel()

    assert {handle.task_id} == {*polls}


async def test_a_wait_can_be_cancelled_although_the_server_never_stops_reporting_its_task() -> None:
    wait = TaskWait(None, 600, None)
    rounds = 0

    async def report() -> None:
        while True:
            wait.event.set()
            await checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(report)
        with anyio.CancelScope() as scope:
            for rounds in range(1000):
                wait.event = anyio.Event()
                if rounds == 10:
                    scope.cancel()
                await wait.sleep(600)
        group.cancel_scope.cancel()

    assert rounds < 1000 - 1


@pytest.mark.slow
async def test_a_server_that_does_not_acknowledge_the_subscription_is_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silence(_: Changes) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(Changes, "__aenter__", silence)
    async with connected(Bakery(), "2026-07-28") as client:
        with anyio.fail_after(PATIENCE_SECONDS):
            assert 1 == await client.call_tool("bake", timeout_seconds=1, returns=int)


@pytest.mark.parametrize("accepted", [5, None, "a text"])
async def test_a_subscription_whose_acknowledgement_has_no_list_of_tasks_is_polled(
    accepted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Changes, "accepted", {"taskIds": accepted})
    async with connected(Bakery(task_limits=TaskLimits(poll_interval_ms=50)), "2026-07-28") as client:
        assert 1 == await client.call_tool("bake", returns=int)


@pytest.mark.parametrize(("size", "kept"), [(100, [100, 0]), (100_000, [0])])
async def test_a_long_refusal_is_not_kept_while_the_state_of_its_task_is_asked_for(
    size: int, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    async with connected(Bakery(), "2025-11-25") as client:
        handle, tasks = await client.start_tool("slow"), client._engine.tool_tasks
        ask = tasks._ask

        async def refuse(method: str, params: Any, **options: Any) -> Any:
            if method != "tasks/get":
                raise RequestRefused(method, RequestError(-32602, "x" * size))
            found.append(len(getattr(sys.exception(), "message", "")))
            return await ask(method, params, **options)

        monkeypatch.setattr(tasks, "_ask", refuse)
        with pytest.raises(RequestRefused):
            await handle.result()
        await handle.cancel()

    assert kept == found


@BOTH
async def test_a_task_with_a_long_id_is_refused(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_tasks, "MAX_ID_CHARS", 5)
    async with connected(Bakery(), revision) as client:
        with pytest.raises(InvalidPayload, match="the id of the task has more than 5 characters"):
            await client.call_tool("bake")


async def test_a_state_that_several_waits_hear_of_is_read_once() -> None:
    watcher, waits = TaskWatcher(), [TaskWait(None, 600, None) for _ in range(3)]
    watcher.waits["one"] = waits
    status = bindings.TaskStatusNotificationParamsWorking(task_id="one", created_at="", last_updated_at="", ttl_ms=None)

    await watcher.task_status(status, None)

    assert {id(waits[0].found)} == {id(each.found) for each in waits}
    assert waits[0].found is not None


async def test_a_wait_does_not_keep_the_texts_of_a_state() -> None:
    wait = TaskWait(60, 600, lambda *_: None)

    await wait.report(DescribedTask("one", "working", status_message="x" * 1000, last_updated_at="y" * 1000))

    assert not [each for each in vars(wait).values() if isinstance(each, str)]


@BOTH
async def test_a_tool_is_started_and_its_result_waited_for_later(revision: str) -> None:
    bakery = Bakery()
    async with connected(bakery, revision) as client:
        handle = await client.start_tool("slow")
        assert TaskState("working") == await handle.state()

        bakery.gate.set()
        assert "done" == (await handle.result()).text
        assert (await handle.state()).has_ended
        assert "done" == await client.task(handle.task_id).result(returns=str)
        with pytest.raises(UnexpectedResult, match="the result of the tool 'slow' is not of the type int: "):
            await handle.result(returns=int)
        await handle.cancel()


@BOTH
async def test_a_tool_that_may_be_a_task_is_one_only_where_it_is_started(revision: str) -> None:
    bakery = Bakery()
    async with connected(bakery, revision) as client:
        handle = await client.start_tool("knead")
        assert "kneaded" == (await handle.result()).text
        await client.call_tool("knead")

    assert [True, revision == "2026-07-28"] == bakery.was_task
    assert handle.task_id


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_a_tool_without_tasks_has_finished_when_it_is_started(revision: str) -> None:
    async with connected(Bakery(), revision) as client:
        handle = await client.start_tool("greet")

        assert ("", "hello", TaskState("completed")) == (
            handle.task_id,
            (await handle.result()).text,
            await handle.state(),
        )
        await handle.cancel()


@BOTH
async def test_the_end_of_a_wait_does_not_end_the_task(revision: str) -> None:
    bakery = Bakery()
    async with connected(bakery, revision) as client:
        handle = await client.start_tool("slow")
        with pytest.raises(RequestTimedOut):
            await handle.result(timeout_seconds=0.05)
        with anyio.move_on_after(0.05):
            await handle.result()
        bakery.gate.set()

        assert "done" == (await handle.result()).text


@BOTH
async def test_a_cancelled_task_has_no_result(revision: str) -> None:
    bakery = Bakery()
    async with connected(bakery, revision) as client:
        handle = await client.start_tool("slow")
        await handle.cancel()

        assert "cancelled" == (await handle.state()).status
        with pytest.raises(TaskCancelled, match="the task was cancelled: Cancelled by the"):
            await handle.result()
        await handle.cancel()


@BOTH
async def test_a_task_that_does_not_exist_is_refused(revision: str) -> None:
    async with connected(Bakery(), revision) as client:
        handle = client.task("unknown")
        for wanted in (handle.state, handle.result, handle.cancel):
            with pytest.raises(RequestRefused, match="There is no such task"):
                await wanted()


async def test_another_client_takes_up_a_task() -> None:
    bakery = Bakery()
    async with bakery.server.running():
        async with connected(bakery, "2026-07-28") as client:
            task_id = (await client.start_tool("slow")).task_id
        bakery.gate.set()
        async with connected(bakery, "2026-07-28") as client:
            assert "done" == await client.task(task_id).result(returns=str)


async def test_a_client_that_takes_no_tasks_gets_plain_results() -> None:
    bakery = Bakery()
    async with connect(bakery.server, revisions=["2026-07-28"]) as client:
        assert "kneaded" == (await client.call_tool("knead")).text
        assert "kneaded" == (await (await client.start_tool("knead")).result()).text
        with pytest.raises(RequestRefused) as refused:
            await client.call_tool("bake")
        with pytest.raises(UnsupportedByPeer, match="tasks=True"):
            client.task("unknown")

    assert ([False, False], -32021) == (bakery.was_task, refused.value.code)


@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        ("2025-06-18", "2025-06-18 has no tasks"),
        ("2025-11-25", "the server runs no tools as tasks"),
        ("2026-07-28", "the server runs no tools as tasks, or connect() was called without tasks=True"),
    ],
)
async def test_the_reason_why_there_is_no_task_fits_the_revision(revision: str, reason: str) -> None:
    async with connect(Server("empty"), revisions=[revision], tasks=True) as client:
        with pytest.raises(UnsupportedByPeer) as caught:
            client.task("unknown")

    assert reason == caught.value.reason


async def test_without_notifications_the_client_polls() -> None:
    bakery = Bakery(task_limits=TaskLimits(poll_interval_ms=50))
    handlers = bakery.server._engine.handlers.extensions[0].extension.handlers
    handlers.accept_subscription = lambda wanted, _context: type(wanted)(task_ids=[])
    async with connected(bakery, "2026-07-28") as client:
        assert 1 == await client.call_tool("bake", returns=int)


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#tool-level-negotiation")
async def test_changed_tools_are_looked_up_again() -> None:
    bakery = Bakery()
    async with connected(bakery, "2025-11-25") as client:
        assert "hello" == (await client.call_tool("greet")).text
        bakery.server.remove_tool("greet")
        bakery.server.tool(name="greet", task="always")(bakery.knead)
        await bakery.server.tools_changed()
        tasks = client._engine.tool_tasks
        assert tasks is not None
        await eventually(lambda: not tasks._support.knows("greet"))

        assert "kneaded" == (await client.call_tool("greet")).text
        assert [True] == bakery.was_task


def test_an_option_that_is_no_flag_is_refused() -> None:
    wrong: Any = "yes"
    with pytest.raises(UsageError, match="`tasks` must be True or False"):
        connect(Server("plain"), tasks=wrong)


def test_the_reason_of_a_cancelled_task_cannot_control_a_terminal() -> None:
    assert "the task was cancelled: \\x1b[2J" == str(TaskCancelled("task", "\x1b[2J"))


def test_a_poll_interval_of_hundreds_of_digits_is_a_long_one() -> None:
    assert DescribedTask("one", "working", poll_interval_ms=10**400).poll_seconds > 10**6


def test_a_negative_poll_interval_of_hundreds_of_digits_is_a_short_one() -> None:
    assert 0.05 == DescribedTask("one", "working", poll_interval_ms=-(10**400)).poll_seconds
