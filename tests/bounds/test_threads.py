"""Calls of slow synchronous functions that nobody waits for: a thread that cannot be stopped keeps its slot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.bounds.hostile_messages import cancelled
from tests.faults.http_raw_client import called

if TYPE_CHECKING:
    from tests.bounds.conftest import Victims

pytestmark = pytest.mark.slow

# 40 workers, the event loop, and what uvicorn and the interpreter have for themselves.
MOST_THREADS = 56


def test_abandoned_synchronous_calls_over_http_have_40_threads_at_most(victims: Victims) -> None:
    http = victims.http()
    with victims.watch(http) as seen:
        for _ in range(10):
            lines = [http.line() for _ in range(40)]
            for each in lines:
                each.send(called("drowse", seconds=30))
            http.call("echo")  # they have been started
            time.sleep(0.1)
            http.close_lines()

    assert seen.threads <= MOST_THREADS
    assert [] == seen.losses


def test_cancelled_synchronous_calls_on_stdio_have_40_threads_at_most(victims: Victims) -> None:
    stdio = victims.stdio()
    with victims.watch(stdio) as seen:
        for number in range(1, 401):
            stdio.call(number, "drowse", seconds=30)
            stdio.call(1000 + number, "echo")
            assert 1000 + number == stdio.receive()["id"]
            time.sleep(0.01)  # its thread has started
            stdio.write(cancelled(number) + b"\n")

    assert seen.threads <= MOST_THREADS


def test_threads_of_cancelled_calls_are_used_again_when_they_end(victims: Victims) -> None:
    stdio = victims.stdio()
    with victims.watch(stdio) as seen:
        for number in range(1, 101):
            stdio.call(number, "drowse", seconds=2)
            stdio.write(cancelled(number) + b"\n")
        stdio.call(500, "drowse", seconds=0)

        assert 500 == stdio.receive()["id"]
    assert seen.threads <= MOST_THREADS
