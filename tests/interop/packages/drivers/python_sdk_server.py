"""Serve one tool with the Python SDK, 1.x, by its low-level ``Server``, which all of these versions have."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

server: Any = Server("old")


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    number = {"type": "integer"}
    schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
    return [types.Tool(name="add", description="Add two numbers.", inputSchema=schema)]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
    return [types.TextContent(type="text", text=f"{name}: {arguments['a'] + arguments['b']}")]


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
