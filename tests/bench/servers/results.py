"""The same as ours, but for a tool that makes its result itself: the engine's usual way, not the short one for text."""

from __future__ import annotations

from mcpgen import Server
from mcpgen.generated.v2026_07_28 import models

server = Server("bench", version="1.0")


@server.tool
async def echo(text: str) -> models.CallToolResult:
    """Return the text."""
    return models.CallToolResult(content=[models.TextContent(text=text)])
