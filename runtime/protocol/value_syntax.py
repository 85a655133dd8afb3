"""The syntax of texts inside of messages: URIs, MIME types, base64, keys of ``_meta``, trace context.

Types do not express it. Each function returns what is wrong with a value, without the value, or None.

Spec:
    2026-07-28, basic/index, "_meta"; RFC 3986, section 3; RFC 2045, section 5.1; RFC 4648, section 4; W3C Trace
    Context, section 3; W3C Baggage, section 3.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "base64_fault",
    "form_dialect_fault",
    "meta_key_fault",
    "mime_type_fault",
    "page_url_fault",
    "trace_context_fault",
    "uri_fault",
]

_PERCENT: Final = "%[0-9A-Fa-f]{2}"
_NAME: Final = r"A-Za-z0-9._~!$&'()*+,;=\-"  # RFC 3986: unreserved and sub-delims
_SEGMENT: Final = rf"(?:[{_NAME}:@/]|{_PERCENT})*"
_HOST: Final = rf"(?:\[[0-9A-Fa-f:.]+\]|\[v[0-9A-Fa-f]+\.[{_NAME}:]+\]|(?:[{_NAME}]|{_PERCENT})*)"
_AUTHORITY: Final = rf"(?:(?:[{_NAME}:]|{_PERCENT})*@)?{_HOST}(?::[0-9]*)?"
_URI: Final = (
    rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_AUTHORITY}(?:/{_SEGMENT})?|(?!//){_SEGMENT})"
    rf"(?:\?(?:[{_NAME}:@/?]|{_PERCENT})*)?(?:#(?:[{_NAME}:@/?]|{_PERCENT})*)?"
)

# Patterns are compiled when they are first used, because many servers never use most of them.
_LOOPBACK: Final = r"127(?:\.[0-9]{1,3}){3}"

_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MIME_TYPE: Final = rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"(?:[^"\\\r\n]|\\.)*"))*'

# The keywords of forms mean the same in all of these.
_FORM_DIALECT: Final = r"https?://json-schema\.org/(?:draft/2020-12|draft/2019-09|draft-0[467])/schema#?"

_LABEL: Final = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"

_TRACEPARENT: Final = r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_STATE_KEY: Final = r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
_STATE_ENTRY: Final = rf"{_STATE_KEY}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_MAX_STATE_ENTRIES: Final = 32
_BAGGAGE_VALUE: Final = r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*"
_BAGGAGE_ENTRY: Final = (
    rf"{_WORD}[ \t]*=[ \t]*{_BAGGAGE_VALUE}(?:[ \t]*;[ \t]*{_WORD}(?:[ \t]*=[ \t]*{_BAGGAGE_VALUE})?)*"
)


def uri_fault(uri: str) -> str | None:
    """Return why *uri* is not a URI."""
    return None if re.fullmatch(_URI, uri) else "it is not a URI (RFC 3986), such as file:///notes.txt"


def page_url_fault(url: str) -> str | None:
    """Return why a user cannot be sent to *url*.

    Spec:
        2025-11-25, client/elicitation, "URL Mode Elicitation Requests": a valid URL; "Safe URL Handling": HTTPS.
    """
    from urllib.parse import urlsplit  # noqa: PLC0415 (it takes a millisecond, and few servers send a user to a page)

    if not re.fullmatch(_URI, url):
        return "it is not a URL in ASCII, such as https://example.com/page"
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        return "it is not a URL, such as https://example.com/page"
    del port  # reading it checks its range
    if split.scheme not in ("https", "http") or not host:
        return "it is not an https URL with a host, such as https://example.com/page"
    is_loopback = host == "localhost" or host.endswith(".localhost") or host == "::1" or re.fullmatch(_LOOPBACK, host)
    if split.scheme == "http" and not is_loopback:
        return "it is an http URL of another host than localhost; use https"
    return None


def mime_type_fault(mime_type: str) -> str | None:
    """Return why *mime_type* is not a MIME type."""
    return None if re.fullmatch(_MIME_TYPE, mime_type) else "it is not a MIME type, such as image/png"


def base64_fault(data: str) -> str | None:
    """Return why *data* is not base64."""
    try:
        a2b_base64(data, strict_mode=True)
    except (Base64Error, ValueError):  # the latter for text that is not ASCII
        return "it is not base64; use base64.b64encode(data).decode()"
    return None


def form_dialect_fault(schema: Mapping[str, object]) -> str | None:
    """Return why the dialect of *schema*, that of a form, is not supported.

    Spec:
        2025-11-25 and 2026-07-28, basic/index, "JSON Schema Usage": an error indicates that a dialect is not supported.
    """
    named = schema.get("$schema")
    if named is None or (isinstance(named, str) and re.fullmatch(_FORM_DIALECT, named)):
        return None
    return "the dialect of this JSON Schema is not supported; use https://json-schema.org/draft/2020-12/schema"


def meta_key_fault(key: str) -> str | None:
    """Return why *key* is not a valid key of ``_meta``."""
    if re.fullmatch(_META_KEY, key):
        return None
    return "it is not a valid key of `_meta`, such as com.example/name"


def trace_context_fault(meta: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the key of *meta* with an invalid trace context, and why it is invalid."""
    parent, state, baggage = (meta.get(key, UNSET) for key in ("traceparent", "tracestate", "baggage"))
    if parent is not UNSET and not (isinstance(parent, str) and re.fullmatch(_TRACEPARENT, parent)):
        return "traceparent", "it is not a traceparent of W3C Trace Context"
    if state is not UNSET and not (isinstance(state, str) and _is_state(state)):
        return "tracestate", "it is not a tracestate of W3C Trace Context"
    if baggage is not UNSET and not (isinstance(baggage, str) and _is_baggage(baggage)):
        return "baggage", "it is not a list of W3C Baggage"
    return None


def _is_state(state: str) -> bool:
    entries = [each.strip(" \t") for each in state.split(",")]
    if len(entries) > _MAX_STATE_ENTRIES or not all(not each or re.fullmatch(_STATE_ENTRY, each) for each in entries):
        return False
    keys = [each.partition("=")[0] for each in entries if each]
    return len(keys) == len(set(keys))


def _is_baggage(baggage: str) -> bool:
    return all(re.fullmatch(_BAGGAGE_ENTRY, each.strip(" \t")) for each in baggage.split(","))
