"""What clients learn about the exceptions of handlers: nothing, or type and message if the server has `debug=True`."""

from __future__ import annotations

from typing import Any, cast

import anyio
import httpx
import pytest

from mcpgen import RequestRefused, Server, ToolError, connect
from mcpgen.generated.registry import REVISIONS
from mcpgen.generated.v2025_11_25 import CallToolRequestParams, CallToolResult, ServerHandlers
from mcpgen.runtime.server.functions.results import exception_text

pytestmark = pytest.mark.anyio

SECRET = "the password is 1234"  # noqa: S105 (of nothing)

revisions = pytest.mark.parametrize("revision", [each.label for each in REVISIONS])


class Mute(Exception):  # noqa: N818 (its name is told)
    """Its message cannot be made."""

    def __str__(self) -> str:
        raise KeyError(SECRET)


def failing(*, debug: bool) -> Server:  # noqa: C901 (a list of functions)
    server = Server("failing", debug=debug)

    @server.tool
    def crash() -> str:
        raise ValueError(SECRET)

    @server.tool
    async def grouped() -> str:
        async with anyio.create_task_group():
            raise ValueError(SECRET)

    @server.tool
    def mute() -> str:
        raise Mute

    @server.tool
    def bare() -> str:
        raise ValueError

    @server.tool
    def ugly() -> str:
        raise ValueError("\x1b[2J" + 1000 * "x")

    @server.tool
    def wrong() -> int:
        return cast("Any", SECRET)

    @server.tool
    def unsendable() -> object:
        return (each for each in SECRET)

    @server.tool
    def deliberate() -> str:
        raise ToolError("Try again.")

    @server.tool
    def surrogate() -> str:
        return "\ud800"

    @server.resource("it:it")
    def resource() -> str:
        raise ValueError(SECRET)

    @server.prompt
    def prompt() -> str:
        raise ValueError(SECRET)

    return server


async def tool(server: Server, name: str, revision: str = "2026-07-28") -> str:
    async with connect(server, revisions=[revision]) as client:
        try:
            return (await client.call_tool(name)).text
        except RequestRefused as error:
            return f"{error.code} {error.message}"


@revisions
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("crash", f"The tool crash failed: ValueError: {SECRET}"),
        ("grouped", f"The tool grouped failed: ValueError: {SECRET}"),
        ("bare", "The tool bare failed: ValueError"),
        ("mute", "The tool mute failed: Mute: its message cannot be shown"),
        ("ugly", "The tool ugly failed: ValueError: \\x1b[2J" + 296 * "x" + "…"),
        (
            "wrong",
            "The result of the tool wrong does not fit its output schema: Expected `int`, got `str` - at `$.result`",
        ),
        ("unsendable", "The tool unsendable failed: it returned a generator; return a list"),
        ("deliberate", "Try again."),
    ],
)
async def test_a_server_in_debug_tells_clients_what_a_tool_raised(revision: str, name: str, told: str) -> None:
    assert told == await tool(failing(debug=True), name, revision)


@revisions
@pytest.mark.parametrize(
    ("name", "told"),
    [
        *(
            (each, f"The tool {each} failed.")
            for each in ("crash", "grouped", "bare", "mute", "ugly", "unsendable", "surrogate")
        ),
        ("wrong", "The result of the tool wrong does not fit its output schema."),
        ("deliberate", "Try again."),
    ],
)
async def test_other_servers_tell_clients_nothing_of_what_a_tool_raised(revision: str, name: str, told: str) -> None:
    assert told == await tool(failing(debug=False), name, revision)


@revisions
@pytest.mark.parametrize("debug", [True, False])
async def test_prompts_and_resources_do_as_tools_do(revision: str, *, debug: bool) -> None:
    told = "the server failed to handle this request"
    if debug:
        told = f"{told}: ValueError: {SECRET}"
    async with connect(failing(debug=debug), revisions=[revision]) as client:
        for request in (client.read_resource("it:it"), client.get_prompt("prompt")):
            with pytest.raises(RequestRefused) as caught:
                await request

            assert (-32603, told) == (caught.value.code, caught.value.message)


@pytest.mark.parametrize("debug", [True, False])
async def test_handlers_do_as_functions_do(*, debug: bool) -> None:
    class Handlers(ServerHandlers[Any]):
        async def call_tool(self, params: CallToolRequestParams, context: Any, /) -> CallToolResult:
            raise ValueError(SECRET)

    told = await tool(Server("handling", handlers=Handlers(), debug=debug), "it")

    assert debug == (SECRET in told)


async def test_a_function_that_has_lost_its_own_server_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    """Its error is of the same type as that of a function whose client has gone, which need not be told."""
    async with connect(Server("other")) as lost:
        pass
    server = Server("demo")

    @server.tool
    async def ask() -> str:
        return str(await lost.list_tools())

    @server.resource("it:it")
    async def it() -> str:
        return str(await lost.list_tools())

    told = await tool(server, "ask")
    async with connect(server) as client:
        with pytest.raises(RequestRefused):
            await client.read_resource("it:it")

    assert "The tool ask failed." == told
    failed = [each.levelname for each in caplog.records if each.exc_info is not None]
    assert ["ERROR", "ERROR"] == failed


def test_text_that_cannot_be_encoded_is_escaped() -> None:
    assert "ValueError: \\ud800" == exception_text(ValueError("\ud800"))


async def test_debug_can_be_set_after_the_server_is_made() -> None:
    server = failing(debug=False)
    server.debug = True

    assert server.debug
    assert SECRET in await tool(server, "crash")


async def test_the_log_names_the_tool_whose_text_cannot_be_encoded(caplog: pytest.LogCaptureFixture) -> None:
    await tool(failing(debug=False), "surrogate")

    assert "surrogate() returned a value of the type str that cannot be written as JSON" in caplog.text


@pytest.mark.parametrize("debug", [True, False])
async def test_tools_do_the_same_over_http(*, debug: bool) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "crash", "_meta": meta}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "crash",
    }
    app = failing(debug=debug).asgi()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
    async with app.running(), client:
        answer = await client.post("/mcp", json=call, headers=headers)

    assert f"The tool crash failed{f': ValueError: {SECRET}' if debug else '.'}" in answer.text
    assert debug == (SECRET in answer.text)


async def test_a_view_follows_the_debug_of_its_server_unless_its_own_is_set() -> None:
    server = failing(debug=False)
    view = server.only(names=["crash"])
    inner = view.only(names=["crash"])

    async def shows_secret(which: Server) -> bool:
        async with connect(which) as client:
            return SECRET in str((await client.call_tool("crash")).content)

    before = [await shows_secret(each) for each in (server, view, inner)]
    server.debug = True
    after = [await shows_secret(each) for each in (server, view, inner)]
    view.debug = False
    own = [await shows_secret(each) for each in (server, view, inner)]

    assert ([False] * 3, [True] * 3, [True, False, False]) == (before, after, own)
