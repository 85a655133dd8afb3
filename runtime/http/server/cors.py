"""CORS: the headers that let a page of another site use a server from a browser.

Theory of operation. `mcpgen.runtime.http.server.origin_check` decides which origins are allowed; requests of others do
not get here. The browser needs headers that say so: in the response to its preflight request, and in each response that
the page reads. CORS middleware of a framework replaces these headers.

Spec:
    Fetch Standard, "HTTP responses" and "CORS-preflight fetch".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

    from mcpgen.runtime.http.server.responses import Header, Send

__all__ = ["is_preflight", "preflight_headers", "with_cors_headers"]

# Response headers that a page may read: those of MCP, and those that say why or when to repeat a request.
_EXPOSED: Final = b"mcp-session-id, mcp-protocol-version, www-authenticate, retry-after"

_METHODS: Final = b"GET, POST, DELETE"

# How long a browser may reuse the answer to a preflight request; Chromium caps it at two hours.
_MAX_AGE_SECONDS: Final = b"7200"


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request is a CORS preflight request."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight_headers(headers: Mapping[str, str]) -> tuple[Header, ...]:
    """Return the headers that answer a preflight request with yes."""
    requested = headers.get("access-control-request-headers", "")
    found: list[Header] = [(b"access-control-allow-methods", _METHODS), (b"access-control-max-age", _MAX_AGE_SECONDS)]
    if requested and requested.isascii() and requested.isprintable():
        found.append((b"access-control-allow-headers", requested.encode()))
    return tuple(found)


def with_cors_headers(send: Send, origin: str) -> Send:
    """Return an ASGI ``send`` that adds the headers by which pages of *origin* may read the response."""
    added = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    ]

    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_with_headers
