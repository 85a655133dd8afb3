"""The command ``completion``: write a script that completes commands and options in a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from types import ModuleType

    from click.shell_completion import CompletionItem

__all__ = ["complete_target", "completion"]

_SHELLS: Final = ("bash", "zsh", "fish")

_PROGRAM: Final = "mcpgen"
_VARIABLE: Final = "_MCPGEN_COMPLETE"  # click reads this variable, which it names after the program


_EPILOG: Final = """\b
bash: add to ~/.bashrc     eval "$(mcpgen completion bash)"
zsh:  add to ~/.zshrc      eval "$(mcpgen completion zsh)"
fish: run once             mcpgen completion fish > ~/.config/fish/completions/mcpgen.fish
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Write a script that completes the commands and options of mcpgen in a shell."""
    completed = _shell_completion().get_completion_class(shell)
    click.echo(completed(context.find_root().command, {}, _PROGRAM, _VARIABLE).source())


def complete_target(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Let the shell complete the name of a file, which the server of most commands is."""
    del context, option
    return [_shell_completion().CompletionItem(incomplete, type="file")]


def _shell_completion() -> ModuleType:
    from click import shell_completion  # noqa: PLC0415 (every command imports this module)

    return shell_completion
