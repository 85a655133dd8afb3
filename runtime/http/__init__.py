"""MCP over HTTP, without a socket: headers, server-sent events, what is stored of them, and who may speak to us."""

from __future__ import annotations

__all__: list[str] = []
