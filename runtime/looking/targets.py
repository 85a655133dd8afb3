"""What a command line says of a server: how it is started, and what people call that."""

from __future__ import annotations

import os
import shutil
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.looking.rendering import shown
from mcpgen.runtime.transports.command_lines import join_command
from mcpgen.runtime.transports.process import Process

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Target", "target_of"]

_SERVE: Final = "from mcpgen.runtime.serve_commands import serve; serve(prog_name='mcpgen serve')"

# Where Python finds modules: whoever set these for us meant their server, too, if we find it in their file.
_OF_PYTHON: Final = ("PYTHONPATH", "PYTHONHOME")

_MOST_LINES: Final = 12


class Target:
    """A server to be started.

    Attributes:
        name: The command, as people write it.
        process: How it is started.
        is_file: Whether it is found in a Python file, as ``mcpgen serve`` does.

    Args:
        words: The program and its arguments, or a string to be split.
        environment: What is set in its environment.
        directory: Where it runs; None for where we do.
        name: Its name, if that is not the command.
    """

    def __init__(
        self,
        words: str | Sequence[str],
        environment: dict[str, str],
        directory: str | None,
        name: str | None = None,
    ) -> None:
        self._printed: deque[str] = deque(maxlen=_MOST_LINES)
        try:
            self.process: Process = Process(
                words, environment=environment, directory=directory, on_stderr=self._printed.append
            )
        except UsageError as error:
            raise click.UsageError(shown(f"{error}.")) from None
        self.name: str = self.process.description if name is None else name
        self.is_file: bool = name is not None

    @property
    def last_words(self) -> list[str]:
        """The last lines that the server has printed as errors."""
        return [each for each in self._printed if each.strip()]


def target_of(words: Sequence[str], environment: Sequence[str], directory: str | None) -> Target:
    """Return what the command line means.

    Args:
        words: One: a command, quoted, or ``FILE.py[:OBJECT]``; or several: a program and its arguments.
        environment: ``KEY=VALUE`` each.
        directory: Where the server runs.

    Raises:
        click.UsageError: It makes no sense.
    """
    given = _environment(environment)
    if len(words) > 1:
        return Target(list(words), given, directory)
    (word,) = words
    if word.startswith(("http://", "https://")):
        raise click.UsageError(f"{shown(word)} is an address; servers are reached by a command, or FILE.py.")
    if _is_file(word):
        if not Path(_parted(word)[0]).is_file():
            raise click.UsageError(f"There is no file {shown(_parted(word)[0])}.")
        ours = {name: os.environ[name] for name in _OF_PYTHON if name in os.environ}
        command = [sys.executable, "-P", "-c", _SERVE, _absolute(word) if directory else word]
        return Target(command, {**ours, **given}, directory, join_command(["mcpgen", "serve", word]))
    return Target([word] if shutil.which(word) is not None else word, given, directory)


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (equals and name):  # what was given is not shown: it may be the secret alone
            raise click.UsageError("--env takes KEY=VALUE.")
        made[name] = value
    return made


def _is_file(word: str) -> bool:
    """Whether *word* is ``FILE.py`` or ``FILE.py:OBJECT``; no command ends so, but for a script without arguments."""
    origin, colon, name = word.rpartition(":")
    if colon and len(origin) > 1 and origin.endswith(".py") and name.replace(".", "_").isidentifier():
        return " " not in origin or Path(origin).is_file()
    return word.endswith(".py") and (" " not in word or Path(word).is_file())


def _parted(word: str) -> tuple[str, str]:
    """Return the file, and the object with the colon before it."""
    origin, colon, name = word.rpartition(":")
    return (origin, f":{name}") if colon and origin.endswith(".py") else (word, "")


def _absolute(word: str) -> str:
    file, rest = _parted(word)
    return f"{Path(file).resolve()}{rest}"
