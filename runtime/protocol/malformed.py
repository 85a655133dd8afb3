"""Read the members of a JSON-RPC object one by one, after the usual decoder has refused it.

Spec:
    2025-11-25, basic/index, "Error Responses": they "MUST include the same ID as the request they correspond to (except
    in error cases where the ID could not be read due a malformed request)".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.protocol.messages import Fault, Kind, Malformed, RequestId

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["has_half_pair", "id_in", "integer", "kind_and_id", "same_id", "text_in", "malformed_message"]

# A larger float is not an exact integer (RFC 8259, section 6), so an id such as 1e300 is ambiguous.
_MAX_EXACT_FLOAT: Final = 2**53 - 1

# A first half of a surrogate pair without room for a second one: msgspec says that the frame is truncated.
_HALF_AT_END: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}.{0,5}\Z", re.DOTALL)
_PAIR_BYTES: Final = 12

_TO_FIRST_BRACKET: Final = re.compile(rb"\s*+\{[^{\[]*+")

_decode_id: Final = msgspec.json.Decoder(str | int | float | None).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def kind_and_id(members: Mapping[str, Raw]) -> tuple[Kind, RequestId | None]:
    """Return the kind of message that *members* were meant to be, and the id if it is valid."""
    request_id = id_in(members)
    known = request_id if isinstance(request_id, str | int) else None
    if "method" not in members and ("result" in members or "error" in members):
        return "response", known
    if request_id is not UNSET:
        return "request", known
    # JSON-RPC answers even {"method": 1, "params": "bar"}; only a certain notification gets no answer.
    return ("notification" if isinstance(text_in(members, "method"), str) else "unknown"), None


def id_in(members: Mapping[str, Raw]) -> RequestId | Fault | UnsetType | None:
    """Return the id among *members*, or what is wrong with it; null is None, UNSET is absent."""
    raw = members.get("id")
    if raw is None:
        return UNSET
    try:
        value = _decode_id(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Fault.WRONG_ID
    if value is None or isinstance(value, str):
        return value
    number = integer(value)
    return Fault.WRONG_ID if number is None else number


def text_in(members: Mapping[str, Raw], name: str) -> str | UnsetType | None:
    """Return the member *name* if it is a string; None if it is not, UNSET if it is absent."""
    raw = members.get(name)
    if raw is None:
        return UNSET
    try:
        return _decode_text(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def integer(number: float) -> int | None:
    """Return *number* as an integer; None if it is not one."""
    if isinstance(number, int):
        return number
    return int(number) if number.is_integer() and abs(number) <= _MAX_EXACT_FLOAT else None


def same_id(value: str | float | UnsetType) -> RequestId | UnsetType:
    """Return the id or token that *value* names, since 1.0 is the integer 1; UNSET if it names none.

    Spec:
        2026-07-28, schema, RequestId and ProgressToken: "string | integer"; in JSON Schema, 1.0 is an integer.
    """
    if isinstance(value, str | UnsetType):
        return value
    number = integer(value)
    return UNSET if number is None else number


def has_half_pair(frame: bytes, error: msgspec.DecodeError) -> bool:
    """Return whether *error*, which msgspec raised for *frame*, is about half of a surrogate pair in a string.

    Spec:
        RFC 8259, section 8.2: JSON allows such a string, but implementations need not read it.
    """
    reason = str(error)
    # The reasons of msgspec where it decodes a string, where it skips one, and where the frame ends behind the half.
    if "surrogate pair" in reason or "end of hex escape" in reason:
        return True
    return "truncated" in reason and bool(_HALF_AT_END.search(frame[-_PAIR_BYTES:]))


def malformed_message(fault: Fault, head: bytes, tail: bytes) -> Malformed:
    """Return an unreadable frame with the kind and id that its two ends show."""
    members = _members_at_ends(head, tail)
    kind, known = kind_and_id(members)
    # Keep the id only if it certainly is a request's: a response has the id of our request, and the peer may have
    # another request with the same id.
    if kind == "response" or (kind == "request" and not members.keys().isdisjoint(("method", "params"))):
        return Malformed(fault, known, kind)
    return Malformed(fault)


def _members_at_ends(head: bytes, tail: bytes) -> dict[str, Raw]:
    """Return the members before the first and after the last bracket inside of an object, if they are JSON.

    The member between them, most often params or result, is null.
    """
    first = _TO_FIRST_BRACKET.match(head)
    if first is None:
        return {}
    inner = tail.rstrip()[:-1]
    behind = tail[max(inner.rfind(b"}"), inner.rfind(b"]")) + 1 :]
    for members in (first[0] + b"null" + behind, first[0] + b"null}"):
        try:
            return _decode_members(members)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return {}
