"""What can go wrong with one request over HTTP: nobody is there, or what comes back is no message of MCP.

Part of the tree of `mcpgen.runtime.errors`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from mcpgen.runtime.errors import RequestLost, printable

__all__ = ["HttpRefused", "ServerUnreachable"]

# Characters of what is no message: enough to see whose page it is.
_MOST_SHOWN: Final = 300

# RFC 9110, 15, and RFC 6585, 4: what is not about the request that was made, and would be said to any other, too.
_GENERAL: Final = frozenset({401, 403, 407, 408, 429, 502, 503, 504})


class ServerUnreachable(RequestLost):
    """No connection to a server could be made, so that it was told nothing.

    Attributes:
        url: Where it should be.
        reason: What the system says.
    """

    is_general = True

    def __init__(self, *, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(url, reason)

    def __str__(self) -> str:
        return f"no connection to {self.url} could be made: {printable(self.reason[:_MOST_SHOWN])}"


class HttpRefused(RequestLost):
    """What a server, or something between us and it, has answered over HTTP is no message.

    Attributes:
        url: What was asked, without credentials.
        status: The status of the answer.
        excerpt: How its body begins, on one line; empty if there is none that can be shown.
        advice: What is wrong, or can be done about it; empty if the status says all.
    """

    def __init__(self, *, url: str, status: int, excerpt: str = "", advice: str = "") -> None:
        self.url = url
        self.status = status
        self.excerpt: str = printable(excerpt[:_MOST_SHOWN])
        self.advice = advice
        self.is_general: bool = status in _GENERAL or 300 <= status < 400  # noqa: PLR2004 (as HTTP counts)
        super().__init__(url, status)

    def __str__(self) -> str:
        try:
            phrase = f" {HTTPStatus(self.status).phrase}"
        except ValueError:
            phrase = ""
        advice = f": {self.advice}" if self.advice else ""
        excerpt = f"; it says: {self.excerpt}" if self.excerpt else ""
        return f"{self.url} has answered with {self.status}{phrase}{advice}{excerpt}"
