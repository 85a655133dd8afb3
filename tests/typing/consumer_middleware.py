"""What type checkers make of middleware: of one method, it has the types of that method in the native revision."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, assert_type

from mcpgen import CacheHint, Context, RequestError, Server
from mcpgen.generated import v2025_11_25 as old
from mcpgen.generated.v2025_11_25 import methods as old_methods
from mcpgen.generated.v2026_07_28 import (
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    methods,
)
from mcpgen.middleware import (
    CallNext,
    ErrorHandlingMiddleware,
    LoggingMiddleware,
    ResponseLimitingMiddleware,
    TimingMiddleware,
)

if TYPE_CHECKING:
    import msgspec

server = Server("typed", cache_hints={"tools/list": CacheHint(ttl_ms=60_000, scope="public")})


@server.middleware
async def around(params: msgspec.Struct, ctx: Context, call_next: CallNext) -> Any:
    assert_type(ctx.method, str | None)
    return await call_next(params, ctx)


@server.middleware(methods.CALL_TOOL)
async def guard(
    params: CallToolRequestParams,
    ctx: Context,
    call_next: CallNext[CallToolRequestParams, CallToolResult | InputRequiredResult],
) -> CallToolResult | InputRequiredResult:
    if params.name == "secret":
        raise RequestError(-32602, "not for you")
    result = await call_next(params, ctx)
    assert_type(result, CallToolResult | InputRequiredResult)
    return result


@server.middleware(methods.LIST_TOOLS)
async def fewer(
    params: PaginatedRequestParams, ctx: Context, call_next: CallNext[PaginatedRequestParams, ListToolsResult]
) -> ListToolsResult:
    assert_type(await call_next(params, ctx), ListToolsResult)
    return ListToolsResult(tools=[])


class Handlers(old.ServerHandlers[Context]):
    async def call_tool(self, params: old.CallToolRequestParams, context: Context, /) -> old.CallToolResult:
        return old.CallToolResult(content=[old.TextContent(text=params.name)])


older = Server("older", handlers=Handlers())


@older.middleware(old_methods.CALL_TOOL)
async def note(
    params: old.CallToolRequestParams,
    ctx: Context,
    call_next: CallNext[old.CallToolRequestParams, old.CallToolResult],
) -> old.CallToolResult:
    assert_type(params.name, str)
    return await call_next(params, ctx)


assert_type(server.middleware(TimingMiddleware(level=logging.DEBUG)), TimingMiddleware)
server.middleware(LoggingMiddleware(methods={"tools/call"}))
server.middleware(ResponseLimitingMiddleware(100_000, tools=["search"]))
server.middleware(
    ErrorHandlingMiddleware({KeyError: "There is no such entry.", OSError: lambda error: RequestError(1, str(error))})
)

assert_type(server.enable(tags={"admin"}), Server)
assert_type(server.disable(components=["prompt"]).only(tags=["public"]), Server)
