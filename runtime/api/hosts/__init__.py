"""Configuration files of hosts: reading them, and one client over the servers that they name.

A host is a program that uses MCP servers, such as Claude Desktop, Claude Code, Cursor or VS Code.
"""

from __future__ import annotations

__all__: list[str] = []
