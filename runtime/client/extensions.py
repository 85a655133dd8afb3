"""The extensions of one client: the methods that it can call, and the handlers of what a server sends.

Spec:
    2026-07-28, basic/versioning, "Extension Negotiation"; SEP-2133, "Negotiation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mcpgen.runtime.client.declared_methods import unsupported
from mcpgen.runtime.errors import InvalidPayload, UsageError
from mcpgen.runtime.protocol.extension_codec import (
    IncomingExtensionNotification,
    IncomingExtensionRequest,
    OutgoingExtensionNotification,
    OutgoingExtensionRequest,
)
from mcpgen.runtime.protocol.extensions import Extension, require_extension

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

    from msgspec import Raw

    from mcpgen.runtime.client.client_features import ClientFeatures
    from mcpgen.runtime.protocol.capabilities import ServerPeer

__all__ = [
    "ClientExtension",
    "check_result_type",
    "client_extensions",
    "filters_json",
    "find_extension",
    "has_untyped_extension",
    "is_foreign_result",
    "without_keys_of_meta",
]

_TYPES_OF_BASE: Final = (UNSET, "complete", "input_required")


class _ResultType(Struct, rename="camel"):
    result_type: str | UnsetType = UNSET


_decode_result_type: Final = msgspec.json.Decoder(_ResultType).decode


class ClientExtension:
    """An extension of a client.

    Args:
        extension: The extension, with its handlers.

    Attributes:
        extension: The extension.
        requests: The requests of servers that its handlers answer, by method: the codec and the handler of each.
        notifications: The notifications of servers that its handlers take, likewise.
        changed: The requests of the base to which the extension adds results or params.
    """

    def __init__(self, extension: Extension) -> None:
        self.extension: Extension = extension
        self.requests: dict[str, tuple[IncomingExtensionRequest, Callable[[Any, Any], Awaitable[Any]]]] = {}
        self.notifications: dict[str, tuple[IncomingExtensionNotification, Callable[[Any, Any], Awaitable[Any]]]] = {}
        requests, notifications = extension.requests("server"), extension.notifications("server")
        for method, call in extension.overridden("client").items():
            if method in requests:
                self.requests[method] = IncomingExtensionRequest(extension, requests[method]), call
            else:
                self.notifications[method] = IncomingExtensionNotification(extension, notifications[method]), call
        self._asks: dict[str, OutgoingExtensionRequest] = {}
        self.changed: frozenset[str] = frozenset(
            each for each in extension.requests("client") if not extension.is_new(each)
        )

    @property
    def id(self) -> str:
        """The identifier of the extension."""
        return self.extension.id

    def is_agreed(self, server: ServerPeer) -> bool:
        """Whether *server* has declared the extension, too, and it is used in the agreed revision."""
        return self.id in server.extensions and self.extension.is_used_in(server.revision)

    def has_filter(self, found: object) -> bool:
        """Whether *found* is a ``SubscriptionFilter`` of the extension's package."""
        kind = getattr(self.extension.package, "SubscriptionFilter", None)
        return kind is not None and type(found) is kind and bool(self.extension.filter_keys())

    def filter_json(self, wanted: Any) -> dict[str, Any]:
        """Return those members of a filter that the extension adds."""
        keys = self.extension.filter_keys()
        return {key: each for key, each in msgspec.to_builtins(wanted).items() if key in keys}

    def read_result(self, method: str, raw: Raw) -> Any:
        """Return a result of *method* whose type the extension adds; None for any other result.

        Raises:
            InvalidPayload: The extension does not allow the result.
        """
        if method not in self.changed or not is_foreign_result(raw):
            return None
        result = self.outgoing_request(method).result(raw)
        return result if self._defines(result) else None

    def result(self, method: str, raw: Raw, server: ServerPeer) -> Any:
        """Return a result of *method* that the client asked for with the methods of the extension's package.

        Raises:
            InvalidPayload: The extension does not allow the result.
        """
        result = self.outgoing_request(method).result(raw)
        if method in self.changed and not self._defines(result):
            check_result_type(raw, method, server)
        return result

    def _defines(self, result: Any) -> bool:
        return type(result).__module__.startswith(f"{self.extension.package.__name__}.")

    async def finish(self, method: str, result: Any, context: Any) -> Any:
        """Return the final result of *method*, which the server answered with the *result* of the extension.

        Raises:
            InvalidPayload: The handlers have no method ``finish_result``.
        """
        finish = getattr(self.extension.handlers, "finish_result", None)
        if finish is None:
            reason = (
                f"the server answered with a {type(result).__name__} of {self.id}; give the handlers of the extension "
                "a method `finish_result`, or call the method with the `ClientMethods` of its package"
            )
            what, base = f"the result of {method}", self.extension.base or ""
            raise InvalidPayload(revision=base, pointer="/resultType", what=what, reason=reason, is_refused=True)
        return await finish(result, context)

    def has(self, method: Any) -> bool:
        """Whether *method* is a constant of the extension's package."""
        tables = (self.extension.requests("client"), self.extension.notifications("client"))
        return any(each.get(method.name) is method for each in tables)

    def outgoing_request(self, name: str) -> OutgoingExtensionRequest:
        """Return the codec of the client's requests of the method *name*."""
        if name not in self._asks:
            self._asks[name] = OutgoingExtensionRequest(self.extension, self.extension.requests("client")[name])
        return self._asks[name]

    def outgoing_notification(self, name: str) -> OutgoingExtensionNotification:
        """Return the codec of the client's notifications of the method *name*."""
        return OutgoingExtensionNotification(self.extension, self.extension.notifications("client")[name])

    def require(self, server: ServerPeer, method: str) -> None:
        """Check that *method* can be sent to *server*.

        Raises:
            UnsupportedByPeer: The server has not declared the extension, or it is not used in the agreed revision.
        """
        if not self.extension.is_used_in(server.revision):
            reason = f"the extension {self.id} is not used in {server.revision}; its base is {self.extension.base}"
            raise unsupported(server, method, reason)
        require_extension(server, self.id, method)


def client_extensions(given: Iterable[Any]) -> list[ClientExtension]:
    """Return the extensions of a client from those that were passed to ``connect``.

    Raises:
        UsageError: One is no extension, or occurs twice.
    """
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        example = given if isinstance(given, str) else "com.example/rooms"
        raise UsageError(f"`extensions` must be a list, such as [{example!r}], not {given!r}")
    given = list(given)
    for each in given:
        if not isinstance(each, Extension | str) and not hasattr(each, "EXTENSION"):
            raise UsageError(
                f"`extensions` has {each!r}, but must have packages that `mcpgen build --extension` wrote, or their "
                "identifiers"
            )
    found = [ClientExtension(each if isinstance(each, Extension) else Extension(each)) for each in given]
    ids = [each.id for each in found]
    twice = [each for each in ids if ids.count(each) > 1]
    if twice:
        raise UsageError(f"`extensions` has {twice[0]} twice; remove one of them")
    return found


def find_extension(extensions: Sequence[ClientExtension], method: Any) -> ClientExtension | None:
    """Return the extension whose package has the constant *method*; None for a method of a revision."""
    return next((each for each in extensions if each.has(method)), None)


def has_untyped_extension(features: ClientFeatures, server: ServerPeer) -> bool:
    """Return whether client and server share an extension of which the client knows only the identifier.

    Spec:
        2026-07-28, basic/index, "ResultType": such an extension may define types of results.
    """
    if server.era == "handshake":
        return False
    declared: Any = features.capabilities(server.revision).get("extensions", {})
    typed = {each.id for each in features.extensions if each.extension.base is not None}
    return bool(declared.keys() & server.extensions.keys() - typed)


def is_foreign_result(raw: Raw) -> bool:
    """Return whether *raw* is a result of a type that the revision does not define."""
    try:
        return _decode_result_type(raw).result_type not in _TYPES_OF_BASE
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False  # decoding it as the result explains the error


def check_result_type(raw: Raw, method: str, server: ServerPeer, *others: str) -> None:
    """Check that the final result of a stateless server has no type but ``complete`` and *others*.

    Raises:
        InvalidPayload: It has another type.

    Spec:
        2026-07-28, basic/index, "ResultType": an unknown one is invalid, and an absent one means complete.
    """
    if server.era == "handshake":
        return
    try:
        found = _decode_result_type(raw).result_type
        is_known = found in (UNSET, "complete", *others)
        reason = (
            "" if is_known else f"the result type {str(found)[:100]!r} is unknown, or the result is not of this type"
        )
    except msgspec.ValidationError as error:
        reason = str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # decoding it as the result explains the error
    if reason:
        what = f"the result of {method}"
        raise InvalidPayload(revision=server.revision, pointer="/resultType", what=what, reason=reason)


def without_keys_of_meta(params: bytes | UnsetType, keys: Collection[str]) -> bytes | UnsetType:
    """Return *params* without *keys* of its `_meta`.

    In a handshake revision, no request states its revision: a server would treat it as one of that revision.
    """
    if isinstance(params, UnsetType):
        return params
    value = msgspec.json.decode(params)
    meta = {key: each for key, each in value.pop("_meta", {}).items() if key not in keys}
    return msgspec.json.encode({**value, "_meta": meta} if meta else value)


def filters_json(extensions: Sequence[ClientExtension], filters: Sequence[Any], server: ServerPeer) -> dict[str, Any]:
    """Return the members that *filters*, each of an extension, add to the filter of a stream.

    Raises:
        UsageError: A filter is not of the package of one of *extensions*.
        UnsupportedByPeer: The server has not declared the extension.
    """
    found: dict[str, Any] = {}
    for each in filters:
        extension = next((one for one in extensions if one.has_filter(each)), None)
        if extension is None:
            raise UsageError(
                f"listen() does not know {type(each).__name__}; write listen(uris=[…]) or listen(tools=True), or pass "
                "a `SubscriptionFilter` of an extension that connect(…, extensions=[…]) names"
            )
        extension.require(server, "subscriptions/listen")
        found |= extension.filter_json(each)
    return found
