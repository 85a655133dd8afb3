"""List the tools of a server and call one with pydantic-ai; the arguments are the server's command."""

from __future__ import annotations

import asyncio
import json
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset


async def main() -> None:
    """Print the names of the tools, and what `add` returns."""
    command, *arguments = sys.argv[1:]
    async with MCPToolset(StdioTransport(command, arguments)) as server:
        tools = await server.list_tools()
        result = await server.direct_call_tool("add", {"a": 2, "b": 3})
    sys.stdout.write(json.dumps({"tools": [each.name for each in tools], "result": str(result)}) + "\n")


asyncio.run(main())
