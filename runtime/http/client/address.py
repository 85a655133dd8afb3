"""Where a server is: its URL, in one spelling, and as it can be shown to anybody."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.transports.command_line import missing_scheme

__all__ = ["Address", "parse_address", "join_url"]

_PORTS: Final = {"http": 80, "https": 443}

# urlsplit leaves some of these out without a word, and nobody means them.
_UNFIT: Final = re.compile(r"[\x00-\x20\x7f\\]")

_MOST_SHOWN: Final = 200


class Address(Struct, frozen=True):
    """The URL of a server.

    Attributes:
        url: All of it but the fragment, credentials included; host and scheme in lower case.
        shown: Without what may be secret: the credentials and the query.
        origin: Scheme, host and port: what credentials are for.
    """

    url: str
    shown: str
    origin: tuple[str, str, int]


def parse_address(url: object) -> Address:
    """Return what *url* says.

    Raises:
        UsageError: It is no URL of http or https.
    """
    if not isinstance(url, str):
        raise UsageError(f"a URL is a string, such as 'https://example.com/mcp', not {url!r}")
    if _UNFIT.search(url):
        raise UsageError("the URL has white space, a backslash or a control character in it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"the URL cannot be read: {error}") from None
    if parts.scheme not in _PORTS:
        shown = printable(url[:_MOST_SHOWN]) if not parts.netloc else f"{printable(parts.scheme)}://…"
        found = missing_scheme(url)
        hint = "" if found is None else f"; did you mean {printable(found[:_MOST_SHOWN])}?"
        raise UsageError(f"{shown!r} is no address of http or https, which are spoken{hint}")
    if not host:
        raise UsageError("the URL names no host, as https://example.com/mcp does")
    return _address(parts, host, port)


def _address(parts: SplitResult, host: str, port: int | None) -> Address:
    named = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[parts.scheme]:
        named = f"{named}:{port}"
    user = parts.netloc.rpartition("@")[0]
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return Address(
        url=f"{parts.scheme}://{user}{'@' if user else ''}{named}{path}{query}",
        shown=printable(f"{parts.scheme}://{named}{path}{'?…' if query else ''}"),
        origin=(parts.scheme, host, _PORTS[parts.scheme] if port is None else port),
    )


def join_url(base: Address, reference: str) -> Address:
    """Return what *reference* means, seen from *base*.

    Raises:
        UsageError: It is no URL of http or https.
    """
    try:
        whole = urljoin(base.url, reference)
    except ValueError as error:
        raise UsageError(f"the URL cannot be read: {error}") from None
    return parse_address(whole)
