"""The credentials of `mcpgen.runtime.http.client.bearer`, as httpx takes them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

__all__ = ["Bearer"]


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
