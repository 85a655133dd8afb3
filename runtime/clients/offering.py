"""What a client says of itself, and what it answers; the same for all its servers.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/index, "Per-request protocol fields".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct

from mcpgen.generated import registry
from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.adapting.payloads import bindings
from mcpgen.runtime.errors import AdaptationError, UnknownMethod, UsageError
from mcpgen.runtime.newest import NEWEST
from mcpgen.runtime.peers.capabilities import client_peer
from mcpgen.runtime.peers.codec import NoticeInCodec, RequestCodec, codec

if TYPE_CHECKING:
    from types import ModuleType

    from mcpgen.runtime.peers.capabilities import Peer

__all__ = ["Handling", "Hearing", "Offering", "home_of"]

# 2026-07-28, basic/index, "Per-request protocol fields".
_REVISION = "io.modelcontextprotocol/protocolVersion"
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

Handler: TypeAlias = Callable[[Any, Any], Awaitable[Any]]


class Handling(Struct, frozen=True, eq=False):
    """How requests of one method are answered."""

    codec: RequestCodec
    call: Handler


class Hearing(Struct, frozen=True, eq=False):
    """How notifications of one method are taken."""

    codec: NoticeInCodec
    call: Handler


def home_of(handlers: object) -> str:
    """Return the revision whose generated handlers the class of *handlers* overrides.

    Raises:
        UsageError: It overrides none.
    """
    if isinstance(handlers, type):
        raise UsageError(f"handlers are an instance: write {handlers.__name__}()")
    modules = {base.__module__ for base in type(handlers).__mro__ if base.__name__ == "ClientHandlers"}
    for each in reversed(REVISIONS):
        if each.bindings().client.ClientHandlers.__module__ in modules:
            return each.label
    known = ", ".join(f"mcpgen.generated.{each.package}" for each in REVISIONS)
    raise UsageError(f"{type(handlers).__name__} is no client: it has to subclass the ClientHandlers of one of {known}")


class Offering:
    """What a client offers.

    Args:
        handlers: An instance of a subclass of some revision's generated ``ClientHandlers``.
        capabilities: What is declared beyond what the methods that it overrides show, in the terms of home.
        info: Name and version, as the newest revision has them.

    Attributes:
        home: The revision that the handlers are written in.
    """

    def __init__(self, handlers: Any, *, capabilities: Mapping[str, object], info: Any) -> None:
        self.home: str = home_of(handlers)
        self._handlers = handlers
        self._info = info
        self._extra = capabilities
        methods = bindings(self.home).methods
        self._requests = _names(methods, methods.SERVER_REQUESTS, methods.INPUT_REQUESTS)
        self._notifications = _names(methods, methods.SERVER_NOTIFICATIONS)
        self._tables: dict[str, Mapping[str, Handling]] = {}
        self._hearings: dict[tuple[str, str], Hearing | None] = {}
        if "ping" in self._requests and self._overrides("ping"):
            raise UsageError(f"{type(handlers).__name__} overrides ping, which the engine answers itself")

    def capabilities(self, revision: str) -> Mapping[str, object]:
        """Return what this client declares to servers of *revision*, in its terms."""
        declared: dict[str, Any] = msgspec.to_builtins(self._handlers.capabilities())
        return codec(self.home, revision, "client").definition("ClientCapabilities", _merged(declared, self._extra))

    def info(self, revision: str) -> Mapping[str, object]:
        """Return name and version, in the terms of *revision*."""
        return codec(NEWEST, revision, "client").definition("Implementation", msgspec.to_builtins(self._info))

    def meta(self, revision: str) -> dict[str, object]:
        """Return what each request says about its client at *revision*; nothing where a handshake has said it.

        Spec:
            2026-07-28, basic/index, "Per-request protocol fields".
        """
        if registry.revision(revision).era == "handshake":
            return {}
        return {
            _REVISION: revision,
            _CLIENT_INFO: self.info(revision),
            _CLIENT_CAPABILITIES: self.capabilities(revision),
        }

    def as_peer(self, revision: str) -> Peer:
        """Return this client as a server of *revision* sees it."""
        written = (msgspec.Raw(msgspec.json.encode(each(revision))) for each in (self.capabilities, self.info))
        return client_peer(revision, *written)

    def handlings(self, revision: str) -> Mapping[str, Handling]:
        """Return which requests of servers of *revision* are answered, and how."""
        found = self._tables.get(revision)
        if found is None:
            found = self._tables[revision] = self._handling(revision)
        return found

    def hearing(self, revision: str, method: str) -> Hearing | None:
        """Return what takes the notification *method* of servers of *revision*, if anybody wants to know."""
        key = (revision, method)
        if key not in self._hearings and method in self._notifications:  # whatever else a server sends is not kept
            self._hearings[key] = self._hearing(revision, method)
        return self._hearings.get(key)

    def hears(self, method: str) -> bool:
        """Whether a handler takes the notification *method*."""
        return method in self._notifications and self._overrides(self._notifications[method])

    def _handling(self, revision: str) -> dict[str, Handling]:
        made: dict[str, Handling] = {}
        for method, name in self._requests.items():
            if self._overrides(name):
                try:
                    made[method] = Handling(
                        codec(self.home, revision, "client").request(method), getattr(self._handlers, name)
                    )
                except (AdaptationError, UnknownMethod):
                    continue  # no server of this revision asks that
        return made

    def _hearing(self, revision: str, method: str) -> Hearing | None:
        name = self._notifications[method]
        if not self._overrides(name):
            return None
        try:
            return Hearing(codec(self.home, revision, "client").notice_in(method), getattr(self._handlers, name))
        except (AdaptationError, UnknownMethod):
            return None

    def _overrides(self, name: str) -> bool:
        base = bindings(self.home).client.ClientHandlers
        return getattr(type(self._handlers), name) is not getattr(base, name)


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            both[key] = _merged(one[key], other[key])
    return both


def _names(methods: ModuleType, *tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the name that the generated handlers have for each method of *tables*: that of its constant, in small."""
    constants: dict[str, Any] = vars(methods)
    wanted = [each for table in tables for each in table.values()]
    return {
        each.name: name.lower()
        for name, each in constants.items()
        if name.isupper() and any(each is known for known in wanted)
    }
