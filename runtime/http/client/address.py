"""The URL of a server: in one spelling for requests, and without secrets for messages."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from msgspec import Struct

from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.limits import MAX_URI_CHARS, MAX_WIDE_URL_CHARS
from mcpgen.runtime.transports.command_line import hide_userinfo, missing_scheme

__all__ = ["Address", "parse_address", "join_url", "max_url_chars"]

_PORTS: Final = {"http": 80, "https": 443}

# urlsplit removes some of these silently.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\\]")

_MAX_SHOWN_CHARS: Final = 200


class Address(Struct, frozen=True):
    """The URL of a server.

    Attributes:
        url: The URL without its fragment and credentials; scheme and host in lower case.
        shown: The URL for messages, without the query, which may be secret.
        origin: Scheme, host and port, to which credentials may be sent.
        credentials: The name and the password that the URL has, decoded; None if it has none.
    """

    url: str
    shown: str
    origin: tuple[str, str, int]
    credentials: tuple[str, str] | None = None

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def parse_address(url: object) -> Address:
    """Parse a URL.

    Raises:
        UsageError: It is not a URL of http or https.
    """
    if not isinstance(url, str):
        raise UsageError(f"`url` must be a str, such as 'https://example.com/mcp', not {type(url).__name__}")
    if _FORBIDDEN.search(url):
        raise UsageError("the URL contains white space, a backslash or a control character; percent-encode it")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:  # its text quotes the URL
        raise UsageError("the host of the URL is malformed; correct it, as in https://example.com/mcp") from None
    try:
        port = parts.port
    except ValueError:  # the port may be a part of a password that has a slash, so it is not shown
        raise UsageError(
            "the port of the URL is not a number from 0 to 65535; correct it (in a password, percent-encode `/`)"
        ) from None
    if parts.scheme not in _PORTS:
        shown = hide_userinfo(printable(url[:_MAX_SHOWN_CHARS]).partition("?")[0])
        shown = f"{printable(parts.scheme)}://…" if parts.netloc else shown
        found = missing_scheme(url)
        meant = None if found is None else f"did you mean {printable(found[:_MAX_SHOWN_CHARS])}?"
        hint = f"; {meant or 'begin it with https:// or http://'}"
        raise UsageError(f"{shown!r} is not a URL of http or https{hint}")
    if not host:
        raise UsageError("the URL has no host; an example is https://example.com/mcp")
    return _address(parts, host, port)


def _address(parts: SplitResult, host: str, port: int | None) -> Address:
    authority = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[parts.scheme]:
        authority = f"{authority}:{port}"
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return Address(
        url=f"{parts.scheme}://{authority}{path}{query}",
        shown=printable(f"{parts.scheme}://{authority}{path}{'?…' if query else ''}"),
        origin=(parts.scheme, host, _PORTS[parts.scheme] if port is None else port),
        credentials=(unquote(parts.username or ""), unquote(parts.password or "")) if "@" in parts.netloc else None,
    )


def max_url_chars(url: str) -> int:
    """Return how many characters a *url* of a server may have: the cache of `urlsplit` keeps the last 128 URLs."""
    return MAX_URI_CHARS if url.isascii() else MAX_WIDE_URL_CHARS


def join_url(base: Address, reference: str) -> Address:
    """Resolve *reference*, a URL or a part of one, against *base*.

    Raises:
        UsageError: The result is not a URL of http or https, or *reference* is too long.
    """
    limit = max_url_chars(reference)
    if len(reference) > limit:
        raise UsageError(f"the URL has {len(reference):,} characters, more than {limit:,}; shorten it")
    try:
        url = urljoin(base.url, reference)
    except ValueError:
        raise UsageError("the host of the URL is malformed; correct it, as in https://example.com/mcp") from None
    return parse_address(url)
