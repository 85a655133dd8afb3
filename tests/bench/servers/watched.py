"""The server of the sustained run: it echoes, tells how many tasks it has, and holds calls back until it is told."""

from __future__ import annotations

import asyncio

from mcpgen import Server

server = Server("watched", version="1.0")
released = asyncio.Event()


@server.tool
async def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool
async def tasks() -> str:
    """Return how many tasks there are, this call's included."""
    return str(len(asyncio.all_tasks()))


@server.tool
async def wait(text: str) -> str:
    """Return the text as soon as `release` is called."""
    await released.wait()
    return text


@server.tool
async def release() -> str:
    """Let all that wait go on."""
    released.set()
    return "released"
