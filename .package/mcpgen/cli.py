"""The ``mcpgen`` command: one table of commands, each loaded from its room when it is called.

This is the one module that knows more than one room. It imports none of them to print its help, to complete a
name or to report a version, so that a command costs the start-up time of its own room alone and a missing extra
is noticed by the commands that need it and by nobody else. It also sees to the standard streams for all of them: one
that is closed, one that cannot be written, one that wants no colours.
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
    from collections.abc import Generator, Mapping

__all__ = ["main"]


class Entry(NamedTuple):
    """Where one command lives, and what it needs."""

    target: str  # "module:attribute"; the attribute is a click command
    extra: str | None  # the extra of the distribution that brings what the module imports
    help: str  # the line in `mcpgen --help`


# To add a command, add a line. The order is that of `mcpgen --help`.
COMMANDS: Mapping[str, Entry] = {
    "build": Entry("mcpgen.codegen.commands:build", "codegen", "Generate the bindings of revisions and the adapters."),
    "check": Entry("mcpgen.codegen.commands:check", "codegen", "Check that generated/ equals a fresh build."),
    "diff": Entry("mcpgen.codegen.diff_commands:diff", "codegen", "Report the differences between two revisions."),
    "adapt": Entry("mcpgen.runtime.cli.adapt_command:adapt", None, "Adapt a message from one revision to another."),
    "serve": Entry("mcpgen.runtime.cli.serve_command:serve", None, "Serve on standard input and output."),
    "inspect": Entry("mcpgen.runtime.cli.client_commands:inspect", None, "Show what a server has."),
    "call": Entry("mcpgen.runtime.cli.client_commands:call", None, "Call a tool of a server."),
    "read": Entry("mcpgen.runtime.cli.client_commands:read", None, "Read a resource of a server."),
    "prompt": Entry("mcpgen.runtime.cli.client_commands:prompt", None, "Show a prompt of a server, filled in."),
    "trace": Entry("mcpgen.runtime.cli.trace_command:trace", None, "Show the messages of a client and a server."),
    "losses": Entry("mcpgen.codegen.diff_commands:losses", "codegen", "List the losses between revisions."),
    "schema": Entry(
        "mcpgen.codegen.schema_commands:schema", "codegen", "List, add and verify vendored schema documents."
    ),
}

# What a shell says of a program that SIGPIPE has ended, as it ends most programs whose output nobody reads any more.
_NOBODY_READS = 128 + 13

# What writing to a full disk or to a terminal that is gone fails with.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class MissingExtra(click.ClickException):
    """A command needs a package that is not installed."""

    exit_code = 2  # as for any other way of calling us wrongly

    def __init__(self, *, command: str, module: str, extra: str) -> None:
        super().__init__(
            f'"mcpgen {command}" needs the module {module!r}, which is not installed.\n'
            f'Install it with: pip install "mcpgen[{extra}]"'
        )


class LazyGroup(click.Group):
    """A group whose commands are stand-ins with a name and a line of help, until one of them is called."""

    def __init__(self, name: str, entries: Mapping[str, Entry], *, help: str) -> None:  # noqa: A002 (click's own name)
        stand_ins = {
            each: click.Command(each, help=entry.help, short_help=entry.help) for each, entry in entries.items()
        }
        super().__init__(name, commands=stand_ins, help=help, no_args_is_help=True)
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
        """Make the context of all commands, which says whether ``click.echo`` may use colours, and read *args*."""
        _open_closed_streams()
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            extra.setdefault("color", False)
        with _lost_output_explained():
            return super().make_context(info_name, args, parent, **extra)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Load the command that *args* calls.

        Raises:
            MissingExtra: The command's module imports a package that is not installed.
        """
        name, stand_in, rest = super().resolve_command(ctx, args)
        if stand_in is None or stand_in.name is None:  # click, while completing an unknown name
            return name, stand_in, rest
        ctx.invoked_subcommand = stand_in.name  # so that invoke, below, can name it if loading fails
        return name, self._load(stand_in.name), rest

    def invoke(self, ctx: click.Context) -> object:
        """Run the called command, and say which extra to install if it lacks one, and where output was lost."""
        with _lost_output_explained(), self._extras_explained(ctx):
            return super().invoke(ctx)

    def _load(self, name: str) -> click.Command:
        module, _, attribute = self._entries[name].target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    @contextmanager
    def _extras_explained(self, ctx: click.Context) -> Generator[None]:
        # Around the whole call rather than the import of the command's module: code may import what it needs when it
        # comes to need it.
        try:
            yield
        except ModuleNotFoundError as error:
            command = ctx.invoked_subcommand or ""
            entry = self._entries.get(command)
            module = error.name or "mcpgen"
            if entry is None or entry.extra is None or module.partition(".")[0] == "mcpgen":
                raise  # a defect of ours, which no extra mends
            raise MissingExtra(command=command, module=module, extra=entry.extra) from error


def _open_closed_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Then nobody has to ask whether there is one, and no file that is opened later gets its number and what is meant for
    it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            # Open to the end, as those of the interpreter are.
            setattr(sys, name, open(null, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 (see above)


@contextmanager
def _lost_output_explained() -> Generator[None]:
    """Exit if the standard output cannot be written: in silence if nobody reads it, otherwise with the reason."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            status = _NOBODY_READS
        elif error.errno in _UNWRITABLE and error.filename is None:  # who writes to files says so of them
            status = 1
            with suppress(OSError):  # the standard error may be full as well
                click.echo(f"error: cannot write to the standard output: {error.strerror}", err=True)
        else:
            raise
        _forget_buffered()
        raise SystemExit(status) from None


def _forget_buffered() -> None:
    """Lead the outputs to nowhere: the interpreter writes at its end what they still hold, and would fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # it was replaced by something that has no descriptor
            os.dup2(null, stream.fileno())
    os.close(null)


main: click.Group = click.version_option(__version__, message="%(prog)s %(version)s")(
    LazyGroup("mcpgen", COMMANDS, help="Exact, typed bindings for every revision of the Model Context Protocol.")
)
