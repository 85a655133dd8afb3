"""The rules of authorization over HTTP that need no input or output.

The modules in this folder are internal.
"""

from __future__ import annotations

__all__: list[str] = []
