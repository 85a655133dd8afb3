"""What a method's messages are on the wire of a peer, and at home: the same protocol in two revisions.

Theory of operation. A `Codec` stands between the revision that handlers are written in, home, and that of one peer. For
each method it makes what reads and writes the parts of its messages, once, and keeps it: the ways between revisions are
found then, and what cannot be expressed at all is known before anything is sent. What is asked for per message is then
two attribute look-ups and the work itself.

It serves either side: a server reads requests and writes their results, and does the reverse with what it asks.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.adapt.payloads import bindings
from mcpgen.runtime.adapt.routes import Losses, definition_route, route
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestError
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.payload_codec import PayloadCodec, PayloadReader, PayloadWriter, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.adapt.routes import Loss, Sender
    from mcpgen.runtime.protocol.messages import ErrorResponse
    from mcpgen.runtime.protocol.payload_codec import Note

__all__ = [
    "OutgoingRequestCodec",
    "Codec",
    "IncomingNotificationCodec",
    "OutgoingNotificationCodec",
    "IncomingRequestCodec",
    "Value",
    "codec",
]

T = TypeVar("T")

_LOGGER: Final = logging.getLogger("mcpgen.losses")
_decode_json: Final = msgspec.json.Decoder().decode


class IncomingRequestCodec:
    """Requests of one method that arrive: reads their params, writes their results and errors.

    Attributes:
        method: As home and the peer call it.
    """

    __slots__ = ("_crossing", "_error", "_params", "_result", "method")

    def __init__(self, crossing: PayloadCodec) -> None:
        self.method: str = crossing.method
        self._crossing = crossing
        self._params = PayloadReader(crossing, "params")
        self._result = PayloadWriter(crossing, "result")
        self._error: PayloadWriter | None = None

    def params(self, raw: Raw | UnsetType, meta: Mapping[str, object] | None = None) -> Value:
        """Return the params of a request as home's type.

        Args:
            raw: As they came, checked against the peer's revision here; absent ones arrive empty.
            meta: What the peer's revision says once and home's says in each request: put into ``_meta``.

        Raises:
            InvalidPayload: The peer's revision does not allow them.
            AdaptationError: Home cannot express them.
        """
        return self._params.read(raw, meta)

    def result(self, value: Value) -> bytes:
        """Return a result as the peer's JSON.

        Raises:
            InvalidPayload: It is not what home allows; a mistake of ours.
            AdaptationError: The peer's revision cannot express it.
        """
        return self._result.write(value)

    def error(self, code: int, message: str, data: object = UNSET) -> bytes:
        """Return an error as the peer's JSON: what stands under ``error``.

        Raises:
            InvalidPayload: Its data is no JSON; a mistake of ours.
            AdaptationError: The peer's revision has no errors of this method.
        """
        if self._error is None:
            self._error = PayloadWriter(self._crossing, "error")
        return self._error.write(Error(int(code), message, data))


class OutgoingRequestCodec:
    """Requests of one method that we send: writes their params, reads their results and errors.

    Attributes:
        method: As home and the peer call it.
    """

    __slots__ = ("_crossing", "_params", "_result", "method")

    def __init__(self, crossing: PayloadCodec) -> None:
        self.method: str = crossing.method
        self._crossing = crossing
        self._params = PayloadWriter(crossing, "params")
        self._result = PayloadReader(crossing, "result")

    def params(self, value: Value | UnsetType, meta: Mapping[str, object] | None = None) -> bytes | UnsetType:
        """Return params as the peer's JSON.

        Args:
            value: In terms of home.
            meta: What the peer's revision wants to hear with each request: put into ``_meta``, which is left out if it
                is empty then.

        Raises:
            InvalidPayload: They are not what home allows; a mistake of ours.
            AdaptationError: The peer's revision cannot express them.
        """
        return self._params.write_params(value, meta)

    def result(self, raw: Raw) -> Value:
        """Return a result as home's type.

        Raises:
            InvalidPayload: The peer's revision does not allow it.
            AdaptationError: Home cannot express it.
        """
        return self._result.read(raw)

    def error(self, response: ErrorResponse) -> RequestError:
        """Return an error as home has it; what cannot be read of its data is left out."""
        value: dict[str, Any] = {"code": response.code, "message": response.message}
        ends = self._crossing
        try:
            whole = _decode_json(response.error)
            if "data" in whole:
                value["data"] = whole["data"]
            value = route(ends.peer, ends.native_revision, self.method, "error", sender=ends.sender).adapt_valid(
                value, Losses()
            )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidPayload, AdaptationError):
            pass  # an error that cannot be told in full is told as far as it goes
        return RequestError(value["code"], value["message"], value.get("data", UNSET))


class IncomingNotificationCodec:
    """Notifications of one method that arrive.

    Attributes:
        method: As home and the peer call it.
    """

    __slots__ = ("_params", "method")

    def __init__(self, crossing: PayloadCodec) -> None:
        self.method: str = crossing.method
        self._params = PayloadReader(crossing, "notification")

    def incoming(self, raw: Raw | UnsetType) -> Value:
        """Return the params of a notification as home's type; absent ones arrive empty.

        Raises:
            InvalidPayload: The peer's revision does not allow them.
            AdaptationError: Home cannot express them.
        """
        return self._params.read(raw)


class OutgoingNotificationCodec:
    """Notifications of one method that we send.

    Attributes:
        method: As home and the peer call it.
    """

    __slots__ = ("_params", "method")

    def __init__(self, crossing: PayloadCodec) -> None:
        self.method: str = crossing.method
        self._params = PayloadWriter(crossing, "notification")

    def outgoing(self, value: Value | UnsetType) -> bytes | UnsetType:
        """Return the params of a notification as the peer's JSON.

        Raises:
            InvalidPayload: They are not what home allows; a mistake of ours.
            AdaptationError: The peer's revision cannot express them.
        """
        return self._params.write_params(value)


def _log(what: str, found: Callable[[], tuple[Loss, ...]]) -> None:
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    for each in found():
        _LOGGER.debug("%s: %s at %s (%s): %s", what, each.severity, each.pointer or "/", each.step, each.reason)


def _telling(on_losses: Callable[[str, tuple[Loss, ...]], None]) -> Note:
    return lambda what, found: on_losses(what, found())


class Codec:
    """All messages between a home and the revision of a peer.

    Each of its methods makes something once for each method of the protocol, and raises the same error each time if
    there is nothing to make. The method is one of the revision that the message is written in: the peer's for what
    arrives, home's for what we send.

    Attributes:
        native_revision: The revision that handlers are written in.
        peer: The revision that the peer speaks.
        side: Who we are.

    Args:
        on_losses: Told what could not be said as it was, and of what: ``the result of tools/call``. By default it is
            logged, if anybody listens at the level DEBUG.
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
            bindings(label)  # so that an unknown revision is found now
        self._note = _log if on_losses is None else _telling(on_losses)
        self._other: Sender = "client" if side == "server" else "server"
        self._requests: dict[str, IncomingRequestCodec] = {}
        self._asks: dict[str, OutgoingRequestCodec] = {}
        self._notices_in: dict[str, IncomingNotificationCodec] = {}
        self._notices_out: dict[str, OutgoingNotificationCodec] = {}
        self._refused: dict[tuple[object, str], AdaptationError] = {}

    def request(self, method: str) -> IncomingRequestCodec:
        """Return how requests of *method* are read that the peer sends, and answered.

        Raises:
            UnknownMethod: The peer's revision has no such request.
            AdaptationError: Home has none; its service says what an engine does instead.
        """
        return self._requests.get(method) or self._made(IncomingRequestCodec, method, self._other, self._requests)

    def ask(self, method: str) -> OutgoingRequestCodec:
        """Return how requests of *method* are written that we send, whether by themselves or inside a result.

        Raises:
            UnknownMethod: Home has no such request.
            AdaptationError: The peer's revision has none; its service says what an engine does instead.
        """
        return self._asks.get(method) or self._made(OutgoingRequestCodec, method, self.side, self._asks)

    def notice_in(self, method: str) -> IncomingNotificationCodec:
        """Return how notifications of *method* are read that the peer sends.

        Raises:
            UnknownMethod: The peer's revision has no such notification.
            AdaptationError: Home has none; its service says what an engine does instead.
        """
        return self._notices_in.get(method) or self._made(
            IncomingNotificationCodec, method, self._other, self._notices_in
        )

    def notice_out(self, method: str) -> OutgoingNotificationCodec:
        """Return how notifications of *method* are written that we send.

        Raises:
            UnknownMethod: Home has no such notification.
            AdaptationError: The peer's revision has none; its service says what an engine does instead.
        """
        return self._notices_out.get(method) or self._made(
            OutgoingNotificationCodec, method, self.side, self._notices_out
        )

    def definition(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        """Return a valid JSON value of home's definition *name* as the peer's revision writes it.

        Raises:
            UnknownDefinition: Home has no such definition.
            AdaptationError: The peer's revision has nothing that corresponds to it, or cannot express this value.
        """
        losses = Losses()
        way = definition_route(self.native_revision, self.peer, name)
        adapted: dict[str, Any] = way.adapt_valid(value, losses)
        if len(losses):
            self._note(name, lambda: tuple(losses.found))
        return adapted

    def _made(self, kind: Callable[[PayloadCodec], T], method: str, sender: Sender, kept: dict[str, T]) -> T:
        # Methods that exist nowhere are the peer's to invent, without end: nothing is kept of them.
        known = self._refused.get((kind, method))
        if known is not None:
            raise _again(known)
        try:
            made = kind(
                PayloadCodec(
                    native_revision=self.native_revision, peer=self.peer, method=method, sender=sender, note=self._note
                )
            )
        except AdaptationError as error:
            self._refused[kind, method] = _again(error)
            raise
        return kept.setdefault(method, made)


def _again(error: AdaptationError) -> AdaptationError:
    """Return the same error anew: one that is raised twice would drag along the traceback of the first time."""
    return AdaptationError(
        step=error.step, pointer=error.pointer, reason=error.reason, service=error.service, losses=error.losses
    )


@cache
def codec(native_revision: str, peer: str, side: Sender = "server") -> Codec:
    """Return the codec between two revisions; made once, since many peers speak the same one.

    Raises:
        UnknownRevision: There are no bindings for one of them.
    """
    return Codec(native_revision, peer, side)
