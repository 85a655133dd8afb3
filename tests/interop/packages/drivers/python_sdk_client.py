"""List tools of a server and call one with the Python SDK, 1.x; the arguments are the server's command.

Versions before 1.9 cannot ask for a second page: they send the cursor beside `params`.
"""

from __future__ import annotations

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    """Print the names of the tools, and what `add` returns."""
    command, *arguments = sys.argv[1:]
    server = StdioServerParameters(command=command, args=arguments)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        result = await session.call_tool("add", {"a": 2, "b": 3})
    sys.stdout.write(json.dumps({"tools": [each.name for each in tools], "result": str(result)}) + "\n")


asyncio.run(main())
