"""``--config FILE [--server NAME]`` of the client commands: a server of a host's configuration in place of TARGET.

Theory of operation. TARGET is the first argument of these commands. With ``--config``, the command has no such
argument, so the first word on the command line is that of the next one. `ServerCommand` therefore looks for the option
before click reads the arguments.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

import click

from mcpgen.runtime.api.hosts.config import parse_config, read_config
from mcpgen.runtime.cli.client.arguments import did_you_mean
from mcpgen.runtime.cli.target import StandardError, Target, parse_target
from mcpgen.runtime.cli.terminal_text import escaped_line, sentence
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.api.hosts.config import ServerEntry

__all__ = ["CONFIG", "ConfigOptions", "ServerCommand", "server_target"]

CONFIG: Final = (
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use a server of this configuration of a host, such as ~/.cursor/mcp.json, in place of TARGET.",
    ),
    click.option("--server", metavar="NAME", help="The name of the server in the configuration."),
)
"""The options."""

# Options that the entry of a server has instead.
_IN_ENTRY: Final = {"env": "--env", "cwd": "--cwd", "headers": "--header", "bearer_env": "--bearer-env"}

_KEY: Final = "mcpgen.config"


class ConfigOptions(TypedDict):
    """The values of the options."""

    config: Path | None
    server: str | None


class ServerCommand(click.Command):
    """A command whose argument TARGET is not there if the option ``--config`` is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        options = args[: args.index("--")] if "--" in args else args
        ctx.meta[_KEY] = any(each == "--config" or each.startswith("--config=") for each in options)
        rest = super().parse_args(ctx, args)
        ctx.params.setdefault("target", "")
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command."""
        params = super().get_params(ctx)
        return [each for each in params if each.name != "target"] if ctx.meta.get(_KEY) else params

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's own)
        """Run the command. Without ``--server``, ``inspect`` shows each server of the configuration."""
        config, is_json = ctx.params.get("config"), ctx.params.get("is_json")
        if config is None or ctx.params.get("server") is not None or self.name != "inspect" or is_json:
            return super().invoke(ctx)
        statuses: list[int] = []
        for entry in _entries(config):
            click.echo(("\n" if statuses else "") + f"=== {escaped_line(entry.name)} ===")
            ctx.params["server"] = entry.name
            try:
                super().invoke(ctx)
            except click.UsageError as error:
                click.echo(f"Error: {error.format_message()}", err=True)
                statuses.append(error.exit_code)
            except SystemExit as end:
                statuses.append(end.code if isinstance(end.code, int) else 1)
        raise SystemExit(max(statuses))


def server_target(words: Sequence[str], options: Mapping[str, Any]) -> Target:
    """Return the server that the options or *words*, the argument TARGET, name.

    Raises:
        click.UsageError: There is no such server, or it cannot be used.
    """
    config: Path | None = options["config"]
    name: str | None = options["server"]
    if config is None:
        if name is not None:
            raise click.UsageError("`--server` needs `--config`, which names the file.")
        return parse_target(words, options["env"], options["cwd"], options["headers"], options["bearer_env"])
    for key, option in _IN_ENTRY.items():
        if options[key]:
            raise click.UsageError(f"Give either `{option}` or `--config`: the configuration has this for each server.")
    entry = _chosen(_entries(config), name)
    if entry.ignored:
        ignored = ", ".join(escaped_line(each) for each in entry.ignored)
        click.echo(f"Note: keys of {escaped_line(entry.name)} without a meaning here: {ignored}", err=True)
    stderr = StandardError()
    try:
        transport = entry.transport(stderr.add)
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    return Target(transport, "url" if "url" in entry.settings else "command", stderr)


def _entries(config: Path) -> list[ServerEntry]:
    try:
        return parse_config(read_config(config))
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None


def _chosen(entries: list[ServerEntry], name: str | None) -> ServerEntry:
    names = [each.name for each in entries]
    listed = ", ".join(map(escaped_line, names))
    if name is None:
        if len(entries) > 1:
            raise click.UsageError(f"The configuration has several servers. Choose one with `--server`: {listed}")
        return entries[0]
    for each in entries:
        if each.name == name:
            return each
    hint = did_you_mean(name, names) or f" Its servers: {listed}"
    raise click.UsageError(f"The configuration has no server {escaped_line(name)!r}.{hint}")
