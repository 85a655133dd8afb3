"""Tasks that end together have their results encoded in several turns of the event loop, so that others can go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import httpx

from mcpgen import Http, MemoryTaskStore, Server, connect

if TYPE_CHECKING:
    from mcpgen.runtime.server.tasks.task_store import TaskRecord

TASKS = 12
MIB = 1024 * 1024


class Ends(MemoryTaskStore):
    """A store that counts the tasks that end in each turn of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: Counter[int] = Counter()
        self.turn = 0

    def replace(self, record: TaskRecord, *, before: TaskRecord) -> bool:
        self.ended[self.turn] += record.has_ended
        return super().replace(record, before=before)

    def count_turns(self) -> None:
        self.turn += 1
        asyncio.get_running_loop().call_soon(self.count_turns)


def test_tasks_that_end_together_are_encoded_in_many_turns_of_the_loop() -> None:
    store = Ends()
    server = Server("tasks", tasks=store)

    async def main() -> None:
        gate = asyncio.Event()

        @server.tool(task=True)
        async def bake() -> str:
            await gate.wait()
            return "x" * MIB

        app: Any = server.asgi()
        library = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
        async with library, app.running(), connect(Http("http://test/mcp", client=library), tasks=True) as client:
            for _ in range(TASKS):
                await client.start_tool("bake")
            store.count_turns()
            gate.set()
            while store.ended.total() < TASKS:  # noqa: ASYNC110 (which nothing announces)
                await asyncio.sleep(0)

    asyncio.run(main())
    assert max(store.ended.values()) == 1
