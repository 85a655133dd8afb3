"""What is ready at once while the client does not read: repeated retries, results of tasks, and reports of them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Context, Server
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.transports.spawner import open_spawner
from tests.harness.server_wire import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


class NarrowWire(Wire):
    """A wire that is full from each message on, until the client reads it.

    Attributes:
        unread: How many messages the client has not read.
    """

    def __init__(self, server: Server, spawner: Any) -> None:
        super().__init__(server, spawner)
        self.unread = 0
        self._has_room = anyio.Event()

    @property
    def is_full(self) -> bool:  # type: ignore[override]
        return self.unread > 0

    def write(self, message: bytes) -> None:
        super().write(message)
        self.unread += 1

    async def drain(self) -> None:
        await self._has_room.wait()

    async def read(self) -> list[Any]:
        """Return the messages that the client has not read, and those that come then."""
        self.unread = 0
        self._has_room.set()
        self._has_room = anyio.Event()
        return await self.rest()


@asynccontextmanager
async def connected(server: Server) -> AsyncGenerator[NarrowWire]:
    async with server.running(), open_spawner() as spawner:
        wire = NarrowWire(server, spawner)
        yield wire
        wire.connection.end_of_input()
        wire.connection.close()


def message(method: str, number: int | None = None, **params: Any) -> bytes:
    identity = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **identity, "method": method, "params": params}).encode()


async def check_one_by_one(wire: NarrowWire, requests: list[bytes]) -> None:
    """Send *requests*, whose answers are ready; check that each is written when the one before is read."""
    wire.send(*requests)
    for _ in requests:
        await wire.rest()
        assert 1 == wire.unread
        await wire.read()
    connection: Any = wire.connection
    assert not connection.session.exchanges
    await connection.wait_finished()


async def test_a_repeated_retry_is_answered_when_the_client_has_read_the_answers_before() -> None:
    server = Server("asking", version="1")

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Who?", FORM)).action

    call: dict[str, Any] = {"name": "ask", "_meta": META}
    async with connected(server) as wire:
        (demand,) = await wire.say(message("tools/call", 0, **call))
        await wire.read()
        call["requestState"] = demand["result"]["requestState"]
        call["inputResponses"] = {key: {"action": "decline"} for key in demand["result"]["inputRequests"]}
        for first in (1, 11):  # while the handler runs, and when it has ended
            await check_one_by_one(wire, [message("tools/call", first + each, **call) for each in range(10)])


async def test_a_result_of_a_task_is_sent_when_the_client_has_read_the_answers_before() -> None:
    server = Server("baking", version="1")

    @server.tool(task=True)
    async def bake() -> str:
        return "bread"

    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    async with connected(server) as wire:
        await wire.say(message("initialize", 0, **client), message("notifications/initialized"))
        await wire.read()
        begun = await wire.say(message("tools/call", 1, name="bake", task={}))
        task = next(each["result"]["task"]["taskId"] for each in begun if "result" in each)
        while wire.unread:
            await wire.read()
        await check_one_by_one(wire, [message("tasks/result", 2 + each, taskId=task) for each in range(10)])


async def test_a_task_that_ends_is_reported_on_no_further_stream_of_a_client_that_does_not_read() -> None:
    server, gate = Server("baking", version="1"), anyio.Event()

    @server.tool(task=True)
    async def bake() -> str:
        await gate.wait()
        return "bread"

    extensions: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": extensions}
    async with connected(server) as wire:
        (begun,) = await wire.say(message("tools/call", 0, name="bake", _meta=meta))
        wanted = {"taskIds": [begun["result"]["taskId"]]}
        for each in range(1, 10):
            await wire.say(message("subscriptions/listen", each, notifications=wanted, _meta=meta))
        await wire.read()
        gate.set()
        (report,) = await wire.rest()
        assert "completed" == report["params"]["status"]
