"""What clients get if a function is itself the client of another server: its results, and what it refuses or lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpgen import Extension, RequestRefused, Server, ToolResult, UnsupportedByPeer, connect
from mcpgen.generated.registry import REVISIONS
from tests.harness.rooms_extension import IDENTIFIER, rooms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.anyio

revisions = pytest.mark.parametrize("revision", [each.label for each in REVISIONS])

REFUSED = "tools/call was answered with an error: Unknown tool: lookup (-32602)"
UNDECLARED = "com.example/rooms/reserve cannot be sent to this peer of 2026-07-28: the server has not declared the "
UNDECLARED += "extension com.example/rooms"


def find() -> str:
    return "found"


async def refuses() -> str:
    other_server = Server("other")
    other_server.tool(find)
    async with connect(other_server) as other:
        await other.call_tool("lookup")
    return "unreachable"


async def lacks() -> str:
    package = rooms()
    async with connect(Server("other"), extensions=[Extension(package)]) as other:
        await package.ClientMethods(other).reserve_room(package.ReserveRoomRequestParams(room="5", meta=other.meta))
    return "unreachable"


def gateway() -> Server:
    server = Server("gateway")
    functions: list[Callable[[], Awaitable[str]]] = [refuses, lacks]
    for each in functions:
        server.tool(each)
        server.resource(f"x:{each.__name__}")(each)
    return server


@revisions
@pytest.mark.parametrize(("name", "told"), [("refuses", REFUSED), ("lacks", UNDECLARED)])
async def test_the_error_of_another_server_does_not_blame_the_client(revision: str, name: str, told: str) -> None:
    async with connect(gateway(), revisions=[revision]) as client:
        result = await client.call_tool(name)
        with pytest.raises(RequestRefused) as caught:
            await client.read_resource(f"x:{name}")

    assert (True, f"The tool {name} failed: {told}") == (result.is_error, result.text)
    assert (-32603, told) == (caught.value.code, caught.value.message)


@revisions
async def test_a_function_may_return_the_result_of_another_server(revision: str) -> None:
    other_server, server = Server("other"), Server("gateway")
    other_server.tool(find)
    async with connect(other_server) as other:

        @server.tool
        async def forward() -> ToolResult:
            return await other.call_tool("find")

        async with connect(server, revisions=[revision]) as client:
            assert ["found", "found"] == [(await client.call_tool("forward")).text for _ in range(2)]


async def test_a_call_says_which_side_lacks_something() -> None:
    with pytest.raises(UnsupportedByPeer) as caught:
        await lacks()

    assert ("server", {"extensions": {IDENTIFIER: {}}}) == (caught.value.peer, caught.value.required)
