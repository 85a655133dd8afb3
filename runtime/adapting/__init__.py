"""What `mcpgen.runtime.adapt` is made of: routes between revisions, what they may carry, and what they keep."""

from __future__ import annotations

__all__: list[str] = []
