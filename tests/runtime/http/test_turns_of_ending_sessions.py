"""A session that ends cancels its handlers, and ends its streams, in several turns of the event loop."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import anyio.lowlevel
import httpx

from mcpgen import HttpLimits, Server
from tests.turns import Turns

CALLS = 300
HEADERS = {"Accept": "application/json, text/event-stream"}
OFFER = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def message(number: int, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_the_calls_of_a_session_that_is_deleted_end_in_many_turns_of_the_loop() -> None:
    server = Server("sleepers")
    # On a busy machine, the calls take longer than the default to begin, and would become streams meanwhile.
    app = server.asgi(limits=HttpLimits(stream_after_seconds=60))
    running = 0
    cancelled: Counter[int] = Counter()
    answered: Counter[int] = Counter()

    @server.tool
    async def sleep() -> None:
        nonlocal running
        running += 1
        try:
            await anyio.sleep_forever()
        finally:
            cancelled[turns.count] += 1

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        async def count_and_send(event: Any) -> None:
            if event["type"] == "http.response.body" and not event.get("more_body"):
                answered[turns.count] += 1
            await send(event)

        await app(scope, receive, count_and_send)

    async def post(client: httpx.AsyncClient, body: object) -> None:
        await client.post("/mcp", json=body)

    async def main() -> None:
        transport = httpx.ASGITransport(counting)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=HEADERS) as client:
            begun = await client.post("/mcp", json=message(0, "initialize", **OFFER))
            client.headers["Mcp-Session-Id"] = begun.headers["Mcp-Session-Id"]
            async with anyio.create_task_group() as group:
                group.start_soon(turns.count_on)
                for number in range(1, CALLS + 1):
                    group.start_soon(post, client, message(number, "tools/call", name="sleep"))
                while running < CALLS:
                    await anyio.lowlevel.checkpoint()
                assert (await client.delete("/mcp")).status_code == 204
                while cancelled.total() < CALLS or answered.total() < CALLS:
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()

    turns = Turns()
    anyio.run(main)
    assert max(cancelled.values()) <= 2 * 64
    assert max(answered.values()) <= 3 * 64
