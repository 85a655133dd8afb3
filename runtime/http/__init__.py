"""MCP over HTTP: server and client, and what both share."""

from __future__ import annotations

__all__: list[str] = []
