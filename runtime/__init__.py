"""Servers that speak every revision of the Model Context Protocol, and adapters between its revisions.

`Server` serves decorated functions, or handlers of one revision; `Context` is what they know of a request.
`mcpgen.runtime.adapt` adapts messages between revisions. What is imported from here is loaded when it is first asked
for, so that adapting does not cost what serving does.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    McpgenError,
    PeerError,
    RequestError,
    RequestRefused,
    TransportClosed,
    UnknownDefinition,
    UnknownMethod,
    UnknownRevision,
    UnsupportedByPeer,
    UsageError,
)

if TYPE_CHECKING:
    from mcpgen.runtime.context import Context
    from mcpgen.runtime.engine.forms import Elicited
    from mcpgen.runtime.functions.resources import ResourceNotFound
    from mcpgen.runtime.functions.tools import ToolError
    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.server import Server
    from mcpgen.runtime.tasks.store import MemoryTaskStore

__all__ = [
    "AdaptationError",
    "Context",
    "Elicited",
    "InvalidPayload",
    "Limits",
    "McpgenError",
    "MemoryTaskStore",
    "PeerError",
    "RequestError",
    "RequestRefused",
    "ResourceNotFound",
    "Server",
    "ToolError",
    "TransportClosed",
    "UnknownDefinition",
    "UnknownMethod",
    "UnknownRevision",
    "UnsupportedByPeer",
    "UsageError",
]

_LAZY = {
    "Context": "context",
    "Elicited": "engine.forms",
    "Limits": "limits",
    "MemoryTaskStore": "tasks.store",
    "ResourceNotFound": "functions.resources",
    "Server": "server",
    "ToolError": "functions.tools",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
