"""A client leaves while functions that ask several questions at once wait for it."""

from __future__ import annotations

import anyio
import pytest

from mcpgen import Context, Server
from mcpgen.runtime.transports import memory

pytestmark = pytest.mark.anyio

CALLS = 20


async def test_functions_that_ask_several_questions_are_not_logged_when_their_session_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("asking", version="1")
    ended: list[object] = []

    @server.tool
    async def both(ctx: Context) -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(ctx.roots)
                group.start_soon(ctx.elicit, "Really?", bool)
        finally:
            ended.append(ctx.request_id)

    offer = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}, "roots": {}},
        "clientInfo": {"name": "any", "version": "1"},
    }
    async with memory.wire(server) as wire:
        await wire.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": offer})
        await wire.receive()
        await wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number in range(1, CALLS + 1):
            await wire.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "both"}})
        for _ in range(2 * CALLS):
            assert "method" in await wire.receive()

    assert len(ended) == CALLS
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
