"""Serve one tool with FastMCP, 2.x."""

from __future__ import annotations

from fastmcp import FastMCP

server: FastMCP = FastMCP("old")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"add: {a + b}"


server.run()
