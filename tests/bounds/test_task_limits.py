"""The limits of tasks (docs/guide/limits.md), each made small, against a process on its streams."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.bounds.hostile_messages import initialize
from tests.faults.http_raw_client import message
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.bounds.attacked_processes import Stdio
    from tests.bounds.conftest import Victims


def opened(victims: Victims, **given: Any) -> Stdio:
    """Return a server of tasks, and a session with it."""
    stdio = victims.stdio("2025-11-25", is_open=False, **{"tasks": {}, **given})
    stdio.write(initialize("2025-11-25") + b"\n" + message("notifications/initialized") + b"\n")
    assert "result" in stdio.receive()
    return stdio


def answered(stdio: Stdio, number: int, method: str, **params: Any) -> Any:
    """Send a request, and return its response."""
    stdio.write(message(method, number, **params) + b"\n")
    while (said := stdio.receive()).get("id") != number:
        pass
    return said


def created(stdio: Stdio, number: int, text: str = "", **task: Any) -> Any:
    """Ask for a task that does not end, and return the response."""
    return answered(stdio, number, "tools/call", name="wait", arguments={"text": text}, task=task)


TASKS = {
    "max_tasks": (3, 1),
    "max_tasks_per_principal": (3, 1),
    "max_outcome_bytes": (30_000, 10_000),
    "max_outcome_bytes_per_principal": (30_000, 10_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("limit", TASKS)
def test_a_store_of_tasks_refuses_what_is_above_its_limit(victims: Victims, limit: str) -> None:
    value, size = TASKS[limit]
    stdio = victims.stdio("2025-11-25", is_open=False, tasks={limit: value})
    stdio.write(initialize("2025-11-25") + b"\n" + message("notifications/initialized") + b"\n")
    stdio.receive()
    for number in range(1, 7):
        tool = "bake" if "bytes" in limit else "wait"
        given = {"name": tool, "arguments": {"size": size}, "task": {}}
        stdio.write(message("tools/call", number, **given) + b"\n")
        while "id" not in (said := stdio.receive()):
            pass
        if "error" in said:
            break
        if "bytes" in limit:  # ask for the result when it is stored, or was not
            while stdio.receive().get("method") != "notifications/tasks/status":
                pass
            stdio.write(message("tasks/result", 100, taskId=said["result"]["task"]["taskId"]) + b"\n")
            said = stdio.receive()
            if "error" in said or said["result"].get("isError"):
                break

    assert number in (3, 4)
    assert limit in str(said)


RUNNING = {
    "max_running": (3, ""),
    "max_running_per_principal": (3, ""),
    "max_running_bytes": (80_000, "x" * 10_000),
    "max_running_bytes_per_principal": (80_000, "x" * 10_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("limit", RUNNING)
def test_calls_that_run_as_tasks_are_refused_above_a_limit(victims: Victims, limit: str) -> None:
    value, text = RUNNING[limit]
    stdio = opened(victims, task_limits={limit: value})
    said = [created(stdio, number, text) for number in range(10)]
    refused = [each["error"]["message"] for each in said if "error" in each]

    assert 2 <= len(said) - len(refused) <= 3
    assert all(limit in each for each in refused)
    answered(stdio, 50, "tasks/cancel", taskId=said[0]["result"]["task"]["taskId"])
    until = time.monotonic() + PATIENCE_SECONDS
    while "error" in created(stdio, 51, text):  # the cancelled function counts until it has ended
        assert time.monotonic() < until


@pytest.mark.slow
def test_within_the_default_limits_tasks_run(victims: Victims) -> None:
    stdio = opened(victims)

    assert all("result" in created(stdio, number, "x" * 10_000) for number in range(10))


@pytest.mark.slow
def test_requests_that_wait_for_one_task_are_refused_above_the_limit(victims: Victims) -> None:
    stdio = opened(victims, task_limits={"max_waits_per_task": 3})
    task = created(stdio, 1)["result"]["task"]["taskId"]
    for number in range(10, 15):
        stdio.write(message("tasks/result", number, taskId=task) + b"\n")
    refused = [stdio.receive() for _ in range(2)]

    assert [13, 14] == [each["id"] for each in refused]
    assert all("max_waits_per_task" in each["error"]["message"] for each in refused)


@pytest.mark.parametrize(
    ("limit", "value", "asked", "given"),
    [
        ("default_ttl_ms", 70_000, {}, 70_000),
        ("min_ttl_ms", 80_000, {"ttl": 5}, 80_000),
        ("max_ttl_ms", 90_000, {"ttl": 10**9}, 90_000),
    ],
)
@pytest.mark.slow
def test_a_lifetime_is_bounded(victims: Victims, limit: str, value: int, asked: dict[str, int], given: int) -> None:
    stdio = opened(victims, task_limits={limit: value})

    assert given == created(stdio, 1, **asked)["result"]["task"]["ttl"]
    assert given != created(opened(victims), 1, **asked)["result"]["task"]["ttl"]


@pytest.mark.slow
def test_a_task_is_gone_at_the_end_of_its_lifetime(victims: Victims) -> None:
    stdio = opened(victims, task_limits={"min_ttl_ms": 1, "max_ttl_ms": 300})
    task = created(stdio, 1, ttl=10**9)["result"]["task"]["taskId"]
    time.sleep(1)

    assert "error" in answered(stdio, 2, "tasks/get", taskId=task)


@pytest.mark.slow
def test_a_client_is_told_how_often_to_poll(victims: Victims) -> None:
    stdio = opened(victims, task_limits={"poll_interval_ms": 1234})

    assert 1234 == created(stdio, 1)["result"]["task"]["pollInterval"]


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "sizes"), [({"page_size": 2}, [2, 2, 1]), ({}, [5])], ids=["two", "default"])
def test_a_page_of_tasks_has_a_limit(victims: Victims, limits: dict[str, int], sizes: list[int]) -> None:
    stdio = opened(victims, task_limits=limits)
    for number in range(5):
        created(stdio, number)
    found, cursor = [], {}
    for number in range(10, 10 + len(sizes)):
        page = answered(stdio, number, "tasks/list", **cursor)["result"]
        found.append(len(page["tasks"]))
        cursor = {"cursor": page.get("nextCursor")}

    assert sizes == found
