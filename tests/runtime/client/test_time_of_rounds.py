"""A call has one time in all, however often its server requires input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcpgen import ClientLimits, InvalidPayload
from mcpgen.runtime.client import deadlines
from mcpgen.runtime.client.deadlines import Deadlines
from mcpgen.runtime.client.pending_request import PendingRequest
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event
from tests.specification.client.scripted_server import STATELESS, opened

pytestmark = pytest.mark.anyio
ROUNDS = 5


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_request_has_what_the_earlier_ones_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(deadlines, "_clock", lambda: now[0])
    timing = Deadlines(cast("Any", SimpleNamespace(pending={}, limits=ClientLimits())))
    first, second = (PendingRequest(each, "tools/call", auto_reset_event()) for each in (1, 2))
    timing.start(first, 60, 600)
    now[0] += 590
    timing.start(second, 60, 600, timing.used_seconds(first))
    assert second.deadline == second.final_deadline == now[0] + 10
    now[0] += 5
    assert timing.used_seconds(second) == 595


async def test_each_retry_with_input_counts_the_time_before(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[float] = []
    start = Deadlines.start

    def noting(self: Deadlines, request: PendingRequest, timeout: float, most: float, before: float = 0.0) -> None:
        used.append(before)
        start(self, request, timeout, most, before)

    async with opened(STATELESS, limits=ClientLimits(max_rounds=ROUNDS)) as own:
        monkeypatch.setattr(Deadlines, "start", noting)
        errand, asked = await own.asked(own.client.call_tool("x"))
        for _ in range(ROUNDS):
            own.wire.result(asked, {"resultType": "input_required", "requestState": "s"})
            asked = await own.wire.hear("tools/call")
        own.wire.result(asked, {"resultType": "input_required", "requestState": "s"})
        with pytest.raises(InvalidPayload, match="max_rounds"):
            await errand.outcome()
    assert used[0] == 0
    assert used == sorted(set(used))
    assert len(used) == ROUNDS + 1
