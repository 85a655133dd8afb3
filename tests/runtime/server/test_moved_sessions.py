"""What a worker keeps of a session that goes on at another worker."""

from __future__ import annotations

import pytest

from mcpgen import Context, Server
from mcpgen.runtime.server.tasks.task_requests import TaskRequests
from mcpgen.runtime.transports import memory

pytestmark = pytest.mark.anyio


async def test_a_session_that_goes_on_at_another_worker_leaves_nothing_here() -> None:
    server = Server("any", version="1")

    @server.tool(task=True)
    async def bake(ctx: Context) -> str:
        return "baked"

    @server.tool
    async def move(ctx: Context) -> None:
        ctx._session.keeps_tasks = True

    async with memory.wire(server) as wire:
        offer = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "any", "version": "1"}}
        await wire.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": offer})
        await wire.receive()
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "bake", "task": {}}})
        assert "task" in (await wire.receive())["result"]
        await wire.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "move"}})
        while (await wire.receive()).get("id") != 2:
            pass

    requests = server._engine.tasks
    assert isinstance(requests, TaskRequests)
    assert not requests._principals
