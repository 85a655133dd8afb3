"""The options of ``mcpgen serve`` that are for HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.server.application_options import Options
    from mcpgen.runtime.http.server.auth.protection import Protect

__all__ = ["asgi_options", "http_options"]

F = TypeVar("F", bound="Callable[..., object]")

_OPTIONS: Final = (
    click.option("--path", default="/mcp", show_default=True, metavar="PATH", help="Path of the HTTP endpoint."),
    click.option(
        "--allow-origin",
        "origins",
        multiple=True,
        metavar="ORIGIN",
        help="Accept web pages of this origin, such as https://example.com. Without a scheme: http and https. "
        "Repeatable.",
    ),
    click.option(
        "--allow-host",
        "hosts",
        multiple=True,
        metavar="HOST",
        help="Accept requests with this name in the Host header. Repeatable.",
    ),
    click.option(
        "--trusted-proxy",
        "proxies",
        multiple=True,
        metavar="ADDRESS",
        help="Believe X-Forwarded-For and Forwarded of this proxy, an address or a network such as 10.0.0.0/8. "
        "Repeatable.",
    ),
    click.option(
        "--auth-issuer",
        "issuers",
        multiple=True,
        metavar="URL",
        help="Demand access tokens (JSON Web Tokens) that this authorization server has issued. Repeatable.",
    ),
    click.option("--resource", metavar="URL", help="The public URL of the server, for which tokens must be issued."),
    click.option(
        "--auth-scope", "scopes", multiple=True, metavar="SCOPE", help="A scope that each request needs. Repeatable."
    ),
    click.option(
        "--auth-audience",
        "audiences",
        multiple=True,
        metavar="NAME",
        help="Accept tokens for this audience, too, if the authorization server does not write the URL. Repeatable.",
    ),
)


def http_options(command: F) -> F:
    """Add the options to *command*."""
    for each in reversed(_OPTIONS):
        command = each(command)
    return command


def asgi_options(
    address: str | None,
    *,
    path: str,
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    proxies: tuple[str, ...],
    **auth: Any,  # noqa: ANN401 (those of `_protection`)
) -> Options:
    """Return the options of `Server.asgi` that the options of the command stand for.

    Raises:
        click.UsageError: They are not valid, or the server uses no HTTP.
    """
    if address is None and (origins or hosts or proxies or path != "/mcp"):
        raise click.UsageError(
            "`--path`, `--allow-origin`, `--allow-host` and `--trusted-proxy` are for HTTP: add `--http HOST:PORT`."
        )
    return {
        "path": path,
        "allowed_origins": origins or None,
        "allowed_hosts": hosts or None,
        "trusted_proxies": proxies or None,
        "auth": _protection(address, **auth),
    }


def _protection(
    address: str | None,
    *,
    resource: str | None,
    issuers: tuple[str, ...],
    scopes: tuple[str, ...],
    audiences: tuple[str, ...],
) -> Protect | None:
    """Return what the options about access tokens say; None if there are none.

    Raises:
        click.UsageError: They are incomplete or not valid.
    """
    if not (issuers or resource or scopes or audiences):
        return None
    if address is None or not issuers or resource is None:
        raise click.UsageError(
            "Access tokens need all of `--http HOST:PORT`, `--auth-issuer URL` and `--resource URL`, the public URL."
        )
    from mcpgen.runtime.http.server.auth.protection import Protect  # noqa: PLC0415 (most servers take no tokens)

    try:
        return Protect(resource=resource, issuers=issuers, scopes=scopes, audience=audiences)
    except UsageError as error:
        message = str(error).replace("`resource`", "`--resource`").replace("`issuers`", "`--auth-issuer`")
        raise click.UsageError(f"{message.replace('`scopes`', '`--auth-scope`')}.") from None
