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
from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import AdaptationError, UnknownMethod, UsageError
from mcpgen.runtime.protocol.capabilities import CLIENT_CAPABILITIES, client_peer, has
from mcpgen.runtime.protocol.codec import IncomingNotificationCodec, IncomingRequestCodec, codec
from mcpgen.runtime.protocol.native_revision import check_handlers, handler_names, native_revision_of, overrides
from mcpgen.runtime.protocol.newest import NEWEST

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import Peer

__all__ = ["RequestHandler", "NotificationHandler", "ClientFeatures", "merged"]

# 2026-07-28, basic/index, "Per-request protocol fields".
_REVISION = "io.modelcontextprotocol/protocolVersion"
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

Handler: TypeAlias = Callable[[Any, Any], Awaitable[Any]]


class RequestHandler(Struct, frozen=True, eq=False):
    """How requests of one method are answered."""

    codec: IncomingRequestCodec
    call: Handler


class NotificationHandler(Struct, frozen=True, eq=False):
    """How notifications of one method are taken."""

    codec: IncomingNotificationCodec
    call: Handler


class ClientFeatures:
    """What a client offers.

    Args:
        handlers: An instance of a subclass of some revision's generated ``ClientHandlers``.
        capabilities: What is declared beyond what the methods that it overrides show, in the terms of home.
        info: Name and version, as the newest revision has them.

    Attributes:
        native_revision: The revision that the handlers are written in.

    Raises:
        UsageError: The handlers cannot be called, the capabilities are not valid, or nothing answers what is declared.
    """

    def __init__(self, handlers: Any, *, capabilities: Mapping[str, object], info: Any) -> None:
        self.native_revision: str = native_revision_of(handlers, "client")
        self._handlers = handlers
        self._info = info
        self._extra, self._tells_roots = _without_session(self.native_revision, capabilities)
        methods = bindings(self.native_revision).methods
        self._requests = handler_names(methods, methods.SERVER_REQUESTS, methods.INPUT_REQUESTS)
        self._notifications = handler_names(methods, methods.SERVER_NOTIFICATIONS)
        self._tables: dict[str, Mapping[str, RequestHandler]] = {}
        self._hearings: dict[tuple[str, str], NotificationHandler | None] = {}
        called = (*self._requests.values(), *self._notifications.values())
        check_handlers(handlers, self.native_revision, "client", called=called, answered=["ping"])
        self._check_capabilities()

    def capabilities(self, revision: str) -> Mapping[str, object]:
        """Return what this client declares to servers of *revision*, in its terms."""
        found = codec(self.native_revision, revision, "client").definition("ClientCapabilities", self._declared())
        tells = self._tells_roots and registry.revision(revision).era == "handshake"
        return merged(found, {"roots": {"listChanged": True}}) if tells else found

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

    def handlings(self, revision: str) -> Mapping[str, RequestHandler]:
        """Return which requests of servers of *revision* are answered, and how."""
        found = self._tables.get(revision)
        if found is None:
            found = self._tables[revision] = self._handling(revision)
        return found

    def hearing(self, revision: str, method: str) -> NotificationHandler | None:
        """Return what takes the notification *method* of servers of *revision*, if anybody wants to know."""
        key = (revision, method)
        if key not in self._hearings and method in self._notifications:  # whatever else a server sends is not kept
            self._hearings[key] = self._hearing(revision, method)
        return self._hearings.get(key)

    def hears(self, method: str) -> bool:
        """Whether a handler takes the notification *method*."""
        return method in self._notifications and self._overrides(self._notifications[method])

    def _declared(self) -> dict[str, Any]:
        declared: dict[str, Any] = msgspec.to_builtins(self._handlers.capabilities())
        return merged(declared, self._extra)

    def _check_capabilities(self) -> None:
        declared, types = self._declared(), bindings(self.native_revision).models
        try:
            types.decode(msgspec.json.encode(declared), types.ClientCapabilities)
        except (msgspec.MsgspecError, TypeError) as error:
            raise UsageError(f"the capabilities are not valid in {self.native_revision}: {error}") from error
        for method, name in self._requests.items():
            capability = CLIENT_CAPABILITIES.get(method)
            if capability is not None and has(declared, capability) and not self._overrides(name):
                raise UsageError(f"the capability {'.'.join(capability)} is declared, but nothing answers {method}")

    def _handling(self, revision: str) -> dict[str, RequestHandler]:
        made: dict[str, RequestHandler] = {}
        for method, name in self._requests.items():
            if self._overrides(name):
                try:
                    made[method] = RequestHandler(
                        codec(self.native_revision, revision, "client").request(method), getattr(self._handlers, name)
                    )
                except (AdaptationError, UnknownMethod):
                    continue  # no server of this revision asks that
        return made

    def _hearing(self, revision: str, method: str) -> NotificationHandler | None:
        name = self._notifications[method]
        if not self._overrides(name):
            return None
        try:
            return NotificationHandler(
                codec(self.native_revision, revision, "client").notice_in(method), getattr(self._handlers, name)
            )
        except (AdaptationError, UnknownMethod):
            return None

    def _overrides(self, name: str) -> bool:
        return overrides(self._handlers, self.native_revision, "client", name)


def _without_session(native_revision: str, declared: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return what of *declared* its revision has a word for, and whether changes of the roots are told, too.

    Only a session is told of those, so that a home without sessions cannot say it.
    """
    roots: object = declared.get("roots")
    if registry.revision(native_revision).era == "handshake" or not is_object(roots) or "listChanged" not in roots:
        return declared, False
    rest = {key: each for key, each in roots.items() if key != "listChanged"}
    return {**declared, "roots": rest}, bool(roots["listChanged"])


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return what both declare."""
    both = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            both[key] = merged(one[key], other[key])
    return both
