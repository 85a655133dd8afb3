"""The client's side of MCP over HTTP: one endpoint in either era, and the two of HTTP+SSE."""

from __future__ import annotations

__all__: list[str] = []
