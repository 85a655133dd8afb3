"""A batch over HTTP is handled in several turns of the event loop, so that other clients do not wait for all of it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from mcpgen import Server
from tests.patience import PATIENCE_SECONDS
from tests.turns import Turns, counted_turns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

HEADERS = {"Accept": "application/json, text/event-stream"}
OFFER = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def asked(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": {"uri": f"x:{number}"}}


@asynccontextmanager
async def joined(server: Server) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(server.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=HEADERS) as client:
        offer = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OFFER}
        begun = await client.post("/mcp", json=offer)
        client.headers["Mcp-Session-Id"] = begun.headers["Mcp-Session-Id"]
        yield client


def test_the_requests_of_a_batch_start_in_many_turns_of_the_loop() -> None:
    server = Server("batches")
    started: Counter[int] = Counter()
    turn = 0

    @server.resource("x:{name}")
    async def read(name: str) -> str:
        started[turn] += 1
        return name

    def count() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(count)

    async def main() -> None:
        async with joined(server) as client:
            count()
            answer = await client.post("/mcp", json=[asked(each) for each in range(1000)])

        assert [*range(1000)] == sorted(each["id"] for each in answer.json() if "result" in each)

    asyncio.run(main())
    assert max(started.values()) <= 2 * 64  # a part, and what is left of the one before: all of it after a long turn


def test_the_requests_of_a_batch_over_http_sse_start_in_many_turns_of_the_loop() -> None:
    server = Server("batches")
    started: Counter[int] = Counter()
    app = server.asgi()
    events: asyncio.Queue[bytes] = asyncio.Queue()

    @server.resource("x:{name}")
    async def read(name: str) -> str:
        started[turns.count] += 1
        return name

    async def receive() -> dict[str, str]:
        await asyncio.sleep(PATIENCE_SECONDS)
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        events.put_nowait(event.get("body", b""))

    async def main() -> None:
        nonlocal turns
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            request = client.build_request("GET", "/sse", headers={"Accept": "text/event-stream"})
            scope = {"type": "http", "method": "GET", "path": "/sse", "headers": request.headers.raw}
            stream = asyncio.ensure_future(app(scope, receive, send))
            while not (found := re.search(rb"data: (.*)", await events.get())):
                pass
            url = found[1].decode()
            await client.post(url, json={"jsonrpc": "2.0", "id": -1, "method": "initialize", "params": OFFER})
            async with counted_turns() as turns:
                assert 202 == (await client.post(url, json=[asked(each) for each in range(1000)])).status_code
                while b'"id":999' not in await events.get():
                    pass
            stream.cancel()

    turns = Turns()
    asyncio.run(main())
    assert 1000 == started.total()
    assert max(started.values()) <= 2 * 64  # as above


def test_a_batch_whose_session_is_deleted_meanwhile_is_not_found() -> None:
    server = Server("batches")
    started = asyncio.Event()

    @server.resource("x:{name}")
    async def read(name: str) -> str:
        started.set()
        return name

    async def main() -> None:
        async with joined(server) as client:

            async def delete() -> None:
                await started.wait()
                assert (await client.delete("/mcp")).status_code == 204

            deleting = asyncio.ensure_future(delete())
            answer = await client.post("/mcp", json=[asked(each) for each in range(1000)])
            await deleting

        assert answer.status_code == 404

    asyncio.run(main())
