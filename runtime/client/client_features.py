"""What a client declares and answers. The same object serves connections of every revision.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, "Initialization"; 2026-07-28, basic/index, "Per-request protocol fields".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.client.answer_checks import checked_handler
from mcpgen.runtime.errors import AdaptationError, UnknownMethod, UsageError
from mcpgen.runtime.protocol.capabilities import CLIENT_CAPABILITIES, client_peer, has_capability
from mcpgen.runtime.protocol.codec import IncomingNotificationCodec, IncomingRequestCodec, codec
from mcpgen.runtime.protocol.extensions import check_identifier
from mcpgen.runtime.protocol.native_revision import check_handlers, handler_names, native_revision_of, overrides
from mcpgen.runtime.protocol.newest import NEWEST, MetaKey

if TYPE_CHECKING:
    from mcpgen.runtime.client.extensions import ClientExtension
    from mcpgen.runtime.protocol.capabilities import Peer

__all__ = ["ClientFeatures", "NotificationHandler", "RequestHandler", "merge_capabilities"]

Handler: TypeAlias = Callable[[Any, Any], Awaitable[Any]]

C = TypeVar("C")
H = TypeVar("H")


class RequestHandler(Struct, frozen=True, eq=False):
    """The handler of one request method, and the codec between its revision and the server's."""

    codec: IncomingRequestCodec
    call: Handler


class NotificationHandler(Struct, frozen=True, eq=False):
    """The handler of one notification method, and the codec between its revision and the server's."""

    codec: IncomingNotificationCodec
    call: Handler


class ClientFeatures:
    """What a client declares and answers.

    Args:
        handlers: An instance of a subclass of the generated ``ClientHandlers`` of a revision.
        capabilities: Capabilities in addition to those that follow from the overridden methods, in the native revision.
        info: Name and version, in the newest revision.
        extensions: The extensions of the client.

    Attributes:
        native_revision: The revision that the handlers are written in.
        extensions: The extensions of the client.

    Raises:
        UsageError: The handlers cannot be called, the capabilities are invalid, or a declared one has no handler.
    """

    def __init__(
        self,
        handlers: Any,
        *,
        capabilities: Mapping[str, object],
        info: Any,
        extensions: Sequence[ClientExtension] = (),
    ) -> None:
        self.native_revision: str = native_revision_of(handlers, "client")
        self.extensions: tuple[ClientExtension, ...] = tuple(extensions)
        self._handlers = handlers
        self._info = info
        self._extra, self._notifies_roots = _split_roots_changes(self.native_revision, capabilities)
        methods = bindings(self.native_revision).methods
        self._requests = handler_names(methods, methods.SERVER_REQUESTS, methods.INPUT_REQUESTS)
        self._notifications = handler_names(methods, methods.SERVER_NOTIFICATIONS)
        self._request_handlers: dict[tuple[str, str], RequestHandler | None] = {}
        self._notification_handlers: dict[tuple[str, str], NotificationHandler | None] = {}
        called = (*self._requests.values(), *self._notifications.values())
        check_handlers(handlers, self.native_revision, "client", called=called, answered=["ping"])
        self._check_capabilities()

    def check_roots_may_change(self, revision: str) -> None:
        """Check that a server of *revision* may be notified of a change of the roots.

        Raises:
            UsageError: The client has declared that the roots do not change, or there are none.
        """
        is_stateless = registry.revision(revision).era == "stateless"  # such a server requests the roots each time
        capabilities = self.capabilities(revision)
        if not is_stateless and not has_capability(capabilities, ("roots", "listChanged")):
            if not has_capability(capabilities, ("roots",)):
                raise UsageError(
                    "this client offers no roots; pass a function: connect(…, roots=function), or with handlers: "
                    "override list_roots, and connect(…, capabilities={'roots': {'listChanged': True}})"
                )
            raise UsageError(
                "this client has declared that its roots do not change; pass a function instead of a list: connect(…, "
                "roots=function), or with handlers: connect(…, capabilities={'roots': {'listChanged': True}})"
            )

    def capabilities(self, revision: str) -> Mapping[str, object]:
        """Return the capabilities that the client declares to servers of *revision*, in that revision."""
        found = codec(self.native_revision, revision, "client").definition("ClientCapabilities", self._declared())
        used = {each.id: each.extension.settings for each in self.extensions if each.extension.is_used_in(revision)}
        if used:
            found = merge_capabilities(found, {"extensions": used})
        notifies = self._notifies_roots and registry.revision(revision).era == "handshake"
        return merge_capabilities(found, {"roots": {"listChanged": True}}) if notifies else found

    def info(self, revision: str) -> Mapping[str, object]:
        """Return name and version, in *revision*."""
        return codec(NEWEST, revision, "client").definition("Implementation", msgspec.to_builtins(self._info))

    def meta(self, revision: str) -> dict[str, object]:
        """Return the `_meta` of each request in *revision*. Handshake revisions have none: `initialize` has said it.

        Spec:
            2026-07-28, basic/index, "Per-request protocol fields".
        """
        if registry.revision(revision).era == "handshake":
            return {}
        return {
            MetaKey.PROTOCOL_VERSION: revision,
            MetaKey.CLIENT_INFO: self.info(revision),
            MetaKey.CLIENT_CAPABILITIES: self.capabilities(revision),
        }

    def as_peer(self, revision: str) -> Peer:
        """Return this client as a server of *revision* sees it."""
        capabilities, info = (msgspec.json.encode(each(revision)) for each in (self.capabilities, self.info))
        return client_peer(revision, msgspec.Raw(capabilities), msgspec.Raw(info))

    def request_handler(self, revision: str, method: str) -> RequestHandler | None:
        """Return the handler of the request *method* of servers of *revision*; None if there is none."""
        key, made = (revision, method), self._request_handlers
        if key not in made and method in self._requests:  # only known methods are cached
            find = codec(self.native_revision, revision, "client").incoming_request
            made[key] = self._make(RequestHandler, find, method, self._requests[method])
        for each in self.extensions:
            if method in each.requests and each.extension.is_used_in(revision):
                return RequestHandler(*each.requests[method])
        return made.get(key)

    def notification_handler(self, revision: str, method: str) -> NotificationHandler | None:
        """Return the handler of the notification *method* of servers of *revision*; None if there is none."""
        key, made = (revision, method), self._notification_handlers
        if key not in made and method in self._notifications:
            find = codec(self.native_revision, revision, "client").incoming_notification
            made[key] = self._make(NotificationHandler, find, method, self._notifications[method])
        for each in self.extensions:
            if method in each.notifications and each.extension.is_used_in(revision):
                return NotificationHandler(*each.notifications[method])
        return made.get(key)

    def handles_notification(self, method: str) -> bool:
        """Whether there is a handler of the notification *method*."""
        return method in self._notifications and self._overrides(self._notifications[method])

    def _declared(self) -> dict[str, Any]:
        declared: dict[str, Any] = msgspec.to_builtins(self._handlers.capabilities())
        return merge_capabilities(declared, self._extra)

    def _check_capabilities(self) -> None:
        declared, types = self._declared(), bindings(self.native_revision).models
        try:
            types.decode(msgspec.json.encode(declared), types.ClientCapabilities)
        except (msgspec.MsgspecError, TypeError) as error:
            raise UsageError(f"`capabilities` is not valid in {self.native_revision}: {error}") from error
        extensions: object = declared.get("extensions")
        for each in extensions if is_object(extensions) else ():
            check_identifier(each)
        for method, name in self._requests.items():
            capability = CLIENT_CAPABILITIES.get(method)
            if capability is not None and has_capability(declared, capability) and not self._overrides(name):
                path = ".".join(capability)
                raise UsageError(
                    f"the capability {path} is declared, but there is no handler of {method}; add the handler, or do "
                    "not declare the capability"
                )

    def _make(self, kind: Callable[[C, Handler], H], find: Callable[[str], C], method: str, name: str) -> H | None:
        try:
            if not self._overrides(name):
                return None
            return kind(find(method), checked_handler(method, getattr(self._handlers, name)))
        except (AdaptationError, UnknownMethod):  # servers of this revision have no such method
            return None

    def _overrides(self, name: str) -> bool:
        return overrides(self._handlers, self.native_revision, "client", name)


def _split_roots_changes(native_revision: str, declared: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return *declared* without `roots.listChanged` if the native revision has no such key, and the key's value.

    Only servers of handshake revisions are notified of changed roots, so a stateless revision cannot declare it.
    """
    roots: object = declared.get("roots")
    if registry.revision(native_revision).era == "handshake" or not is_object(roots) or "listChanged" not in roots:
        return declared, False
    rest = {key: each for key, each in roots.items() if key != "listChanged"}
    return {**declared, "roots": rest}, bool(roots["listChanged"])


def merge_capabilities(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities of both."""
    both = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            both[key] = merge_capabilities(one[key], other[key])
    return both
