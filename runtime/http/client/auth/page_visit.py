"""Show the login page, and get the URL to which it redirects at the end: from the program, or from the browser."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import McpgenError
from mcpgen.runtime.http.client.auth.browser import open_browser
from mcpgen.runtime.http.errors import LoginFailed
from mcpgen.runtime.transports.spawner import open_group

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.http.client.auth.credentials import OAuth, Visit

__all__ = ["NoResponse", "page_response"]


class NoResponse(LoginFailed):
    """The person took too long, or the login page did not redirect."""


async def page_response(oauth: OAuth, url: str, receive: Callable[[], Awaitable[str]] | None) -> str:
    """Show the login page at *url*, and return the URL of the response.

    Args:
        oauth: The choices of the program.
        url: The login page.
        receive: Returns the response when this machine has received it; None if it goes elsewhere.

    Raises:
        NoResponse: There is none in time.
        LoginFailed: The page could not be shown.
    """
    race = _Race()
    with anyio.move_on_after(oauth.login_seconds):
        async with open_group() as group:
            if receive is not None:
                group.start_soon(race.receive, receive)
            group.start_soon(race.visit, oauth.visit or open_browser, url, receive is None)
            await race.done.wait()
    if isinstance(race.failure, McpgenError):
        raise race.failure
    if race.failure is not None:
        raise LoginFailed(f"`visit` raised {type(race.failure).__name__}; correct this function") from race.failure
    if race.response is None:
        raise NoResponse(f"the login was not completed within {oauth.login_seconds:g} seconds; try again")
    return race.response


class _Race:
    """The first response counts: of the function that shows the page, or of the receiver."""

    def __init__(self) -> None:
        self.response: str | None = None
        self.failure: Exception | None = None
        self.done = anyio.Event()

    async def receive(self, receive: Callable[[], Awaitable[str]]) -> None:
        self._finish(await receive())

    async def visit(self, visit: Visit, url: str, is_alone: bool) -> None:  # noqa: FBT001 (tasks take no keywords)
        try:
            result = visit(url)
            response = await result if inspect.isawaitable(result) else result
        except Exception as error:  # noqa: BLE001 (the boundary: a function of the program)
            self._finish(None, error)
            return
        if response is not None:
            self._finish(response)
        elif is_alone:
            failure = LoginFailed(
                "the client cannot receive the redirect, because `redirect_uri` is not at this machine; pass `visit`, "
                "a function that returns the URL of the redirect"
            )
            self._finish(None, failure)

    def _finish(self, response: str | None, failure: Exception | None = None) -> None:
        if not self.done.is_set():
            self.response, self.failure = response, failure
            self.done.set()
