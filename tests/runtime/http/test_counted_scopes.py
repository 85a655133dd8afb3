"""A long message counts while the scopes that it needs are found, which takes many turns of the event loop."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import Server
from mcpgen.runtime.http.server.auth import required_scopes
from tests.runtime.http.test_notification_handlers import session

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx

    from mcpgen.runtime.http.server.application import Application

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

ACCEPT = (b"accept", b"text/event-stream")
PEER = ("127.0.0.1", 1)
LONG = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "a://b", "_meta": {"a": "x" * 50_000}}}


def protected() -> Application:
    server = Server("protected", version="1")

    @server.tool(scopes=["admin"])
    def erase() -> None: ...

    return server.asgi()


@pytest.mark.parametrize("transport", ["streamable", "sse"])
async def test_a_long_message_counts_while_its_scopes_are_found(
    monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    app = protected()
    counts: list[int] = []

    async def found(*_: Any, **__: Any) -> frozenset[str]:
        counts.append(app._state.open_quota.bytes)
        return frozenset()

    monkeypatch.setattr(required_scopes, "required_scopes", found)
    async with app.running(), opened(app, transport) as (client, path):
        await client.post(path, content=json.dumps(LONG).encode())

    assert counts[-1] > 50_000
    assert 0 == app._state.open_quota.bytes


@asynccontextmanager
async def opened(app: Application, transport: str) -> AsyncGenerator[tuple[httpx.AsyncClient, str]]:
    """Yield a client in a session, and the path to which it posts."""
    async with session(app, "127.0.0.1") as client:
        if transport == "streamable":
            yield client, "/mcp"
            return
        sent: asyncio.Queue[bytes] = asyncio.Queue()

        async def send(message: Any) -> None:
            await sent.put(message.get("body", b""))

        scope = {"type": "http", "method": "GET", "path": "/sse", "headers": [(b"host", b"x"), ACCEPT], "client": PEER}
        stream = asyncio.create_task(app(scope, asyncio.Queue().get, send))
        while (found := re.search(rb"data: (\S+)", await sent.get())) is None:
            pass
        try:
            yield client, found[1].decode()
        finally:
            stream.cancel()
            await asyncio.wait([stream])
