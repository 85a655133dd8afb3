"""The options of ``mcpgen serve`` that are for HTTP."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from mcpgen.runtime.cli.number_type import WholeNumber
from mcpgen.runtime.cli.terminal_text import escaped_line
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.server.application_options import Options
    from mcpgen.runtime.http.server.auth.introspection import Introspection
    from mcpgen.runtime.http.server.auth.protection import Protect
    from mcpgen.runtime.server.cluster.cluster import Cluster

__all__ = ["asgi_options", "http_options"]

F = TypeVar("F", bound="Callable[..., object]")

_OPTIONS: Final = (
    click.option("--path", default="/mcp", show_default=True, metavar="PATH", help="Path of the HTTP endpoint."),
    click.option(
        "--workers",
        type=WholeNumber(1, 1000),
        default=1,
        show_default=True,
        metavar="N",
        help="Start N processes. More than one process needs --redis.",
    ),
    click.option(
        "--redis",
        envvar="MCPGEN_REDIS",
        show_envvar=True,
        metavar="URL",
        help="Share sessions with other workers through this Redis, such as redis://127.0.0.1:6379.",
    ),
    click.option(
        "--health",
        metavar="PATH",
        help="Answer health checks at this path, such as /health, and at /live and /ready below it.",
    ),
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
        help="Demand access tokens that this authorization server has issued: JSON Web Tokens, unless there is "
        "--auth-introspection. Repeatable.",
    ),
    click.option(
        "--auth-introspection",
        "introspection",
        nargs=2,
        metavar="ID SECRET",
        help="Ask the authorization server about each token. ID and SECRET are the names of environment variables: "
        "they contain the client id and the client secret of this server.",
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
        help="Also accept tokens for this audience. Use it if the authorization server does not write the URL of "
        "--resource into its tokens. Repeatable.",
    ),
)

# The names of arguments in messages of `Protect`, and of the options that set them.
_PROTECT_OPTIONS: Final = {
    "resource": "--resource",
    "issuers": "--auth-issuer",
    "scopes": "--auth-scope",
    "audience": "--auth-audience",
}


def http_options(command: F) -> F:
    """Add the options to *command*."""
    for each in reversed(_OPTIONS):
        command = each(command)
    return command


def asgi_options(  # noqa: PLR0913 (the options of the command)
    address: str | None,
    *,
    path: str,
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    proxies: tuple[str, ...],
    workers: int,
    redis: str | None,
    health: str | None,
    **auth: Any,  # noqa: ANN401 (those of `_protection`)
) -> Options:
    """Return the options of `Server.asgi` that the options of the command stand for.

    Raises:
        click.UsageError: They are not valid, or the server uses no HTTP.
    """
    if address is None and (origins or hosts or proxies or health or path != "/mcp"):
        raise click.UsageError(
            "`--path`, `--health`, `--allow-origin`, `--allow-host` and `--trusted-proxy` are for HTTP: "
            "add `--http HOST:PORT`."
        )
    _check_workers(address, workers, redis)
    options: Options = {
        "path": path,
        "allowed_origins": origins or None,
        "allowed_hosts": hosts or None,
        "trusted_proxies": proxies or None,
        "auth": _protection(address, **auth),
        "health": health,
    }
    if address is not None and redis is not None:
        options["cluster"] = _cluster(redis)
    return options


def _check_workers(address: str | None, workers: int, redis: str | None) -> None:
    if address is None and (workers > 1 or _is_given("redis")):
        raise click.UsageError("`--workers` and `--redis` are for HTTP: add `--http HOST:PORT`.")
    if workers > 1 and redis is None:
        raise click.UsageError(
            f"`--workers {workers}` needs `--redis URL`: without it, a worker refuses the requests of sessions that "
            "another worker has started. Add `--redis`, or leave `--workers` out."
        )
    if workers > 1 and sys.platform == "win32":
        raise click.UsageError("`--workers` is not possible on Windows, where processes cannot share an address.")


def _is_given(name: str) -> bool:
    """Whether the option *name* is on the command line, and not only in the environment."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _cluster(redis: str) -> Cluster:
    from mcpgen.runtime.server.cluster.redis_cluster import Redis  # noqa: PLC0415 (in an extra)

    try:
        return Redis(redis)
    except UsageError as error:
        message = str(error).replace("`url` or `options` of Redis(…)", "`--redis`").replace("Redis(…)", "`--redis`")
        raise click.UsageError(f"{message}.") from None


def _protection(  # noqa: PLR0913 (the options)
    address: str | None,
    *,
    resource: str | None,
    issuers: tuple[str, ...],
    scopes: tuple[str, ...],
    audiences: tuple[str, ...],
    introspection: tuple[str, str] | None,
) -> Protect | None:
    """Return what the options about access tokens say; None if there are none.

    Raises:
        click.UsageError: They are incomplete or not valid.
    """
    if not (issuers or resource or scopes or audiences or introspection):
        return None
    if address is None or not issuers or resource is None:
        raise click.UsageError(
            "Access tokens need all of `--http HOST:PORT`, `--auth-issuer URL` and `--resource URL`, the public URL."
        )
    from mcpgen.runtime.http.server.auth.protection import Protect  # noqa: PLC0415 (most servers take no tokens)

    verify = None if introspection is None else _introspection(issuers, *introspection)
    try:
        return Protect(resource=resource, issuers=issuers, scopes=scopes, audience=audiences, verify=verify)
    except UsageError as error:
        message = str(error)
        for name, option in _PROTECT_OPTIONS.items():
            message = message.replace(f"`{name}`", f"`{option}`")
        raise click.UsageError(f"{message}.") from None


def _introspection(issuers: tuple[str, ...], id_variable: str, secret_variable: str) -> Introspection:
    """Return how to ask the authorization server about tokens, with credentials in environment variables.

    Raises:
        click.UsageError: A variable is not set, or there are several authorization servers.
    """
    from mcpgen.runtime.http.server.auth.introspection import Introspection  # noqa: PLC0415 (as above)

    if len(issuers) > 1:
        raise click.UsageError(
            "`--auth-introspection` needs a single `--auth-issuer`: opaque tokens do not name their issuer."
        )
    values = [os.environ.get(each, "") for each in (id_variable, secret_variable)]
    for name, value in zip((id_variable, secret_variable), values, strict=True):
        if not value:
            shown = escaped_line(name)
            raise click.UsageError(f"The environment variable {shown} (`--auth-introspection`) is not set, or empty.")
    return Introspection(client_id=values[0], client_secret=values[1])
