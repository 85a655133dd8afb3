"""Read and write one part of one method's messages, between a peer's revision and the native one.

Theory of operation. What comes in is decoded with the types of the peer's revision, whether or not it is to be adapted:
that is the check, and the steps between revisions rely on it. Where peer and home are one, the result is the value
already. Otherwise the same bytes are decoded once more, as plain JSON, so that keys which no revision defines survive;
the steps are taken; and what comes out is decoded with the types of home. Decoding bytes is exact where converting
plain values would not be, and costs no more.

What goes out is plain JSON for the steps, and bytes in the end. An instance of one of home's types is ours, and is
believed, since type checkers have seen it. Anything else, be it a dict or a type of another revision, is checked as a
peer's would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.adapt.json_pointer import pointer_to
from mcpgen.runtime.adapt.payloads import MOST_CHARACTERS, bindings, message_payload
from mcpgen.runtime.adapt.routes import Losses, Sender, route
from mcpgen.runtime.errors import InvalidPayload
from mcpgen.runtime.protocol.messages import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcpgen.runtime.adapt.payloads import Payload
    from mcpgen.runtime.adapt.routes import Loss, Part

__all__ = ["PayloadCodec", "PayloadReader", "Note", "PayloadWriter", "Value"]

Value: TypeAlias = Any
"""A value of home's types: a Struct, a dict where the type is an open object, an arm of a union."""

Note: TypeAlias = "Callable[[str, Callable[[], tuple[Loss, ...]]], None]"
"""Told that something was lost, and of what: ``the params of tools/call``; calls the second, to learn what it was."""

_encode: Final = msgspec.json.Encoder().encode
_decode_json: Final = msgspec.json.Decoder().decode

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# What msgspec raises for a value that is no JSON; UnicodeEncodeError, for half a surrogate pair, is a ValueError.
_UNWRITABLE: Final = (TypeError, ValueError, OverflowError)
# What a step runs into if the value that it was given is not what its revision allows.
_TRIPPED: Final = (KeyError, TypeError, AttributeError, ValueError, IndexError)

_EMPTY: Final = Raw(b"{}")


class PayloadCodec(Struct, frozen=True, kw_only=True, eq=False):
    """One method between a home and a peer.

    Attributes:
        native_revision: The revision that handlers are written in.
        peer: The revision that the peer speaks.
        method: As both call it.
        sender: Who sends the request, or the notification.
        note: Told of losses.
    """

    native_revision: str
    peer: str
    method: str
    sender: Sender
    note: Note


class PayloadReader:
    """Reads one part of a method's messages, as a peer writes it.

    Args:
        crossing: Between whom.
        part: Which part; errors have no type of their own.

    Raises:
        UnknownMethod: The peer's revision has no such method.
        AdaptationError: Home has none.
    """

    __slots__ = ("_adapt", "_check", "_decode", "_home", "_is_required", "_is_same", "_note", "_payload")

    def __init__(self, crossing: PayloadCodec, part: Part) -> None:
        native_revision, peer, method, sender = (
            crossing.native_revision,
            crossing.peer,
            crossing.method,
            crossing.sender,
        )
        way = route(peer, native_revision, method, part, sender=sender)
        self._payload = way.payload
        self._home = message_payload(native_revision, method, part, sender)
        self._check = _decoder(self._payload.decoders)
        self._decode = _decoder(self._home.decoders)
        self._adapt = None if way.is_identity else way.adapt_valid
        self._is_same = peer == native_revision
        self._is_required = _requires(peer, method, part, sender)
        self._note = crossing.note

    def read(self, raw: Raw | UnsetType, meta: Mapping[str, object] | None = None) -> Value:
        """Return what *raw* holds, as home's type; params that are absent are read as empty ones.

        Args:
            raw: What the peer sent.
            meta: Keys to be put into ``_meta``, whatever the peer has there.

        Raises:
            InvalidPayload: The peer's revision does not allow it.
            AdaptationError: Home cannot express it.
        """
        if raw is UNSET:
            if self._is_required:
                raise self._payload.invalid("there are none")
            raw = _EMPTY
        try:
            checked = self._check(raw)
        except _UNREADABLE as error:
            raise _explained(self._payload, raw, error) from None
        if meta is None:
            if self._is_same:
                return checked
            if self._adapt is None:
                return self._settled(raw)
        return self._adapted(raw, meta)

    def _adapted(self, raw: Raw, meta: Mapping[str, object] | None) -> Value:
        try:
            value = _decode_json(raw)
        except _UNREADABLE as error:  # types skip what they do not know, however it is nested
            raise _explained(self._payload, raw, error) from None
        if self._adapt is not None:
            losses = Losses()
            value = self._adapt(value, losses)
            if len(losses):
                self._note(self._payload.what, lambda: _found(losses, meta))
        if meta is not None:
            value = {**value, "_meta": {**value.get("_meta", {}), **meta}}
        return self._settled(_written(self._home, value))

    def _settled(self, data: bytes | Raw) -> Value:
        try:
            return self._decode(data)
        except _UNREADABLE as error:
            raise _explained(self._home, data, error) from None


class PayloadWriter:
    """Writes one part of a method's messages, as a peer reads it.

    Args:
        crossing: Between whom.
        part: Which part.

    Raises:
        UnknownMethod: Home has no such method.
        AdaptationError: The peer's revision has none.
    """

    __slots__ = ("_adapt", "_check", "_is_required", "_is_required_by_peer", "_note", "_payload", "_trusted")

    def __init__(self, crossing: PayloadCodec, part: Part) -> None:
        native_revision, peer, method, sender = (
            crossing.native_revision,
            crossing.peer,
            crossing.method,
            crossing.sender,
        )
        way = route(native_revision, peer, method, part, sender=sender)
        self._payload = way.payload
        self._check = _decoder(way.payload.decoders)
        self._trusted: set[type] = {Error} if part == "error" else set()
        self._adapt = None if way.is_identity else way.adapt_valid
        self._is_required = _requires(native_revision, method, part, sender)
        self._is_required_by_peer = _requires(peer, method, part, sender)
        self._note = crossing.note

    def write(self, value: Value, meta: Mapping[str, object] | None = None) -> bytes:
        """Return *value* as JSON of the peer's revision.

        Args:
            value: In terms of home.
            meta: Keys to be put into ``_meta``, in terms of the peer's revision, whatever *value* has there; if
                nothing is in it then, it is left out.

        Raises:
            InvalidPayload: It is no JSON, or not what home allows; a mistake of ours.
            AdaptationError: The peer's revision cannot express it.
        """
        data = _written(self._payload, value)
        if type(value) not in self._trusted:
            self._judge(value, data)
        if self._adapt is None and meta is None:
            return data
        try:
            plain = _decode_json(data)
        except _UNREADABLE as error:  # of JSON that somebody else had written, for msgspec to copy
            raise _explained(self._payload, data, error) from None
        adapted = self._adapted(plain, meta)
        if meta is not None:
            whole = {**adapted.pop("_meta", {}), **meta}
            if whole:
                adapted["_meta"] = whole
        return _written(self._payload, adapted)

    def _adapted(self, plain: Any, meta: Mapping[str, object] | None) -> Any:
        if self._adapt is None:
            return plain
        losses = Losses()
        try:
            adapted = self._adapt(plain, losses)
        except _TRIPPED:
            self._payload.check(plain)
            raise
        if len(losses):
            self._note(self._payload.what, lambda: _found(losses, meta))
        return adapted

    def _judge(self, value: Value, data: bytes) -> None:
        try:
            checked = self._check(data)
        except _UNREADABLE as error:
            raise _explained(self._payload, data, error) from None
        if isinstance(value, Struct):
            if type(checked) is not type(value):
                raise self._payload.invalid(f"it is a {type(value).__module__}.{type(value).__qualname__}")
            self._trusted.add(type(value))

    def write_params(self, value: Value | UnsetType, meta: Mapping[str, object] | None = None) -> bytes | UnsetType:
        """Return params as `write` does; absent ones stay absent where the peer's revision lets them.

        Raises:
            InvalidPayload: They are absent though home requires them, or as in `write`.
            AdaptationError: The peer's revision cannot express them.
        """
        if value is not UNSET:
            return self.write(value, meta)
        if self._is_required:
            raise self._payload.invalid("there are none")
        data = self.write({}, meta)
        return UNSET if data == b"{}" and not self._is_required_by_peer else data


def _requires(label: str, method: str, part: Part, sender: Sender) -> bool:
    """Return whether a request or notification without params is invalid in the revision *label*."""
    if part not in ("params", "notification"):
        return False
    methods = bindings(label).methods
    if part == "notification":
        tables = [methods.CLIENT_NOTIFICATIONS if sender == "client" else methods.SERVER_NOTIFICATIONS]
    elif sender == "client":
        tables = [methods.CLIENT_REQUESTS]
    else:
        tables = [methods.SERVER_REQUESTS, methods.INPUT_REQUESTS]
    return any(table[method].params_required for table in tables if method in table)


def _found(losses: Losses, meta: Mapping[str, object] | None) -> tuple[Loss, ...]:
    # What was made up for want of something better, and replaced by something better, is no loss.
    replaced = {pointer_to(("_meta", key)) for key in meta or ()}
    return tuple(each for each in losses.found if each.severity != "defaulted" or each.pointer not in replaced)


def _written(payload: Payload, value: object) -> bytes:
    try:
        return _encode(value)
    except RecursionError:
        raise payload.too_deep() from None
    except _UNWRITABLE as error:
        raise payload.invalid(str(error)) from None


def _decoder(decoders: Sequence[Callable[[bytes], Any]]) -> Callable[[Any], Any]:
    """Return what decodes JSON as the first of several types that fits."""
    if len(decoders) == 1:
        return decoders[0]

    def decode(data: bytes) -> Any:
        failure: Exception | None = None
        for each in decoders:
            try:
                return each(data)
            except msgspec.ValidationError as error:
                failure = failure or error
        raise failure or msgspec.DecodeError("there is no type to decode it as")

    return decode


def _explained(payload: Payload, data: bytes | Raw, error: Exception) -> InvalidPayload:
    """Return what is wrong with *data*, at which decoding as *payload* failed with *error*; this may take its time."""
    if isinstance(error, RecursionError):
        return payload.too_deep()
    try:
        payload.check(_decode_json(data))
    except InvalidPayload as found:
        return found
    except RecursionError:
        return payload.too_deep()
    except (msgspec.DecodeError, UnicodeDecodeError) as found:
        error = found
    # No value could be made, so there is nothing to point into; and the message may quote as much as the peer sent.
    return payload.invalid(str(error).partition(" - at ")[0][:MOST_CHARACTERS])
