"""Codecs: convert the messages of each method between the native revision and a peer's revision.

Theory of operation. A `Codec` converts between the native revision and one peer's. For each method it makes a reader
and a writer for the parts of its messages, once, and caches them. The routes between the revisions are found then, so a
method that a revision cannot express fails before anything is sent. Later messages cost two attribute look-ups and the
conversion.

Servers and clients use the same codec: a server reads requests and writes results, and the reverse for its own.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.adapt.routes import Losses, definition_route, route
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestError
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.payload_codec import MethodTranslation, PayloadReader, PayloadWriter, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import UnsetType

    from mcpgen.runtime.adapt.routes import Loss, Sender
    from mcpgen.runtime.protocol.messages import ErrorResponse
    from mcpgen.runtime.protocol.payload_codec import LossCallback

__all__ = [
    "Codec",
    "IncomingNotificationCodec",
    "IncomingRequestCodec",
    "OutgoingNotificationCodec",
    "OutgoingRequestCodec",
    "Value",
    "codec",
]

T = TypeVar("T")

_LOGGER: Final = logging.getLogger("mcpgen.losses")
_decode_json: Final = msgspec.json.Decoder().decode


class IncomingRequestCodec:
    """Requests of one method from the peer: reads their params, writes their results and errors.

    Attributes:
        method: The method.
        params: `PayloadReader.read`, for the params.
        result: `PayloadWriter.write`, for the result of the handler.
    """

    __slots__ = ("_error", "_translation", "method", "params", "result")

    def __init__(self, translation: MethodTranslation) -> None:
        self.method: str = translation.method
        self.params: Callable[..., Value] = PayloadReader(translation, "params").read
        self.result: Callable[..., bytes] = PayloadWriter(translation, "result").write
        self._translation = translation
        self._error: PayloadWriter | None = None

    def error(self, code: int, message: str, data: object = UNSET) -> bytes:
        """Return the value of ``error`` as the peer's JSON.

        Raises:
            InvalidPayload: Its data is not JSON; our handler is wrong.
            AdaptationError: The peer's revision has no errors of this method.
        """
        if self._error is None:
            self._error = PayloadWriter(self._translation, "error")
        return self._error.write(Error(code, message, data))


class OutgoingRequestCodec:
    """Requests of one method that we send: writes their params, reads their results and errors.

    Attributes:
        method: The method.
        peer: The revision of the peer.
        params: `PayloadWriter.write_params`, for the params.
        result: `PayloadReader.read`, for the result.
    """

    __slots__ = ("_translation", "method", "params", "peer", "result")

    def __init__(self, translation: MethodTranslation) -> None:
        self.method: str = translation.method
        self.peer: str = translation.peer
        self.params: Callable[..., bytes | UnsetType] = PayloadWriter(translation, "params").write_params
        self.result: Callable[..., Value] = PayloadReader(translation, "result").read
        self._translation = translation

    def error(self, response: ErrorResponse) -> RequestError:
        """Return an error in the native revision, without data that cannot be read or adapted."""
        value: dict[str, Any] = {"code": response.code, "message": response.message}
        at = self._translation
        try:
            whole = _decode_json(response.error)
            if "data" in whole:
                value["data"] = whole["data"]
            to_native = route(at.peer, at.native_revision, self.method, "error", sender=at.sender)
            value = to_native.adapt_valid(value, Losses())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidPayload, AdaptationError):
            pass  # the code and the message are still useful
        return RequestError(value["code"], value["message"], value.get("data", UNSET))


class IncomingNotificationCodec:
    """Notifications of one method from the peer.

    Attributes:
        method: The method.
        params: `PayloadReader.read`, for the params.
    """

    __slots__ = ("method", "params")

    def __init__(self, translation: MethodTranslation) -> None:
        self.method: str = translation.method
        self.params: Callable[..., Value] = PayloadReader(translation, "notification").read


class OutgoingNotificationCodec:
    """Notifications of one method that we send.

    Attributes:
        method: The method.
        params: `PayloadWriter.write_params`, for the params.
    """

    __slots__ = ("method", "params")

    def __init__(self, translation: MethodTranslation) -> None:
        self.method: str = translation.method
        self.params: Callable[..., bytes | UnsetType] = PayloadWriter(translation, "notification").write_params


def _log_losses(what: str, losses: Callable[[], tuple[Loss, ...]]) -> None:
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    for each in losses():
        _LOGGER.debug("%s: %s at %s (%s): %s", what, each.severity, each.pointer or "/", each.step, each.reason)


class Codec:
    """Converts all messages between the native revision and the revision of a peer.

    Each of its methods makes the codec of a protocol method once, and raises the same error again if there is none. The
    method is that of the message's own revision: the peer's for incoming messages, the native one for outgoing.

    Attributes:
        native_revision: The revision that handlers are written against.
        peer: The revision that the peer speaks.
        side: Our side.

    Args:
        on_losses: Called with the place, such as ``the result of tools/call``, and the losses there. By default they
            are logged at the level DEBUG.
    """

    def __init__(
        self,
        native_revision: str,
        peer: str,
        side: Sender = "server",
        *,
        on_losses: Callable[[str, tuple[Loss, ...]], None] | None = None,
    ) -> None:
        self.native_revision = native_revision
        self.peer = peer
        self.side: Sender = side
        for label in (native_revision, peer):
            bindings(label)  # raises UnknownRevision now, not with the first message
        self._on_losses: LossCallback = (
            _log_losses if on_losses is None else lambda what, losses: on_losses(what, losses())
        )
        self._other: Sender = "client" if side == "server" else "server"
        self._incoming_requests: dict[str, IncomingRequestCodec] = {}
        self._outgoing_requests: dict[str, OutgoingRequestCodec] = {}
        self._incoming_notifications: dict[str, IncomingNotificationCodec] = {}
        self._outgoing_notifications: dict[str, OutgoingNotificationCodec] = {}
        self._refused: dict[tuple[object, str], AdaptationError] = {}

    def incoming_request(self, method: str) -> IncomingRequestCodec:
        """Return the codec of the peer's requests of *method*.

        Raises:
            UnknownMethod: The peer's revision has no such request.
            AdaptationError: The native revision has none; its `service` names the translation, if there is one.
        """
        return self._incoming_requests.get(method) or self._make(
            IncomingRequestCodec, method, self._other, self._incoming_requests
        )

    def outgoing_request(self, method: str) -> OutgoingRequestCodec:
        """Return the codec of our requests of *method*, including those inside of an `input_required` result.

        Raises:
            UnknownMethod: The native revision has no such request.
            AdaptationError: The peer's revision has none; its `service` names the translation, if there is one.
        """
        return self._outgoing_requests.get(method) or self._make(
            OutgoingRequestCodec, method, self.side, self._outgoing_requests
        )

    def incoming_notification(self, method: str) -> IncomingNotificationCodec:
        """Return the codec of the peer's notifications of *method*.

        Raises:
            UnknownMethod: The peer's revision has no such notification.
            AdaptationError: The native revision has none; its `service` names the translation, if there is one.
        """
        return self._incoming_notifications.get(method) or self._make(
            IncomingNotificationCodec, method, self._other, self._incoming_notifications
        )

    def outgoing_notification(self, method: str) -> OutgoingNotificationCodec:
        """Return the codec of our notifications of *method*.

        Raises:
            UnknownMethod: The native revision has no such notification.
            AdaptationError: The peer's revision has none; its `service` names the translation, if there is one.
        """
        return self._outgoing_notifications.get(method) or self._make(
            OutgoingNotificationCodec, method, self.side, self._outgoing_notifications
        )

    def definition(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        """Return a valid JSON value of the native definition *name* in the peer's revision.

        Raises:
            UnknownDefinition: The native revision has no such definition.
            AdaptationError: The peer's revision has no counterpart, or cannot express this value.
        """
        losses = Losses()
        to_peer = definition_route(self.native_revision, self.peer, name)
        adapted: dict[str, Any] = to_peer.adapt_valid(value, losses)
        if len(losses):
            self._on_losses(name, lambda: tuple(losses.found))
        return adapted

    def _make(self, kind: Callable[[MethodTranslation], T], method: str, sender: Sender, cache: dict[str, T]) -> T:
        # A peer can invent any number of unknown methods, so UnknownMethod is not cached.
        refused = self._refused.get((kind, method))
        if refused is not None:
            raise _copy_of(refused)
        try:
            made = kind(
                MethodTranslation(
                    native_revision=self.native_revision,
                    peer=self.peer,
                    method=method,
                    sender=sender,
                    on_losses=self._on_losses,
                )
            )
        except AdaptationError as error:
            self._refused[kind, method] = _copy_of(error)
            raise
        return cache.setdefault(method, made)


def _copy_of(error: AdaptationError) -> AdaptationError:
    """Return a copy: an error that is raised twice would keep the traceback of the first time."""
    return AdaptationError(
        step=error.step, pointer=error.pointer, reason=error.reason, service=error.service, losses=error.losses
    )


@cache
def codec(native_revision: str, peer: str, side: Sender = "server") -> Codec:
    """Return the codec between two revisions; it is cached, since many peers speak the same revision.

    Raises:
        UnknownRevision: There are no bindings for one of them.
    """
    return Codec(native_revision, peer, side)
