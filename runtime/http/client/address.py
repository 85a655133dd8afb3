"""The URL of a server: in one spelling for requests, and without secrets for messages."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.transports.command_line import missing_scheme

__all__ = ["Address", "parse_address", "join_url"]

_PORTS: Final = {"http": 80, "https": 443}

# urlsplit removes some of these silently.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\\]")

_MAX_SHOWN_CHARS: Final = 200


class Address(Struct, frozen=True):
    """The URL of a server.

    Attributes:
        url: The URL without its fragment, with credentials; scheme and host in lower case.
        shown: The URL for messages, without credentials and query, which may be secret.
        origin: Scheme, host and port, to which credentials may be sent.
    """

    url: str
    shown: str
    origin: tuple[str, str, int]


def parse_address(url: object) -> Address:
    """Parse a URL.

    Raises:
        UsageError: It is not a URL of http or https.
    """
    if not isinstance(url, str):
        raise UsageError(f"`url` must be a str, such as 'https://example.com/mcp', not {url!r}")
    if _FORBIDDEN.search(url):
        raise UsageError("the URL contains white space, a backslash or a control character; percent-encode it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"the URL is malformed: {error}") from None
    if parts.scheme not in _PORTS:
        shown = printable(url[:_MAX_SHOWN_CHARS]) if not parts.netloc else f"{printable(parts.scheme)}://…"
        found = missing_scheme(url)
        hint = "" if found is None else f"; did you mean {printable(found[:_MAX_SHOWN_CHARS])}?"
        raise UsageError(f"{shown!r} is not a URL of http or https{hint}")
    if not host:
        raise UsageError("the URL has no host; an example is https://example.com/mcp")
    return _address(parts, host, port)


def _address(parts: SplitResult, host: str, port: int | None) -> Address:
    authority = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[parts.scheme]:
        authority = f"{authority}:{port}"
    user = parts.netloc.rpartition("@")[0]
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return Address(
        url=f"{parts.scheme}://{user}{'@' if user else ''}{authority}{path}{query}",
        shown=printable(f"{parts.scheme}://{authority}{path}{'?…' if query else ''}"),
        origin=(parts.scheme, host, _PORTS[parts.scheme] if port is None else port),
    )


def join_url(base: Address, reference: str) -> Address:
    """Resolve *reference*, a URL or a part of one, against *base*.

    Raises:
        UsageError: The result is not a URL of http or https.
    """
    try:
        url = urljoin(base.url, reference)
    except ValueError as error:
        raise UsageError(f"the URL is malformed: {error}") from None
    return parse_address(url)
