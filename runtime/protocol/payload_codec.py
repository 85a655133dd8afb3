"""Read and write one part of one method's messages, between a peer's revision and the native one.

Theory of operation. An incoming payload is always decoded with the types of the peer's revision; that checks it, and
the steps between revisions rely on the check. If both revisions are the same, the decoded value is the result.
Otherwise the same bytes are decoded again as plain JSON, so that keys which no revision defines survive; then the steps
run, and their result is encoded and decoded with the native types. Decoding bytes is more exact than converting plain
values, and costs no more.

An outgoing payload is encoded, decoded to plain JSON for the steps, and encoded again. Its JSON is checked like a
peer's: a Struct does not check its fields when it is made. The decoder of a union is slow, so it checks the first
instance of each type only, and later ones are decoded as what they are. Then what types do not express is checked
(`mcpgen.runtime.protocol.sent_values`).
"""

from __future__ import annotations

import typing
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated import registry
from mcpgen.generated._support.structs import Open
from mcpgen.runtime.adapt.json_pointer import pointer_to
from mcpgen.runtime.adapt.payloads import MAX_REASON_CHARS, decoder_of, message_payload, needs_params
from mcpgen.runtime.adapt.routes import Losses, Sender, route
from mcpgen.runtime.errors import InvalidPayload
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.sent_values import sent_value_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from mcpgen.runtime.adapt.payloads import Payload
    from mcpgen.runtime.adapt.routes import Loss, Part

__all__ = [
    "UNREADABLE",
    "LossCallback",
    "MethodTranslation",
    "PayloadReader",
    "PayloadWriter",
    "Validator",
    "Value",
    "encoded",
    "explained",
]

Value: TypeAlias = Any
"""A value in the types of the native revision: a Struct, or a dict for an object with any keys, such as `_meta`."""

LossCallback: TypeAlias = "Callable[[str, Callable[[], tuple[Loss, ...]]], None]"
"""Called with a place, such as ``the params of tools/call``. The second argument returns the losses."""

_encode: Final = msgspec.json.Encoder().encode
_decode_json: Final = msgspec.json.Decoder().decode

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# The errors of msgspec for a value that is not JSON; UnicodeEncodeError, for half a surrogate pair, is a ValueError.
_UNWRITABLE: Final = (TypeError, ValueError, OverflowError)
# The errors that a step may raise for a value that its revision does not allow.
_STEP_FAILURES: Final = (KeyError, TypeError, AttributeError, ValueError, IndexError)

_EMPTY: Final = Raw(b"{}")


class MethodTranslation(Struct, frozen=True, kw_only=True, eq=False):
    """One method, to be translated between the native revision and a peer's.

    Attributes:
        native_revision: The revision that handlers are written against.
        peer: The revision that the peer speaks.
        method: The method; both revisions use the same name.
        sender: The side that sends the request or the notification.
        on_losses: Called with losses.
    """

    native_revision: str
    peer: str
    method: str
    sender: Sender
    on_losses: LossCallback


class PayloadReader:
    """Decodes one part of a method's messages from a peer.

    Args:
        translation: The method and the two revisions.
        part: The part; not ``error``.

    Raises:
        UnknownMethod: The peer's revision has no such method.
        AdaptationError: The native revision has none.
    """

    __slots__ = ("_adapt", "_check", "_decode", "_is_required", "_is_same", "_native", "_on_losses", "_payload")

    def __init__(self, translation: MethodTranslation, part: Part) -> None:
        native_revision, peer = translation.native_revision, translation.peer
        method, sender = translation.method, translation.sender
        to_native = route(peer, native_revision, method, part, sender=sender)
        self._payload = to_native.payload
        self._native = message_payload(native_revision, method, part, sender)
        self._check = _decoder(self._payload.decoders)
        self._decode = _decoder(self._native.decoders)
        self._adapt = None if to_native.is_identity else to_native.adapt_valid
        self._is_same = peer == native_revision
        self._is_required = needs_params(peer, method, part, sender)
        self._on_losses = translation.on_losses

    def read(self, raw: Raw | UnsetType, meta: Mapping[str, object] | None = None) -> Value:
        """Return *raw* in the native type; absent params are read as empty ones.

        Args:
            raw: The peer's JSON.
            meta: Keys to add to ``_meta``; they replace those of the peer.

        Raises:
            InvalidPayload: The peer's revision does not allow it.
            AdaptationError: The native revision cannot express it.
        """
        if raw is UNSET:
            if self._is_required:
                raise self._payload.invalid("they are missing")
            raw = _EMPTY
        try:
            checked = self._check(raw)
        except UNREADABLE as error:
            raise explained(self._payload, raw, error) from None
        if meta is None:
            if self._is_same:
                return checked
            if self._adapt is None:
                return self._decode_native(raw)
        return self._adapted(raw, meta)

    def _adapted(self, raw: Raw, meta: Mapping[str, object] | None) -> Value:
        try:
            value = _decode_json(raw)
        except UNREADABLE as error:  # the types skip unknown keys, whose values may be nested too deeply
            raise explained(self._payload, raw, error) from None
        if self._adapt is not None:
            losses = Losses()
            value = self._adapt(value, losses)
            if len(losses):
                self._on_losses(self._payload.what, lambda: _real_losses(losses, meta))
        if meta is not None:
            value = {**value, "_meta": {**value.get("_meta", {}), **meta}}
        return self._decode_native(encoded(self._native, value))

    def _decode_native(self, data: bytes | Raw) -> Value:
        try:
            return self._decode(data)
        except UNREADABLE as error:
            raise explained(self._native, data, error) from None


class PayloadWriter:
    """Encodes one part of a method's messages for a peer.

    Args:
        translation: The method and the two revisions.
        part: The part.

    Raises:
        UnknownMethod: The native revision has no such method.
        AdaptationError: The peer's revision has none.
    """

    __slots__ = ("_adapt", "_encode", "_is_required", "_is_required_by_peer", "_on_losses", "_payload")

    def __init__(self, translation: MethodTranslation, part: Part) -> None:
        native_revision, peer = translation.native_revision, translation.peer
        method, sender = translation.method, translation.sender
        to_peer = route(native_revision, peer, method, part, sender=sender)
        self._payload = to_peer.payload
        self._encode = Validator(to_peer.payload, decoder_of(native_revision)).encode
        self._adapt = None if to_peer.is_identity else to_peer.adapt_valid
        self._is_required = needs_params(native_revision, method, part, sender)
        self._is_required_by_peer = needs_params(peer, method, part, sender)
        self._on_losses = translation.on_losses

    def write(self, value: Value, meta: Mapping[str, object] | None = None) -> bytes:
        """Return *value* as JSON of the peer's revision.

        Args:
            value: In the native revision.
            meta: Keys of the peer's revision to add to ``_meta``; they replace those of *value*. An empty ``_meta`` is
                omitted.

        Raises:
            InvalidPayload: It is not JSON, or the native revision does not allow it; our caller is wrong.
            AdaptationError: The peer's revision cannot express it.
        """
        data = self._encode(value)
        if self._adapt is None and meta is None:
            return data
        try:
            plain = _decode_json(data)
        except UNREADABLE as error:  # a `Raw` inside of the value, which msgspec copied unchecked
            raise explained(self._payload, data, error) from None
        adapted = self._adapted(plain, meta)
        if meta is not None:
            whole = {**adapted.pop("_meta", {}), **meta}
            if whole:
                adapted["_meta"] = whole
        return encoded(self._payload, adapted)

    def _adapted(self, plain: Any, meta: Mapping[str, object] | None) -> Any:
        if self._adapt is None:
            return plain
        losses = Losses()
        try:
            adapted = self._adapt(plain, losses)
        except _STEP_FAILURES:
            self._payload.check(plain)
            raise
        if len(losses):
            self._on_losses(self._payload.what, lambda: _real_losses(losses, meta))
        return adapted

    def write_params(self, value: Value | UnsetType, meta: Mapping[str, object] | None = None) -> bytes | UnsetType:
        """Return params as `write` does; absent ones stay absent if the peer's revision allows it.

        Raises:
            InvalidPayload: They are absent but the native revision requires them, or as in `write`.
            AdaptationError: The peer's revision cannot express them.
        """
        if value is not UNSET:
            return self.write(value, meta)
        if self._is_required:
            raise self._payload.invalid("they are missing")
        data = self.write({}, meta)
        return UNSET if data == b"{}" and not self._is_required_by_peer else data


def _real_losses(losses: Losses, meta: Mapping[str, object] | None) -> tuple[Loss, ...]:
    # A default that *meta* replaced by a real value is no loss.
    replaced = {pointer_to(("_meta", key)) for key in meta or ()}
    return tuple(each for each in losses.found if each.severity != "defaulted" or each.pointer not in replaced)


def encoded(payload: Payload, value: object) -> bytes:
    """Return *value* as JSON.

    Raises:
        InvalidPayload: It is not JSON.
    """
    try:
        return _encode(value)
    except RecursionError:
        raise payload.too_deep() from None
    except _UNWRITABLE as error:
        raise payload.invalid(str(error), pointer_to(_unwritable_path(value))) from None


def _unwritable_path(value: object) -> tuple[str | int, ...]:
    """Return the path to the first value in *value* that cannot be written as JSON; it looks into dicts and lists."""
    members: Iterable[tuple[Any, object]] = ()
    if isinstance(value, dict):
        members = cast("dict[Any, object]", value).items()
    elif isinstance(value, list | tuple):
        members = enumerate(cast("Sequence[object]", value))
    for key, each in members:
        try:
            _encode(each)
        except _UNWRITABLE:
            return (key if isinstance(key, int) else str(key), *_unwritable_path(each))
    return ()


class Validator:
    """Checks values and their JSON before they are sent.

    Args:
        payload: The allowed types.
        decoder: Returns the decoder of a type of the same revision.
    """

    __slots__ = ("_decode", "_decoder", "_decoders", "_payload")

    def __init__(self, payload: Payload, decoder: Callable[[Any], Callable[[bytes], Any]]) -> None:
        self._payload = payload
        self._decode = _decoder(payload.decoders)
        self._decoder = decoder
        self._decoders: dict[type, Callable[[bytes], Any]] = {}

    def encode(self, value: object) -> bytes:
        """Return *value* as JSON.

        Raises:
            InvalidPayload: It is not JSON, or not allowed.
        """
        try:
            data = _encode(value)
        except (*_UNWRITABLE, RecursionError):
            data = encoded(self._payload, value)
        kind = type(value)
        own = self._decoders.get(kind)
        try:
            checked = self._first(value, data) if own is None else own(data)
        except UNREADABLE as error:
            if own is None and _is_of_another_revision(kind, self._payload.revision):
                raise self._wrong_type(kind) from None
            tried = self._payload
            if own is not None:
                tried = msgspec.structs.replace(tried, types=(kind,), decoders=(own,))
            raise explained(tried, data, error) from None
        # Most results have none of the keys that `sent_value_fault` checks: _meta, uri, url, mimeType, messages.
        find = data.find  # three times as fast as `in`
        if find(b'"m') >= 0 or find(b'"ur') >= 0 or find(b'"_m') >= 0:
            fault = sent_value_fault(checked)
            if fault is not None:
                raise self._payload.invalid(fault[1], pointer_to(fault[0]))
        if getattr(checked, "result_type", "complete") != "complete" and _may_be_any_text(cast("Any", type(checked))):
            # Types of extensions, and `InputRequiredResult`, allow one value only, and so were checked above.
            reason = f"the value must be `complete` in every {type(cast('object', checked)).__name__}"
            raise self._payload.invalid(reason, "/resultType")
        return data

    def _first(self, value: Value, data: bytes) -> Value:
        """Return the first *value* of its type, decoded, and keep the decoder if the type is allowed."""
        checked = self._decode(data)
        kind = cast("Any", type(cast("object", value)))
        if isinstance(value, Struct) and kind is not Error:  # the bindings have their own `Error`
            # The JSON of a view of an open object is decoded as a dict.
            is_view = issubclass(kind, Open) and kind in self._payload.types
            known = kind if is_view else cast("Any", type(cast("object", checked)))
            # A subclass that adds no members, such as the `ToolResult` of a client, has the same JSON.
            if not issubclass(kind, known) or kind.__struct_fields__ != known.__struct_fields__:
                raise self._wrong_type(kind)
            self._decoders[kind] = self._decoder(known)
        return checked

    def _wrong_type(self, kind: type) -> InvalidPayload:
        shown = f"{kind.__module__}.{kind.__qualname__}"
        return self._payload.invalid(f"the value has the type {shown}; use a type of {self._payload.revision}")


def _is_of_another_revision(kind: type, label: str) -> bool:
    """Whether the bindings of a released revision other than *label* define *kind*."""
    others = {f"{registry.__package__}.{each.package}.models" for each in registry.REVISIONS if each.label != label}
    return kind.__module__ in others


@cache
def _may_be_any_text(kind: Hashable) -> bool:
    """Whether the `result_type` of a Struct is not limited to the values of one kind of result.

    Spec:
        2026-07-28, basic/index, "ResultType": only values of the core protocol and of extensions.
    """
    return bool(typing.get_type_hints(cast("type", kind), localns={})["result_type"] is str)


def _decoder(decoders: Sequence[Callable[[bytes], Any]]) -> Callable[[Any], Any]:
    """Return a decoder that tries the decoders of several types in order."""
    if len(decoders) == 1:
        return decoders[0]

    def decode(data: bytes) -> Any:
        # The message alone: the exception would keep this frame, and so the data, in a cycle until the next collection.
        reason = ""
        for each in decoders:
            try:
                return each(data)
            except msgspec.ValidationError as error:
                reason = reason or str(error)
        raise msgspec.ValidationError(reason or "there is no type to decode it as")

    return decode


def explained(payload: Payload, data: bytes | Raw, error: Exception) -> InvalidPayload:
    """Return the reason why decoding *data* as *payload* failed with *error*, with the place; it may be slow."""
    if isinstance(error, RecursionError):
        return payload.too_deep()
    try:
        payload.check(_decode_json(data))
    except InvalidPayload as found:
        return found
    except RecursionError:
        return payload.too_deep()
    except (msgspec.DecodeError, UnicodeDecodeError) as found:
        reason = str(found)
    else:
        reason = str(error)
    # It is not JSON, so there is no pointer; and the message may quote as much as the peer sent.
    return payload.invalid(reason.partition(" - at ")[0][:MAX_REASON_CHARS])
