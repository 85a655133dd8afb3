"""A call has one time in all, however often its server requires input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mcpgen import ClientLimits, InvalidPayload, RequestTimedOut, Server, connect
from mcpgen.runtime.client import deadlines
from mcpgen.runtime.client.connection import ClientConnection
from mcpgen.runtime.client.deadlines import Deadlines
from mcpgen.runtime.client.outgoing_requests import RequestSender
from mcpgen.runtime.client.pending_request import PendingRequest
from mcpgen.runtime.client.task_state import DescribedTask, TaskWait
from mcpgen.runtime.client.tool_tasks import ToolTasks
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event
from tests.specification.client.scripted_server import STATELESS, opened

if TYPE_CHECKING:
    from mcpgen.runtime.client.outgoing_requests import CallOptions
    from mcpgen.runtime.client.task_handle import StartedTool

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

    def noting(self: Deadlines, request: PendingRequest, *seconds: float) -> None:
        used.append(seconds[2])
        start(self, request, *seconds)

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


async def test_the_time_until_the_server_reads_is_that_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]

    async def fifty_seconds(self: RequestSender, _: str, __: float | None = None) -> None:
        now[0] += 50

    async with opened(STATELESS) as own:
        monkeypatch.setattr(deadlines, "_clock", lambda: now[0])
        monkeypatch.setattr(RequestSender, "wait_for_room", fifty_seconds)
        monkeypatch.setattr(ClientConnection, "is_full", True)
        errand, asked = await own.asked(own.client.call_tool("x"))
        (pending,) = own.client._engine.session.pending.values()
        assert (pending.deadline, pending.final_deadline) == (now[0] + 10, now[0] + 550)
        own.wire.result(asked, {"resultType": "input_required", "requestState": "s"})
        asked = await own.wire.hear("tools/call")
        (pending,) = own.client._engine.session.pending.values()
        assert (pending.deadline, pending.final_deadline) == (now[0] + 10, now[0] + 500)
        own.wire.result(asked, {"resultType": "complete", "content": []})
        await errand.outcome()


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_the_wait_for_a_task_counts_the_time_of_its_call(monkeypatch: pytest.MonkeyPatch, revision: str) -> None:
    server = Server("slow")

    @server.tool(task="always")
    async def bake() -> str:
        return "done"

    started, waited = ToolTasks.start, ToolTasks.wait
    used: list[float] = []

    async def slowly(self: ToolTasks, params: dict[str, Any], options: CallOptions) -> StartedTool:
        found = await started(self, params, options)
        now = deadlines._clock() + 500
        monkeypatch.setattr(deadlines, "_clock", lambda: now)
        return found

    async def noting(self: ToolTasks, *args: Any) -> Any:
        used.append(args[-1])
        return await waited(self, *args)

    monkeypatch.setattr(ToolTasks, "start", slowly)
    monkeypatch.setattr(ToolTasks, "wait", noting)
    async with connect(server, revisions=[revision], tasks=True) as client:
        assert await client.call_tool("bake", returns=str) == "done"
    assert len(used) == 1
    assert 500 <= used[0] < 600


async def test_a_wait_for_a_task_has_what_its_call_has_left() -> None:
    wait = TaskWait(60, 600, None, 590)
    assert wait.left_seconds() <= 10
    await wait.report(DescribedTask("one", "working", last_updated_at="now"))
    assert wait.left_seconds() <= 10
    with pytest.raises(RequestTimedOut, match="within 600 seconds"):
        TaskWait(60, 600, None, 601).left_seconds()
