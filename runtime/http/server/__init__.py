"""The server side of MCP over HTTP: an ASGI application with one endpoint for clients of every revision."""

from __future__ import annotations

__all__: list[str] = []
