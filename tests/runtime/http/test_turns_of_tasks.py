"""Functions of tasks share the event loop: others go on while many tasks end together, or one reports in a loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mcpgen import Context, Http, MemoryTaskStore, Server, connect

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen import Client
    from mcpgen.runtime.server.tasks.task_store import TaskRecord

TASKS = 12
REPORTS = 1000
MIB = 1024 * 1024


class Turns:
    """Counts the turns of the event loop."""

    def __init__(self) -> None:
        self.now = 0

    def count(self) -> None:
        self.now += 1
        asyncio.get_running_loop().call_soon(self.count)


class Ends(MemoryTaskStore):
    """A store that counts the tasks that end in each turn of the event loop."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self.ended: Counter[int] = Counter()
        self._turns = turns

    def replace(self, record: TaskRecord, *, before: TaskRecord) -> bool:
        self.ended[self._turns.now] += record.has_ended
        return super().replace(record, before=before)


@asynccontextmanager
async def connected(server: Server[Any]) -> AsyncGenerator[Client]:
    app: Any = server.asgi()
    library = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
    async with library, app.running(), connect(Http("http://test/mcp", client=library), tasks=True) as client:
        yield client


def test_tasks_that_end_together_are_encoded_in_many_turns_of_the_loop() -> None:
    turns = Turns()
    store = Ends(turns)
    server = Server("tasks", tasks=store)

    async def main() -> None:
        gate = asyncio.Event()

        @server.tool(task=True)
        async def bake() -> str:
            await gate.wait()
            return "x" * MIB

        async with connected(server) as client:
            for _ in range(TASKS):
                await client.start_tool("bake")
            turns.count()
            gate.set()
            while store.ended.total() < TASKS:  # noqa: ASYNC110 (which nothing announces)
                await asyncio.sleep(0)

    asyncio.run(main())
    assert max(store.ended.values()) == 1


@pytest.mark.parametrize("kind", [True, "deferred"])
def test_a_task_that_reports_in_a_loop_lets_others_go_on(kind: Any) -> None:
    turns = Turns()
    server = Server("tasks")
    meanwhile: list[int] = []

    @server.tool(task=kind)
    async def bake(ctx: Context) -> None:
        if kind == "deferred":
            await ctx.defer()
        began = turns.now
        for number in range(1, REPORTS + 1):
            await ctx.progress(number)
        meanwhile.append(turns.now - began)

    async def main() -> None:
        async with connected(server) as client:
            turns.count()
            await client.start_tool("bake")
            while not meanwhile:  # noqa: ASYNC110 (which nothing announces)
                await asyncio.sleep(0)

    asyncio.run(main())
    assert meanwhile[0] > REPORTS / 2
