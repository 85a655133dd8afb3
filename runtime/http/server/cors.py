"""What a browser wants to hear before a page of another site may speak with a server, and may read what it answers.

Theory of operation. Whose pages may ask is for `mcpgen.runtime.http.server.origin_check` to say; what comes here has
been found to
be allowed. The browser has to be told so, too: before a request that has more than a form could have, and with each
answer. Middleware that does the same replaces what is said here.

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

# What a page may read beside the body: its session, and what a server wants to know of it.
_READABLE: Final = b"mcp-session-id, mcp-protocol-version, www-authenticate, retry-after"

_METHODS: Final = b"GET, POST, DELETE"

# A browser asks anew after that; two hours are the most that one of them remembers it.
_SECONDS: Final = b"7200"


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a request only asks whether another may be made."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight_headers(headers: Mapping[str, str]) -> tuple[Header, ...]:
    """Return the headers that say yes to such a question."""
    wanted = headers.get("access-control-request-headers", "")
    found: list[Header] = [(b"access-control-allow-methods", _METHODS), (b"access-control-max-age", _SECONDS)]
    if wanted and wanted.isascii() and wanted.isprintable():
        found.append((b"access-control-allow-headers", wanted.encode()))
    return tuple(found)


def with_cors_headers(send: Send, origin: str) -> Send:
    """Return what sends a response that pages of *origin* may read."""
    own = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _READABLE),
        (b"vary", b"origin"),
    ]

    async def send_permitted(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *own]}
        await send(message)

    return send_permitted
