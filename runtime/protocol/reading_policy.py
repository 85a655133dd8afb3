"""How the messages of one peer are read: exactly first, and normalised if that fails.

Theory of operation. Everything is decoded exactly, with the types of the peer's revision. Only a message that fails is
looked at again: `ReadingPolicy` normalises what other SDKs read as well, and the caller decodes the outcome exactly. So
a valid message costs nothing, and handlers never see anything but valid values. The log names each kind of deviation
of a peer once. A strict reader normalises nothing but 5.0 for 5, which is valid.

A frame has rules of its own: null for an absent member, a text for the code of an error, and what is almost JSON (NaN
and half surrogate pairs). `mcpgen trace` and the tests' recorder do not use this module: for them all of it is invalid.

Docs: docs/adr/0027-reading-policy.md.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Raw

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.adapt.payloads import message_payload
from mcpgen.runtime.errors import InvalidPayload, UnknownMethod, UnknownRevision, printable
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.message_size import too_many_values
from mcpgen.runtime.protocol.messages import Batch, Fault, Malformed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcpgen.runtime.adapt.payloads import Part, Sender
    from mcpgen.runtime.protocol.codec import OutgoingRequestCodec
    from mcpgen.runtime.protocol.messages import Message, RequestId

__all__ = ["SUSPECT", "TEXT_ID", "MessageLimits", "ReadingPolicy", "is_meant_id", "meant_id", "meant_message"]

_LOG: Final = logging.getLogger("mcpgen.reading")

# A peer chooses the names of the tools that are left out, and a server has many peers.
_MAX_KINDS: Final = 200

TEXT_ID: Final = "the id is a text, which is read as a number, because the id of the request is a number"

SUSPECT: Final = (Batch, Malformed)
"""What `envelope.decode` returns if something may be malformed; a tuple, since `isinstance` is faster with it."""

_OPENING_BRACE: Final = ord("{")
_OPENING_BRACKET: Final = ord("[")
_NULL: Final = b"null"
_NULLABLE_MEMBERS: Final = ("method", "params", "result", "error")
_CODE: Final = re.compile(rb'"-?[0-9]{1,15}"', re.ASCII)
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,15})", re.ASCII)  # below 2**53
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
# A peer that cuts a text may halve a pair. To replace 500,000 of them takes 0.2 s.
_MAX_HALF_PAIRS: Final = 1000
# 2025-11-25, basic/index, "Result Responses"; basic/utilities/progress, "Progress Flow"; server/utilities/pagination,
# "Implementation Guidelines"; 2026-07-28, basic/patterns/mrtr, "InputRequiredResult".
_RETURNED: Final = (("id",), ("params", "_meta", "progressToken"), ("result", "nextCursor"), ("result", "requestState"))

_encode: Final = msgspec.json.Encoder().encode
_decode_any: Final = msgspec.json.Decoder(Raw).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)

# Params are read in one turn of the event loop. To normalise them takes about 3 µs for each value, beside the exact
# decoding before and after it. A client reads a result in several turns (`mcpgen.runtime.client.result_reader`).
_MAX_NORMALIZED_VALUES: Final = 20_000


# Faults of a message that goes beyond a limit: it is not looked at any further.
_LIMITS: Final = frozenset({Fault.TOO_LONG, Fault.TOO_DEEP, Fault.TOO_MANY_VALUES, Fault.LONG_BATCH})


class MessageLimits(Protocol):
    """The limits of one message: `Limits` of a server, or `ClientLimits`."""

    @property
    def max_batch_length(self) -> int:
        """The most messages in a batch."""
        ...

    @property
    def max_values(self) -> int:
        """The most values in a message."""
        ...


class ReadingPolicy:
    """How the messages of one peer, or of all clients of a server, are read.

    Args:
        peer: The peer, as the log names it.
        is_strict: Whether nothing is normalised that the schema does not allow.

    Attributes:
        is_strict: The same.
    """

    def __init__(self, peer: str, *, is_strict: bool = False) -> None:
        self.is_strict: bool = is_strict
        self._peer = peer
        self._reported: set[tuple[str, ...]] = set()

    def note(self, what: str, kind: str, *, peer: str = "", where: str = "") -> None:
        """Log a deviation that is read, if it is the first of its kind.

        Args:
            what: The payload or the message.
            kind: The deviation, and how it is read.
            peer: The peer, if the policy is that of several.
            where: The places in this message.
        """
        key = peer, what, kind
        if key not in self._reported and len(self._reported) < _MAX_KINDS:
            self._reported.add(key)
            _LOG.warning("%s of %s is not valid, but is accepted: %s%s", what, peer or self._peer, kind, where)

    def payload(  # noqa: PLR0913 (the place of a payload has five parts)
        self, revision: str | None, method: str, part: Part, sender: Sender, raw: object, *, peer: str = ""
    ) -> Raw | None:
        """Return the payload *raw*, which could not be decoded, as *revision* allows it; None if no rule helps.

        Args:
            revision: The revision of the peer; None before it is known.
            method: The method; the revision may lack it.
            part: The part of the message.
            sender: The side that sends the request or the notification.
            raw: The payload; UNSET if it is absent. Params of more than 20,000 values are not normalised.
            peer: The peer, if the policy is that of several.
        """
        if revision is None or not isinstance(raw, Raw):
            return None
        if part != "result" and too_many_values(bytes(raw), _MAX_NORMALIZED_VALUES):
            return None
        from mcpgen.runtime.protocol.normalization import Rule, normalize  # noqa: PLC0415 (few peers deviate)

        try:
            payload = message_payload(revision, method, part, sender)
        except (UnknownMethod, UnknownRevision):
            return None
        found = normalize(payload, raw)
        deviations = () if found is None else [each for each in found.changes if each.rule is not Rule.INTEGRAL]
        if found is None or (self.is_strict and deviations):
            return None
        for each in deviations:
            more = f" and {each.total - len(each.pointers)} more" if each.total > len(each.pointers) else ""
            kind = f"{each.rule.value} ({each.detail})" if each.detail else each.rule.value
            where = f", at {', '.join(map(printable, each.pointers))}{more} ({revision})"
            self.note(payload.what, kind, peer=peer, where=where)
        return found.raw

    def result(self, ask: OutgoingRequestCodec, sender: Sender, raw: Raw) -> Any:
        """Return the result of a request that *sender* has sent, in the native revision.

        Raises:
            InvalidPayload: The revision of the peer does not allow it, and no rule helps.
        """
        try:
            return ask.result(raw)
        except InvalidPayload:
            normalized = self.payload(ask.peer, ask.method, "result", sender, raw)
            if normalized is None:
                raise
            return ask.result(normalized)

    def reread(self, frame: bytes, found: Batch | Malformed, limits: MessageLimits) -> Message | Batch | Malformed:
        """Return what *frame* is meant to be; *found* itself if nothing is wrong, or no rule helps.

        Args:
            frame: The frame.
            found: What was found in it.
            limits: The limits of the message.
        """
        if self.is_strict:
            return found
        meant, kinds = meant_message(frame, found, limits)
        for each in kinds:
            self.note("a message", each)
        return meant


def meant_message(
    frame: bytes, found: Batch | Malformed, limits: MessageLimits | None = None
) -> tuple[Message | Batch | Malformed, list[str]]:
    """Return what *frame* is meant to be, and the deviations; the arguments are those of `ReadingPolicy.reread`."""
    is_malformed = isinstance(found, Malformed)
    faults = (
        [found.fault]
        if isinstance(found, Malformed)
        else [each.fault for each in found.items if isinstance(each, Malformed)]
    )
    if faults and not (is_malformed and faults[0] in _LIMITS):
        normalized = _normalize_frame(frame)
        if normalized is not None:
            bounds: dict[str, Any] = {}
            if limits is not None:
                bounds = {"max_batch_length": limits.max_batch_length, "max_values": limits.max_values}
            meant = envelope.decode(normalized[0], **bounds)
            if not isinstance(meant, Malformed):
                return meant, normalized[1]
    return found, []


def _normalize_frame(frame: bytes) -> tuple[bytes, list[str]] | None:
    """Return *frame* without the deviations of JSON-RPC that are read, and a text for each; None if it has none."""
    kinds: list[str] = []
    try:
        try:
            value = _decode_any(frame)
        except _UNREADABLE:
            value = Raw(_as_json(frame, kinds))
        if memoryview(value)[0] == _OPENING_BRACKET:
            data = _encode([Raw(_normalize_members(each, kinds)) for each in _decode_items(value)])
        else:
            data = _normalize_members(value, kinds)
    except (*_UNREADABLE, ValueError):
        return None
    return (data, list(dict.fromkeys(kinds))) if kinds else None


def _as_json(frame: bytes, kinds: list[str]) -> bytes:
    """Return *frame* as JSON, if only NaN, infinities or half surrogate pairs keep it from being that.

    NaN becomes null, as JavaScript writes it, and half a pair becomes U+FFFD, as decoders of UTF-8 write it.

    Raises:
        ValueError: It is not JSON in another way.
    """

    def constant(_: str) -> None:
        kinds.append("NaN or an infinity is read as null")

    import json  # noqa: PLC0415 (it takes a millisecond, and few messages get here)

    value = json.loads(frame.decode(), parse_constant=constant)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    whole, count = _HALF_PAIR.subn(_REPLACEMENT, text, _MAX_HALF_PAIRS + 1)
    if count > _MAX_HALF_PAIRS:
        raise ValueError
    if count:
        messages = value if is_array(value) else [value]
        if any(_HALF_PAIR.search(each) for message in messages for each in _returned(message)):
            raise ValueError  # the peer would not recognize what it gets back
        kinds.append("half of a surrogate pair is read as U+FFFD")
    return whole.encode()


def _returned(message: Any) -> Iterator[str]:
    """Yield the texts that the receiver of *message* has to return exactly."""
    for path in _RETURNED:
        found = message
        for key in path:
            found = found.get(key) if is_object(found) else None
        if isinstance(found, str):
            yield found


def _normalize_members(message: Raw, kinds: list[str]) -> bytes:
    if memoryview(message)[0] != _OPENING_BRACE:
        return bytes(message)
    members: dict[str, Any] = _decode_members(message)
    changed = [each for each in _NULLABLE_MEMBERS if _is_null(members, each)]
    if "result" in changed and "error" not in members:
        changed.remove("result")  # or nothing would be left of the response
    for each in changed:
        del members[each]
        kinds.append(f"`{each}` is null, which is read as absent")
    error = members.get("error")
    if error is not None and memoryview(error)[0] == _OPENING_BRACE:
        parts: dict[str, Any] = _decode_members(error)
        code = bytes(parts.get("code", b""))
        if _CODE.fullmatch(code):
            members["error"] = {**parts, "code": int(code[1:-1])}
            kinds.append("the code of an error is a text, which is read as a number")
    return _encode(members)


def _is_null(members: Mapping[str, Any], name: str) -> bool:
    return name in members and bytes(members[name]) == _NULL


def is_meant_id(response_id: RequestId | None, request_id: RequestId | None) -> bool:
    """Return whether a response with *response_id* is meant for the request *request_id*."""
    return response_id == request_id or (request_id is not None and meant_id(response_id) == request_id)


def meant_id(response_id: RequestId | None) -> RequestId | None:
    """Return the integer id that a response with a text for an id may be meant for; None if there is none."""
    if isinstance(response_id, str) and _INTEGER.fullmatch(response_id):
        return int(response_id)
    return None
