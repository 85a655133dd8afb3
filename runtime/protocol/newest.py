"""The revision in whose terms the engine speaks: the newest. This is the one module of the runtime that names it.

Whoever adds a revision changes the imports; a test compares them with the registry.
"""

from __future__ import annotations

from mcpgen.generated.v2026_07_28 import REVISION, methods, models
from mcpgen.generated.v2026_07_28.client import ClientHandlers, ClientMethods
from mcpgen.generated.v2026_07_28.server import ServerHandlers

__all__ = ["NEWEST", "ClientHandlers", "ClientMethods", "ServerHandlers", "methods", "models"]

NEWEST = REVISION
