"""Show the login page from a terminal: in the browser, or as a URL that the user opens anywhere."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING

import anyio.to_thread

from mcpgen.runtime.cli.client.terminal import Keyboard, Screen
from mcpgen.runtime.http.client.auth.browser import has_browser
from mcpgen.runtime.http.client.auth.credentials import OAuth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.http.client.auth.token_store import TokenStore

__all__ = ["LoginPage", "terminal_login"]


class LoginPage:
    """Asks the user of a terminal to log in; a `Visit` of `OAuth`.

    Args:
        screen: Where the URL is shown.
        keyboard: Where the user can paste the URL of the redirect.
    """

    def __init__(self, screen: Screen, keyboard: Keyboard) -> None:
        self._screen = screen
        self._keyboard = keyboard

    async def __call__(self, url: str) -> str | None:
        """Open *url*, and return the URL that the user pastes; None to wait for the redirect to this machine."""
        is_open = has_browser() and await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
        with self._keyboard.long_lines():  # some authorization servers write codes of thousands of characters
            self._keyboard.discard_typed()  # before the question is shown: what is typed after it may be an answer
            shown = "The server needs a login. The page is open in your browser. If not, open this URL:"
            self._screen.line(shown if is_open else "The server needs a login. Open this URL in a browser:")
            self._screen.line(f"    {url}")
            self._screen.line("If the browser runs on another machine, the last page of the login fails to load.")
            self._screen.line("In this case, copy the URL of that page, paste it here, and press Enter.")
            while (line := await self._keyboard.line()) is not None:
                pasted = line.strip()
                if pasted.startswith(("http://", "https://")):
                    return pasted
                if pasted:
                    self._screen.line(
                        "This is not a URL. The right one begins with http:// or https://, and has `code=` in it."
                    )
        return None


def terminal_login(  # noqa: PLR0913 (the options of `OAuth` that the commands have)
    *,
    client_id: str | None = None,
    client_secret: str | None = None,
    issuer: str | None = None,
    scopes: Sequence[str] | None = None,
    redirect_uri: str | None = None,
    assume_pkce: bool = False,
    store: TokenStore | None = None,
) -> OAuth:
    """Return the credentials of the commands. Only where a user sits at the terminal may they ask for a login."""
    return OAuth(
        client_id=client_id,
        client_secret=client_secret,
        issuer=issuer,
        scopes=scopes,
        redirect_uri=redirect_uri,
        assume_pkce=assume_pkce,
        store=store,
        visit=LoginPage(Screen(sys.stderr), Keyboard()),
        interactive=Keyboard.is_there(),
    )
