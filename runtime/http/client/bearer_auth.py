"""Credentials of a client over HTTP: a bearer token in each request."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.transport import import_httpx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    import httpx

__all__ = ["bearer"]

# RFC 6750, section 2.1, but any visible ASCII, which some servers use; none of it can end a header.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


def bearer(token: str | Callable[[], str | Awaitable[str]]) -> httpx.Auth:
    """Return credentials that send a bearer token with each request, for ``Http(url, auth=…)``.

    Args:
        token: The token, or a plain or async function that returns it. The function is called before each request.

    Raises:
        UsageError: The token has the wrong type or a character that a header cannot contain, or httpx is not installed.
    """
    import_httpx()
    import httpx  # noqa: PLC0415 (it takes long to load)

    if not callable(token):
        _checked(token)

    class BearerAuth(httpx.Auth):
        def __repr__(self) -> str:
            return "<bearer token>"

        async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
            found = token() if callable(token) else token
            value = await found if inspect.isawaitable(found) else found
            request.headers["Authorization"] = f"Bearer {_checked(value)}"
            yield request

    return BearerAuth()


def _checked(token: object) -> str:
    if not isinstance(token, str):
        raise UsageError(f"a bearer token must be a str, not {type(token).__name__}")
    if not _TOKEN.fullmatch(token):  # the message does not show it, since it is secret
        raise UsageError("a bearer token must be one or more characters of visible ASCII")
    return token
