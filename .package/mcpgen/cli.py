"""The ``mcpgen`` command: a table of commands, each imported when it is called.

This is the only module that knows both ``codegen`` and ``runtime``. It imports neither for ``--help``, ``--version``
and completion of names. So each command pays only for its own imports, and a missing extra affects only the commands
that need it. This module also handles closed standard streams, output that cannot be written or encoded, names that are
too long for a file, and ``NO_COLOR``.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mcpgen import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

__all__ = ["main"]


class Entry(NamedTuple):
    """The location of one command, and the extra that it needs."""

    target: str  # "module:attribute"; the attribute is a click command
    extra: str | None  # the extra that installs what the module imports
    help: str  # the line in `mcpgen --help`


_CLI = "mcpgen.runtime.cli"

# To add a command, add a line. The order is that of `mcpgen --help`.
COMMANDS: Mapping[str, Entry] = {
    "build": Entry("mcpgen.codegen.commands:build", "codegen", "Generate the bindings of revisions, and adapters."),
    "check": Entry("mcpgen.codegen.commands:check", "codegen", "Check that generated/ equals a fresh build."),
    "diff": Entry("mcpgen.codegen.diff_commands:diff", "codegen", "Report the differences between two revisions."),
    "adapt": Entry(f"{_CLI}.adapt_command:adapt", None, "Adapt a message from one revision to another."),
    "serve": Entry(f"{_CLI}.serve_command:serve", None, "Run a server on stdio or over HTTP."),
    "inspect": Entry(f"{_CLI}.client_commands:inspect", None, "List the tools, resources and prompts of a server."),
    "call": Entry(f"{_CLI}.client_commands:call", None, "Call a tool of a server."),
    "read": Entry(f"{_CLI}.client_commands:read", None, "Read a resource of a server."),
    "prompt": Entry(f"{_CLI}.client_commands:prompt", None, "Get a prompt of a server."),
    "login": Entry(f"{_CLI}.login_command:login", None, "Log in to a server at a URL."),
    "logout": Entry(f"{_CLI}.login_command:logout", None, "Forget the login to a server at a URL."),
    "trace": Entry(f"{_CLI}.trace_command:trace", None, "Show the messages between a host and a server."),
    "install": Entry(f"{_CLI}.hosts.install_command:install", None, "Write a server into a host's configuration."),
    "losses": Entry("mcpgen.codegen.diff_commands:losses", "codegen", "List the losses between revisions."),
    "schema": Entry("mcpgen.codegen.schema_commands:schema", "codegen", "List, add and verify schema documents."),
    "completion": Entry(f"{_CLI}.completion_command:completion", None, "Write a completion script for a shell."),
}

# The exit status that a shell reports for a program ended by SIGPIPE, as most programs end when their reader is gone.
_SIGPIPE_STATUS = 128 + 13

# Errors of writing to a full disk, or to a terminal that is gone.
_WRITE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class MissingExtra(click.ClickException):
    """A command needs a package that is not installed."""

    exit_code = 2  # as for other usage errors

    def __init__(self, *, command: str, module: str, extra: str) -> None:
        super().__init__(
            f'"mcpgen {command}" needs the module {module!r}, which is not installed.\n'
            f'Install it with: pip install "mcpgen[{extra}]"'
        )


class LazyGroup(click.Group):
    """A group that imports a command when it is called; until then, a placeholder holds its name and help line."""

    def __init__(
        self,
        name: str,
        entries: Mapping[str, Entry],
        *,
        help: str,  # noqa: A002 (click's own name)
        params: list[click.Parameter] | None = None,
    ) -> None:
        placeholders = {
            each: click.Command(each, help=entry.help, short_help=entry.help) for each, entry in entries.items()
        }
        super().__init__(name, commands=placeholders, params=params, help=help, no_args_is_help=True)
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        del ctx
        return list(self._entries)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 (click's own)
    ) -> click.Context:
        """Prepare the standard streams, decide whether ``click.echo`` may use colours, and parse *args*."""
        _open_closed_streams()
        _escape_what_the_output_lacks()
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            extra.setdefault("color", False)
        with _write_errors_handled():
            return super().make_context(info_name, args, parent, **extra)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that *args* names.

        Raises:
            MissingExtra: The command's module imports a package that is not installed.
        """
        name, placeholder, rest = super().resolve_command(ctx, args)
        if placeholder is None or placeholder.name is None:  # click, while completing an unknown name
            return name, placeholder, rest
        ctx.invoked_subcommand = placeholder.name  # `_extras_explained` names it if the import fails
        return name, self._load(placeholder.name), rest

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Report a missing extra, and output that cannot be written."""
        with _write_errors_handled(), self._extras_explained(ctx):
            return super().invoke(ctx)

    def _load(self, name: str) -> click.Command:
        module, _, attribute = self._entries[name].target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    @contextmanager
    def _extras_explained(self, ctx: click.Context) -> Generator[None]:
        # This covers the whole call, not only the import of the command's module: commands import some modules late.
        try:
            yield
        except ModuleNotFoundError as error:
            command = ctx.invoked_subcommand or ""
            entry = self._entries.get(command)
            module = error.name or "mcpgen"
            if entry is None or entry.extra is None or module.partition(".")[0] == "mcpgen":
                raise  # a bug in mcpgen: installing an extra does not help
            raise MissingExtra(command=command, module=module, extra=entry.extra) from error


def _open_closed_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Otherwise `sys.stdout` could be None, and a file opened later could get the descriptor number of a standard stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            # Never closed, like the interpreter's own streams.
            setattr(sys, name, open(null, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 (see above)


def _escape_what_the_output_lacks() -> None:
    """Write an escape to the standard output for each character that its encoding lacks, as Python does for errors.

    Otherwise a name of a file or of a document could end a command with a traceback.
    """
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and sys.stdout.errors == "strict":
        reconfigure(errors="backslashreplace")


@contextmanager
def _write_errors_handled() -> Generator[None]:
    """Exit if a name is too long for a file, or if the standard output cannot be written.

    The exit is silent if the reader of the standard output is gone. Otherwise there is a message.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            status = _SIGPIPE_STATUS
        elif error.errno in _WRITE_ERRORS and error.filename is None:  # a file name: commands report that themselves
            status = 1
            with suppress(OSError):  # the standard error may be full as well
                click.echo(f"Error: cannot write to the standard output: {error.strerror}", err=True)
        elif error.errno == errno.ENAMETOOLONG and error.filename is not None:  # any argument can be such a name
            raise click.ClickException(f"{os.fspath(error.filename)!r}: {error.strerror}.") from None
        else:
            raise
        _discard_buffered()
        raise SystemExit(status) from None


def _discard_buffered() -> None:
    """Redirect both outputs to the null device: the interpreter flushes their buffers at exit, and would fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the stream was replaced by an object without a descriptor
            os.dup2(null, stream.fileno())
    os.close(null)


def _register(ctx: click.Context, option: click.Parameter, packages: tuple[str, ...]) -> None:
    """Register the *packages* of drafts, before the command that works with them is imported."""
    del ctx
    if not packages:
        return
    from mcpgen.runtime.adapt.registration import register  # noqa: PLC0415 - most commands run without it
    from mcpgen.runtime.errors import UsageError  # noqa: PLC0415

    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as `python -m` does; a script's own folder is there instead
    for package in packages:
        try:
            register(package)
        except (ImportError, UsageError) as error:
            raise click.BadParameter(str(error), param=option) from error


_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--register"],
        multiple=True,
        metavar="PACKAGE",
        expose_value=False,
        callback=_register,
        help="Add the revision of PACKAGE, so that adapt, serve, inspect, call, read, prompt and trace can use it. "
        "PACKAGE is the full name of a package that `mcpgen build --schema` wrote. Repeatable.",
    )
]

main: click.Group = click.version_option(__version__, message="%(prog)s %(version)s")(
    LazyGroup(
        "mcpgen", COMMANDS, params=_OPTIONS, help="Generate typed bindings for MCP; run, inspect and call MCP servers."
    )
)
