"""Credentials of a client over HTTP: a bearer token in each request."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.http_exchange import import_httpx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    import httpx

__all__ = ["BearerToken", "bearer", "bearer_token"]

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
    if not callable(token):
        _checked(token)
    auth: httpx.Auth = _auth_class()(BearerToken(token))
    return auth


class BearerToken:
    """A bearer token, or a function that returns it."""

    def __init__(self, token: str | Callable[[], str | Awaitable[str]]) -> None:
        self._token = token

    @property
    def is_fixed(self) -> bool:
        """Whether each request has the same token."""
        return not callable(self._token)

    async def header(self) -> str:
        """Return the value of the header ``Authorization`` for the next request.

        Raises:
            UsageError: The function has returned something that is not a token.
        """
        found = self._token() if callable(self._token) else self._token
        value = await found if inspect.isawaitable(found) else found
        return f"Bearer {_checked(value)}"


def bearer_token(auth: httpx.Auth) -> BearerToken | None:
    """Return the token of *auth*; None if `bearer` has not made it."""
    if not isinstance(auth, _auth_class()):
        return None
    token: BearerToken = cast("Any", auth).token
    return token


@cache
def _auth_class() -> Any:  # noqa: ANN401 (a class over httpx, which is loaded here)
    import httpx  # noqa: PLC0415 (it takes long to load)

    class BearerAuth(httpx.Auth):
        def __init__(self, token: BearerToken) -> None:
            self.token = token

        def __repr__(self) -> str:
            return "<bearer token>"

        async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
            request.headers["Authorization"] = await self.token.header()
            yield request

    return BearerAuth


def _checked(token: object) -> str:
    if not isinstance(token, str):
        raise UsageError(f"a bearer token must be a str, not {type(token).__name__}")
    if not token:
        raise UsageError("the bearer token is empty; check where the program reads it from")
    if not _TOKEN.fullmatch(token):  # the message does not show it, since it is secret
        raise UsageError(
            "a bearer token must be visible ASCII without spaces; leave out the word Bearer and the final line break"
        )
    return token
