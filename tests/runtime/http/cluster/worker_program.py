"""A server for `uvicorn --workers`: run by tests, with the URL of Redis in the environment."""

from __future__ import annotations

import os

import anyio

from mcpgen import Context, Redis, Server

server = Server("workers", version="1")


@server.tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool
def process() -> str:
    """Return the id of the process."""
    return str(os.getpid())


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the user."""
    form = await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
    return f"{form.action} {os.getpid()}"


@server.tool
async def ask_slowly(ctx: Context) -> str:
    """Ask the user, and need a minute after that."""
    await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})
    await anyio.sleep(60)
    return "done"


@server.tool
async def touch(ctx: Context) -> str:
    """Report a change of a resource."""
    await ctx.resource_updated("note://a")
    return "touched"


@server.resource("note://a")
def note() -> str:
    """Return a text."""
    return "text"


REDIS = os.environ.get("WORKERS_REDIS")
app = server.asgi(cluster=Redis(REDIS) if REDIS else None)
