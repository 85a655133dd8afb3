"""The public API: `Server`, `Client` and `connect`, which compose the other packages."""

from __future__ import annotations

__all__: list[str] = []
