"""List the tools of a server and call one with llama-index-tools-mcp; the arguments are the server's command."""

from __future__ import annotations

import asyncio
import json
import sys

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main() -> None:
    """Print the names of the tools, and what `add` returns."""
    command, *arguments = sys.argv[1:]
    tools = await McpToolSpec(BasicMCPClient(command, arguments, timeout=60)).to_tool_list_async()
    [add] = [each for each in tools if each.metadata.name == "add"]
    result = await add.acall(a=2, b=3)
    sys.stdout.write(json.dumps({"tools": [each.metadata.name for each in tools], "result": str(result)}) + "\n")


asyncio.run(main())
