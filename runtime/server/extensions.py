"""The extensions of one server: their handlers, the results that they add to other methods, and their notifications.

Spec:
    2026-07-28, basic/versioning, "Extension Negotiation"; basic/patterns/subscriptions; SEP-2133, "Negotiation".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw, UnsetType

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.adapt.pattern_texts import package_decoder
from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.errors import InvalidPayload, RequestError, UsageError, quoted
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.extension_codec import (
    ExtensionNotification,
    IncomingExtensionNotification,
    IncomingExtensionRequest,
    OutgoingExtensionNotification,
)
from mcpgen.runtime.protocol.extensions import Extension, is_identifier, require_extension
from mcpgen.runtime.protocol.newest import ErrorCode, methods

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.server.exchange import Call, Exchange

__all__ = [
    "ServerExtension",
    "accepted_filters",
    "check_entries",
    "check_identifiers",
    "encode_result",
    "extension_meta",
    "missing_extension",
]

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class ServerExtension:
    """An extension of a server. `Server.extend` returns it.

    Args:
        extension: The extension, with its handlers.
        send: `Engine.notify_extension` of the server.

    Attributes:
        extension: The extension.
        requests: The requests that its handlers serve, by method: the codec and the handler of each.
        notifications: The notifications of clients that its handlers take, likewise.
    """

    def __init__(self, extension: Extension, send: Callable[[ExtensionNotification], Awaitable[None]]) -> None:
        self.extension: Extension = extension
        self._send = send
        self.requests: dict[str, tuple[IncomingExtensionRequest, Call]] = {}
        self.notifications: dict[str, tuple[IncomingExtensionNotification, Call]] = {}
        requests, notifications = extension.requests("client"), extension.notifications("client")
        for method, call in extension.overridden("server").items():
            if method in requests:
                self.requests[method] = IncomingExtensionRequest(extension, requests[method]), call
            else:
                self.notifications[method] = IncomingExtensionNotification(extension, notifications[method]), call
        self._outgoing: dict[str, OutgoingExtensionNotification] = {
            name: OutgoingExtensionNotification(extension, each)
            for name, each in extension.notifications("server").items()
            if extension.is_new(name)
        }
        self._results: dict[str, IncomingExtensionRequest] = {
            name: IncomingExtensionRequest(extension, each)
            for name, each in requests.items()
            if not extension.is_new(name)
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    @property
    def id(self) -> str:
        """The identifier of the extension."""
        return self.extension.id

    def check(self, revisions: Iterable[str]) -> None:
        """Check that no revision in which the extension is used has a method of the same name.

        Raises:
            UsageError: One has.
        """
        for revision in revisions:
            for method in self.requests if self.extension.is_used_in(revision) else ():
                if method in bindings(revision).methods.CLIENT_REQUESTS:
                    raise UsageError(
                        f"{revision} has its own method {method}; leave {revision} out of `revisions` of {self.id}"
                    )

    def extends(self, method: str) -> bool:
        """Whether the extension adds results to the *method* of its base."""
        return method in self._results

    def encode_result(self, method: str, result: Any) -> bytes | None:
        """Return the JSON of *result* if its type is one of the extension, otherwise None."""
        kind = type(result).__module__
        if method not in self._results or not kind.startswith(self.extension.package.__name__ + "."):
            return None
        return self._results[method].result(result)

    async def notify(self, method: Any, params: Any, /, *, to: Callable[[Any], bool] | None = None) -> None:
        """Send a notification of the extension to the clients that have subscribed to it.

        A client of a stateless revision subscribes with a key that the extension adds to the filter of
        `subscriptions/listen`. A client of a handshake revision is subscribed if it has declared the extension, and the
        extension adds no such key. Over stdio, this waits while the client does not read. If the server may have other
        clients, as over HTTP, a client that does not read its stream misses the notification.

        Args:
            method: A constant of the package's module ``methods``.
            params: The params, of the package's type.
            to: Returns whether a filter selects this notification. It gets the accepted filter of each stream, as a
                ``SubscriptionFilter`` of the package. Default: every stream that has a key of the extension.

        Raises:
            UsageError: The extension has no such notification of a server.
        """
        await self._send(self.notification(method, lambda: params, to=to))

    def notification(
        self, method: Any, params: Callable[[], Any], *, to: Callable[[Any], bool] | None = None
    ) -> ExtensionNotification:
        """Return a notification as `notify` sends it; *params* is called for each client that gets it.

        Raises:
            UsageError: The extension has no such notification of a server.
        """
        codec = self.outgoing(method)
        if codec is None:
            raise UsageError(self._wrong_notification(method))
        return ExtensionNotification(extension=self.id, encode=partial(_notification, codec, params), to=to)

    def _wrong_notification(self, method: object) -> str:
        """Return why *method* is not a constant of a server's notification, and what to pass."""
        constants, package = self.extension.notifications("server"), self.extension.package
        name = str(getattr(method, "name", method))
        meant = [constants[name]] if name in constants else list(constants.values())
        named = cast("dict[str, object]", vars(package.methods)) if meant else {}
        places = [key for key, each in named.items() if any(each is one for one in meant)]
        found = ", ".join(f"{package.__name__.rpartition('.')[2]}.methods.{each}" for each in places)
        if name in constants:
            return f"`method` must be the constant {found} of the extension's package, not {method!r}"
        if not found:
            return f"{self.id} has no notifications that a server sends, so none with the name {name}"
        return f"{self.id} has no notification {name} that a server sends; pass {found}"

    def outgoing(self, method: Any) -> OutgoingExtensionNotification | None:
        """Return the codec of the server's notification *method*; None if it is not one of the extension."""
        name = getattr(method, "name", "")
        own = self.extension.notifications("server").get(name)
        return self._outgoing.get(name) if own is not None and own is method else None

    def accept_filter(self, wanted: Mapping[str, Raw], context: Any, *, max_entries: int) -> Any:
        """Return the part of the filter *wanted* that the handlers accept; None if it has no key of the extension.

        Raises:
            RequestError: The client has not declared the extension, or a key is not valid or too long.
        """
        keys = self.extension.filter_keys()
        found = {key: each for key, each in wanted.items() if key in keys}
        if not found:
            return None
        peer: Peer = context.peer
        if self.id not in peer.extensions:
            raise missing_extension(peer, self.id, "the filter of subscriptions/listen")
        package = self.extension.package
        try:
            asked = package_decoder(package)(package.SubscriptionFilter)(msgspec.json.encode(found))
        except msgspec.DecodeError as error:
            raise RequestError(ErrorCode.INVALID_PARAMS, f"the filter is not valid in {self.id}: {error}") from None
        check_entries(msgspec.to_builtins(asked), max_entries)  # the handlers may look up each entry
        accept = getattr(self.extension.handlers, "accept_subscription", None)
        return asked if accept is None else accept(asked, context)


def _notification(
    codec: OutgoingExtensionNotification, params: Callable[[], Any], meta: Mapping[str, object] | None
) -> bytes:
    return envelope.encode_notification(codec.method, codec.params(params(), meta))


def missing_extension(peer: Peer, extension: str, what: str) -> RequestError:
    """Return the error response to a request that needs an extension which the client has not declared.

    Spec:
        2026-07-28, basic/index, "Per-request protocol fields": MUST return MissingRequiredClientCapability. Handshake
        revisions have no such error.
    """
    message = f"the client has not declared the extension {extension}, which {quoted(what)} needs"
    if peer.era == "handshake":
        return RequestError(ErrorCode.METHOD_NOT_FOUND, message)
    data: object = {"requiredCapabilities": {"extensions": {extension: {}}}}
    return RequestError(methods.ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)


def check_identifiers(declared: object) -> None:
    """Check the keys of the capability ``extensions``.

    Raises:
        UsageError: One is not the identifier of an extension.

    Spec:
        2026-07-28, basic/versioning, "Extension Negotiation".
    """
    for each in declared if is_object(declared) else ():
        if not is_identifier(each):
            raise UsageError(
                f"the capabilities of the handlers declare the extension {each!r}, which is not an identifier; write a "
                "prefix, a slash and a name, such as com.example/rooms"
            )


def check_entries(filters: Mapping[str, Any], max_entries: int) -> None:
    """Check how many entries the arrays in the keys *filters* of extensions have.

    Raises:
        RequestError: There are too many.
    """
    if sum(len(each) for each in filters.values() if is_array(each)) > max_entries:
        raise RequestError(
            ErrorCode.INTERNAL_ERROR,
            f"the filter has more than {max_entries} entries (max_subscriptions); open several streams instead",
        )


def accepted_filters(
    extensions: Iterable[ServerExtension], context: Any, params: Raw | UnsetType, *, max_entries: int
) -> dict[str, Any]:
    """Return the parts of the filter in *params* that *extensions* accept, by identifier.

    Raises:
        RequestError: The client has not declared an extension, or a key is not valid or too long.
    """
    if isinstance(params, UnsetType):
        return {}
    wanted = _decode_members(_decode_members(params)["notifications"])
    found: dict[str, Any] = {}
    for each in extensions:
        if each.extension.is_used_in(context.peer.revision):
            accepted = each.accept_filter(wanted, context, max_entries=max_entries)
            if accepted is not None:
                found[each.id] = accepted
    return found


def extension_meta(extensions: Iterable[ServerExtension], identifier: str, peer: Peer) -> Mapping[str, object] | None:
    """Return the metadata of a request of an extension, for the client of a handshake; None if it has none.

    Requests of a stateless revision state what the handshake has stated, so an extension of one requires it.
    """
    base = next((each.extension.base for each in extensions if each.id == identifier), None)
    if base is None or registry.revision(base).era == "handshake":
        return None
    meta: dict[str, object] = {
        methods.MetaKey.PROTOCOL_VERSION: peer.revision,
        methods.MetaKey.CLIENT_CAPABILITIES: msgspec.to_builtins(peer.capabilities),
    }
    if peer.info is not None:
        meta[methods.MetaKey.CLIENT_INFO] = msgspec.to_builtins(peer.info)
    return meta


def encode_result(extensions: Iterable[ServerExtension], exchange: Exchange, result: Any) -> bytes | None:
    """Return the JSON of a result that an extension adds to a method of the protocol; None for any other result.

    Raises:
        UnsupportedByPeer: The client has not declared the extension.
        InvalidPayload: The extension does not allow the result.
    """
    method, revision = exchange.handler.method, exchange.peer.revision
    for each in extensions:
        body = each.encode_result(method, result)
        if body is not None:
            require_extension(exchange.peer, each.id, f"the {type(result).__name__} of {method}")
            if not each.extension.is_used_in(revision):
                what = f"the {type(result).__name__} of {method}"
                raise InvalidPayload(
                    revision=revision, pointer="", what=what, reason=f"{each.id} is not used in this revision"
                )
            return body
    return None
