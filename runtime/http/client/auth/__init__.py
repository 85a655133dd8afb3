"""The client's part of OAuth: logins, tokens, and the requests that carry them.

The modules in this folder are internal.
"""

from __future__ import annotations

__all__: list[str] = []
