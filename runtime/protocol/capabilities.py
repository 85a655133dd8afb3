"""Capabilities: those that a peer declares, and the methods that a server with them offers.

A path of capabilities is cut to the part that the peer's revision defines:
``sampling.tools`` means ``sampling`` before 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeGuard

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated import registry
from mcpgen.runtime.adapt.declared_keys import is_declared
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.adapt.routes import Losses, definition_route
from mcpgen.runtime.errors import InvalidPayload, RequestError
from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol.message_size import memory_bytes, too_many_values
from mcpgen.runtime.protocol.newest import NEWEST, ErrorCode, models

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CLIENT_CAPABILITIES",
    "Peer",
    "ServerPeer",
    "check_declaration",
    "client_peer",
    "has_capability",
    "known_path",
    "may_ask_undeclared",
    "required_capability",
    "offers",
    "server_peer",
]

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a capability: ``("resources", "subscribe")``."""

# A stateless client repeats its declaration in every request, and few clients of a server differ, so decoded ones are
# cached. Longer declarations are not cached, so that the cache stays below ten megabytes, and usually far below.
_MAX_CACHED_PEERS: Final = 128
_MAX_CACHED_BYTES: Final = 4096

_DEFAULT_LIMITS: Final = Limits()


class Peer(Struct, frozen=True, kw_only=True):
    """A client, in the types of the newest revision.

    Attributes:
        revision: The revision that it speaks.
        era: The era of that revision: ``handshake`` or ``stateless``.
        info: Its name and version, for display and logs only; None if it sent none.
        capabilities: The capabilities that it declared.
        declared: The same in its own revision, as it sent them.
        memory_bytes: About what all this takes in memory.
    """

    revision: str
    era: str
    info: models.Implementation | None
    capabilities: models.ClientCapabilities
    declared: Mapping[str, object]
    memory_bytes: int

    @property
    def extensions(self) -> Mapping[str, Mapping[str, Any]]:
        """The extensions that it declared, with their settings."""
        return _extensions(self.declared)


class ServerPeer(Struct, frozen=True, kw_only=True):
    """A server, in the types of the newest revision.

    Attributes:
        revision: The negotiated revision.
        era: The era of that revision: ``handshake`` or ``stateless``.
        info: Its name and version, for display and logs only; None if it sent none.
        capabilities: The capabilities that it declared.
        declared: The same in its own revision, as it sent them.
        instructions: Its advice on how to use it; None if there is none.
    """

    revision: str
    era: Literal["handshake", "stateless"]
    info: models.Implementation | None
    capabilities: models.ServerCapabilities
    declared: Mapping[str, object]
    instructions: str | None

    @property
    def extensions(self) -> Mapping[str, Mapping[str, Any]]:
        """The extensions that it declared, with their settings."""
        return _extensions(self.declared)


def _extensions(declared: Mapping[str, object]) -> Mapping[str, Mapping[str, Any]]:
    """Return the declared extensions; handshake revisions do not check them, so settings may have any type there."""
    found = declared.get("extensions")
    if not _is_mapping(found):
        return {}
    return {key: each for key, each in found.items() if _is_mapping(each)}


def server_peer(
    revision: str, capabilities: Raw | UnsetType, info: Raw | UnsetType, instructions: str | UnsetType
) -> ServerPeer:
    """Return a server from its answer to ``initialize`` or ``server/discover``.

    Args:
        revision: The negotiated revision.
        capabilities: Undecoded.
        info: Undecoded; an invalid one is ignored, because only display depends on it.
        instructions: Its advice on how to use it.

    Raises:
        InvalidPayload: Its revision does not allow its capabilities.

    Spec:
        2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, server/discover.
    """
    written = b"{}" if capabilities is UNSET else bytes(capabilities)
    declared, newest = _read(revision, "ServerCapabilities", written)
    try:
        named = None if info is UNSET else _read(revision, "Implementation", bytes(info))[1]
    except InvalidPayload:
        named = None
    return ServerPeer(
        revision=revision,
        era=registry.revision(revision).era,
        info=named,
        capabilities=newest,
        declared=MappingProxyType(declared),
        instructions=None if instructions is UNSET else instructions,
    )


def client_peer(
    revision: str, capabilities: Raw | UnsetType, info: Raw | UnsetType, limits: Limits = _DEFAULT_LIMITS
) -> Peer:
    """Return a client from its declaration; absent capabilities are empty ones.

    Args:
        revision: The revision that it speaks.
        capabilities: Undecoded.
        info: Undecoded.
        limits: Bounds on their size.

    Raises:
        RequestError: Its revision does not allow them, or they are too large.

    Spec:
        2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/index, "_meta".
    """
    written = b"{}" if capabilities is UNSET else bytes(capabilities)
    named = b"" if info is UNSET else bytes(info)
    read = _client_peer if len(written) + len(named) > _MAX_CACHED_BYTES else _cached_client_peer
    return read(revision, written, named, limits.max_declaration_bytes, limits.max_declaration_values)


def check_declaration(
    capabilities: bytes | Raw | UnsetType, info: bytes | Raw | UnsetType, *, max_bytes: int, max_values: int
) -> None:
    """Check the size of a client's declaration, before it is decoded.

    Raises:
        RequestError: It is too large to be kept.
    """
    parts = [bytes(each) for each in (capabilities, info) if not isinstance(each, UnsetType)]
    exceeded = ""
    if sum(map(len, parts)) > max_bytes:
        exceeded = f"{max_bytes} bytes together (max_declaration_bytes)"
    elif too_many_values(b",".join(parts), max_values):
        exceeded = f"{max_values} values together (max_declaration_values)"
    if exceeded:
        raise RequestError(ErrorCode.INVALID_PARAMS, f"clientInfo and capabilities have more than {exceeded}")


def _client_peer(revision: str, capabilities: bytes, info: bytes, max_bytes: int, max_values: int) -> Peer:
    check_declaration(capabilities, info, max_bytes=max_bytes, max_values=max_values)
    try:
        declared, newest = _read(revision, "ClientCapabilities", capabilities)
        named = _read(revision, "Implementation", info)[1] if info else None
    except InvalidPayload as error:
        raise RequestError(ErrorCode.INVALID_PARAMS, str(error)) from None
    return Peer(
        revision=revision,
        era=registry.revision(revision).era,
        info=named,
        capabilities=newest,
        declared=MappingProxyType(declared),
        # Decoded twice, in its revision and in the newest one; the JSON is not kept.
        memory_bytes=2 * sum(memory_bytes(each) - len(each) for each in (capabilities, info)),
    )


_cached_client_peer = lru_cache(maxsize=_MAX_CACHED_PEERS)(_client_peer)


def _read(revision: str, definition: str, data: bytes) -> tuple[dict[str, Any], Any]:
    """Return the JSON value of a declaration, and its model in the newest revision.

    Raises:
        InvalidPayload: The peer's revision does not allow it.
    """
    to_newest = definition_route(revision, NEWEST, definition)
    try:
        value = msgspec.json.decode(data)
        to_newest.payload.check(value)
        adapted = to_newest.adapt_valid(value, Losses())
        target = getattr(models, to_newest.target_definition or definition)
        return value, models.decode(msgspec.json.encode(adapted), target)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise to_newest.payload.invalid("it cannot be decoded") from None


_TASK_PATHS: Final[Mapping[str, Path]] = {
    "notifications/tasks/status": ("tasks",),
    "tasks/cancel": ("tasks", "cancel"),
    "tasks/get": ("tasks",),
    "tasks/list": ("tasks", "list"),
    "tasks/result": ("tasks",),
}

CLIENT_CAPABILITIES: Final[Mapping[str, Path]] = {
    **_TASK_PATHS,
    "elicitation/create": ("elicitation",),
    "roots/list": ("roots",),
    "sampling/createMessage": ("sampling",),
}
"""The capability that a server needs of its client, by method. A client that handles the method declares it.

Every client answers `ping`, without a capability.
"""

# From the section "Capabilities" of each method's page, in every revision. Others, such as ping, need no capability.
_SERVER_PATHS: Final[Mapping[str, Path]] = {
    **_TASK_PATHS,
    "completion/complete": ("completions",),
    "logging/setLevel": ("logging",),
    "notifications/message": ("logging",),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "prompts/get": ("prompts",),
    "prompts/list": ("prompts",),
    "resources/list": ("resources",),
    "resources/read": ("resources",),
    "resources/subscribe": ("resources", "subscribe"),
    "resources/templates/list": ("resources",),
    "resources/unsubscribe": ("resources", "subscribe"),
    "tools/call": ("tools",),
    "tools/list": ("tools",),
}


def offers(capabilities: Mapping[str, object], revision: str, method: str) -> bool:
    """Return whether a server with these capabilities answers a client's request, or may send a notification.

    Args:
        capabilities: Its capabilities in *revision*.
        revision: The negotiated revision.
        method: The method of the request or notification; one that the revision does not have is not offered.

    Spec:
        2025-11-25, server/tools, server/resources, server/prompts, server/utilities/completion,
        server/utilities/logging and basic/utilities/tasks, "Capabilities" each; 2024-11-05 has none for completions.
    """
    if method not in _methods_of_servers(revision):
        return False
    return has_capability(capabilities, known_path(revision, "ServerCapabilities", _SERVER_PATHS.get(method, ())))


# Their basic/lifecycle, "Operation": "Both parties MUST: … Only use capabilities that were successfully negotiated". In
# 2024-11-05 and 2025-03-26 it is a SHOULD, and 2026-07-28 forbids the use of undeclared ones to servers only.
_FORBID_UNDECLARED: Final = frozenset({"2025-06-18", "2025-11-25"})


def may_ask_undeclared(revision: str, method: str) -> bool:
    """Return whether a client of *revision* sends *method* although the server has not declared the capability.

    It sends requests only: a server answers those, but says nothing if it ignores the log level in `_meta`.

    Spec:
        2025-06-18 and 2025-11-25, basic/lifecycle, "Operation"; 2026-07-28, basic/index, "_meta".
    """
    return revision not in _FORBID_UNDECLARED and method in bindings(revision).methods.CLIENT_REQUESTS


def required_capability(revision: str, method: str) -> str:
    """Return the capability that a server of *revision* needs for *method*, such as ``resources.subscribe``."""
    return ".".join(known_path(revision, "ServerCapabilities", _SERVER_PATHS.get(method, ())))


def has_capability(declared: Mapping[str, object], path: Path) -> bool:
    """Return whether the capability at *path* is declared: as an object, which may be empty, or as true."""
    found: object = declared
    for key in path:
        found = found.get(key) if _is_mapping(found) else None
    return found is not None and found is not False


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


@cache
def _methods_of_servers(revision: str) -> frozenset[str]:
    """Return the requests that servers of *revision* answer, and the notifications that they send."""
    methods = bindings(revision).methods
    return frozenset({*methods.CLIENT_REQUESTS, *methods.SERVER_NOTIFICATIONS})


@cache
def known_path(revision: str, definition: str, path: Path) -> Path:
    """Return the part of *path* that *revision* defines. Cached without a limit, since few paths exist."""
    model = getattr(bindings(revision).models, definition)
    while path and not is_declared(_nested(path), model, path):
        path = path[:-1]
    return path


def _nested(path: Sequence[str]) -> dict[str, Any]:
    # The value at the end of the path may have any type, so it is omitted.
    nested: dict[str, Any] = {}
    for key in reversed(path[:-1]):
        nested = {key: nested}
    return nested
