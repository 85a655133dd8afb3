"""List the tools of a server and call one with openai-agents; the arguments are the server's command."""

from __future__ import annotations

import asyncio
import json
import sys

from agents.mcp import MCPServerStdio


async def main() -> None:
    """Print the names of the tools, and what `add` returns."""
    command, *arguments = sys.argv[1:]
    async with MCPServerStdio({"command": command, "args": arguments}, client_session_timeout_seconds=60) as server:
        tools = await server.list_tools()
        result = await server.call_tool("add", {"a": 2, "b": 3})
    sys.stdout.write(json.dumps({"tools": [each.name for each in tools], "result": str(result)}) + "\n")


asyncio.run(main())
