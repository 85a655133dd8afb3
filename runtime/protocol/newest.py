"""The newest revision, whose types the runtime uses itself. No other module of the runtime names it.

A new revision needs other imports here; a test compares them with the registry.
"""

from __future__ import annotations

from mcpgen.generated.v2026_07_28 import REVISION, methods, models
from mcpgen.generated.v2026_07_28.client import ClientHandlers, ClientMethods
from mcpgen.generated.v2026_07_28.server import ServerHandlers

__all__ = [
    "NEWEST",
    "ClientHandlers",
    "ClientMethods",
    "ErrorCode",
    "MetaKey",
    "ServerHandlers",
    "methods",
    "models",
]

NEWEST = REVISION

# The codes of JSON-RPC are the same in every revision.
ErrorCode = methods.ErrorCode
MetaKey = methods.MetaKey
