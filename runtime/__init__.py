"""The runtime: servers, clients and adapters.

Import the public names from `mcpgen`, and the adapters from `mcpgen.runtime.adapt`.
"""

from __future__ import annotations

__all__: list[str] = []
