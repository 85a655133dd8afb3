"""Handlers of notifications count with what is open over HTTP, and make room for other clients."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from mcpgen import Context, HttpLimits, Server
from mcpgen.generated import v2025_11_25 as bindings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen.runtime.http.server.application import Application

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
CHANGED = "notifications/roots/list_changed"


class Waiting(bindings.ServerHandlers[Context]):
    """Handlers of a notification that wait for the client."""

    running = 0

    async def roots_list_changed(self, params: Any, context: Context, /) -> None:
        self.running += 1
        try:
            await context.roots()
        finally:
            self.running -= 1
            del params


@asynccontextmanager
async def session(app: Application, address: str) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, client=(address, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=HEADERS) as client:
        declared = {"capabilities": {"roots": {"listChanged": True}}, "clientInfo": {"name": "c", "version": "1"}}
        begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": declared}
        declared["protocolVersion"] = "2025-11-25"
        client.headers["Mcp-Session-Id"] = (await client.post("/mcp", json=begin)).headers["mcp-session-id"]
        await notify(client, "notifications/initialized")
        yield client


async def notify(client: httpx.AsyncClient, method: str, size: int = 0) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": {"_meta": {"text": "x" * size}}}
    await client.post("/mcp", content=json.dumps(message).encode())
    await anyio.wait_all_tasks_blocked()


async def test_the_params_of_notifications_count_with_what_is_open() -> None:
    handlers = Waiting()
    app = Server("n", version="1", handlers=handlers).asgi(limits=HttpLimits(max_open_bytes=2_000_000))
    async with app.running(), session(app, "127.0.0.1") as client:
        for _ in range(20):
            await notify(client, CHANGED, 200_000)

        assert 2 <= handlers.running <= 6


async def test_the_handlers_of_notifications_make_room_for_another_client() -> None:
    handlers = Waiting()
    app = Server("n", version="1", handlers=handlers).asgi(limits=HttpLimits(max_open=8))
    async with app.running(), session(app, "127.0.0.1") as greedy, session(app, "127.0.0.2") as other:
        for _ in range(20):
            await notify(greedy, CHANGED)
        answers = [await other.post("/mcp", json={"jsonrpc": "2.0", "id": each, "method": "ping"}) for each in range(3)]

        assert [each.status_code for each in answers] == [200, 200, 200]
