"""A callback for progress that is slower than its server."""

from __future__ import annotations

import anyio
import pytest

from mcpgen import Context, RequestTimedOut, Server, connect

pytestmark = pytest.mark.anyio

server = Server("eager", version="1.0")


@server.tool
async def work(ctx: Context, *, is_endless: bool) -> str:
    for step in range(50):
        await ctx.progress(step)
    if is_endless:
        await anyio.sleep_forever()
    return "done"


@pytest.mark.slow
async def test_a_call_that_is_out_of_time_does_not_report_the_progress_that_waits() -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        seen.append(progress)
        await anyio.sleep(3)  # longer than the time limit, also on a busy machine

    async with connect(server) as client:
        with pytest.raises(RequestTimedOut):
            await client.call_tool("work", {"is_endless": True}, timeout_seconds=0.1, on_progress=note)

    assert len(seen) <= 1  # none if the time was over before the first arrived


async def test_a_call_that_is_answered_reports_all_progress_first() -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        seen.append(progress)

    async with connect(server) as client:
        result = await client.call_tool("work", {"is_endless": False}, on_progress=note)

    assert result.text == "done"
    assert seen == list(range(50))
