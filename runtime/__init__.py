"""Bytes to typed message to handler to bytes: the room where the bindings learn to speak.

What there is so far: `mcpgen.runtime.adapt`, the adapters between revisions, and the errors that it raises.
"""

from __future__ import annotations

from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    McpgenError,
    PeerError,
    UnknownDefinition,
    UnknownMethod,
    UnknownRevision,
    UsageError,
)

__all__ = [
    "AdaptationError",
    "InvalidPayload",
    "McpgenError",
    "PeerError",
    "UnknownDefinition",
    "UnknownMethod",
    "UnknownRevision",
    "UsageError",
]
