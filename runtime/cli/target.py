"""What a command line says of a server: how it is started, or where it is, and what people call that."""

from __future__ import annotations

import os
import shutil
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from mcpgen.runtime.cli.terminal_text import escaped_line
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.bearer_auth import bearer
from mcpgen.runtime.http.client.transport import Http
from mcpgen.runtime.transports.command_line import is_url, join_command
from mcpgen.runtime.transports.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcpgen.runtime.transports.interfaces import Transport

__all__ = ["Target", "at_url", "target_of"]

_SERVE: Final = "from mcpgen.runtime.cli.serve_command import serve; serve(prog_name='mcpgen serve')"

# Where Python finds modules: whoever set these for us meant their server, too, if we find it in their file.
_OF_PYTHON: Final = ("PYTHONPATH", "PYTHONHOME")

_MOST_LINES: Final = 12


class Target:
    """A server to be visited.

    Attributes:
        name: Its command, as people write it, or its URL without what may be secret.
        place: Which of the two that is.
        transport: How it is reached.
        is_file: Whether it is found in a Python file, as ``mcpgen serve`` does.

    Args:
        transport: How it is reached.
        place: Whether that is by a command.
        printed: Where the lines go that its process prints as errors.
        name: Its name, if that is not what the transport calls it.
    """

    def __init__(
        self,
        transport: Transport,
        place: Literal["command", "url"],
        printed: Iterable[str] = (),
        name: str | None = None,
    ) -> None:
        self.transport: Transport = transport
        self.place: Literal["command", "url"] = place
        self.name: str = transport.description if name is None else name
        self.is_file: bool = name is not None
        self._printed = printed

    @property
    def last_words(self) -> list[str]:
        """The last lines that the server has printed as errors."""
        return [each for each in self._printed if each.strip()]


def _started(
    words: str | Sequence[str], environment: dict[str, str], directory: str | None, name: str | None = None
) -> Target:
    printed: deque[str] = deque(maxlen=_MOST_LINES)
    try:
        process = Process(words, environment=environment, directory=directory, on_stderr=printed.append)
    except UsageError as error:
        raise click.UsageError(escaped_line(f"{error}.")) from None
    return Target(process, "command", printed, name)


def target_of(
    words: Sequence[str],
    environment: Sequence[str],
    directory: str | None,
    headers: Sequence[str] = (),
    bearer_variable: str | None = None,
) -> Target:
    """Return what the command line means.

    Args:
        words: One: a URL, a command, quoted, or ``FILE.py[:OBJECT]``; or several: a program and its arguments.
        environment: ``KEY=VALUE`` each; of a command.
        directory: Where the server runs; of a command.
        headers: ``Name: value`` each; of a URL.
        bearer_variable: The variable of our environment that has the token; of a URL.

    Raises:
        click.UsageError: It makes no sense.
    """
    if len(words) == 1 and is_url(words[0]):
        if environment or directory is not None:
            raise click.UsageError("A server at a URL runs already: --env and --cwd are for commands.")
        return Target(at_url(words[0], headers, bearer_variable), "url")
    if headers or bearer_variable is not None:
        raise click.UsageError("A command is given no headers: --header and --bearer-env are for URLs.")
    given = _environment(environment)
    if len(words) > 1:
        return _started(list(words), given, directory)
    (word,) = words
    if _is_file(word):
        if not Path(_parted(word)[0]).is_file():
            raise click.UsageError(f"There is no file {escaped_line(_parted(word)[0])}.")
        ours = {name: os.environ[name] for name in _OF_PYTHON if name in os.environ}
        command = [sys.executable, "-P", "-c", _SERVE, _absolute(word) if directory else word]
        return _started(command, {**ours, **given}, directory, join_command(["mcpgen", "serve", word]))
    return _started([word] if shutil.which(word) is not None else word, given, directory)


def at_url(url: str, headers: Sequence[str], bearer_variable: str | None) -> Http:
    """Return how a server at *url* is reached.

    Args:
        url: Of http or https.
        headers: ``Name: value`` each.
        bearer_variable: The variable of our environment that has the token, if any.

    Raises:
        click.UsageError: It makes no sense.
    """
    said: dict[str, str] = {}
    for each in headers:
        name, colon, value = each.partition(":")
        if not (colon and name.strip()):  # what was given is not shown: it may be the secret alone
            raise click.UsageError('--header takes "Name: value".')
        said[name.strip()] = value.strip()
    token = None if bearer_variable is None else os.environ.get(bearer_variable, "")
    if token is not None and not token:
        raise click.UsageError(f"There is nothing in the variable {escaped_line(bearer_variable)}.")
    try:
        return Http(url, headers=said, auth=None if token is None else bearer(token))
    except UsageError as error:
        raise click.UsageError(escaped_line(f"{error}.")) from None


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
