"""Errors of single requests over HTTP: the server cannot be reached, or its response is not an MCP message.

They belong to the tree in `mcpgen.runtime.errors`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from mcpgen.runtime.errors import RequestLost, printable

__all__ = ["HttpRefused", "LoginFailed", "LoginNeeded", "ServerUnreachable"]

# Enough of a response body to recognise the page.
_MAX_SHOWN_CHARS: Final = 300

# RFC 9110, section 15, and RFC 6585, section 4: statuses that do not depend on the request, so that another request
# would get the same one.
_TEMPORARY: Final = frozenset({408, 429, 502, 503, 504})
_GENERAL: Final = _TEMPORARY | {401, 403, 407}


class ServerUnreachable(RequestLost):
    """No connection to a server could be made, so it did not receive the request.

    Attributes:
        url: The server's URL, without credentials.
        reason: The system's error message.
    """

    is_general = True

    def __init__(self, *, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(url, reason)

    def __str__(self) -> str:
        return f"cannot connect to {self.url}: {printable(self.reason[:_MAX_SHOWN_CHARS])}"


class HttpRefused(RequestLost):
    """The response of a server, or of a proxy or gateway before it, is not an MCP message.

    Attributes:
        url: The requested URL, without credentials.
        status: The HTTP status of the response.
        excerpt: The beginning of its body, on one line; empty if there is none that can be shown.
        advice: What is wrong, or what to do about it; empty if the status says all.
    """

    is_refusal = True

    def __init__(self, *, url: str, status: int, excerpt: str = "", advice: str = "") -> None:
        self.url = url
        self.status = status
        self.excerpt: str = printable(excerpt[:_MAX_SHOWN_CHARS])
        self.advice = advice
        self.is_general: bool = status in _GENERAL or 300 <= status < 400  # noqa: PLR2004 (as HTTP counts)
        self.is_temporary: bool = status in _TEMPORARY or not self.is_general
        super().__init__(url, status)

    def __str__(self) -> str:
        try:
            phrase = f" {HTTPStatus(self.status).phrase}"
        except ValueError:
            phrase = ""
        advice = f": {self.advice}" if self.advice else ""
        excerpt = f"; the response says: {self.excerpt}" if self.excerpt else ""
        return f"{self.url} answered {self.status}{phrase}{advice}{excerpt}"


class LoginNeeded(RequestLost):
    """The server wants a login, and no person can be asked for it now. Log in with ``mcpgen login URL``.

    Attributes:
        url: The server's URL, without credentials.
        shares_tokens: Whether the program uses the tokens that ``mcpgen login`` stores.
    """

    is_general = True

    def __init__(self, url: str, reason: str = "no browser may be opened here", *, shares_tokens: bool = True) -> None:
        self.url = url
        self.reason = reason
        self.shares_tokens = shares_tokens
        super().__init__(url, reason)

    def __str__(self) -> str:
        advice = f"run `mcpgen login {self.url}`"
        if not self.shares_tokens:
            advice = "log in once with the same options of OAuth, but with interactive=True"
        elif "?" in self.url:  # the query may be secret, so it is not shown; but tokens are stored for the whole URL
            advice = "run `mcpgen login` with the whole URL"
        return f"{self.url} needs a login, but {self.reason}; {advice}, then try again"


class LoginFailed(RequestLost):
    """A login, or getting a token, has failed. The message says why and what to do, and holds no secret.

    Attributes:
        reason: Why.
    """

    is_general = True

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

    def __str__(self) -> str:
        return f"the login failed: {self.reason}"
