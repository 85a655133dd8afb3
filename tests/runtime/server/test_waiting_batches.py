"""The memory of the responses to batches that are not complete, because a handler of each still runs."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen import Limits, Server
from tests.harness.server_wire import connected

pytestmark = pytest.mark.anyio

OLD = "2025-03-26"
BATCHES = 10
LARGE = 100_000


def message(method: str, identity: object = None, **params: Any) -> dict[str, Any]:
    number = {} if identity is None else {"id": identity}
    return {"jsonrpc": "2.0", **number, "method": method, "params": params}


async def test_the_responses_of_batches_that_wait_are_bounded_and_counted() -> None:
    server: Server[Any] = Server("batches", version="1", limits=Limits(max_in_flight_bytes=5 * LARGE))
    gate = anyio.Event()

    @server.tool
    async def large() -> str:
        return "x" * LARGE

    @server.tool
    async def wait() -> str:
        await gate.wait()
        return "done"

    async with connected(server) as wire:
        info = {"name": "c", "version": "1"}
        begin = message("initialize", 0, protocolVersion=OLD, capabilities={}, clientInfo=info)
        await wire.say(json.dumps(begin).encode(), json.dumps(message("notifications/initialized")).encode())
        for number in range(BATCHES):
            calls = [message("tools/call", f"{name} {number}", name=name, arguments={}) for name in ("large", "wait")]
            assert [] == await wire.say(json.dumps(calls).encode())
        assert 3 * LARGE < server._engine.ledger.by_kind()["open requests"] <= 5 * LARGE

        gate.set()
        answers = [each for batch in await wire.rest() for each in batch]
        refused = [each["error"]["message"] for each in answers if "error" in each]
        assert 2 * BATCHES == len(answers)
        assert BATCHES - 5 < len(refused) < BATCHES
        assert all("max_in_flight_bytes" in each for each in refused)
