"""Tests of servers and clients. The public names are in `mcpgen.testing`."""

from __future__ import annotations

__all__: list[str] = []
