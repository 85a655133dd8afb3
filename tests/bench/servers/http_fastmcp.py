"""FastMCP over HTTP, with the options that its arguments name; see ``http_sdk.py``."""

from __future__ import annotations

import sys

from fastmcp import FastMCP
from http_running import PATH, run

server = FastMCP("bench", version="1.0")


@server.tool(output_schema=None)
async def echo(text: str) -> str:
    """Return the text."""
    return text


if __name__ == "__main__":
    options = {"json_response": "json" in sys.argv, "stateless_http": "stateless" in sys.argv}
    run("FastMCP", server.http_app(path=PATH, **options))
