"""The same server with the official SDK, in the way of its documentation that costs least: the low-level `Server`.

It checks no arguments against the tool's schema, as `MCPServer` would. The tracing that is on by default is off.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

ECHO = types.Tool(
    name="echo",
    description="Return the text.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


async def list_tools(
    context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    """List the one tool."""
    del context, params
    return types.ListToolsResult(tools=[ECHO])


async def call_tool(context: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
    """Return the text."""
    del context
    text = (params.arguments or {})["text"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


server: Server[Any] = Server("bench", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)
server.middleware.clear()


async def main() -> None:
    """Serve."""
    async with stdio_server() as (source, sink):
        await server.run(source, sink, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
