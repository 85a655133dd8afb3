"""The server whose tools the clients of others run as tasks: ``mcpgen serve tests/interop/tasks/bakery.py``."""

from __future__ import annotations

import anyio

from mcpgen import Context, RequestError, Server, TaskLimits, ToolError

# A peer that polls waits at most this long for a change.
server = Server("bakery", version="1", task_limits=TaskLimits(poll_interval_ms=50))


@server.tool(task=True)
async def bake(loaves: int) -> str:
    """Bake loaves."""
    return f"{loaves} loaves"


@server.tool(task=True)
async def knead(ctx: Context) -> str:
    """Report progress, and go on for a while, so that a client that polls sees the report."""
    await ctx.progress(1, 2, "Kneading")
    await anyio.sleep(0.5)
    return "kneaded"


@server.tool(task=True)
async def deliver(ctx: Context) -> str:
    """Ask for a name, some time after the client has got the task."""
    await anyio.sleep(0.1)
    form = await ctx.elicit(
        "Who?", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    )
    return f"{form.action}: {form.content}"


@server.tool(task="always")
async def ferment() -> str:
    """Run as a task only."""
    return "risen"


@server.tool(task=True)
async def burn() -> str:
    """Report an error of the tool."""
    raise ToolError("It is black")


@server.tool(task=True)
async def explode() -> str:
    """Fail with an error of the protocol."""
    raise RequestError(-32603, "The oven is gone")


@server.tool(task=True)
async def rest() -> str:
    """Run until it is cancelled."""
    await anyio.sleep(3600)
    return "never"


@server.tool
async def greet() -> str:
    """Answer at once."""
    return "hello"
