"""Headers of HTTP that MCP defines: their names, and how a value is written in one and read again.

A value that HTTP could change, refuse or mistake for something else is carried as ``=?base64?…?=``. What cannot have
been written so is refused and not repaired: whoever routes a request by its headers may repair it differently.

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

# In lower case, as HTTP/2 and ASGI have them; names of headers are compared without regard to case.
REVISION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM_PREFIX: Final = "mcp-param-"
SESSION: Final = "mcp-session-id"

TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, section 5.6.2

# 2026-07-28, server/tools#x-mcp-header: up to here each integer is a double of its own.
MAX_INTEGER: Final = 2**53 - 1

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_WHITESPACE: Final = " \t"  # no other: str.strip() would take more than HTTP does
_ALLOWED: Final = re.compile(r"[\t\x20-\x7e]*")
# A tab may stand within a value, but it is a control character, so we do not send one.
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_TOKEN_BYTES: Final = bytes(each for each in range(128) if TOKEN.fullmatch(chr(each)))
# Most requests have the same names; to look at one again takes ten times as long as to remember it.
_KNOWN: Final[dict[bytes, str]] = {}
_MOST_KNOWN: Final = 500
_LONGEST_KNOWN: Final = 64
_REPEATED: Final = "\n"
_NO_BASE64: Final = "it is marked as base64, but is not the base64 of any text"


def value_text(value: object) -> str:
    """Return a value of JSON as text, before it is made fit for a header.

    Raises:
        ValueError: It is not a string, a boolean or an integer between -(2**53 - 1) and 2**53 - 1.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # to JSON Schema, 42.0 is an integer
    if not isinstance(value, int):
        raise ValueError("only a string, an integer or a boolean can be in a header")  # noqa: TRY004 (of a peer)
    if abs(value) > MAX_INTEGER:
        raise ValueError("an integer in a header is between -(2**53 - 1) and 2**53 - 1")
    return str(value)


def encode_value(value: str | int | bool) -> str:  # noqa: FBT001 (a value like the others)
    """Return a value as a header carries it.

    Raises:
        ValueError: It is an integer beyond what every reader knows exactly, or text that UTF-8 cannot write.
    """
    text = value_text(value)
    if is_plain(text):
        return text
    return f"{_PREFIX}{b64encode(text.encode()).decode()}{_SUFFIX}"


def decode_value(value: str) -> str:
    """Return what a header carries, as text; whitespace around it is not part of it.

    Raises:
        ValueError: It has characters that no header may have, or is marked as base64 and is none, or not of UTF-8.
            What no encoder writes (base64 without its padding, or with stray bits at its end) counts as none.
    """
    text = stripped(value)
    if not _is_marked(text):
        return text
    inner = text[len(_PREFIX) : -len(_SUFFIX)]
    try:
        found = b64decode(inner, validate=True).decode()
    except ValueError as error:
        raise ValueError(_NO_BASE64) from error
    # The shortest of the marked, "=?base64?=", has one question mark for both of its marks: it is no encoding.
    if len(text) < len(_PREFIX) + len(_SUFFIX) or b64encode(found.encode()).decode() != inner:
        raise ValueError(_NO_BASE64)
    return found


def stripped(value: str) -> str:
    """Return a header's value as it stands, but without the whitespace around it.

    Raises:
        ValueError: It has characters that no header may have, or the header was given more than once.
    """
    if _REPEATED in value:
        raise ValueError("the header is given more than once, or on more than one line")
    if not _ALLOWED.fullmatch(value):
        raise ValueError("it has characters that no header may have")
    return value.strip(_WHITESPACE)


def check_plain(value: str) -> str:
    """Return a value that a header has to carry as it is.

    Raises:
        ValueError: A header cannot.
    """
    if not value or not _PLAIN.fullmatch(value):
        raise ValueError("it has characters that no header may have")
    return value


def is_plain(text: str) -> bool:
    """Whether a header carries *text* as it is."""
    return _PLAIN.fullmatch(text) is not None and not _is_marked(text)


def headers_by_name(lines: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of a message by name, in lower case, from its lines as ASGI and httpx have them.

    A header of MCP that is there twice is not a list (RFC 9110, section 5.3): one reader would take the first, another
    the last. Here it becomes a value that `decode_value` and `stripped` refuse. Others are joined by a comma.

    Raises:
        ValueError: A name has characters that no name may have, such as whitespace before the colon (RFC 9112, section
            5.1, demands the status 400).
    """
    lines = list(lines)
    try:
        found = {_KNOWN[raw]: value.decode("latin-1") for raw, value in lines}
    except KeyError:  # a name that was not seen before
        found = {}
    if len(found) == len(lines):
        return found
    found.clear()
    for raw, value in lines:
        name, text = _name(raw), value.decode("latin-1")
        before = found.get(name)
        if before is not None:
            text = before + (_REPEATED if name.startswith("mcp-") else ", ") + text
        found[name] = text
    return found


def _name(raw: bytes) -> str:
    if not raw or raw.translate(None, _TOKEN_BYTES):
        raise ValueError("the name of a header has characters that no name may have")
    name = raw.decode("ascii").lower()
    if len(_KNOWN) < _MOST_KNOWN and len(raw) <= _LONGEST_KNOWN:
        _KNOWN[raw] = name
    return name


def _is_marked(text: str) -> bool:
    return text.startswith(_PREFIX) and text.endswith(_SUFFIX)
