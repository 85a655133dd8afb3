"""Extensions: what a peer declares about one, and the codecs of its messages.

Theory of operation. The generated package of an extension describes its messages in one revision, its base. These
messages are decoded and encoded with the types of the package. They are never adapted: in each revision in which the
extension is used, its messages are those of the package. By default, an extension with messages is used in the
revisions of the era of its base. An extension without messages is only declared, in every revision.

Spec:
    2026-07-28, basic/versioning, "Extension Negotiation"; SEP-2133, "Negotiation", for the handshake revisions. Their
    schemas say that capabilities are "not a closed set".
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from mcpgen.generated import registry
from mcpgen.runtime.adapt.extensions import register_extension
from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.adapt.pattern_texts import package_decoder
from mcpgen.runtime.adapt.payloads import Payload, bindings
from mcpgen.runtime.errors import UnsupportedByPeer, UsageError
from mcpgen.runtime.protocol.capabilities import Peer
from mcpgen.runtime.protocol.native_revision import check_overrides, handler_names
from mcpgen.runtime.protocol.negotiation import selected_revisions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcpgen.runtime.adapt.payloads import Sender
    from mcpgen.runtime.protocol.capabilities import ServerPeer

__all__ = ["Constant", "Extension", "check_identifier", "extension_payload", "is_identifier", "require_extension"]

Constant: TypeAlias = Any
"""A constant of the module ``methods`` of a package: a ``RequestMethod`` or a ``NotificationMethod``."""

# 2026-07-28, basic/index, "_meta": the prefix of a key consists of labels. An identifier must have one.
_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")

_NO_METHODS: Final[Mapping[str, Any]] = {}


class Extension:
    """An extension that a server or a client supports.

        Extension(rooms, handlers=Rooms(), settings={"seats": 40})

    Args:
        package: The package that `mcpgen build --extension` wrote, or only the identifier of an extension without
            messages.
        handlers: An instance of a subclass of the package's ``ServerHandlers`` (in a server) or ``ClientHandlers`` (in
            a client).
        settings: The settings to declare, as a mapping or a model of the package; by default an empty object.
        revisions: The revisions in which the extension is used. By default, an extension with messages is used in the
            revisions of the era of its base, and any other extension in all revisions.

    Attributes:
        id: The identifier.
        package: The package; None if there is only an identifier.
        base: The revision that the package extends; None without a package.

    Raises:
        UsageError: The identifier has no prefix, or an argument is not valid.
    """

    def __init__(
        self,
        package: ModuleType | str,
        *,
        handlers: object = None,
        settings: Mapping[str, object] | msgspec.Struct | None = None,
        revisions: Iterable[str] | None = None,
    ) -> None:
        self.id: str = _identifier(package)
        self.package: Any = package if isinstance(package, ModuleType) else None
        self.base: str | None = None if self.package is None else registry.revision(self.package.BASE).label
        self.handlers: Any = handlers
        self.settings: Mapping[str, object] = _checked_settings(settings)
        self._methods: Any = getattr(self.package, "methods", None)
        self._revisions = None if revisions is None else frozenset(selected_revisions(revisions))
        if self.package is not None:
            register_extension(self.package)  # so that `mcpgen.testing` and adapters know its messages
        if handlers is not None and self.package is None:
            raise UsageError(
                f"`handlers` of {self.id} needs the package of the extension, not only its identifier; pass a package "
                "that `mcpgen build --extension` wrote, or leave `handlers` out"
            )
        if handlers is not None and self._methods is None:
            raise UsageError(f"{self.id} has no messages, so it needs no `handlers`; leave the argument out")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def is_used_in(self, revision: str) -> bool:
        """Whether the extension is declared to peers of *revision*, and its messages are exchanged with them."""
        if self._revisions is not None:
            return revision in self._revisions
        if self._methods is None or self.base is None:
            return True
        return registry.revision(revision).era == registry.revision(self.base).era

    def requests(self, sender: Sender) -> Mapping[str, Constant]:
        """Return the requests of *sender*, by method, also those of the base that the extension changes."""
        return self._table("CLIENT_REQUESTS" if sender == "client" else "SERVER_REQUESTS")

    def notifications(self, sender: Sender) -> Mapping[str, Constant]:
        """Return the notifications of *sender*, by method, also those of the base that the extension changes."""
        return self._table("CLIENT_NOTIFICATIONS" if sender == "client" else "SERVER_NOTIFICATIONS")

    def is_new(self, method: str) -> bool:
        """Whether *method* is not one of the base."""
        methods = bindings(self.base or "").methods
        tables = (
            methods.CLIENT_REQUESTS,
            methods.SERVER_REQUESTS,
            methods.INPUT_REQUESTS,
            methods.CLIENT_NOTIFICATIONS,
            methods.SERVER_NOTIFICATIONS,
        )
        return all(method not in each for each in tables)

    def overridden(self, side: Sender) -> dict[str, Callable[[Any, Any], Any]]:
        """Return the methods of the handlers by protocol method, without those that the handlers do not override.

        Raises:
            UsageError: The handlers are of another class, or have a method that would never be called.
        """
        if self.handlers is None:
            return {}
        name = "ServerHandlers" if side == "server" else "ClientHandlers"
        base: type = getattr(self.package, name)
        if not isinstance(self.handlers, base):
            shown = self.handlers.__name__ if isinstance(self.handlers, type) else type(self.handlers).__name__
            raise UsageError(
                f"`handlers` of {self.id} must be an instance of a subclass of {self.package.__name__}.{name}, "
                f"not {shown}"
            )
        other: Sender = "client" if side == "server" else "server"
        names = handler_names(self._methods, self.requests(other), self.notifications(other))
        called = {method: each for method, each in names.items() if self.is_new(method)}
        changed = [each for method, each in names.items() if method not in called]
        check_overrides(self.handlers, base, called=called.values(), answered=changed)
        kind: type = self.handlers.__class__
        return {
            method: getattr(self.handlers, each)
            for method, each in called.items()
            if getattr(kind, each) is not getattr(base, each)
        }

    def filter_keys(self) -> Mapping[str, str]:
        """Return the keys that the extension adds to the filter of `subscriptions/listen`, with their attributes."""
        own = getattr(self.package, "SubscriptionFilter", None)
        known = getattr(bindings(self.base).models, "SubscriptionFilter", None) if self.base else None
        if own is None or known is None:
            return {}
        keys = zip(own.__struct_encode_fields__, own.__struct_fields__, strict=True)
        return {key: attribute for key, attribute in keys if key not in known.__struct_encode_fields__}

    def _table(self, name: str) -> Mapping[str, Any]:
        return _NO_METHODS if self._methods is None else getattr(self._methods, name)


def require_extension(peer: Peer | ServerPeer, extension: str, what: str) -> None:
    """Check that *peer* has declared the extension with this identifier, which *what* needs.

    Raises:
        UnsupportedByPeer: It has not. A stateless client gets this as the error -32021.

    Spec:
        2026-07-28, basic/index, "Per-request protocol fields".
    """
    if extension not in peer.extensions:
        side: Sender = "client" if isinstance(peer, Peer) else "server"
        raise UnsupportedByPeer(
            revision=peer.revision,
            what=what,
            reason=f"the {side} has not declared the extension {extension}",
            required={"extensions": {extension: {}}},
            peer=side,
        )


def extension_payload(extension: Extension, method: Constant, part: Literal["params", "result"]) -> Payload:
    """Return the types of one part of the messages of *method*, a constant of the package of *extension*."""
    annotation: Any = getattr(method, part)
    what = f"the {part} of {method.name} ({extension.id})"
    decode = package_decoder(extension.package)(annotation)
    return Payload(extension.base or "", what, (annotation,), (decode,), "_meta")


def is_identifier(text: str) -> bool:
    """Whether *text* is the identifier of an extension: a key of ``_meta`` with a prefix.

    Spec:
        2026-07-28, basic/versioning, "Extension Negotiation".
    """
    return _IDENTIFIER.fullmatch(text) is not None


def _identifier(package: object) -> str:
    identifier = package if isinstance(package, str) else getattr(package, "EXTENSION", None)
    if not isinstance(identifier, str):
        named = getattr(package, "__name__", None) or f"of the type {type(package).__name__}"
        raise UsageError(
            f"`package` is {named}, which is neither the package of an extension nor its identifier; pass a package "
            "that `mcpgen build --extension` wrote"
        )
    check_identifier(identifier)
    return identifier


def check_identifier(identifier: str) -> None:
    """Check the identifier of an extension, which an author or a user has written.

    Raises:
        UsageError: It does not have the form that the specification requires.

    Spec:
        2026-07-28, basic/versioning, "Extension Negotiation".
    """
    if not is_identifier(identifier):
        raise UsageError(
            f"{identifier!r} is not the identifier of an extension; write a prefix, a slash and a name, such as "
            "com.example/rooms"
        )


def _checked_settings(settings: object) -> Mapping[str, object]:
    try:
        found: object = msgspec.json.decode(msgspec.json.encode({} if settings is None else settings))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"`settings` is not JSON: {error}") from error
    if not is_object(found):
        raise UsageError(f"`settings` must be a mapping or an object of the package, not {settings!r}")
    return found
