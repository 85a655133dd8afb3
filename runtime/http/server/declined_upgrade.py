"""The head of a request that offers another protocol, without the offer.

httptools takes ``Upgrade`` for the end of the request even if the server declines it, so the body would be lost. Java's
`HttpClient` offers HTTP/2 that way with its first request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["without_upgrade"]

_HEADERS: Final = (b"upgrade", b"http2-settings")


def without_upgrade(method: bytes, url: bytes, version: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request with these parts, but without the headers that offer another protocol."""
    lines = [b"%b %b HTTP/%b" % (method, url, version)]
    for name, value in headers:
        if name == b"connection":
            tokens = [each for each in value.split(b",") if each.strip().lower() not in _HEADERS]
            lines += [b"connection:" + b",".join(tokens)] if tokens else []
        elif name not in _HEADERS:
            lines.append(name + b":" + value)
    return b"\r\n".join([*lines, b"", b""])
