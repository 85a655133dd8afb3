"""List the tools of a server and call one with smolagents; the arguments are the server's command."""

from __future__ import annotations

import json
import sys

from mcp import StdioServerParameters
from smolagents import MCPClient


def main() -> None:
    """Print the names of the tools, and what `add` returns."""
    command, *arguments = sys.argv[1:]
    with MCPClient(StdioServerParameters(command=command, args=arguments), structured_output=True) as tools:
        [add] = [each for each in tools if each.name == "add"]
        result = add(a=2, b=3)
        sys.stdout.write(json.dumps({"tools": [each.name for each in tools], "result": str(result)}) + "\n")


main()
