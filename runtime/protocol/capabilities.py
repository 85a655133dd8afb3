"""What a peer has declared, what a call to it would need, and what a server with given capabilities offers.

Nothing is sent to a client that did not declare it: "Only use capabilities that were successfully negotiated"
(2025-11-25, basic/lifecycle, "Operation"). A capability that a revision does not define cannot be declared in it, so a
path here counts as far as the revision knows it: ``sampling.tools`` means ``sampling`` before 2025-11-25.
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
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.negotiation import NEWEST
from mcpgen.runtime.protocol.newest import models

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "CLIENT_CAPABILITIES",
    "Peer",
    "ServerPeer",
    "client_peer",
    "has",
    "lacking",
    "needed",
    "offers",
    "server_peer",
]

Path: TypeAlias = tuple[str, ...]
"""Where a capability stands: ``("resources", "subscribe")``."""

# A stateless client says the same with every request, and a server has few clients at a time that differ. What is
# larger than any honest declaration is not kept, so that all of it together stays below two megabytes.
_MOST_PEERS: Final = 256
_MOST_BYTES_KEPT: Final = 4096


class Peer(Struct, frozen=True, kw_only=True):
    """Who is at the other end, and what it can do, in the terms of the newest revision.

    Attributes:
        revision: The revision that it speaks.
        era: How it agreed on that: ``handshake`` or ``stateless``.
        info: Its name and version, for display and logs only; None if it did not say.
        capabilities: What it declared.
        declared: The same as it wrote it, in the terms of its own revision.
    """

    revision: str
    era: str
    info: models.Implementation | None
    capabilities: models.ClientCapabilities
    declared: Mapping[str, object]


class ServerPeer(Struct, frozen=True, kw_only=True):
    """What a server has said about itself, in the terms of the newest revision.

    Attributes:
        revision: The revision that is spoken with it.
        era: How that was agreed on: ``handshake`` or ``stateless``.
        info: Its name and version, for display and logs only; None if it did not say.
        capabilities: What it declared.
        declared: The same as it wrote it, in the terms of its own revision.
        instructions: Its advice on how to use it; None if there is none.
    """

    revision: str
    era: Literal["handshake", "stateless"]
    info: models.Implementation | None
    capabilities: models.ServerCapabilities
    declared: Mapping[str, object]
    instructions: str | None


def server_peer(
    revision: str, capabilities: Raw | UnsetType, info: Raw | UnsetType, instructions: str | None
) -> ServerPeer:
    """Return the server that said this about itself.

    Args:
        revision: The revision that is spoken.
        capabilities: As it wrote them.
        info: Likewise; one that cannot be read is taken as none, since nothing but display depends on it.
        instructions: Its advice.

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
        instructions=instructions,
    )


def client_peer(revision: str, capabilities: Raw | UnsetType, info: Raw | UnsetType) -> Peer:
    """Return the client that said this about itself; a client that declared nothing can do nothing.

    Args:
        revision: The revision that it speaks.
        capabilities: As it wrote them.
        info: Likewise.

    Raises:
        RequestError: Its revision does not allow them.

    Spec:
        2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/index, "_meta".
    """
    written = b"{}" if capabilities is UNSET else bytes(capabilities)
    named = b"" if info is UNSET else bytes(info)
    if len(written) + len(named) > _MOST_BYTES_KEPT:
        return _client_peer(revision, written, named)
    return _remembered_peer(revision, written, named)


def _client_peer(revision: str, capabilities: bytes, info: bytes) -> Peer:
    try:
        declared, newest = _read(revision, "ClientCapabilities", capabilities)
        named = _read(revision, "Implementation", info)[1] if info else None
    except InvalidPayload as error:
        raise RequestError(Code.INVALID_PARAMS, str(error)) from None
    return Peer(
        revision=revision,
        era=registry.revision(revision).era,
        info=named,
        capabilities=newest,
        declared=MappingProxyType(declared),
    )


_remembered_peer = lru_cache(maxsize=_MOST_PEERS)(_client_peer)


def _read(revision: str, definition: str, data: bytes) -> tuple[dict[str, Any], Any]:
    """Return what a peer wrote, and what it is in the newest revision.

    Raises:
        InvalidPayload: It is not what its revision allows.
    """
    way = definition_route(revision, NEWEST, definition)
    try:
        value = msgspec.json.decode(data)
        way.payload.check(value)
        adapted = way.adapt_valid(value, Losses())
        target = getattr(models, way.target_definition or definition)
        return value, models.decode(msgspec.json.encode(adapted), target)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise way.payload.invalid("it cannot be read") from None


def lacking(peer: Peer, method: str, params: Mapping[str, object]) -> dict[str, object] | None:
    """Return what a client would have had to declare for a request of ours, beyond what it did; None if nothing.

    Args:
        peer: The client.
        method: Of the request.
        params: As they would be sent, in the revision of the client.

    Spec:
        2025-11-25, client/roots, client/sampling, client/elicitation and basic/utilities/tasks, "Capabilities" each;
        2026-07-28, basic/index, "_meta": data of the error -32021 has this form.
    """
    found: dict[str, object] = {}
    for path in _needs(method, params):
        known = _known(peer.revision, "ClientCapabilities", path)
        if not (has(peer.declared, known) or _is_implied(peer.declared, known)):
            holder: Any = found
            for key in known:
                holder = holder.setdefault(key, {})
    return found or None


def _needs(method: str, params: Mapping[str, object]) -> Iterator[Path]:
    capability = CLIENT_CAPABILITIES.get(method) or _OF_TASKS.get(method)
    if capability is not None:
        yield capability
    match method:
        case "sampling/createMessage":
            if "tools" in params or "toolChoice" in params:
                yield ("sampling", "tools")
            if params.get("includeContext", "none") != "none":
                yield ("sampling", "context")
        case "elicitation/create":
            yield ("elicitation", "url" if params.get("mode") == "url" else "form")
        case _:
            pass
    if "task" in params:
        yield ("tasks", "requests", *method.split("/"))


def _is_implied(declared: Mapping[str, object], path: Path) -> bool:
    # 2025-11-25, client/elicitation, "Capabilities": an empty object is "equivalent to declaring support for form mode
    # only"; a revision sees nothing in an object with none of the keys that it knows.
    return path == ("elicitation", "form") and has(declared, path[:1]) and not has(declared, ("elicitation", "url"))


_OF_TASKS: Final[Mapping[str, Path]] = {
    "notifications/tasks/status": ("tasks",),
    "tasks/cancel": ("tasks", "cancel"),
    "tasks/get": ("tasks",),
    "tasks/list": ("tasks", "list"),
    "tasks/result": ("tasks",),
}

CLIENT_CAPABILITIES: Final[Mapping[str, Path]] = {
    "elicitation/create": ("elicitation",),
    "roots/list": ("roots",),
    "sampling/createMessage": ("sampling",),
}
"""The capability that a client declares if it answers a request of the server, by method; ping needs none."""

# Where "Capabilities" of the page about each says so, in every revision; ping, progress and the like need nothing.
_OF_A_SERVER: Final[Mapping[str, Path]] = {
    **_OF_TASKS,
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
    """Return whether a server that declared this answers a client's request, or may send a notification.

    Args:
        capabilities: As they are written in that revision.
        revision: The revision that is spoken.
        method: Of the request or notification; one that the revision does not have is not offered.

    Spec:
        2025-11-25, server/tools, server/resources, server/prompts, server/utilities/completion,
        server/utilities/logging and basic/utilities/tasks, "Capabilities" each; 2024-11-05 has none for completions.
    """
    methods = bindings(revision).methods
    if method not in methods.CLIENT_REQUESTS and method not in methods.SERVER_NOTIFICATIONS:
        return False
    return has(capabilities, _known(revision, "ServerCapabilities", _OF_A_SERVER.get(method, ())))


def needed(revision: str, method: str) -> str:
    """Return what a server of *revision* would have to declare for *method*: ``resources.subscribe``."""
    return ".".join(_known(revision, "ServerCapabilities", _OF_A_SERVER.get(method, ())))


def has(declared: Mapping[str, object], path: Path) -> bool:
    """Return whether what stands at *path* of capabilities says yes: an object, however empty, or true."""
    found: object = declared
    for key in path:
        found = found.get(key) if _is_mapping(found) else None
    return found is not None and found is not False


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


@cache
def _known(revision: str, definition: str, path: Path) -> Path:
    """Return *path* as far as *revision* defines it; few are asked for."""
    model = getattr(bindings(revision).models, definition)
    while path and not is_declared(_nested(path), model, path):
        path = path[:-1]
    return path


def _nested(path: Sequence[str]) -> dict[str, Any]:
    # What stands at the end of the path does not matter, so it is left out: any type will do.
    nested: dict[str, Any] = {}
    for key in reversed(path[:-1]):
        nested = {key: nested}
    return nested
