"""Codecs of the messages of an extension: those of `mcpgen.runtime.protocol.codec`, without adaptation.

The types are those of the extension's package, whatever revision the peer speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.adapt.pattern_texts import package_decoder
from mcpgen.runtime.errors import InvalidPayload, RequestError
from mcpgen.runtime.protocol.capabilities import Peer
from mcpgen.runtime.protocol.codec import (
    IncomingNotificationCodec,
    IncomingRequestCodec,
    OutgoingNotificationCodec,
    OutgoingRequestCodec,
)
from mcpgen.runtime.protocol.extensions import Constant, extension_payload
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.payload_codec import UNREADABLE, Validator, encoded, explained

if TYPE_CHECKING:
    from types import ModuleType

    from mcpgen.runtime.adapt.payloads import Payload
    from mcpgen.runtime.protocol.extensions import Extension
    from mcpgen.runtime.protocol.messages import ErrorResponse
    from mcpgen.runtime.protocol.payload_codec import Value

__all__ = [
    "ExtensionNotification",
    "IncomingExtensionNotification",
    "IncomingExtensionRequest",
    "OutgoingExtensionNotification",
    "OutgoingExtensionRequest",
]

_EMPTY = Raw(b"{}")


class _Codec:
    """Reads and writes one part of the messages of one method."""

    __slots__ = ("_encode", "_is_required", "_payload")

    def __init__(self, payload: Payload, package: ModuleType, *, is_required: bool) -> None:
        self._payload = payload
        self._is_required = is_required
        self._encode = Validator(payload, package_decoder(package)).encode

    def read(self, raw: Raw | UnsetType, meta: Mapping[str, object] | None = None) -> Value:
        if raw is UNSET:
            if self._is_required and meta is None:
                raise self._payload.invalid("they are missing")
            raw = _EMPTY
        try:
            if meta is not None:
                value: Any = msgspec.json.decode(raw)
                raw = Raw(msgspec.json.encode({**value, "_meta": {**value.get("_meta", {}), **meta}}))
            return self._payload.decoders[0](raw)
        except (*UNREADABLE, TypeError, AttributeError) as error:  # the last two for params or `_meta` of a wrong type
            raise explained(self._payload, raw, error) from None

    def write(self, value: Value, meta: Mapping[str, object] | None = None) -> bytes:
        """Return *value* as JSON; it is checked as in `PayloadWriter`."""
        data = self._encode(value)
        if not meta:
            return data
        plain = msgspec.json.decode(data)
        return encoded(self._payload, {**plain, "_meta": {**plain.get("_meta", {}), **meta}})

    def write_params(self, value: Value | UnsetType, meta: Mapping[str, object] | None = None) -> bytes | UnsetType:
        if value is UNSET:
            if self._is_required and not meta:
                raise self._payload.invalid("they are missing")
            return self.write({}, meta) if meta else UNSET
        return self.write(value, meta)


def _params(extension: Extension, method: Constant) -> _Codec:
    return _Codec(extension_payload(extension, method, "params"), extension.package, is_required=method.params_required)


def _result(extension: Extension, method: Constant) -> _Codec:
    return _Codec(extension_payload(extension, method, "result"), extension.package, is_required=True)


class ExtensionNotification(Struct, frozen=True, kw_only=True):
    """A notification of an extension, for all clients that are subscribed to it.

    Attributes:
        extension: The identifier of the extension.
        encode: Returns the message, with more `_meta`.
        to: Whether an accepted filter selects the notification; None for each filter with a key of the extension.
        suits: Whether the request that opened a stream allows the notification there; None if each does.
    """

    extension: str
    encode: Callable[[Mapping[str, object] | None], bytes]
    to: Callable[[Any], bool] | None
    suits: Callable[[Peer], bool] | None = None


class IncomingExtensionRequest(IncomingRequestCodec):
    """Requests of an extension from the peer."""

    __slots__ = ()

    def __init__(self, extension: Extension, method: Constant) -> None:  # the base translates between revisions
        self.method: str = method.name
        self.params: Callable[..., Value] = _params(extension, method).read
        self.result: Callable[..., bytes] = _result(extension, method).write

    def error(self, code: int, message: str, data: object = UNSET) -> bytes:
        """Return the value of ``error`` as JSON.

        Raises:
            InvalidPayload: Its data is not JSON; our handler is wrong.
        """
        try:
            return msgspec.json.encode(Error(int(code), message, data))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            what = f"an error of {self.method}"
            raise InvalidPayload(revision="", pointer="/data", what=what, reason=str(error)) from None


class OutgoingExtensionRequest(OutgoingRequestCodec):
    """Requests of an extension that we send."""

    __slots__ = ()

    def __init__(self, extension: Extension, method: Constant) -> None:
        self.method: str = method.name
        self.params: Callable[..., bytes | UnsetType] = _params(extension, method).write_params
        self.result: Callable[..., Value] = _result(extension, method).read

    def error(self, response: ErrorResponse) -> RequestError:
        """Return an error as the peer wrote it, without data that cannot be read."""
        try:
            data = msgspec.json.decode(response.error, type=dict[str, Any]).get("data", UNSET)
        except UNREADABLE:
            data = UNSET
        return RequestError(response.code, response.message, data)


class IncomingExtensionNotification(IncomingNotificationCodec):
    """Notifications of an extension from the peer."""

    __slots__ = ()

    def __init__(self, extension: Extension, method: Constant) -> None:
        self.method: str = method.name
        self.params: Callable[..., Value] = _params(extension, method).read


class OutgoingExtensionNotification(OutgoingNotificationCodec):
    """Notifications of an extension that we send."""

    __slots__ = ()

    def __init__(self, extension: Extension, method: Constant) -> None:
        self.method: str = method.name
        self.params: Callable[..., bytes | UnsetType] = _params(extension, method).write_params
