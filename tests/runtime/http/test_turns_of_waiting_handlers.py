"""Handlers that wait for a client to read share the turns of the event loop, also when the client leaves."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from mcpgen import Server
from mcpgen.runtime.http.server.client_address import Client
from mcpgen.runtime.http.server.open_requests import CountedConnection
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.transports.spawner import open_spawner

CALLS = 12
MIB = 1024 * 1024
META = {"io.modelcontextprotocol/protocolVersion": NEWEST, "io.modelcontextprotocol/clientCapabilities": {}}


def call(number: int) -> bytes:
    params = {"name": "bake", "arguments": {}, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def test_handlers_that_wait_for_a_client_run_in_many_turns_when_it_leaves() -> None:
    server: Server[Any] = Server("bakery", version="1")
    engine: Any = server._engine
    called: Counter[int] = Counter()
    turn = 0

    @server.tool
    async def bake() -> str:
        called[turn] += 1
        return "x" * MIB

    def count() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(count)

    async def main() -> None:
        quota = engine.ledger.quota("open requests", max_count=CALLS, max_bytes=MIB)
        async with server.running(), open_spawner() as spawner:
            response = ResponseBuffer(MIB)
            response.start_stream(lambda message: message)
            connection = CountedConnection(engine, response, spawner, quota, Client("", "one", is_known=True))
            response.write(b"x" * 2 * MIB)
            connection.receive([call(number) for number in range(CALLS)])
            await asyncio.sleep(0.01)
            assert not called
            count()
            response.abort()
            while called.total() < CALLS:  # noqa: ASYNC110 (which nothing announces)
                await asyncio.sleep(0)
            connection.close()

    asyncio.run(main())
    assert 1 == max(called.values())
