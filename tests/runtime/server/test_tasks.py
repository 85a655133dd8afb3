"""What a receiver of tasks owes its requestors: 2025-11-25, basic/utilities/tasks, one requirement after the other."""

from __future__ import annotations

import base64
import logging
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from mcpgen.generated.v2025_11_25 import models
from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.limits import TaskLimits
from mcpgen.runtime.server.tasks.handshake_tasks import Tasks
from mcpgen.runtime.server.tasks.memory_task_store import MemoryTaskStore
from mcpgen.runtime.server.tasks.running_task import MAX_STATUS_MESSAGE_CHARS, RunningTask, related
from mcpgen.runtime.server.tasks.task_augmentation import runs_as_task
from mcpgen.runtime.server.tasks.task_requests import TaskRequests, TaskSupport
from mcpgen.runtime.server.tasks.task_store import Outcome, StoreFull, TaskRecord, forget_all

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = "basic/utilities/tasks"
START = 1764066600.0  # 2025-11-25T10:30:00Z
RELATED = "io.modelcontextprotocol/related-task"

FIRST = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"
RESULT = b'{"content":[{"type":"text","text":"72 F"}],"isError":false}'
RELATED_RESULT = (
    b'{"content":[{"type":"text","text":"72 F"}],"isError":false,'
    b'"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"}}}'
)
ERROR = b'{"code":-32602,"message":"no such city","data":{"city":"Nowhere"}}'


class Bench:
    """A receiver with a clock of its own and handlers that do what the test says."""

    def __init__(self, store: MemoryTaskStore | None = None, **limits: int) -> None:
        self.now = START
        self.made = 0
        self.running: dict[str, RunningTask] = {}
        self.stopped: list[str] = []
        self.told: list[models.TaskStatusNotificationParams] = []
        self.tasks = Tasks(
            MemoryTaskStore() if store is None else store,
            clock=lambda: self.now,
            random_bytes=self._random_bytes,
            limits=TaskLimits(**limits),
        )

    def _random_bytes(self, count: int) -> bytes:
        self.made += 1
        return bytes([self.made % 256]) * count

    def _run(self, running: RunningTask) -> Callable[[], None]:
        self.running[running.task_id] = running
        return lambda: self.stopped.append(running.task_id)

    def create(
        self,
        principal: str = "alice",
        *,
        run: Callable[[RunningTask], Callable[[], None]] | None = None,
        meta: dict[str, Any] | UnsetType = UNSET,
        **options: Any,
    ) -> RunningTask:
        created = self.create_result(principal, run=run, meta=meta, **options)
        return self.running[created.task.task_id]

    def create_result(
        self,
        principal: str = "alice",
        *,
        run: Callable[[RunningTask], Callable[[], None]] | None = None,
        ttl: int | UnsetType = 60_000,
        meta: dict[str, Any] | UnsetType = UNSET,
    ) -> models.CreateTaskResult:
        params = models.CallToolRequestParams(name="weather", task=models.TaskMetadata(ttl=ttl), meta=meta)
        return self.tasks.create(params, run or self._run, principal=principal, changed=self.told.append)

    def get(self, task_id: str, principal: str = "alice") -> dict[str, Any]:
        return self.tasks.get(task_id, principal=principal)

    def status(self, task_id: str, principal: str = "alice") -> str:
        return str(self.get(task_id, principal)["status"])

    def wait(self, task_id: str, principal: str = "alice") -> tuple[list[Outcome], Callable[[], object]]:
        got: list[Outcome] = []
        return got, self.tasks.result(task_id, principal=principal, deliver=got.append)

    def outcomes(self, task_id: str, principal: str = "alice") -> list[Outcome]:
        return self.wait(task_id, principal)[0]

    def listed(self, principal: str = "alice") -> list[str]:
        found: list[str] = []
        cursor: str | UnsetType = UNSET
        while True:
            page = self.tasks.list(cursor, principal=principal)
            found += [each.task_id for each in page.tasks]
            cursor = page.next_cursor
            if cursor is UNSET:
                return found


def refusal(call: Callable[..., object], *args: Any, **kwargs: Any) -> tuple[int, str]:
    with pytest.raises(RequestError) as caught:
        call(*args, **kwargs)
    return caught.value.code, caught.value.message


NO_TASK = (-32602, "There is no such task; it may have expired")


# Capabilities, "Tool-Level Negotiation", "Task Support and Handling"


@pytest.mark.spec("2025-11-25", f"{TASKS}#server-capabilities")
def test_a_server_declares_listing_cancelling_and_the_requests_that_may_be_tasks() -> None:
    requests = TaskRequests(Bench().tasks, lambda _name: "optional")

    assert {"tasks": {"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}}} == requests.capabilities


@pytest.mark.spec("2025-11-25", f"{TASKS}#tool-level-negotiation")
def test_a_tool_that_is_no_task_refuses_to_be_called_as_one() -> None:
    assert not runs_as_task("forbidden", is_asked=False, is_offered=True)
    assert (-32601, "This tool cannot run as a task; call it without the `task` parameter") == refusal(
        runs_as_task, "forbidden", is_asked=True, is_offered=True
    )


@pytest.mark.spec("2025-11-25", f"{TASKS}#tool-level-negotiation")
def test_a_tool_that_may_be_a_task_is_what_the_client_asks_for() -> None:
    assert runs_as_task("optional", is_asked=True, is_offered=True)
    assert not runs_as_task("optional", is_asked=False, is_offered=True)


@pytest.mark.spec("2025-11-25", f"{TASKS}#tool-level-negotiation")
def test_a_tool_that_must_be_a_task_refuses_to_be_called_otherwise() -> None:
    assert runs_as_task("required", is_asked=True, is_offered=True)
    assert (-32601, "This tool runs only as a task; add the `task` parameter to the call") == refusal(
        runs_as_task, "required", is_asked=False, is_offered=True
    )


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-support-and-handling")
@pytest.mark.parametrize("support", ["forbidden", "optional", "required"])
@pytest.mark.parametrize("is_asked", [False, True])
def test_where_tasks_are_not_declared_the_wish_for_one_is_ignored(support: TaskSupport, *, is_asked: bool) -> None:
    assert not runs_as_task(support, is_asked=is_asked, is_offered=False)


# "Creating Tasks", "Task ID Requirements", "TTL and Resource Management"


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#result-retrieval", "e8d75afa")
@pytest.mark.spec("2025-11-25", f"{TASKS}#creating-tasks")
def test_a_request_that_is_accepted_as_a_task_is_answered_with_the_task() -> None:
    result = Bench().create_result()

    assert (
        b'{"task":{"createdAt":"2025-11-25T10:30:00.000Z","lastUpdatedAt":"2025-11-25T10:30:00.000Z",'
        b'"status":"working","taskId":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE","ttl":60000,"pollInterval":1000},'
        b'"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"}}}'
    ) == msgspec.json.encode(result)


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-status-lifecycle", "ddcd6ba5")
def test_a_task_begins_as_working_even_if_its_handler_ends_at_once() -> None:
    bench = Bench()

    def run(running: RunningTask) -> Callable[[], None]:
        running.finish(RESULT)
        running.close()
        return lambda: pytest.fail("there is nothing to stop")

    assert "working" == bench.create_result(run=run).task.status
    assert "completed" == bench.status(FIRST)
    assert -32602 == refusal(bench.tasks.cancel, FIRST, principal="alice")[0]


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-id-requirements", "f28f9890", "55f03540", "a57e2247")
def test_ids_are_made_here_and_are_each_anothers() -> None:
    bench = Bench()
    ids = [bench.create(principal).task_id for principal in ("alice", "bob", "alice")]

    assert 3 == len(set(ids))


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-isolation-and-access-control", "3754ea85")
def test_an_id_has_256_bits_of_what_it_is_given_as_random() -> None:
    drawn = bytes(range(100, 132))
    tasks = Tasks(MemoryTaskStore(), clock=lambda: START, random_bytes=lambda count: drawn[:count])
    params = models.CallToolRequestParams(name="weather", task=models.TaskMetadata())
    task_id = tasks.create(params, lambda _running: lambda: None, principal="", changed=print).task.task_id

    assert drawn == base64.urlsafe_b64decode(task_id + "=")


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#resource-management", "499ed05d")
@pytest.mark.spec("2025-11-25", f"{TASKS}#ttl-and-resource-management", "e4ac1b1d")
@pytest.mark.parametrize(
    ("asked", "granted"),
    [(UNSET, 600_000), (60_000, 60_000), (0, 1000), (-5, 1000), (86_400_001, 86_400_000), (10**30, 86_400_000)],
)
def test_the_lifetime_that_is_granted_is_told(asked: int | UnsetType, granted: int) -> None:
    bench = Bench()

    assert granted == bench.create_result(ttl=asked).task.ttl
    assert granted == bench.get(FIRST)["ttl"]


@pytest.mark.spec("2025-11-25", f"{TASKS}#ttl-and-resource-management", "1257b842", "4eb183b7")
def test_every_response_tells_when_a_task_was_created_and_last_changed() -> None:
    bench = Bench()
    running = bench.create()
    bench.now += 1.5
    running.set_status_message("Asking the station")
    bench.now += 1.5

    times = {"createdAt": "2025-11-25T10:30:00.000Z", "lastUpdatedAt": "2025-11-25T10:30:01.500Z"}
    listed = msgspec.to_builtins(bench.tasks.list(principal="alice").tasks[0])
    assert times == {key: bench.get(FIRST)[key] for key in times}
    assert times == {key: listed[key] for key in times}
    cancelled = bench.tasks.cancel(FIRST, principal="alice")
    assert {**times, "lastUpdatedAt": "2025-11-25T10:30:03.000Z"} == {key: cancelled[key] for key in times}


@pytest.mark.spec("2025-11-25", f"{TASKS}#ttl-and-resource-management", "1257b842", "4eb183b7")
@given(at=st.floats(0, 4e9))
def test_times_are_iso_8601(at: float) -> None:
    bench = Bench()
    bench.now = at
    bench.create()

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", bench.get(FIRST)["createdAt"])


def test_time_does_not_run_backwards_where_the_clock_does() -> None:
    bench = Bench()
    running = bench.create()
    bench.now -= 30
    running.set_status_message("Asking the station")

    assert "2025-11-25T10:30:00.001Z" == bench.get(FIRST)["lastUpdatedAt"]  # after the creation


@pytest.mark.spec("2025-11-25", f"{TASKS}#ttl-and-resource-management")
@pytest.mark.parametrize("ends", [False, True])
def test_after_its_lifetime_a_task_is_gone(*, ends: bool) -> None:
    bench = Bench()
    running = bench.create()
    if ends:
        running.finish(RESULT)
    bench.now += 59.999
    assert FIRST == bench.get(FIRST)["taskId"]

    bench.now += 0.001
    assert NO_TASK == refusal(bench.tasks.get, FIRST, principal="alice")
    assert NO_TASK == refusal(bench.tasks.result, FIRST, principal="alice", deliver=print)
    assert NO_TASK == refusal(bench.tasks.cancel, FIRST, principal="alice")
    assert [] == bench.listed()


def test_a_task_that_expires_is_stopped_and_those_who_wait_hear_of_it() -> None:
    bench = Bench()
    running = bench.create(meta={"progressToken": "abc"})
    got, _ = bench.wait(FIRST)
    assert START + 60 == bench.tasks.expire()

    bench.now += 60
    assert bench.tasks.expire() is None
    assert [Outcome(b'{"code":-32602,"message":"The task has expired"}', is_error=True)] == got
    assert ([FIRST], True) == (bench.stopped, running.has_ended)
    running.finish(RESULT)
    running.close()
    assert ([], [FIRST], 1) == (bench.told, bench.stopped, len(got))


@given(at=st.floats(0, 4e9))
def test_a_timer_that_is_set_for_the_next_expiry_is_not_early(at: float) -> None:
    bench = Bench()
    bench.now = at
    bench.create()
    deadline = bench.tasks.expire()
    assert deadline is not None
    bench.now = deadline

    assert bench.tasks.expire() is None


def test_a_handler_whose_task_expires_while_it_speaks_is_stopped() -> None:
    bench = Bench()
    running = bench.create()
    bench.now += 60
    running.set_status_message("Still there")

    assert ([FIRST], []) == (bench.stopped, bench.told)


# "Task Status Lifecycle", "Input Required Status"


@pytest.mark.spec("2025-11-25", f"{TASKS}#getting-tasks")
def test_a_task_can_be_looked_at() -> None:
    bench = Bench()
    running = bench.create()
    running.set_status_message("Asking the station")

    assert {
        "createdAt": "2025-11-25T10:30:00.000Z",
        "lastUpdatedAt": "2025-11-25T10:30:00.001Z",  # each change is later than the one before
        "status": "working",
        "statusMessage": "Asking the station",
        "taskId": FIRST,
        "ttl": 60_000,
        "pollInterval": 1000,
    } == bench.get(FIRST)
    assert bench.get(FIRST) == models.decode(msgspec.json.encode(bench.get(FIRST)), models.GetTaskResult)


@pytest.mark.spec("2025-11-25", f"{TASKS}#input-required-status", "8adc95cc")
def test_a_task_that_needs_input_says_so_until_it_has_it() -> None:
    bench = Bench()
    running = bench.create()
    with running.awaiting_input():
        assert "input_required" == bench.status(FIRST)

    assert "working" == bench.status(FIRST)
    assert ["input_required", "working"] == [each.status for each in bench.told]


@pytest.mark.spec("2025-11-25", f"{TASKS}#input-required-status", "83d077d3")
def test_a_task_needs_input_until_its_last_question_is_answered() -> None:
    bench = Bench()
    running = bench.create()
    first, second = running.awaiting_input(), running.awaiting_input()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert "input_required" == bench.status(FIRST)

    second.__exit__(None, None, None)
    assert "working" == bench.status(FIRST)
    assert ["input_required", "working"] == [each.status for each in bench.told]


def test_a_question_that_fails_is_no_question_any_more() -> None:
    bench = Bench()
    running = bench.create()
    with pytest.raises(TimeoutError), running.awaiting_input():
        raise TimeoutError

    assert "working" == bench.status(FIRST)


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-status-lifecycle", "aac8c017")
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_task_that_needs_input_may_end(status: str) -> None:
    bench = Bench()
    running = bench.create()
    with running.awaiting_input():
        end(bench, running, status)

    assert status == bench.status(FIRST)


def end(bench: Bench, running: RunningTask, status: str) -> None:
    if status == "completed":
        running.finish(RESULT)
    elif status == "failed":
        running.fail(ERROR)
    else:
        bench.tasks.cancel(running.task_id, principal="alice")


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-status-lifecycle", "0cf2fde3")
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("later", ["completed", "failed", "asking", "say", "close"])
def test_a_task_that_has_ended_stays_what_it_is(status: str, later: str) -> None:
    bench = Bench()
    running = bench.create()
    end(bench, running, status)
    before, told, outcomes = bench.get(FIRST), list(bench.told), bench.outcomes(FIRST)
    bench.now += 1
    if later == "asking":
        with running.awaiting_input():
            pass
    elif later == "say":
        running.set_status_message("Not yet")
    elif later == "close":
        running.close()
    else:
        end(bench, running, later)

    assert (before, told, outcomes) == (bench.get(FIRST), bench.told, bench.outcomes(FIRST))


@pytest.mark.slow
@given(steps=st.lists(st.sampled_from(["ask", "answered", "say", "finish", "fail", "cancel", "close"]), max_size=12))
@pytest.mark.spec("2025-11-25", f"{TASKS}#task-status-lifecycle", "4e010218", "aac8c017")
def test_statuses_follow_the_paths_that_there_are(steps: list[str]) -> None:
    bench = Bench()
    running = bench.create()
    questions: list[Any] = []
    seen = ["working"]
    got, _ = bench.wait(FIRST)
    for step in steps:
        if step == "ask":
            questions.append(running.awaiting_input())
            questions[-1].__enter__()
        elif step == "answered" and questions:
            questions.pop().__exit__(None, None, None)
        elif step == "say":
            running.set_status_message("Going on")
        elif step == "finish":
            running.finish(RESULT)
        elif step == "fail":
            running.fail(ERROR)
        elif step == "cancel" and not running.has_ended:
            bench.tasks.cancel(FIRST, principal="alice")
        elif step == "close":
            running.close()
        seen.append(bench.status(FIRST))
    terminal = {"completed", "failed", "cancelled"}

    assert all(seen[at] == seen[-1] for at in range(len(seen)) if any(each in terminal for each in seen[: at + 1]))
    assert len(got) == (seen[-1] in terminal)
    assert all(before.status not in terminal for before in bench.told[:-1])


# "Result Retrieval", "Retrieving Task Results", "Task Execution Errors"


@pytest.mark.spec("2025-11-25", f"{TASKS}#result-retrieval", "b2b39094", "430c5aca")
def test_the_result_of_a_task_that_has_ended_is_there_at_once_and_as_often_as_it_is_wanted() -> None:
    bench = Bench()
    bench.create().finish(RESULT)

    assert [Outcome(RELATED_RESULT)] == bench.outcomes(FIRST) == bench.outcomes(FIRST)


@pytest.mark.spec("2025-11-25", f"{TASKS}#result-retrieval", "2fd09827")
def test_who_wants_the_result_of_a_task_that_goes_on_waits_for_its_end() -> None:
    bench = Bench()
    running = bench.create()
    first, _ = bench.wait(FIRST)
    with running.awaiting_input():
        second, _ = bench.wait(FIRST)
    assert ([], []) == (first, second)

    running.finish(RESULT)
    assert ([Outcome(RELATED_RESULT)],) * 2 == (first, second)


@pytest.mark.spec("2025-11-25", f"{TASKS}#result-retrieval", "b2b39094", "430c5aca")
@pytest.mark.spec("2025-11-25", f"{TASKS}#task-execution-errors", "9e73a2a5")
def test_an_error_is_the_very_error_that_the_request_would_have_had() -> None:
    bench = Bench()
    running = bench.create()
    got, _ = bench.wait(FIRST)
    running.fail(ERROR)

    assert [Outcome(ERROR, is_error=True)] == got == bench.outcomes(FIRST)
    assert ("failed", "no such city") == (bench.status(FIRST), bench.get(FIRST)["statusMessage"])


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-execution-errors", "e7c2434a", "91668351")
def test_a_tool_error_fails_the_task_and_is_its_result() -> None:
    bench = Bench()
    result = (
        b'{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"rate limit"}],'
        b'"isError":true}'
    )
    bench.create().finish(result)

    assert ("failed", "rate limit") == (bench.status(FIRST), bench.get(FIRST)["statusMessage"])
    assert [False] == [each.is_error for each in bench.outcomes(FIRST)]
    assert msgspec.json.decode(bench.outcomes(FIRST)[0].json) == {
        **msgspec.json.decode(result),
        "_meta": {RELATED: {"taskId": FIRST}},
    }


@pytest.mark.parametrize("rest", [b"", b'"content":[],', b'"content":[{"type":"text","text":1}],', b'"content":1,'])
def test_a_tool_error_without_words_fails_the_task_too(rest: bytes) -> None:
    bench = Bench()
    bench.create().finish(b"{" + rest + b'"isError": true}')

    assert ("failed", "The tool reported an error") == (bench.status(FIRST), bench.get(FIRST)["statusMessage"])


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-execution-errors")
def test_a_handler_that_goes_without_a_result_has_failed() -> None:
    bench = Bench()
    running = bench.create()
    got, _ = bench.wait(FIRST)
    running.close()
    running.close()

    assert [Outcome(b'{"code":-32603,"message":"The task ended without a result"}', is_error=True)] == got
    assert ("failed", "The task ended without a result") == (bench.status(FIRST), bench.get(FIRST)["statusMessage"])


def test_what_a_task_said_on_its_way_is_not_said_of_its_end() -> None:
    bench = Bench()
    running = bench.create()
    running.set_status_message("Asking the station")
    running.finish(RESULT)

    assert "statusMessage" not in bench.get(FIRST)


def test_a_status_message_is_a_sentence_and_no_log() -> None:
    bench = Bench()
    running = bench.create()
    running.set_status_message("x" * 10_000)

    assert "x" * (MAX_STATUS_MESSAGE_CHARS - 1) + "…" == bench.get(FIRST)["statusMessage"]
    running.fail(b'{"code":1,"message":"' + b"y" * 10_000 + b'"}')
    assert MAX_STATUS_MESSAGE_CHARS == len(bench.get(FIRST)["statusMessage"])


def test_a_request_that_is_cancelled_waits_no_more_and_the_task_goes_on() -> None:
    bench = Bench()
    running = bench.create()
    dropped, drop = bench.wait(FIRST)
    kept, _ = bench.wait(FIRST)
    drop()
    drop()
    running.finish(RESULT)

    assert ([], [Outcome(RELATED_RESULT)]) == (dropped, kept)
    drop()


def test_a_wait_that_is_dropped_makes_room_for_another() -> None:
    bench = Bench(max_waits_per_task=2)
    bench.create()
    _, drop = bench.wait(FIRST)
    bench.wait(FIRST)
    too_many = (-32603, "Too many requests wait for this task (max_waits_per_task); try again later")
    assert too_many == refusal(bench.tasks.result, FIRST, principal="alice", deliver=print)

    drop()
    assert [] == bench.outcomes(FIRST)
    assert too_many == refusal(bench.tasks.result, FIRST, principal="alice", deliver=print)


def test_who_is_answered_may_ask_again_at_once() -> None:
    bench = Bench()
    running = bench.create()
    got: list[Outcome] = []

    def deliver(outcome: Outcome) -> None:
        got.extend([outcome, *bench.outcomes(FIRST)])

    bench.tasks.result(FIRST, principal="alice", deliver=deliver)
    running.finish(RESULT)

    assert [Outcome(RELATED_RESULT)] * 2 == got


@pytest.mark.spec("2025-11-25", f"{TASKS}#protocol-errors", "ca3b2ee1")
def test_a_result_that_finds_no_room_is_an_error_and_not_a_hole() -> None:
    bench = Bench(MemoryTaskStore(max_outcome_bytes=100))
    running = bench.create()
    got, _ = bench.wait(FIRST)
    running.finish(b'{"content":[{"type":"text","text":"' + b"x" * 5000 + b'"}]}')

    reason = b"all results would have more than 100 bytes (max_outcome_bytes)"
    message = b"The result is too large for the task store: " + reason
    assert [Outcome(b'{"code":-32603,"message":"' + message + b'"}', is_error=True)] == got
    assert "failed" == bench.status(FIRST)


def test_a_store_that_breaks_its_word_is_found_out() -> None:
    class Full(MemoryTaskStore):
        def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
            raise StoreFull(record.task_id)

    running = Bench(Full()).create()

    with pytest.raises(StoreFull):
        running.finish(RESULT)
    with pytest.raises(StoreFull):
        running.set_status_message("Asking the station")


# "Associating Task-Related Messages", "Task Progress Notifications", "Task Notifications"


@pytest.mark.spec("2025-11-25", f"{TASKS}#related-task-metadata", "518a85f5", "c67e8adc")
def test_a_result_names_its_task_beside_what_its_handler_put_there() -> None:
    bench = Bench()
    bench.create().finish(
        b'{"content":[],"_meta":{"a/b":1.50,"io.modelcontextprotocol/related-task":{"taskId":"forged"}}}'
    )

    assert (
        b'{"content":[],"_meta":{"a/b":1.50,"io.modelcontextprotocol/related-task":'
        b'{"taskId":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"}}}'
    ) == bench.outcomes(FIRST)[0].json


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
@pytest.mark.spec("2025-11-25", f"{TASKS}#associating-task-related-messages", "4690f9ed")
def test_what_a_task_sends_names_it() -> None:
    running = Bench().create()

    assert {RELATED: {"taskId": FIRST}} == running.related()
    assert {"progressToken": 1, RELATED: {"taskId": FIRST}} == running.related({"progressToken": 1})
    assert running.related() == related(FIRST)


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "93d9b7dc")
@pytest.mark.spec("2025-11-25", f"{TASKS}#associating-task-related-messages", "ae2378bf")
def test_getting_listing_and_cancelling_do_not_name_the_task_twice() -> None:
    bench = Bench()
    bench.create()

    assert "_meta" not in bench.get(FIRST)
    assert b"_meta" not in msgspec.json.encode(bench.tasks.list(principal="alice"))
    assert "_meta" not in bench.tasks.cancel(FIRST, principal="alice")


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-notifications", "6f94acaa")
def test_a_status_notification_tells_the_whole_task_and_names_it_once() -> None:
    bench = Bench()
    running = bench.create()
    bench.now += 1
    running.fail(ERROR)

    assert 1 == len(bench.told)
    assert (
        b'{"createdAt":"2025-11-25T10:30:00.000Z","lastUpdatedAt":"2025-11-25T10:30:01.000Z","status":"failed",'
        b'"taskId":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE","ttl":60000,"pollInterval":1000,'
        b'"statusMessage":"no such city"}'
    ) == msgspec.json.encode(bench.told[0])


def test_the_record_changes_first_then_the_requestor_is_told_then_waits_end_and_then_the_handler_stops() -> None:
    bench = Bench()
    order: list[str] = []

    def note(what: str) -> None:
        order.append(f"{what}: {bench.status(FIRST)}")

    bench.tasks.create(
        models.CallToolRequestParams(name="weather", task=models.TaskMetadata()),
        lambda _running: lambda: note("stopped"),
        principal="alice",
        changed=lambda task: note(f"told {task.status}"),
    )
    bench.tasks.result(FIRST, principal="alice", deliver=lambda _outcome: note("delivered"))
    bench.tasks.cancel(FIRST, principal="alice")

    assert ["told cancelled: cancelled", "delivered: cancelled", "stopped: cancelled"] == order


# "Task Listing"


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-listing", "362391df")
def test_tasks_are_listed_in_pages() -> None:
    bench = Bench(page_size=2)
    for _ in range(5):
        bench.create()
        bench.now += 1
    first = bench.tasks.list(principal="alice")
    assert isinstance(first.next_cursor, str)
    second = bench.tasks.list(first.next_cursor, principal="alice")
    assert isinstance(second.next_cursor, str)
    third = bench.tasks.list(second.next_cursor, principal="alice")

    assert [2, 2, 1] == [len(page.tasks) for page in (first, second, third)]
    assert third.next_cursor is UNSET
    assert list(bench.running) == bench.listed()


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-listing", "ffdd289e")
@pytest.mark.parametrize(("count", "has_more"), [(0, False), (1, False), (2, False), (3, True)])
def test_there_is_a_cursor_if_and_only_if_there_is_more(count: int, *, has_more: bool) -> None:
    bench = Bench(page_size=2)
    for _ in range(count):
        bench.create()

    assert has_more == isinstance(bench.tasks.list(principal="alice").next_cursor, str)


def test_a_cursor_outlives_the_task_that_it_was_made_at() -> None:
    bench = Bench(page_size=1)
    bench.create(ttl=1000)
    bench.create(ttl=9000)
    cursor = bench.tasks.list(principal="alice").next_cursor
    bench.now += 2

    assert [2] == [
        base64.urlsafe_b64decode(each.task_id + "=")[0] for each in bench.tasks.list(cursor, principal="alice").tasks
    ]


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-listing", "a1f05839")
@given(ends=st.lists(st.sampled_from(["working", "completed", "failed", "cancelled"]), max_size=8))
def test_what_can_be_got_can_be_listed(ends: list[str]) -> None:
    bench = Bench(page_size=3)
    for status in ends:
        running = bench.create()
        if status != "working":
            end(bench, running, status)

    assert sorted(bench.running) == sorted(bench.listed())
    assert ends == [bench.status(task_id) for task_id in bench.running]


@pytest.mark.spec("2025-11-25", f"{TASKS}#protocol-errors", "d9a2c761")
@pytest.mark.parametrize("cursor", ["", "optional-cursor-value", "AAAA", "é"])
def test_a_cursor_that_is_none_of_ours_is_refused(cursor: str) -> None:
    assert (-32602, "The cursor is not valid") == refusal(Bench().tasks.list, cursor, principal="alice")


# "Task Cancellation"


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-cancellation", "400263bc")
def test_a_task_is_cancelled_before_the_answer_and_its_handler_is_stopped() -> None:
    bench = Bench()
    bench.create()
    result = bench.tasks.cancel(FIRST, principal="alice")

    assert ("cancelled", "Cancelled by the requestor") == (result["status"], result["statusMessage"])
    assert (result, [FIRST]) == (bench.get(FIRST), bench.stopped)
    assert result == models.decode(msgspec.json.encode(result), models.CancelTaskResult)


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-cancellation", "9d6c498d")
@pytest.mark.spec("2025-11-25", f"{TASKS}#protocol-errors", "574f8e44")
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_task_that_has_ended_cannot_be_cancelled(status: str) -> None:
    bench = Bench()
    end(bench, bench.create(), status)
    stopped = list(bench.stopped)

    assert (-32602, f"The task has ended already: it is {status}") == refusal(
        bench.tasks.cancel, FIRST, principal="alice"
    )
    assert (status, stopped) == (bench.status(FIRST), bench.stopped)


class EndedElsewhere(MemoryTaskStore):
    """A store in which another worker ends each task just before this one changes it."""

    def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
        super().replace(msgspec.structs.replace(record, status="completed", outcome=Outcome(RESULT)), before=before)
        return False


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-cancellation", "9d6c498d")
def test_a_task_that_another_worker_ends_meanwhile_is_refused_with_its_new_status() -> None:
    bench = Bench(EndedElsewhere())
    bench.create()

    assert (-32602, "The task has ended already: it is completed") == refusal(
        bench.tasks.cancel, FIRST, principal="alice"
    )


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-cancellation")
@pytest.mark.spec("2025-11-25", f"{TASKS}#result-retrieval")
def test_who_waits_for_a_task_that_is_cancelled_is_answered_with_an_error() -> None:
    bench = Bench()
    bench.create()
    got, _ = bench.wait(FIRST)
    bench.tasks.cancel(FIRST, principal="alice")

    assert [Outcome(b'{"code":-32800,"message":"The task was cancelled"}', is_error=True)] == got
    assert got == bench.outcomes(FIRST)


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_handler_that_has_said_its_last_is_not_stopped(status: str) -> None:
    bench = Bench()
    running = bench.create()
    end(bench, running, status)
    bench.now += 60
    bench.tasks.expire()

    assert [] == bench.stopped


def test_a_task_that_is_cancelled_while_it_starts_is_stopped_once_it_is_known_how() -> None:
    bench = Bench()

    def run(running: RunningTask) -> Callable[[], None]:
        bench.tasks.cancel(running.task_id, principal="alice")
        return lambda: bench.stopped.append(running.task_id)

    bench.create_result(run=run)

    assert ([FIRST], "cancelled") == (bench.stopped, bench.status(FIRST))


def test_a_task_that_cannot_be_started_is_none() -> None:
    bench = Bench(max_running_per_principal=1)
    started: list[RunningTask] = []

    def run(running: RunningTask) -> Callable[[], None]:
        started.append(running)
        raise RuntimeError(running.task_id)

    with pytest.raises(RuntimeError):
        bench.create_result(run=run)
    assert ([], [], [True]) == (bench.listed(), bench.told, [each.has_ended for each in started])
    assert "working" == bench.create_result().task.status


# "Task Isolation and Access Control", "Resource Management", "Audit and Logging"


@pytest.mark.spec("2025-11-25", f"{TASKS}#protocol-errors")
@pytest.mark.spec("2025-11-25", f"{TASKS}#task-isolation-and-access-control", "689c02ec", "7664f8ae")
@pytest.mark.parametrize(
    ("task_id", "principal"), [("nonexistent", "alice"), ("", "alice"), (FIRST, "bob"), (FIRST, "")]
)
def test_anothers_task_is_answered_as_one_that_does_not_exist(task_id: str, principal: str) -> None:
    bench = Bench()
    bench.create("alice")

    assert NO_TASK == refusal(bench.tasks.get, task_id, principal=principal)
    assert NO_TASK == refusal(bench.tasks.result, task_id, principal=principal, deliver=print)
    assert NO_TASK == refusal(bench.tasks.cancel, task_id, principal=principal)
    assert ("working", []) == (bench.status(FIRST), bench.stopped)


@pytest.mark.spec("2025-11-25", f"{TASKS}#task-isolation-and-access-control", "0abb6b91")
def test_everybody_lists_their_own_tasks_even_with_anothers_cursor() -> None:
    bench = Bench(page_size=1)
    alices = [bench.create("alice").task_id for _ in range(3)]
    bobs = [bench.create("bob").task_id for _ in range(3)]
    cursor = bench.tasks.list(principal="alice").next_cursor

    assert (sorted(alices), sorted(bobs)) == (sorted(bench.listed("alice")), sorted(bench.listed("bob")))
    assert {each.task_id for each in bench.tasks.list(cursor, principal="bob").tasks} <= set(bobs)


@pytest.mark.spec("2025-11-25", f"{TASKS}#resource-management", "5d1e2265")
def test_only_so_many_tasks_of_one_requestor_run_at_once() -> None:
    bench = Bench(max_running_per_principal=2)
    first = bench.create()
    bench.create()
    too_many = (-32603, "Too many tasks are running (max_running_per_principal); try again later")
    assert too_many == refusal(bench.create_result)
    bench.create("bob")

    first.finish(RESULT)
    assert too_many == refusal(bench.create_result)
    first.close()
    bench.create()


@pytest.mark.spec("2025-11-25", f"{TASKS}#resource-management")
def test_a_handler_counts_until_it_is_gone_however_often_it_was_cancelled() -> None:
    bench = Bench(max_running_per_principal=2)
    for running in (bench.create(), bench.create()):
        bench.tasks.cancel(running.task_id, principal="alice")

    assert -32603 == refusal(bench.create_result)[0]
    running.close()
    bench.create()


@pytest.mark.spec("2025-11-25", f"{TASKS}#resource-management")
def test_only_so_many_tasks_run_in_all_and_are_kept() -> None:
    bench = Bench(max_running=2)
    bench.create("alice")
    bench.create("bob")
    too_many = (-32603, "Too many tasks are running (max_running); try again later")
    assert too_many == refusal(bench.create_result, "carol")

    kept = Bench(MemoryTaskStore(max_tasks_per_principal=1))
    running = kept.create()
    running.finish(RESULT)
    running.close()
    full = "The task store is full: it has 1 tasks of this client (max_tasks_per_principal); try again later"
    assert (-32603, full) == refusal(kept.create_result)
    kept.now += 60
    kept.create()


def test_nothing_is_left_of_tasks_that_are_over() -> None:
    bench = Bench()
    for status in ("completed", "failed", "cancelled"):
        running = bench.create(status)
        bench.outcomes(running.task_id, status)
        if status == "cancelled":
            bench.tasks.cancel(running.task_id, principal=status)
        else:
            end(bench, running, status)
        running.close()
    tasks = bench.tasks

    assert ({}, {}, {}) == (tasks.running, tasks.totals._count_by_owner, tasks._waiting)
    assert (0, 0) == (tasks.totals._count, tasks.totals._bytes)


def test_the_tasks_of_one_who_will_not_come_back_are_dropped() -> None:
    bench = Bench(page_size=2)
    got = [bench.wait(bench.create().task_id)[0] for _ in range(5)]
    bench.create("bob")
    done = bench.create()
    done.finish(RESULT)
    bench.tasks.stop_all("alice")
    forget_all(bench.tasks.store, ["alice"])

    assert ([], 1) == (bench.listed(), len(bench.listed("bob")))
    assert (5, 5) == (len(bench.stopped), sum(len(each) for each in got))
    bench.tasks.stop_all("nobody")
    forget_all(bench.tasks.store, ["nobody"])


@pytest.mark.spec("2025-11-25", f"{TASKS}#audit-and-logging", "8bfe99c9", "7b18fd65")
def test_a_log_tells_who_did_what_and_not_the_whole_id(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    with caplog.at_level(logging.INFO, logger="mcpgen.tasks"):
        running = bench.create()
        refusal(bench.tasks.get, FIRST, principal="mallory")
        bench.outcomes(FIRST)
        running.finish(RESULT)
        bench.now += 60
        bench.tasks.expire()

    assert [
        "task AQEBAQEB of 'alice' created, for 60000 ms",
        "the client 'mallory' asked for a task that does not exist, or that another client owns",
        "result of task AQEBAQEB requested by 'alice', working",
        "task AQEBAQEB of 'alice' ended, completed",
        "task AQEBAQEB of 'alice' expired, completed",
    ] == caplog.messages
