"""The commands ``login`` and ``logout``: get and forget the tokens of a server."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import anyio
import click

from mcpgen.runtime.api.connect import connect
from mcpgen.runtime.cli.client.login_page import terminal_login
from mcpgen.runtime.cli.client.terminal import Keyboard, Screen
from mcpgen.runtime.cli.terminal_text import error_text, escaped_line, sentence
from mcpgen.runtime.errors import McpgenError, UsageError
from mcpgen.runtime.http.client.address import parse_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcpgen.runtime.http.client.auth.credentials import OAuth

__all__ = ["login", "logout"]

_STATUS: Final = "Exit status: 0 if it worked, 1 if it failed, 2 if the command was used wrongly."

_URL: Final = click.argument("url", metavar="URL")


@click.command(epilog=_STATUS)
@click.option("--client-id", metavar="ID", help="Use this client, which is registered at the authorization server.")
@click.option(
    "--client-secret-env", metavar="VARIABLE", help="Read the secret of that client from this environment variable."
)
@click.option("--issuer", metavar="URL", help="Use only this authorization server.")
@click.option("--scope", "scopes", multiple=True, help="Request this scope. Repeatable. Default: what the server asks.")
@_URL
def login(
    *, url: str, client_id: str | None, client_secret_env: str | None, issuer: str | None, scopes: Sequence[str]
) -> None:
    """Log in to the server at URL, and store the tokens for the other commands.

    Example: mcpgen login https://example.com/mcp
    """
    secret = None if client_secret_env is None else os.environ.get(client_secret_env)
    if client_secret_env is not None and not secret:
        name = escaped_line(client_secret_env)
        raise click.UsageError(f"The environment variable {name} (`--client-secret-env`) is not set, or empty.")
    if not Keyboard.is_there():
        raise click.UsageError("`mcpgen login` needs a terminal: it shows a URL, and you may have to paste one.")
    try:
        parse_address(url)
        oauth = terminal_login(client_id=client_id, client_secret=secret, issuer=issuer, scopes=scopes or None)
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    _run(lambda screen: _log_in(screen, url, oauth))


@click.command(epilog=_STATUS)
@_URL
def logout(*, url: str) -> None:
    """Forget the tokens for the server at URL, and revoke them if its authorization server can do so.

    Example: mcpgen logout https://example.com/mcp
    """
    try:
        parse_address(url)
        oauth = terminal_login()
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    _run(lambda screen: _log_out(screen, url, oauth))


async def _log_in(screen: Screen, url: str, oauth: OAuth) -> None:
    from mcpgen.runtime.http.client.auth.access_tokens import stored_tokens, tokens_key  # noqa: PLC0415 (loads httpx)

    address = parse_address(url)
    key = tokens_key(oauth, address)
    before = await stored_tokens(oauth.store, key)
    async with connect(url, auth=oauth):
        after = await stored_tokens(oauth.store, key)
    shown = escaped_line(address.shown)
    if after is None:
        screen.line(f"{shown} needs no login.")
    elif before is not None and before.access_token == after.access_token:
        screen.line(f"You are logged in to {shown} already. To log in as another user, run `mcpgen logout` first.")
    else:
        screen.line(f"You are logged in to {shown}.")


async def _log_out(screen: Screen, url: str, oauth: OAuth) -> None:
    from mcpgen.runtime.http.client.auth.logout import log_out  # noqa: PLC0415 (it loads httpx)

    shown = escaped_line(parse_address(url).shown)
    found = await log_out(url, oauth)
    screen.line(f"You are logged out of {shown}." if found else f"You were not logged in to {shown}.")


def _run(work: Callable[[Screen], Awaitable[None]]) -> None:
    try:
        anyio.run(work, Screen(sys.stdout))
    except McpgenError as error:
        screen = Screen(sys.stderr)
        screen.line(f"{screen.paint('Error:', 'bad')} {error_text(error)}")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # 128 + SIGINT, as shells report it
