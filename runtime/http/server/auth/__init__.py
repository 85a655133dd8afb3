"""A protected server over HTTP: access tokens are verified, and clients learn where to get them.

The modules in this folder are internal. Import the public names from `mcpgen`.
"""

from __future__ import annotations

__all__: list[str] = []
