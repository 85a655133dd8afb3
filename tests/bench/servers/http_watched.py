"""The server of the long runs over HTTP: that of ``watched.py``, and a tool that tells all who listen of a change."""

from __future__ import annotations

from watched import server


@server.tool
async def change(text: str) -> str:
    """Tell that the tools have changed, and return the text."""
    await server.tools_changed()
    return text
