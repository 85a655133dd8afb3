"""FastMCP's tasks, as a server: over stdio, or with ``http`` at a free port of this machine."""

from __future__ import annotations

import asyncio
import sys

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp.shared.exceptions import MCPError

server = FastMCP("bakery", version="1")
server.add_extension(TasksExtension(url="memory://"))


@server.tool(task=True)
async def bake(loaves: int) -> str:
    return f"{loaves} loaves"


@server.tool(task=True)
async def knead(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "Kneading")
    await asyncio.sleep(1.5)
    return "kneaded"


@server.tool(task=True)
async def deliver(ctx: Context) -> str | types.InputRequiredResult:
    answers = ctx.input_responses or {}
    if "name" not in answers:
        form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
        asked = {"name": {"method": "elicitation/create", "params": {"mode": "form", **form}}}
        return types.InputRequiredResult.model_validate({"inputRequests": asked})
    return f"{answers['name'].action}: {answers['name'].content}"


@server.tool(task=TaskConfig(mode="required"))
async def ferment() -> str:
    return "risen"


@server.tool(task=True)
async def burn() -> str:
    raise ToolError("It is black")


@server.tool(task=True)
async def explode() -> str:
    raise MCPError(-32603, "The oven is gone")


@server.tool(task=True)
async def rest() -> str:
    await asyncio.sleep(3600)
    return "never"


@server.tool
async def greet() -> str:
    return "hello"


if sys.argv[1:] == ["http"]:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/mcp\n")
    sys.stdout.flush()
    server.run(transport="http", port=port, show_banner=False)
else:
    server.run(show_banner=False)
