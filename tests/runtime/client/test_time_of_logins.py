"""Logins stop the clock of calls, but not without end: a server can demand one after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from mcpgen import ClientLimits
from mcpgen.runtime.client import deadlines
from mcpgen.runtime.client.deadlines import Deadlines
from mcpgen.runtime.client.pending_request import PendingRequest
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event

pytestmark = pytest.mark.anyio
LOGIN_SECONDS = 300
LOGINS = 8  # within one hour


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(deadlines, "_clock", lambda: self.now)
        self.timing = Deadlines(cast("Any", SimpleNamespace(pending={}, limits=ClientLimits())))

    def used(self, request: PendingRequest) -> float:
        return self.timing.used_seconds(request)

    def log_in(self) -> None:
        with self.timing.paused():
            self.now += LOGIN_SECONDS


async def test_the_time_of_a_call_goes_on_after_some_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    call = PendingRequest(1, "tools/call", auto_reset_event())
    clock.timing.start(call, 60, 600)
    for _ in range(3):  # such as a refresh, a login, and one for more scopes
        clock.log_in()
    assert clock.used(call) == 0
    for _ in range(LOGINS):
        clock.log_in()
    assert clock.used(call) >= (LOGINS - 1) * LOGIN_SECONDS
    clock.now += 3600
    before = clock.used(call)
    clock.log_in()
    assert clock.used(call) == before  # the next hour


async def test_logins_that_overlap_are_logins_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    call = PendingRequest(1, "tools/call", auto_reset_event())
    clock.timing.start(call, 60, 600)
    last = clock.timing.paused()
    last.__enter__()
    for _ in range(LOGINS):
        clock.now += LOGIN_SECONDS
        following = clock.timing.paused()
        following.__enter__()
        last.__exit__(None, None, None)
        last = following
    last.__exit__(None, None, None)
    assert clock.used(call) >= (LOGINS - 4) * LOGIN_SECONDS


async def test_a_limit_ends_after_some_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with clock.timing.limit(60) as scope:
        for _ in range(3):
            clock.log_in()
        assert scope.deadline > anyio.current_time() + 50
        for _ in range(LOGINS):
            with clock.timing.paused():
                clock.now += LOGIN_SECONDS
                stopped = scope.deadline == float("inf")
        assert not stopped
