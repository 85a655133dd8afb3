"""The command ``install``: write the entry of a server into the configuration of a host."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.api.hosts.config import decode_config
from mcpgen.runtime.cli.hosts.entry_edit import EditError, current_entry, with_entry
from mcpgen.runtime.cli.hosts.file_replacement import FileSnapshot
from mcpgen.runtime.cli.hosts.host_files import HOSTS
from mcpgen.runtime.cli.hosts.server_check import check_server
from mcpgen.runtime.cli.target import parse_environment, split_object
from mcpgen.runtime.cli.terminal_text import escaped_line, sentence
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.transports.environment import HOME_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Container

    from mcpgen.runtime.cli.hosts.host_files import Host

__all__ = ["install"]

# What the difference shows in place of values that may be secret.
_HIDDEN: Final = "…"

# 128 and the number of SIGINT, as in shells.
_INTERRUPTED: Final = 130


@click.command(
    epilog="Exit status: 0 if the entry is in the file (also if it was there before) or was printed, 1 if FILE.py "
    "could not be loaded, the entry could not be written or you declined, 2 if the command was used wrongly, 130 after "
    "Ctrl-C."
)
@click.option("--host", "host_name", type=click.Choice(list(HOSTS)), required=True, help="The host to configure.")
@click.option(
    "--name", metavar="NAME", help="Name of the server in the host. Default: the name of the file, without .py."
)
@click.option(
    "--env", multiple=True, metavar="KEY=VALUE", help="Set an environment variable of the server. Repeatable."
)
@click.option("--project", is_flag=True, help="Write the configuration file of the project in the current folder.")
@click.option(
    "--file",
    "other_file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write this configuration file instead.",
)
@click.option("--print", "is_printed", is_flag=True, help="Print the entry, and change nothing.")
@click.option("--yes", is_flag=True, help="Write the entry without a question.")
@click.argument("target", metavar="FILE.py[:OBJECT]")
def install(  # noqa: PLR0913 (one parameter for each option)
    *,
    target: str,
    host_name: str,
    name: str | None,
    env: tuple[str, ...],
    project: bool,
    other_file: Path | None,
    is_printed: bool,
    yes: bool,
) -> None:
    """Write the server in FILE.py into the configuration of a host.

    The host then starts the server with this Python. The command first loads FILE.py in a process of its own. Then it
    shows the change of the configuration file, asks you, keeps a copy of this file, and writes it. It changes only the
    entry of this server.

    Example: mcpgen install server.py --host cursor --name shop
    """
    host = HOSTS[host_name]
    environment = parse_environment(env)
    command, arguments = _command(target)
    entry = host.entry(command, arguments, environment)
    chosen = Path(split_object(target)[0]).stem if name is None else name
    if not chosen.strip():
        raise click.UsageError("`--name` is empty.")
    try:
        json.dumps({chosen: entry}, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise click.UsageError("The path of the file, `--name` or `--env` is not valid UTF-8.") from None
    path = _path(host, other_file, is_project=project)
    if not is_printed and other_file is None and not project:
        _check_folder(host, path)
    try:
        check_server(target, environment)
        if is_printed:
            click.echo(f"Add this to {escaped_line(path)}:", err=True)
            click.echo(_json_for_output({host.section: {chosen: entry}}))
        else:
            _install(host, path, chosen, entry, is_confirmed=yes)
    except UsageError as error:
        raise click.ClickException(sentence(error)) from None
    except (KeyboardInterrupt, click.Abort):  # `click.confirm` raises `Abort` at Ctrl-C
        click.echo("\nNothing was changed.", err=True)
        raise SystemExit(_INTERRUPTED) from None


def _json_for_output(value: dict[str, Any]) -> str:
    """Return *value* as JSON, in ASCII if the encoding of the output lacks a character: Python escapes otherwise."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def _command(target: str) -> tuple[str, list[str]]:
    """Return the program and the arguments that serve *target* from any folder.

    Raises:
        click.UsageError: It names no file.
    """
    file, rest = split_object(target)
    if not file.endswith(".py"):
        raise click.UsageError(f"{escaped_line(file)} is not a Python file; write FILE.py or FILE.py:OBJECT.")
    path = Path(file)
    if not path.is_file():
        raise click.UsageError(f"There is no file {escaped_line(file)}.")
    # -P: a folder or file "mcpgen" in the folder where the host runs must not be taken for the package.
    return sys.executable, ["-P", "-m", "mcpgen", "serve", f"{path.absolute()}{rest}"]


def _path(host: Host, other: Path | None, *, is_project: bool) -> Path:
    """Return the file to write.

    Raises:
        click.UsageError: The options contradict each other, or the host has no such file.
    """
    if other is not None:
        if is_project:
            raise click.UsageError("Give either `--project` or `--file`, not both.")
        try:
            return other.expanduser()
        except RuntimeError:
            has_no_home = other.parts[0] == "~"
            reason = f"this user has no home folder; set {HOME_VARIABLE}" if has_no_home else "there is no such user"
            raise click.UsageError(f"{escaped_line(other)}: {reason}.") from None
    if not is_project:
        return host.user_file()
    if host.project_file is None:
        raise click.UsageError(f"{host.title} has no file for projects; leave out `--project`.")
    return Path(host.project_file).absolute()


def _check_folder(host: Host, path: Path) -> None:
    """Check that the host has been used here.

    Raises:
        click.UsageError: The folder of its file is missing.
    """
    if not path.parent.is_dir():
        folder = escaped_line(path.parent)
        raise click.UsageError(f"There is no folder {folder}. Start {host.title} once, or name its file with `--file`.")


def _install(host: Host, path: Path, name: str, entry: dict[str, Any], *, is_confirmed: bool) -> None:
    """Write *entry*, if the user agrees.

    Raises:
        UsageError: The file cannot be changed.
    """
    # A project need not have a folder of the host yet, such as .vscode.
    is_project = host.project_file is not None and path == Path(host.project_file).absolute()
    snapshot = FileSnapshot(path, makes_folder=is_project)
    shown = escaped_line(snapshot.path)
    data = snapshot.data or b""
    text = decode_config(data, shown)
    try:
        old = current_entry(text, host.section, name)
        if old == entry:
            click.echo(f"{shown} has this entry already; nothing to change.")
            return
        new = with_entry(text, host.section, name, entry)
    except EditError as error:
        raise UsageError(f"{shown} cannot be changed: {error}") from None
    snapshot.check_writable()
    click.echo(_difference(shown, host.section, name, old, entry))
    if not is_confirmed and not _is_confirmed(f"Write this into the configuration of {host.title}?"):
        raise UsageError("nothing was changed")
    mark = data[: len(data) - len(text.encode("utf-8"))]  # a byte order mark
    backup = snapshot.replace(mark + new.encode("utf-8"))
    click.echo(f"Wrote {shown}." + (f" The old content is in {escaped_line(backup.name)}." if backup else ""))
    click.echo(host.advice.format(name=escaped_line(name)))


def _is_confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at, so nothing was changed; add `--yes` to agree")
    return click.confirm(question, err=True)


def _difference(shown: str, section: str, name: str, old: object, new: dict[str, Any]) -> str:
    """Return the difference between two entries. No other part of the file changes, so no other part is shown."""
    # The arguments of the new entry hold a path only, and those of the old one perhaps a token.
    is_same = is_object(old) and old.get("args") == new["args"]
    after = _lines(name, _without_secrets(new, ("type", "command", "args")))
    before = _lines(name, _without_secrets(old, ("type", "command", "args") if is_same else ("type", "command")))
    before = [] if old is None else before
    lines = list(difflib.unified_diff(before, after, lineterm="", n=len(before) + len(after)))[3:]
    if not lines:
        lines = ["  (values of environment variables change)"]
    change = "add {} to" if old is None else "change {} in"
    if any(_HIDDEN in each for each in lines):
        lines += ["", f"{_HIDDEN} stands for values that are not shown, because they can contain secrets."]
    heading = f"This will {change.format(escaped_line(name))} `{section}` of {shown}:"
    return "\n".join([heading, "", *lines, ""])


def _lines(name: str, value: object) -> list[str]:
    return [escaped_line(each) for each in json.dumps({name: value}, indent=2, ensure_ascii=False).split("\n")[1:-1]]


def _without_secrets(entry: object, shown: Container[str]) -> object:
    """Return *entry* with the values of the keys in *shown* only."""
    if not is_object(entry):
        return _HIDDEN
    return {key: value if key in shown else _hidden(value) for key, value in entry.items()}


def _hidden(value: object) -> object:
    return dict.fromkeys(value, _HIDDEN) if is_object(value) else _HIDDEN
