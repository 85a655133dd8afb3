"""The HTTP headers that MCP defines: their names, and the encoding of their values.

A value that HTTP could change or refuse is encoded as ``=?base64?…?=``. A value that no encoder writes is refused and
not repaired, because a gateway that routes by headers could repair it differently.

Spec: 2026-07-28, basic/transports/streamable-http#value-encoding and #case-sensitivity; RFC 9110, section 5.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "MAX_INTEGER",
    "METHOD",
    "NAME",
    "PARAM_PREFIX",
    "REVISION",
    "SESSION",
    "TOKEN",
    "check_plain",
    "decode_value",
    "encode_value",
    "headers_by_name",
    "is_plain",
    "stripped",
    "value_text",
]

# In lower case, as in HTTP/2 and ASGI; header names are case-insensitive.
REVISION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM_PREFIX: Final = "mcp-param-"
SESSION: Final = "mcp-session-id"

TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, section 5.6.2

# 2026-07-28, server/tools#x-mcp-header: doubles represent all integers up to here exactly.
MAX_INTEGER: Final = 2**53 - 1

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_WHITESPACE: Final = " \t"  # HTTP strips no other; str.strip() would
_ALLOWED: Final = re.compile(r"[\t\x20-\x7e]*")
# HTTP allows a tab inside of a value, but it is a control character, so we do not send one.
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_TOKEN_BYTES: Final = bytes(each for each in range(128) if TOKEN.fullmatch(chr(each)))
# Requests repeat the same names, and checking one takes ten times as long as the look-up.
_CHECKED_NAMES: Final[dict[bytes, str]] = {}
_MAX_CHECKED_NAMES: Final = 500
_MAX_CHECKED_NAME_BYTES: Final = 64
_REPEATED: Final = "\n"
_NO_BASE64: Final = "it is marked as base64, but is not base64 of UTF-8 text"


def value_text(value: object) -> str:
    """Return a JSON value as text, before it is encoded for a header.

    Raises:
        ValueError: It is not a string, a boolean or an integer between -(2**53 - 1) and 2**53 - 1.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # in JSON Schema, 42.0 is an integer
    if not isinstance(value, int):
        raise ValueError("a header can hold only a string, an integer or a boolean")  # noqa: TRY004 (of a peer)
    if abs(value) > MAX_INTEGER:
        raise ValueError("a header can hold only integers between -(2**53 - 1) and 2**53 - 1")
    return str(value)


def encode_value(value: str | int | bool) -> str:  # noqa: FBT001 (a value like the others)
    """Return a value encoded for a header.

    Raises:
        ValueError: It is an integer outside of the range of `value_text`, or text that UTF-8 cannot encode.
    """
    text = value_text(value)
    if is_plain(text):
        return text
    return f"{_PREFIX}{b64encode(text.encode()).decode()}{_SUFFIX}"


def decode_value(value: str) -> str:
    """Return the decoded value of a header as text, without surrounding whitespace.

    Raises:
        ValueError: It has characters that HTTP does not allow, or is marked as base64 but is not base64 of UTF-8 text.
            Base64 that no encoder writes (without padding, or with stray bits at its end) is refused, too.
    """
    text = stripped(value)
    if not _is_marked(text):
        return text
    inner = text[len(_PREFIX) : -len(_SUFFIX)]
    try:
        found = b64decode(inner, validate=True).decode()
    except ValueError as error:
        raise ValueError(_NO_BASE64) from error
    # In "=?base64?=", prefix and suffix share a question mark, so it is not an encoding.
    if len(text) < len(_PREFIX) + len(_SUFFIX) or b64encode(found.encode()).decode() != inner:
        raise ValueError(_NO_BASE64)
    return found


def stripped(value: str) -> str:
    """Return a header's value, not decoded, without surrounding whitespace.

    Raises:
        ValueError: It has characters that HTTP does not allow, or the header is repeated.
    """
    if _REPEATED in value:
        raise ValueError("the header is repeated, or has more than one line")
    if not _ALLOWED.fullmatch(value):
        raise ValueError("it has characters that HTTP does not allow in a header")
    return value.strip(_WHITESPACE)


def check_plain(value: str) -> str:
    """Return a value that a header has to hold unencoded.

    Raises:
        ValueError: It is empty, or has characters that HTTP does not allow.
    """
    if not value or not _PLAIN.fullmatch(value):
        raise ValueError("it is empty or has characters that HTTP does not allow in a header")
    return value


def is_plain(text: str) -> bool:
    """Whether a header can hold *text* unencoded."""
    return _PLAIN.fullmatch(text) is not None and not _is_marked(text)


def headers_by_name(lines: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of a message by lower-case name, from the pairs of ASGI and httpx.

    A repeated header of MCP is not a list (RFC 9110, section 5.3), and readers differ in whether the first or the last
    counts. So its value becomes one that `decode_value` and `stripped` refuse. Other headers are joined by a comma.
    Spaces and tabs around a value are not part of it (RFC 9110, section 5.5). Some parsers do not remove them.

    Raises:
        ValueError: A name has characters that HTTP does not allow, such as whitespace before the colon (RFC 9112,
            section 5.1, demands the status 400).
    """
    lines = list(lines)
    try:
        found = {_CHECKED_NAMES[raw]: value.decode("latin-1").strip(" \t") for raw, value in lines}
    except KeyError:  # a name that was not checked before
        found = {}
    if len(found) == len(lines):
        return found
    found.clear()
    for raw, value in lines:
        name, text = _name(raw), value.decode("latin-1").strip(" \t")
        before = found.get(name)
        if before is not None:
            text = before + (_REPEATED if name.startswith("mcp-") else ", ") + text
        found[name] = text
    return found


def _name(raw: bytes) -> str:
    if not raw or raw.translate(None, _TOKEN_BYTES):
        raise ValueError("a header name has characters that HTTP does not allow")
    name = raw.decode("ascii").lower()
    if len(_CHECKED_NAMES) < _MAX_CHECKED_NAMES and len(raw) <= _MAX_CHECKED_NAME_BYTES:
        _CHECKED_NAMES[raw] = name
    return name


def _is_marked(text: str) -> bool:
    return text.startswith(_PREFIX) and text.endswith(_SUFFIX)
