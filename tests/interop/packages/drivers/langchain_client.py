"""List the tools of a server and call one with langchain-mcp-adapters; the arguments are the server's command."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    """Print the names of the tools, and what `add` returns."""
    command, *arguments = sys.argv[1:]
    server: Any = {"command": command, "args": arguments, "transport": "stdio"}
    tools = await MultiServerMCPClient({"server": server}).get_tools()
    [add] = [each for each in tools if each.name == "add"]
    result = await add.ainvoke({"a": 2, "b": 3})
    sys.stdout.write(json.dumps({"tools": [each.name for each in tools], "result": str(result)}) + "\n")


asyncio.run(main())
