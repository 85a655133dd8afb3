"""The client side of MCP over HTTP: Streamable HTTP of every revision, and HTTP+SSE."""

from __future__ import annotations

__all__: list[str] = []
