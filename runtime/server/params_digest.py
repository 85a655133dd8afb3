"""The digest of a request's params, which tells whether a retry has the params of the first request."""

from __future__ import annotations

import hashlib
import json
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

__all__ = ["params_digest"]

# A retry has its own values of these. All else must equal the first request.
_OF_THE_RETRY: Final = frozenset({"_meta", "inputResponses", "requestState"})


def params_digest(params: Raw | bytes) -> bytes:
    """Return a digest of the JSON of *params*, without ``_meta``, ``inputResponses`` and ``requestState``.

    Key order, white space and escapes in strings make no difference: a client may encode its retry again. Everything
    else does. Numbers count as they are written (1 is not 1.0, and 1e2 is not 100.0), since a handler can distinguish
    some of these. A repeated key stays repeated, since decoders differ in which one they keep.

    Raises:
        RequestError: The params are not a JSON object, or nest too deeply.
    """
    try:
        members = _decode_exactly(bytes(params).decode("utf-8"))
        if not isinstance(members, _Members):
            raise RequestError(ErrorCode.INVALID_PARAMS, "The params are not an object")
        compared = _Members(member for member in members if member[0] not in _OF_THE_RETRY)
        pieces: list[str] = []
        _write(compared, pieces.append)
        return hashlib.sha256("".join(pieces).encode("ascii")).digest()
    except (ValueError, RecursionError):
        raise RequestError(ErrorCode.INVALID_PARAMS, "The params are not JSON, or are nested too deeply") from None


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Members(tuple[tuple[str, "_Json"], ...]):
    """An object: all its keys with their values, repeated ones included."""

    __slots__ = ()


_Json: TypeAlias = "_Number | _Members | list[_Json] | str | bool | None"


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError  # NaN and Infinity, which are not JSON


# Not msgspec, which keeps one of two equal keys and not the text of a number. This is off the hot path: only requests
# that are answered with an InputRequiredResult have a digest.
_decode_exactly: Final = json.JSONDecoder(
    parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant, object_pairs_hook=_Members
).decode


# What `json.dumps` calls for a text, which takes five times as long: a message may have 20,000 texts.
_written: Final = json.encoder.encode_basestring_ascii


def _write(value: _Json, write: Callable[[str], object]) -> None:
    """Pass the canonical JSON of *value* to *write* in ASCII: in pieces, as each level would copy a text inside it."""
    if isinstance(value, _Number):
        write(value)
    elif isinstance(value, _Members):  # sorted by key alone: equal keys keep their order
        before = "{"
        for key, each in sorted(value, key=itemgetter(0)):
            write(f"{before}{_written(key)}:")
            _write(each, write)
            before = ","
        write("}" if value else "{}")
    elif isinstance(value, list):
        before = "["
        for each in value:
            write(before)
            _write(each, write)
            before = ","
        write("]" if value else "[]")
    else:
        write(_written(value) if isinstance(value, str) else json.dumps(value))
