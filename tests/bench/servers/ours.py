"""The server that is timed: as its author would write it."""

from __future__ import annotations

from mcpgen import Server

server = Server("bench", version="1.0")


@server.tool
async def echo(text: str) -> str:
    """Return the text."""
    return text


if __name__ == "__main__":
    server.run()
