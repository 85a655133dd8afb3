"""What one revision asks in another way than the next: pages to visit, and choices of several."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import Context, RequestError, Server
from mcpgen.generated.v2025_11_25.server import ServerHandlers
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.server.error_mapping import url_elicitations_fault
from tests.harness.server_wire import connected

if TYPE_CHECKING:
    from mcpgen.generated.v2025_11_25 import models as old

pytestmark = pytest.mark.anyio

PAGE = {"mode": "url", "elicitationId": "e1", "message": "Log in.", "url": "https://example.com/login"}


class Guarded(ServerHandlers[Context]):
    """Handlers of 2025-11-25 that want their user to visit a page first."""

    async def call_tool(self, params: old.CallToolRequestParams, context: Context, /) -> old.CallToolResult:
        del params, context
        raise RequestError(-32042, "Log in first.", {"elicitations": [PAGE]})


def modern(capabilities: dict[str, Any]) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "_meta": meta}}
    ).encode()


def handshake(revision: str, capabilities: str) -> bytes:
    return (
        f'{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}",'
        f'"capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}'
    ).encode()


INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}'


@pytest.mark.spec("2025-11-25", "client/elicitation#url-elicitation-required-error")
async def test_a_client_of_the_same_revision_gets_the_error_with_the_pages() -> None:
    async with connected(Server("guarded", version="1", handlers=Guarded())) as wire:
        await wire.say(handshake("2025-11-25", '{"elicitation":{"url":{}}}'))
        await wire.say(INITIALIZED)
        (refused,) = await wire.say(CALL)

        assert {"code": -32042, "message": "Log in first.", "data": {"elicitations": [PAGE]}} == refused["error"]


@pytest.mark.parametrize("data", [{}, {"elicitations": {}}, {"elicitations": []}])
def test_an_error_that_names_no_page_is_not_sent(data: object) -> None:
    assert "its data has no list `elicitations` with at least one item" == url_elicitations_fault("2025-11-25", data)


@pytest.mark.spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
async def test_a_stateless_client_gets_a_demand_with_the_pages() -> None:
    async with connected(Server("guarded", version="1", handlers=Guarded())) as wire:
        (demand,) = await wire.say(modern({"elicitation": {"url": {}}}))

        page = {"mode": "url", "message": "Log in.", "url": "https://example.com/login"}
        assert [{"method": "elicitation/create", "params": page}] == list(demand["result"]["inputRequests"].values())


@pytest.mark.spec("2026-07-28", "basic/index#meta")
async def test_a_stateless_client_that_visits_no_pages_is_told_what_it_lacks() -> None:
    async with connected(Server("guarded", version="1", handlers=Guarded())) as wire:
        (refused,) = await wire.say(modern({}))

        assert (-32021, {"elicitation": {"url": {}}}) == (
            refused["error"]["code"],
            refused["error"]["data"]["requiredCapabilities"],
        )


CHOICES = {
    "type": "object",
    "properties": {"toppings": {"type": "array", "items": {"type": "string", "enum": ["cheese", "ham"]}}},
}


@pytest.mark.spec("2025-11-25", "client/elicitation#requested-schema")
@pytest.mark.parametrize(("revision", "answer"), [("2025-06-18", "cheese"), ("2025-11-25", ["cheese"])])
async def test_a_choice_of_several_comes_back_as_a_list_whoever_chooses(revision: str, answer: Any) -> None:
    server = Server("pizza", version="1")

    @server.tool
    async def x(ctx: Context) -> str:
        found = await ctx.elicit("What on it?", CHOICES)
        return json.dumps(found.content)

    async with connected(server) as wire:
        await wire.say(handshake(revision, '{"elicitation":{}}'))
        await wire.say(INITIALIZED)
        (question,) = await wire.say(CALL)
        chosen = {"action": "accept", "content": {"toppings": answer}}
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": chosen}
        (result,) = await wire.say(json.dumps(reply).encode())

        assert '{"toppings": ["cheese"]}' == result["result"]["content"][0]["text"]
