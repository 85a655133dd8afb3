"""List the tools of a server and call one with google-adk; the arguments are the server's command."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, cast

from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters


async def main() -> None:
    """Print the names of the tools, and what `add` returns."""
    command, *arguments = sys.argv[1:]
    server = StdioServerParameters(command=command, args=arguments)
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=60))
    tools = await toolset.get_tools()
    [add] = [each for each in tools if each.name == "add"]
    # It reads nothing of the context of a tool that needs neither confirmation nor credentials.
    result = await add.run_async(args={"a": 2, "b": 3}, tool_context=cast("Any", None))
    await toolset.close()
    sys.stdout.write(json.dumps({"tools": [each.name for each in tools], "result": str(result)}) + "\n")


asyncio.run(main())
