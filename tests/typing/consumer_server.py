"""What type checkers make of a server: decorators keep signatures, the Context says what comes back."""

from __future__ import annotations

from typing import Any, assert_type

import msgspec

from mcpgen import Context, Elicited, Server, ToolError
from mcpgen.generated.v2025_11_25 import CallToolRequestParams, CallToolResult, ServerHandlers, TextContent
from mcpgen.generated.v2026_07_28 import CreateMessageResult, Root

server = Server("typed", version="1", revisions=["2024-11-05", "2026-07-28"])


class Person(msgspec.Struct):
    name: str


@server.tool
async def greet(name: str, ctx: Context) -> str:
    assert_type(await ctx.elicit("Who?", Person), Elicited[Person])
    assert_type(await ctx.elicit("Sure?", bool), Elicited[bool])
    assert_type(await ctx.elicit("Who?", {"type": "object"}), Elicited[dict[str, Any]])
    assert_type(await ctx.sample("Hello", max_tokens=10), CreateMessageResult)
    assert_type(await ctx.roots(), list[Root])
    if not name:
        raise ToolError("nobody is there")
    return name


@server.tool
def ask(ctx: Context) -> str:
    ctx.sync.log("info", {"asks": True})
    assert_type(ctx.sync.elicit("Who?", Person), Elicited[Person])
    assert_type(ctx.sync.elicit("Who?", {"type": "object"}), Elicited[dict[str, Any]])
    assert_type(ctx.sync.sample("Hello", max_tokens=10), CreateMessageResult)
    assert_type(ctx.sync.roots(), list[Root])
    return "asked"


@server.tool(title="Add")
def add(a: int, b: int = 1) -> int:
    return a + b


@server.resource("config://{name}")
async def config(name: str) -> bytes:
    return name.encode()


@server.prompt
def review(code: str) -> str:
    return code


@server.completion("review", "code")
def complete(value: str) -> list[str]:
    return [value]


assert_type(add(1), int)
assert_type(review("x"), str)


class Handlers(ServerHandlers[Context]):
    async def call_tool(self, params: CallToolRequestParams, context: Context, /) -> CallToolResult:
        await context.progress(1, 2)
        return CallToolResult(content=[TextContent(text=params.name)])


Server("handlers", version="1", handlers=Handlers())
