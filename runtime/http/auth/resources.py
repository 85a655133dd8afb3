"""The resource for which a client requests a token: the identifier of the MCP server, exactly as the server writes it.

Spec:
    RFC 8707, section 2; RFC 9728, section 3.3; 2026-07-28, basic/authorization, "Resource Parameter Implementation".
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.errors import LoginFailed

__all__ = ["chosen_resource"]

_PORTS: Final = {"http": 80, "https": 443}
_MAX_SHOWN_CHARS: Final = 200

# No URL has them. Python removes some of them, and finds the host behind a backslash and an "@". Node.js reads a
# backslash as a slash, so an authorization server could issue a token for another host than the one that is checked.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\\]")

# `urlsplit` normalises a host, which takes a time that grows with the square of its combining marks.
_MAX_CHARS: Final = 4096


def chosen_resource(server_url: str, named: str) -> str:
    """Return the resource that the metadata names, unchanged.

    Args:
        server_url: The URL of the MCP server.
        named: ``resource`` of its protected resource metadata. It is the URL itself, or a part of its path from the
            left: one identifier for several endpoints of an origin.

    Raises:
        LoginFailed: It identifies another server, which could use the token here.
    """
    try:
        ours, theirs = urlsplit(server_url), urlsplit(named if len(named) <= _MAX_CHARS else "")
        is_same = _origin(ours) == _origin(theirs) and _is_part(theirs, ours) and "@" not in theirs.netloc
    except ValueError:
        is_same = False
    if not is_same or "#" in named or _FORBIDDEN.search(named):
        path, query, _ = printable(named[:_MAX_SHOWN_CHARS]).partition("?")
        shown = f"{path}?…" if query else path
        raise LoginFailed(
            f"the server's resource metadata is for {shown!r}, which is not the URL of this server; do not log in "
            "here; use that URL instead, if you trust it"
        )
    return named


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def _is_part(theirs: SplitResult, ours: SplitResult) -> bool:
    if theirs.query and theirs.query != ours.query:
        return False
    part, whole = _segments(theirs.path), _segments(ours.path)
    return ".." not in part and whole[: len(part)] == part


def _segments(path: str) -> list[str]:
    stripped = path.strip("/")
    return stripped.split("/") if stripped else []
