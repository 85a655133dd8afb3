"""Tasks of 2025-11-25: their lifecycle, their store, and how tool calls become some."""

from __future__ import annotations

__all__: list[str] = []
