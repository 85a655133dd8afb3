"""``--config FILE [--server NAME]`` of the client commands and `trace`: a server of a host in place of TARGET.

Theory of operation. TARGET is the first argument of these commands. With ``--config``, the command has no such
argument, so the first word on the command line is that of the next one. `ServerCommand` therefore looks for the option
before click reads the arguments. `TraceCommand` looks for it only before the command of the server, whose words may be
options, too.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import click

from mcpgen.runtime.api.hosts.config import parse_config, read_config
from mcpgen.runtime.cli.client.arguments import did_you_mean
from mcpgen.runtime.cli.target import StandardError, Target, parse_target, split_object
from mcpgen.runtime.cli.terminal_text import as_json, escaped_line, sentence
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.transports.command_line import is_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.api.hosts.config import ServerEntry

__all__ = [
    "CONFIG",
    "ConfigOptions",
    "SERVER_NAME",
    "ServerCommand",
    "TRACE_CONFIG",
    "TraceCommand",
    "chosen_entry",
    "server_target",
]

CONFIG: Final = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="In place of TARGET: a configuration of a host, such as ~/.cursor/mcp.json. If it has several servers, "
    "--server chooses one.",
)
TRACE_CONFIG: Final = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="In place of COMMAND or URL: a configuration of a host, such as ~/.cursor/mcp.json. The command uses its only "
    "server, or the one that --server names.",
)
SERVER_NAME: Final = click.option(
    "--server", metavar="NAME", help="With --config: the name of the server in the configuration."
)

# Options that the entry of a server has instead.
_IN_ENTRY: Final = {"env": "--env", "cwd": "--cwd", "headers": "--header", "bearer_env": "--bearer-env"}

# Programs that are no servers themselves.
_RUNNERS: Final = frozenset({"bunx", "deno", "docker", "node", "npx", "python", "uv", "uvx"})

_NO_CONFIG: Final = "`--server` needs `--config`, which names the file."

_KEY: Final = "mcpgen.config"


class ConfigOptions(TypedDict):
    """The values of the options."""

    config: Path | None
    server: str | None


def _is_runner(word: str) -> bool:
    """Whether a program only runs others, such as ``python`` or ``npx``."""
    return Path(word).name.rstrip(".0123456789") in _RUNNERS


def _open_command(program: str, ctx: click.Context) -> click.UsageError:
    shown = escaped_line(program)
    text = f'TARGET is only {shown!r}. Put the whole command of the server in quotes: "{shown} …".'
    return click.UsageError(text, ctx)


class ServerCommand(click.Command):
    """A command whose argument TARGET is not there if the option ``--config`` is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        options = args[: args.index("--")] if "--" in args else list(args)  # click empties the list that it gets
        ctx.meta[_KEY] = self._has_config(ctx, args)
        if ctx.meta[_KEY] and not ctx.resilient_parsing:
            self._refuse_target(ctx, args)
        elif not ctx.resilient_parsing:
            self._refuse_open_command(ctx, args)
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption:
            first = next((each for each in options if not each.startswith("-")), "")
            if not _is_runner(first):
                raise
            raise _open_command(first, ctx) from None  # the option is one of the server's command
        except click.MissingParameter as error:
            is_given = any(each == "--server" or each.startswith("--server=") for each in options)
            if ctx.meta[_KEY] or not is_given or error.param is None or error.param.name != "target":
                raise
            raise click.UsageError(_NO_CONFIG, ctx) from None
        ctx.params.setdefault("target", "")
        return rest

    def _has_config(self, ctx: click.Context, args: list[str]) -> bool:
        """Whether the option is there."""
        del ctx  # for `TraceCommand`
        options = args[: args.index("--")] if "--" in args else args
        return any(each == "--config" or each.startswith("--config=") for each in options)

    def _refuse_target(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse a word that is TARGET: without this, it would be reported as a wrong argument of another kind.

        The message shows only the path of a file: URLs and commands may have secrets.

        Raises:
            click.UsageError: There is such a word.
        """
        given, more, _ = self.make_parser(ctx).parse_args(args=list(args))
        names = [each.name for each in self.get_params(ctx) if isinstance(each, click.Argument)]
        if not names:
            word = more[0] if more else ""
        else:  # the first word is a tool, for example, unless there is one word too many
            found = given.get("arguments")  # click has a marker of its own for none
            pairs = cast("Sequence[str]", found) if isinstance(found, list | tuple) else ()
            is_too_many = bool(more) or (len(pairs) > 0 and "=" not in pairs[0])
            first = given.get(names[0] or "")
            word = first if is_too_many and isinstance(first, str) and _is_like_target(first) else ""
        if word:
            shown = escaped_line(word) if _is_python_file(word) else "TARGET"
            raise click.UsageError(f"`--config` replaces TARGET; leave out {shown}.")

    def _refuse_open_command(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse a command without quotes, if TARGET is one word: its other words would be a tool, for example.

        Raises:
            click.UsageError: TARGET is only a program that runs others.
        """
        try:
            target = self.make_parser(ctx).parse_args(args=list(args))[0].get("target")
        except click.UsageError:  # reported when click reads the command line
            return
        if isinstance(target, str) and _is_runner(target):
            raise _open_command(target, ctx)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command."""
        params = super().get_params(ctx)
        return [each for each in params if each.name != "target"] if ctx.meta.get(_KEY) else params

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's own)
        """Run the command. Without ``--server``, ``inspect`` shows each server of the configuration."""
        config = ctx.params.get("config")
        if config is None or ctx.params.get("server") is not None or self.name != "inspect":
            return super().invoke(ctx)
        entries = _entries(config)
        raise SystemExit(self._as_json(ctx, entries) if ctx.params.get("is_json") else self._as_text(ctx, entries))

    def _as_text(self, ctx: click.Context, entries: list[ServerEntry]) -> int:
        """Show all servers, and return the exit status."""
        status = 0
        for entry in entries:
            click.echo(("" if entry is entries[0] else "\n") + f"=== {escaped_line(entry.name)} ===")
            if entry.is_disabled:
                click.echo("disabled in the configuration")
            else:
                status = max(status, self._invoke_for(ctx, entry))
        return status

    def _as_json(self, ctx: click.Context, entries: list[ServerEntry]) -> int:
        """Write one object with the JSON of all servers, and return the exit status."""
        status = 0
        servers: dict[str, Any] = {}
        for entry in entries:
            name = entry.name.encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair has no UTF-8
            if entry.is_disabled:
                servers[name] = {"disabled": True}
                continue
            written = BytesIO()
            output = TextIOWrapper(written, "utf-8", write_through=True)  # its end closes *written*
            with redirect_stdout(output):
                status = max(status, self._invoke_for(ctx, entry))
            servers[name] = json.loads(written.getvalue() or "null")
        click.echo(as_json(servers, is_pretty=sys.stdout.isatty()))
        return status

    def _invoke_for(self, ctx: click.Context, entry: ServerEntry) -> int:
        """Run the command for one server, and return the exit status."""
        ctx.params["server"] = entry.name
        try:
            super().invoke(ctx)
        except click.UsageError as error:
            click.echo(f"Error: {error.format_message()}", err=True)
            return error.exit_code
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
        return 0


class TraceCommand(ServerCommand):
    """A command whose argument TARGET is the command of a server, the rest of the command line."""

    def _has_config(self, ctx: click.Context, args: list[str]) -> bool:
        try:
            given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        except click.UsageError:  # reported when click reads the command line
            return False
        return isinstance(given.get("config"), str)

    def _refuse_target(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse a command or a URL. The message does not show it, since it may have secrets.

        Raises:
            click.UsageError: There is one.
        """
        if self.make_parser(ctx).parse_args(args=list(args))[1]:
            raise click.UsageError("`--config` replaces the command or the URL; leave that out.")


def server_target(words: Sequence[str], options: Mapping[str, Any]) -> Target:
    """Return the server that the options or *words*, the argument TARGET, name.

    Raises:
        click.UsageError: There is no such server, or it cannot be used.
    """
    config: Path | None = options["config"]
    name: str | None = options["server"]
    if config is None:
        if name is not None:
            raise click.UsageError(_NO_CONFIG)
        return parse_target(words, options["env"], options["cwd"], options["headers"], options["bearer_env"])
    entry = chosen_entry(config, name, options)
    stderr = StandardError()
    try:
        transport = entry.transport(stderr.add)
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    return Target(transport, "url" if "url" in entry.settings else "server", stderr)


def chosen_entry(config: Path, name: str | None, options: Mapping[str, Any]) -> ServerEntry:
    """Return the entry of the server *name*, or of the only server, and note its keys that are not used.

    Args:
        config: The file.
        name: The name of the server; None if the user gave none.
        options: The options of the command, some of which the entry has instead.

    Raises:
        click.UsageError: There is no such server, it is disabled, or an option cannot be used with it.
    """
    for key, option in _IN_ENTRY.items():
        if options.get(key):
            raise click.UsageError(
                f"Give either `{option}` or `--config`: with `--config`, change the entry of the server in FILE."
            )
    entry = _chosen(_entries(config), name)
    if entry.is_disabled:
        shown = escaped_line(entry.name)
        raise click.UsageError(f"The server {shown!r} is disabled in the configuration; remove its key `disabled`.")
    if entry.ignored:
        ignored = ", ".join(escaped_line(each) for each in entry.ignored)
        click.echo(f"Note: the server {escaped_line(entry.name)!r} has keys that are not used: {ignored}", err=True)
    return entry


def _is_like_target(word: str) -> bool:
    """Whether *word* is a URL, a Python file or a command, rather than the name of a tool or a prompt."""
    return is_url(word) or _is_python_file(word) or " " in word


def _is_python_file(word: str) -> bool:
    return not is_url(word) and split_object(word)[0].endswith(".py")


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
