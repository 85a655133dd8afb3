"""Who a client is to a server over HTTP: a bearer token, which every request carries.

The credentials of `mcpgen.runtime.http.client.bearer_auth`, as httpx takes them.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final

import httpx

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.transport import import_httpx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    import httpx

__all__ = ["Bearer", "bearer"]

# RFC 6750, section 2.1, without its syntax of base64: some servers use other characters. None of these ends a header.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


def bearer(token: str | Callable[[], str | Awaitable[str]]) -> httpx.Auth:
    """Return what has every request carry a bearer token, for ``Http(url, auth=…)``.

    Args:
        token: The token, or a function that returns it, plain or async: it is asked before every request.

    Raises:
        UsageError: It is neither, or no header can carry it; or httpx is not installed.
    """
    import_httpx()
    from mcpgen.runtime.http.client.bearer_auth import Bearer  # noqa: PLC0415 (it loads httpx)

    if callable(token):
        return Bearer(token, _checked)
    known = _checked(token)
    return Bearer(lambda: known, _checked)


def _checked(token: object) -> str:
    if not isinstance(token, str):
        raise UsageError(f"a bearer token is a string, not of the type {type(token).__name__}")
    if not _TOKEN.fullmatch(token):  # it is not shown: it may be the secret
        raise UsageError("a bearer token has visible characters of ASCII only, and one at least")
    return token


class Bearer(httpx.Auth):
    """Has each request carry a token.

    Args:
        ask: Returns the token, or what has to be awaited for it.
        check: Returns the token that a header can carry, or raises.
    """

    def __init__(self, ask: Callable[[], str | Awaitable[str]], check: Callable[[object], str]) -> None:
        self._ask = ask
        self._check = check

    def __repr__(self) -> str:
        return "<bearer token>"

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Add the token to *request*."""
        asked = self._ask()
        token = await asked if inspect.isawaitable(asked) else asked
        request.headers["Authorization"] = f"Bearer {self._check(token)}"
        yield request
