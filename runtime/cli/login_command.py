"""The commands ``login`` and ``logout``: get and forget the tokens of a server."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import click

from mcpgen.runtime.api.connect import connect
from mcpgen.runtime.cli.client.login_page import terminal_login
from mcpgen.runtime.cli.client.terminal import Keyboard, Screen
from mcpgen.runtime.cli.terminal_text import error_text, escaped_line, sentence
from mcpgen.runtime.errors import McpgenError, UsageError
from mcpgen.runtime.http.auth.scopes import step_up_scopes
from mcpgen.runtime.http.client.address import parse_address
from mcpgen.runtime.http.client.auth.token_store import state_folder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcpgen.runtime.http.client.auth.credentials import OAuth
    from mcpgen.runtime.http.client.auth.token_store import TokenStore

__all__ = ["login", "logout"]

_STATUS: Final = "Exit status: 0 if it worked, 1 if it failed, 2 if the command was used wrongly."

# In the advice of `error_text`. This command does not have them.
_HEADER_OPTIONS: Final = "--bearer-env, or --header"

# The names of arguments in messages of `OAuth`, and of the options that set them.
_OPTIONS: Final = {
    "client_id": "--client-id",
    "client_secret": "--client-secret-env",
    "issuer": "--issuer",
    "redirect_uri": "--redirect-uri",
    "scopes": "--scope",
}
# Those that are the name of no field of a message: if a login fails, its error can name a field, such as `client_id`.
_NO_FIELDS: Final = ("issuer", "redirect_uri", "scopes")

_URL: Final = click.argument("url", metavar="URL")


@click.command(epilog=_STATUS)
@click.option("--client-id", metavar="ID", help="Use this client, which is registered at the authorization server.")
@click.option(
    "--client-secret-env", metavar="VARIABLE", help="Read the secret of that client from this environment variable."
)
@click.option("--issuer", metavar="URL", help="Use only this authorization server.")
@click.option(
    "--scope", "scopes", multiple=True, help="Request this scope. Repeatable. Default: those that the server asks for."
)
@click.option(
    "--redirect-uri",
    metavar="URL",
    help="Where the login page redirects to, such as http://127.0.0.1:8734/back. Default: a free port of 127.0.0.1.",
)
@click.option(
    "--assume-pkce", is_flag=True, help="Log in even if the authorization server does not say that it supports PKCE."
)
@_URL
def login(  # noqa: PLR0913 (each option is one)
    *,
    url: str,
    client_id: str | None,
    client_secret_env: str | None,
    issuer: str | None,
    scopes: Sequence[str],
    redirect_uri: str | None,
    assume_pkce: bool,
) -> None:
    """Log in to the server at URL, and store the tokens for the other commands.

    If you are logged in, --scope adds scopes to those that you have.

    Example: mcpgen login https://example.com/mcp
    """
    secret = None if client_secret_env is None else os.environ.get(client_secret_env)
    if client_secret_env is not None and not secret:
        name = escaped_line(client_secret_env)
        raise click.UsageError(f"The environment variable {name} (`--client-secret-env`) is not set, or empty.")
    try:
        parse_address(url)
        login = partial(
            terminal_login,
            client_id=client_id,
            client_secret=secret,
            issuer=issuer,
            redirect_uri=redirect_uri,
            assume_pkce=assume_pkce,
        )
        oauth = login(scopes=scopes or None)
        state_folder()  # before the login: without this folder, its tokens could not be stored
    except UsageError as error:
        text = sentence(error)
        for name, option in _OPTIONS.items():
            text = text.replace(f"`{name}`", f"`{option}`")
        raise click.UsageError(text) from None
    if not Keyboard.is_there():
        raise click.UsageError("`mcpgen login` needs a terminal: it shows a URL, and you may have to paste one.")
    _run(lambda screen: _log_in(screen, url, oauth, login))


@click.command(epilog=_STATUS)
@_URL
def logout(*, url: str) -> None:
    """Forget the tokens for the server at URL, and revoke them if its authorization server can do so.

    Example: mcpgen logout https://example.com/mcp
    """
    try:
        parse_address(url)
        oauth = terminal_login()
        state_folder()
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    _run(lambda screen: _log_out(screen, url, oauth), what="logout")


async def _log_in(screen: Screen, url: str, oauth: OAuth, login: Callable[..., OAuth]) -> None:
    from mcpgen.runtime.http.client.auth.credentials import tokens_key  # noqa: PLC0415 (loads httpx)
    from mcpgen.runtime.http.client.auth.token_store import stored_tokens  # noqa: PLC0415 (likewise)

    address = parse_address(url)
    key = tokens_key(oauth, address)
    store = oauth.store
    before = await stored_tokens(store, key)
    if before is not None and not set(oauth.scopes or ()) <= set(before.scopes):
        more = step_up_scopes(before.scopes, oauth.scopes or ())
        oauth = login(scopes=more, store=_HidingStore(store, key))
    async with connect(url, auth=oauth):
        after = await stored_tokens(store, key)
    shown = escaped_line(address.shown)
    if after is None:
        screen.line(f"{shown} needs no login.")
    elif before is not None and before.access_token == after.access_token:
        rest = "" if after.refresh_token or after.expires_at is None else _rest(after.expires_at)
        screen.line(f"You are logged in to {shown} already{rest}. To log in anew, run `mcpgen logout` first.")
    else:
        screen.line(f"You are logged in to {shown}.")


def _rest(expires_at: float) -> str:
    seconds = max(0, round(expires_at - time.time()))
    return f", but only for {seconds} more {'second' if seconds == 1 else 'seconds'}"


class _HidingStore:
    """A store that hides the tokens of one server until there are new ones, so that the user has to log in."""

    def __init__(self, store: TokenStore, key: str) -> None:
        self._store = store
        self._hidden: str | None = key

    async def load(self, key: str) -> bytes | None:
        """Return the document under *key*; None if there is none."""
        return None if key == self._hidden else await self._store.load(key)

    async def save(self, key: str, document: bytes | None) -> None:
        """Replace the document under *key*; None removes it."""
        await self._store.save(key, document)
        if key == self._hidden:
            self._hidden = None

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Keep others from entering such a block with the same *key*."""
        return self._store.lock(key)


async def _log_out(screen: Screen, url: str, oauth: OAuth) -> None:
    from mcpgen.runtime.http.client.auth.logout import log_out  # noqa: PLC0415 (it loads httpx)

    shown = escaped_line(parse_address(url).shown)
    found = await log_out(url, oauth)
    screen.line(f"You are logged out of {shown}." if found else f"You were not logged in to {shown}.")


def _run(work: Callable[[Screen], Awaitable[None]], *, what: str = "login") -> None:
    try:
        anyio.run(work, Screen(sys.stdout))
    except McpgenError as error:
        screen = Screen(sys.stderr)
        text = error_text(error).replace("the login failed", f"the {what} failed", 1)
        text = text.replace(_HEADER_OPTIONS, f"{_HEADER_OPTIONS}, to the other commands")
        for name in _NO_FIELDS:
            text = text.replace(f"`{name}`", f"`{_OPTIONS[name]}`")
        screen.line(f"{screen.paint('Error:', 'bad')} {text}")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # 128 + SIGINT, as shells report it
