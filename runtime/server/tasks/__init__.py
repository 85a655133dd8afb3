"""Tasks of 2025-11-25 and of the extension for 2026-07-28: their requests, their lifecycle, and their stores."""

from __future__ import annotations

__all__: list[str] = []
