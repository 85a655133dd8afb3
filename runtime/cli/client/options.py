"""The options that the commands of a client have in common."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypeVar

import click

from mcpgen.runtime.cli.completion_command import complete_target
from mcpgen.runtime.cli.hosts.config_option import CONFIG, SERVER_NAME, ConfigOptions, ServerCommand
from mcpgen.runtime.cli.number_type import WholeNumber
from mcpgen.runtime.cli.terminal_text import escaped_line
from mcpgen.runtime.protocol.log_levels import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.log_levels import Level

__all__ = [
    "ArgumentsCommand",
    "CLIENT",
    "ClientOptions",
    "FOLDER",
    "MAX_ITEMS",
    "SERVER",
    "STATUS",
    "ServerOptions",
    "TARGET",
    "options_of",
]

F = TypeVar("F", bound="Callable[..., object]")


class _Seconds(click.FloatRange):
    """A positive number, without click's wording "float range"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return *value* as a number."""
        try:
            is_number = not math.isnan(float(value))
        except ValueError:
            is_number = False
        if not is_number:
            self.fail(f"{value!r} is not a number.", param, ctx)
        return super().convert(value, param, ctx)


_REVISION: Final = click.option(
    "--revision", metavar="REVISION", help="Use this revision only. Default: the newest that both sides support."
)
_JSON: Final = click.option("--json", "is_json", is_flag=True, help="Write what the server sent, as JSON.")
_TIMEOUT: Final = click.option(
    "--timeout",
    "seconds",
    type=_Seconds(0, min_open=True),
    metavar="SECONDS",
    help="Time limit for the start of the server, and for each request.",
)
_ENV: Final = click.option(
    "--env", multiple=True, metavar="KEY=VALUE", help="Set an environment variable of the server. Repeatable."
)
_CWD: Final = click.option(
    "--cwd", type=click.Path(exists=True, file_okay=False), metavar="DIR", help="Working directory of the server."
)
_HEADER: Final = click.option(
    "--header", "headers", multiple=True, metavar='"NAME: VALUE"', help="Send this header to the URL. Repeatable."
)
_BEARER: Final = click.option(
    "--bearer-env", metavar="VARIABLE", help="Read a bearer token from this environment variable. Send it to the URL."
)
_ROOT: Final = click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True),
    metavar="PATH",
    help="Offer this file or folder to the server as a root. Repeatable.",
)
_LOG_LEVEL: Final = click.option(
    "--log-level",
    type=click.Choice(list(LEVELS)),
    metavar="LEVEL",
    help=f"Show the server's log entries of this level and above on standard error. Levels: {', '.join(LEVELS)}.",
)
FOLDER: Final = click.option(
    "--output",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Save images, audio and other binary content in DIR.",
)
MAX_ITEMS: Final = click.option(
    "--max-items",
    type=WholeNumber(1),
    default=10_000,
    show_default=True,
    metavar="NUMBER",
    help="Read at most NUMBER items of each list of tools, resources or prompts.",
)
TARGET: Final = click.argument("target", metavar="TARGET", shell_complete=complete_target)

STATUS: Final = (
    "Exit status: 0 if it worked, 1 if the server failed or sent an error, 2 if the command was used wrongly."
)


def options_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that gives a command *options*, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


_NO_CACHE: Final = click.option(
    "--no-cache",
    is_flag=True,
    help="Do not use the file in which mcpgen remembers which servers need `initialize`.",
)
_QUIET: Final = click.option(
    "-q", "--quiet", is_flag=True, help="Hide the standard error of the server's process, unless the server fails."
)
SERVER: Final = (_QUIET, _NO_CACHE, _REVISION, _JSON, _TIMEOUT, _ENV, _CWD, _HEADER, _BEARER, CONFIG, SERVER_NAME)
CLIENT: Final = (*SERVER, _ROOT, _LOG_LEVEL)


class ArgumentsCommand(ServerCommand):
    """A command with the arguments ``KEY=VALUE`` of a tool or a prompt, which some users write as options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        given = list(args)  # click empties the other one
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            pair = self._as_pair(ctx, given, error.option_name)
            if not pair:
                raise
            message = f"No such option {error.option_name!r}. Write arguments as {pair}."
            raise click.UsageError(escaped_line(message), ctx) from None

    def _as_pair(self, ctx: click.Context, words: list[str], option: str) -> str:
        """Return ``KEY=VALUE`` for *option*; empty if it stands before the name of the tool or prompt."""
        index = next((at for at, word in enumerate(words) if word.startswith(option)), len(words))
        try:
            found, _, _ = self.make_parser(ctx).parse_args(words[:index])
        except click.UsageError:
            return ""
        names = [each.name for each in self.get_params(ctx) if isinstance(each, click.Argument) and each.nargs == 1]
        if not all(isinstance(found.get(name), str) for name in names):
            return ""
        _, equals, value = "".join(words[index : index + 1]).partition("=")
        if not equals:
            following = words[index + 1 : index + 2]
            value = next((word for word in following if not word.startswith("-") and "=" not in word), "VALUE")
        return f"{option.lstrip('-')}={value}"


class ServerOptions(ConfigOptions):
    """The values of `SERVER`."""

    quiet: bool
    no_cache: bool
    revision: str | None
    is_json: bool
    seconds: float | None
    env: tuple[str, ...]
    cwd: str | None
    headers: tuple[str, ...]
    bearer_env: str | None
    max_items: NotRequired[int]


class ClientOptions(ServerOptions):
    """The values of `CLIENT`."""

    roots: tuple[str, ...]
    log_level: Level | None
