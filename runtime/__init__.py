"""Servers and clients that speak every revision of the Model Context Protocol, and adapters between its revisions.

`Server` serves decorated functions, or handlers of one revision; `Context` is what they know of a request. `connect`
reaches a server, and `Client` is what can be asked of it.
`mcpgen.runtime.adapt` adapts messages between revisions. What is imported from here is loaded when it is first asked
for, so that adapting does not cost what serving does.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    InvalidStructuredContent,
    MalformedFrame,
    McpgenError,
    NoCommonRevision,
    PeerError,
    RequestError,
    RequestLost,
    RequestRefused,
    RequestTimedOut,
    ServerExited,
    TransportClosed,
    UnknownDefinition,
    UnknownMethod,
    UnknownRevision,
    UnsupportedByPeer,
    UsageError,
)
from mcpgen.runtime.http.failures import HttpRefused, ServerUnreachable

if TYPE_CHECKING:
    from mcpgen.runtime.client import Client
    from mcpgen.runtime.clients.bare import BareClient, ClientContext
    from mcpgen.runtime.clients.changes import Change
    from mcpgen.runtime.connecting import connect
    from mcpgen.runtime.context import Context
    from mcpgen.runtime.engine.forms import Elicited
    from mcpgen.runtime.functions.resources import ResourceNotFound
    from mcpgen.runtime.functions.tools import ToolError
    from mcpgen.runtime.http.client.credentials import bearer
    from mcpgen.runtime.http.client.transport import Http
    from mcpgen.runtime.http.store import EventStore, MemoryEventStore
    from mcpgen.runtime.limits import ClientLimits, HttpLimits, Limits
    from mcpgen.runtime.server import Server
    from mcpgen.runtime.tasks.store import MemoryTaskStore
    from mcpgen.runtime.transports.process import Process

__all__ = [
    "AdaptationError",
    "BareClient",
    "Change",
    "Client",
    "ClientContext",
    "ClientLimits",
    "Context",
    "Elicited",
    "EventStore",
    "Http",
    "HttpLimits",
    "HttpRefused",
    "InvalidPayload",
    "InvalidStructuredContent",
    "Limits",
    "MalformedFrame",
    "McpgenError",
    "MemoryEventStore",
    "MemoryTaskStore",
    "NoCommonRevision",
    "PeerError",
    "Process",
    "RequestError",
    "RequestLost",
    "RequestRefused",
    "RequestTimedOut",
    "ResourceNotFound",
    "Server",
    "ServerExited",
    "ServerUnreachable",
    "ToolError",
    "TransportClosed",
    "UnknownDefinition",
    "UnknownMethod",
    "UnknownRevision",
    "UnsupportedByPeer",
    "UsageError",
    "bearer",
    "connect",
]

_LAZY = {
    "BareClient": "clients.bare",
    "Change": "clients.changes",
    "Client": "client",
    "ClientContext": "clients.bare",
    "ClientLimits": "limits",
    "Context": "context",
    "Elicited": "engine.forms",
    "EventStore": "http.store",
    "Http": "http.client.transport",
    "HttpLimits": "limits",
    "Limits": "limits",
    "MemoryEventStore": "http.store",
    "MemoryTaskStore": "tasks.store",
    "Process": "transports.process",
    "ResourceNotFound": "functions.resources",
    "Server": "server",
    "ToolError": "functions.tools",
    "bearer": "http.client.credentials",
    "connect": "connecting",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
