"""The ``mcpgen`` command: one table of commands, each loaded from its room when it is called.

This is the one module that knows more than one room. It imports none of them to print its help, to complete a
name or to report a version, so that a command costs the start-up time of its own room alone and a missing extra
is noticed by the commands that need it and by nobody else.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

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
    "build": Entry("mcpgen.codegen.commands:build", "codegen", "Write the bindings of one or more revisions."),
    "check": Entry("mcpgen.codegen.commands:check", "codegen", "Fail if the bindings differ from a fresh build."),
    "diff": Entry("mcpgen.codegen.diff_commands:diff", "codegen", "Report what changed between two revisions."),
    "adapt": Entry("mcpgen.runtime.commands:adapt", None, "Adapt a message from one revision to another."),
    "serve": Entry("mcpgen.runtime.serve_commands:serve", None, "Serve on standard input and output."),
    "inspect": Entry("mcpgen.runtime.look_commands:inspect", None, "Show what a server has."),
    "call": Entry("mcpgen.runtime.look_commands:call", None, "Call a tool of a server."),
    "read": Entry("mcpgen.runtime.look_commands:read", None, "Read a resource of a server."),
    "prompt": Entry("mcpgen.runtime.look_commands:prompt", None, "Show a prompt of a server, filled in."),
    "trace": Entry("mcpgen.runtime.trace_commands:trace", None, "Run a server, and tell what is said to it and by it."),
    "losses": Entry("mcpgen.codegen.adapters.commands:losses", "codegen", "Tell what is lost between revisions."),
    "schema": Entry("mcpgen.codegen.schema_commands:schema", "codegen", "List, add and verify schema documents."),
}


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
        super().__init__(name, help=help, no_args_is_help=True)
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        del ctx
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a stand-in, which is all that listing and completing need."""
        del ctx
        entry = self._entries.get(cmd_name)
        return None if entry is None else click.Command(cmd_name, help=entry.help, short_help=entry.help)

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
        """Run the called command, and say which extra to install if it lacks one."""
        with self._extras_explained(ctx):
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


main: click.Group = click.version_option(__version__, message="%(prog)s %(version)s")(
    LazyGroup("mcpgen", COMMANDS, help="Exact, typed bindings for every revision of the Model Context Protocol.")
)
