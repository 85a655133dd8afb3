"""Servers, clients, adapters and exact, typed bindings for every revision of the Model Context Protocol.

    from mcpgen import Context, Server, connect

Each name is loaded when it is first used, so that importing the bindings (`mcpgen.generated`) loads nothing else.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpgen.runtime.adapt.registration import register
    from mcpgen.runtime.api.blocking_client import SyncChanges, SyncTaskHandle
    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.api.connect import connect
    from mcpgen.runtime.api.connect_sync import connect_sync
    from mcpgen.runtime.api.hosts.client_group import ClientGroup, NoServerConnected
    from mcpgen.runtime.api.hosts.config import read_config
    from mcpgen.runtime.api.hosts.sync_group import SyncClientGroup
    from mcpgen.runtime.api.server import Server
    from mcpgen.runtime.api.sync_client import SyncClient
    from mcpgen.runtime.client.base_client import BaseClient, ClientContext
    from mcpgen.runtime.client.subscriptions import Change
    from mcpgen.runtime.client.task_handle import TaskHandle
    from mcpgen.runtime.client.task_state import TaskCancelled, TaskState
    from mcpgen.runtime.client.tool_results import ToolFailed, ToolResult, UnexpectedResult
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
        TransportClosed,
        UnknownDefinition,
        UnknownMethod,
        UnknownRevision,
        UnsupportedByPeer,
        UsageError,
    )
    from mcpgen.runtime.http.client.auth.credentials import ClientCredentials, JwtAssertion, OAuth
    from mcpgen.runtime.http.client.auth.keyring_store import KeyringTokenStore
    from mcpgen.runtime.http.client.auth.machine_grants import IdJag
    from mcpgen.runtime.http.client.auth.token_store import FileTokenStore, MemoryTokenStore, TokenStore
    from mcpgen.runtime.http.client.bearer_auth import bearer
    from mcpgen.runtime.http.client.transport import Http
    from mcpgen.runtime.http.errors import HttpRefused, LoginFailed, LoginNeeded, ServerUnreachable
    from mcpgen.runtime.http.server.application import Application
    from mcpgen.runtime.http.server.auth.introspection import Introspection
    from mcpgen.runtime.http.server.auth.jwt_verification import Jwt
    from mcpgen.runtime.http.server.auth.protection import Protect
    from mcpgen.runtime.limits import ClientLimits, EventLimits, HttpLimits, Limits, RateLimit, TaskLimits
    from mcpgen.runtime.protocol.extensions import Extension
    from mcpgen.runtime.protocol.ui import tool_ui
    from mcpgen.runtime.server.access import Access
    from mcpgen.runtime.server.cache_hints import CacheHint
    from mcpgen.runtime.server.cluster.cluster import Cluster, ClusterUnavailable
    from mcpgen.runtime.server.cluster.memory_cluster import MemoryCluster
    from mcpgen.runtime.server.cluster.redis_cluster import Redis
    from mcpgen.runtime.server.context import Context
    from mcpgen.runtime.server.elicitation_forms import Elicited
    from mcpgen.runtime.server.event_store import EventStore, MemoryEventStore
    from mcpgen.runtime.server.extensions import ServerExtension
    from mcpgen.runtime.server.functions.dependencies import Depends
    from mcpgen.runtime.server.functions.media import Audio, File, Image
    from mcpgen.runtime.server.functions.prompts import PromptError
    from mcpgen.runtime.server.functions.resources import ResourceNotFound
    from mcpgen.runtime.server.functions.tools import ToolError
    from mcpgen.runtime.server.tasks.memory_task_store import MemoryTaskStore
    from mcpgen.runtime.server.tasks.redis_task_store import RedisTaskStore
    from mcpgen.runtime.server.tasks.sqlite_task_store import SqliteTaskStore
    from mcpgen.runtime.server.tasks.task_store import TaskStore
    from mcpgen.runtime.transports.errors import ServerExited
    from mcpgen.runtime.transports.interfaces import (
        Channel,
        ClientEndpoint,
        Endpoint,
        EndpointFactory,
        MessageWriter,
        ServerInterface,
        Transport,
    )
    from mcpgen.runtime.transports.process_transport import Process
    from mcpgen.runtime.transports.spawner import Spawner, StartedFunction, open_spawner

__all__ = [
    "Access",
    "AdaptationError",
    "Application",
    "Audio",
    "BaseClient",
    "CacheHint",
    "Change",
    "Channel",
    "Client",
    "ClientContext",
    "ClientCredentials",
    "ClientEndpoint",
    "ClientGroup",
    "ClientLimits",
    "Cluster",
    "ClusterUnavailable",
    "Context",
    "Depends",
    "Elicited",
    "Endpoint",
    "EndpointFactory",
    "EventLimits",
    "EventStore",
    "Extension",
    "File",
    "FileTokenStore",
    "Http",
    "HttpLimits",
    "HttpRefused",
    "IdJag",
    "Image",
    "Introspection",
    "InvalidPayload",
    "InvalidStructuredContent",
    "Jwt",
    "JwtAssertion",
    "KeyringTokenStore",
    "Limits",
    "LoginFailed",
    "LoginNeeded",
    "MalformedFrame",
    "McpgenError",
    "MemoryCluster",
    "MemoryEventStore",
    "MemoryTaskStore",
    "MemoryTokenStore",
    "MessageWriter",
    "NoCommonRevision",
    "NoServerConnected",
    "OAuth",
    "PeerError",
    "Process",
    "PromptError",
    "Protect",
    "RateLimit",
    "Redis",
    "RedisTaskStore",
    "RequestError",
    "RequestLost",
    "RequestRefused",
    "RequestTimedOut",
    "ResourceNotFound",
    "Server",
    "ServerExited",
    "ServerExtension",
    "ServerInterface",
    "ServerUnreachable",
    "Spawner",
    "SqliteTaskStore",
    "StartedFunction",
    "SyncChanges",
    "SyncClient",
    "SyncClientGroup",
    "SyncTaskHandle",
    "TaskCancelled",
    "TaskHandle",
    "TaskLimits",
    "TaskState",
    "TaskStore",
    "TokenStore",
    "ToolError",
    "ToolFailed",
    "ToolResult",
    "Transport",
    "TransportClosed",
    "UnexpectedResult",
    "UnknownDefinition",
    "UnknownMethod",
    "UnknownRevision",
    "UnsupportedByPeer",
    "UsageError",
    "__version__",
    "bearer",
    "connect",
    "connect_sync",
    "open_spawner",
    "read_config",
    "register",
    "tool_ui",
]

# The one place that states the version: the build reads it from here.
__version__ = "0.1.0"

_MODULES = {
    "Access": "mcpgen.runtime.server.access",
    "AdaptationError": "mcpgen.runtime.errors",
    "Application": "mcpgen.runtime.http.server.application",
    "Audio": "mcpgen.runtime.server.functions.media",
    "BaseClient": "mcpgen.runtime.client.base_client",
    "CacheHint": "mcpgen.runtime.server.cache_hints",
    "Change": "mcpgen.runtime.client.subscriptions",
    "Channel": "mcpgen.runtime.transports.interfaces",
    "Client": "mcpgen.runtime.api.client",
    "ClientContext": "mcpgen.runtime.client.base_client",
    "ClientCredentials": "mcpgen.runtime.http.client.auth.credentials",
    "ClientEndpoint": "mcpgen.runtime.transports.interfaces",
    "ClientGroup": "mcpgen.runtime.api.hosts.client_group",
    "ClientLimits": "mcpgen.runtime.limits",
    "Cluster": "mcpgen.runtime.server.cluster.cluster",
    "ClusterUnavailable": "mcpgen.runtime.server.cluster.cluster",
    "Context": "mcpgen.runtime.server.context",
    "Depends": "mcpgen.runtime.server.functions.dependencies",
    "Elicited": "mcpgen.runtime.server.elicitation_forms",
    "Endpoint": "mcpgen.runtime.transports.interfaces",
    "EndpointFactory": "mcpgen.runtime.transports.interfaces",
    "EventLimits": "mcpgen.runtime.limits",
    "EventStore": "mcpgen.runtime.server.event_store",
    "Extension": "mcpgen.runtime.protocol.extensions",
    "File": "mcpgen.runtime.server.functions.media",
    "FileTokenStore": "mcpgen.runtime.http.client.auth.token_store",
    "Http": "mcpgen.runtime.http.client.transport",
    "HttpLimits": "mcpgen.runtime.limits",
    "HttpRefused": "mcpgen.runtime.http.errors",
    "IdJag": "mcpgen.runtime.http.client.auth.machine_grants",
    "Image": "mcpgen.runtime.server.functions.media",
    "Introspection": "mcpgen.runtime.http.server.auth.introspection",
    "InvalidPayload": "mcpgen.runtime.errors",
    "InvalidStructuredContent": "mcpgen.runtime.errors",
    "Jwt": "mcpgen.runtime.http.server.auth.jwt_verification",
    "JwtAssertion": "mcpgen.runtime.http.client.auth.credentials",
    "KeyringTokenStore": "mcpgen.runtime.http.client.auth.keyring_store",
    "Limits": "mcpgen.runtime.limits",
    "LoginFailed": "mcpgen.runtime.http.errors",
    "LoginNeeded": "mcpgen.runtime.http.errors",
    "MalformedFrame": "mcpgen.runtime.errors",
    "McpgenError": "mcpgen.runtime.errors",
    "MemoryCluster": "mcpgen.runtime.server.cluster.memory_cluster",
    "MemoryEventStore": "mcpgen.runtime.server.event_store",
    "MemoryTaskStore": "mcpgen.runtime.server.tasks.memory_task_store",
    "MemoryTokenStore": "mcpgen.runtime.http.client.auth.token_store",
    "MessageWriter": "mcpgen.runtime.transports.interfaces",
    "NoCommonRevision": "mcpgen.runtime.errors",
    "NoServerConnected": "mcpgen.runtime.api.hosts.client_group",
    "OAuth": "mcpgen.runtime.http.client.auth.credentials",
    "PeerError": "mcpgen.runtime.errors",
    "Process": "mcpgen.runtime.transports.process_transport",
    "PromptError": "mcpgen.runtime.server.functions.prompts",
    "Protect": "mcpgen.runtime.http.server.auth.protection",
    "RateLimit": "mcpgen.runtime.limits",
    "RedisTaskStore": "mcpgen.runtime.server.tasks.redis_task_store",
    "Redis": "mcpgen.runtime.server.cluster.redis_cluster",
    "RequestError": "mcpgen.runtime.errors",
    "RequestLost": "mcpgen.runtime.errors",
    "RequestRefused": "mcpgen.runtime.errors",
    "RequestTimedOut": "mcpgen.runtime.errors",
    "ResourceNotFound": "mcpgen.runtime.server.functions.resources",
    "Server": "mcpgen.runtime.api.server",
    "ServerExited": "mcpgen.runtime.transports.errors",
    "ServerExtension": "mcpgen.runtime.server.extensions",
    "ServerInterface": "mcpgen.runtime.transports.interfaces",
    "ServerUnreachable": "mcpgen.runtime.http.errors",
    "Spawner": "mcpgen.runtime.transports.spawner",
    "SqliteTaskStore": "mcpgen.runtime.server.tasks.sqlite_task_store",
    "StartedFunction": "mcpgen.runtime.transports.spawner",
    "SyncChanges": "mcpgen.runtime.api.blocking_client",
    "SyncClient": "mcpgen.runtime.api.sync_client",
    "SyncClientGroup": "mcpgen.runtime.api.hosts.sync_group",
    "SyncTaskHandle": "mcpgen.runtime.api.blocking_client",
    "TaskCancelled": "mcpgen.runtime.client.task_state",
    "TaskHandle": "mcpgen.runtime.client.task_handle",
    "TaskLimits": "mcpgen.runtime.limits",
    "TaskState": "mcpgen.runtime.client.task_state",
    "TaskStore": "mcpgen.runtime.server.tasks.task_store",
    "TokenStore": "mcpgen.runtime.http.client.auth.token_store",
    "ToolError": "mcpgen.runtime.server.functions.tools",
    "ToolFailed": "mcpgen.runtime.client.tool_results",
    "ToolResult": "mcpgen.runtime.client.tool_results",
    "Transport": "mcpgen.runtime.transports.interfaces",
    "TransportClosed": "mcpgen.runtime.errors",
    "UnexpectedResult": "mcpgen.runtime.client.tool_results",
    "UnknownDefinition": "mcpgen.runtime.errors",
    "UnknownMethod": "mcpgen.runtime.errors",
    "UnknownRevision": "mcpgen.runtime.errors",
    "UnsupportedByPeer": "mcpgen.runtime.errors",
    "UsageError": "mcpgen.runtime.errors",
    "bearer": "mcpgen.runtime.http.client.bearer_auth",
    "connect": "mcpgen.runtime.api.connect",
    "connect_sync": "mcpgen.runtime.api.connect_sync",
    "open_spawner": "mcpgen.runtime.transports.spawner",
    "read_config": "mcpgen.runtime.api.hosts.config",
    "register": "mcpgen.runtime.adapt.registration",
    "tool_ui": "mcpgen.runtime.protocol.ui",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
