"""The TARGET argument of the commands: the command or the URL of a server."""

from __future__ import annotations

import os
import shutil
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from mcpgen.generated import registry
from mcpgen.runtime.api.server_runner import PYTHON_VARIABLES, serve_command
from mcpgen.runtime.cli.terminal_text import escaped_line, sentence
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.http.client.bearer_auth import bearer
from mcpgen.runtime.http.client.transport import Http
from mcpgen.runtime.protocol.headers import TOKEN
from mcpgen.runtime.transports.command_line import is_url, join_command
from mcpgen.runtime.transports.process_transport import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx

    from mcpgen.runtime.http.client.auth.credentials import OAuth
    from mcpgen.runtime.transports.interfaces import Transport

__all__ = [
    "StandardError",
    "Target",
    "check_one_url",
    "parse_environment",
    "parse_target",
    "parse_url",
    "split_object",
]

# Before it is connected, a server may print many lines, such as a long traceback.
_MAX_KEPT_LINES: Final = 1000
_MAX_SHOWN_LINES: Final = 12


class Target:
    """A server to connect to.

    Attributes:
        name: Its command as the user writes it, its URL without secrets, or its name in the configuration of a host.
        kind: Whether *name* is a command, a URL, or the name of a server whose command may have secrets.
        transport: The transport that reaches the server.
        is_file: Whether the server is a Python file or module, run with ``mcpgen serve``.
        hint: What the user may have meant, for the case that the command cannot be started; empty if it is unknown.

    Args:
        transport: The transport that reaches the server.
        kind: What *name* is.
        stderr: The standard error of the server's process.
        name: The name to show; default: the description of *transport*.
    """

    def __init__(
        self,
        transport: Transport,
        kind: Literal["command", "url", "server"],
        stderr: StandardError | None = None,
        name: str | None = None,
    ) -> None:
        self.transport: Transport = transport
        self.kind: Literal["command", "url", "server"] = kind
        self.name: str = transport.description if name is None else name
        self.is_file: bool = name is not None
        self.hint: str = ""
        self.stderr: StandardError = StandardError() if stderr is None else stderr


class StandardError:
    """What the process of a server writes to its standard error: kept at first, and shown once it is connected.

    Attributes:
        show: Called with each line, once the server is connected. None: lines are only kept.
    """

    def __init__(self) -> None:
        self.show: Callable[[str], object] | None = None
        self._kept: deque[str] = deque(maxlen=_MAX_KEPT_LINES)
        self._is_connected = False

    def add(self, line: str) -> None:
        """Take a line that the process has written."""
        if self.show is not None and self._is_connected:
            self.show(line)
        else:
            self._kept.append(line)

    def forget(self) -> None:
        """Forget the lines so far."""
        self._kept.clear()

    def connected(self) -> None:
        """Show the lines so far, and from now on each line that comes."""
        self._is_connected = True
        kept, self._kept = self._kept, deque(maxlen=_MAX_KEPT_LINES)
        for line in kept:
            self.add(line)

    @property
    def is_shown(self) -> bool:
        """Whether lines are shown now."""
        return self.show is not None and self._is_connected

    @property
    def last_lines(self) -> list[str]:
        """The last lines that are not empty, if they are not shown."""
        return [each for each in self._kept if each.strip()][-_MAX_SHOWN_LINES:]


def parse_target(
    words: Sequence[str],
    environment: Sequence[str],
    directory: str | None,
    headers: Sequence[str] = (),
    bearer_variable: str | None = None,
) -> Target:
    """Return the server that the command line names.

    Args:
        words: One word: a URL, a quoted command, ``FILE.py[:OBJECT]`` or ``package.module:OBJECT``. Several words: a
            program and its arguments.
        environment: ``KEY=VALUE`` items, for a command.
        directory: The working directory, for a command.
        headers: ``NAME: VALUE`` items, for a URL.
        bearer_variable: The environment variable that has the token, for a URL.

    Raises:
        click.UsageError: The words and options are not valid together.
    """
    if len(words) == 1 and is_url(words[0]):
        if environment or directory is not None:
            raise click.UsageError("`--env` and `--cwd` need a server command; TARGET is a URL.")
        return Target(parse_url(words[0], headers, bearer_variable), "url")
    check_one_url(words)
    if headers or bearer_variable is not None:
        raise click.UsageError("`--header` and `--bearer-env` need a URL; TARGET is not a URL.")
    variables = parse_environment(environment)
    if len(words) > 1:
        _check_one_file(words)
        if " " in words[0] and directory is None and shutil.which(words[0]) is None:
            raise click.UsageError(
                "The first word of TARGET contains a space and is not a program. Write the whole command in one pair "
                "of quotes, or without quotes after `--`."
            )
        return _command(list(words), variables, directory)
    (word,) = words
    if _is_file(word) or _is_module(word):
        file, rest = split_object(word)
        if _is_file(word) and not Path(file).is_file():
            raise click.UsageError(f"There is no file {escaped_line(file)}.")
        ours = {name: os.environ[name] for name in PYTHON_VARIABLES if name in os.environ}
        server = f"{Path(file).resolve()}{rest}" if directory and _is_file(word) else word
        # In another directory, the process may not find the packages.
        command = serve_command(server, ["--debug"], () if directory else _registered())
        return _command(command, {**ours, **variables}, directory, join_command(["mcpgen", "serve", word]))
    found = shutil.which(word) is not None
    target = _command([word] if found else word, variables, directory)
    target.hint = "" if found or len(word.split()) > 1 else _hint(word)
    return target


def _registered() -> list[str]:
    """Return the packages of drafts that ``mcpgen --register`` has added."""
    return [each.package for each in registry.known() if each not in registry.REVISIONS]


def _hint(word: str) -> str:
    if Path(f"{word}.py").is_file():
        return f"Did you mean {escaped_line(word)}.py?"
    return "TARGET is a Python file, a module:object, a URL or a command."


def check_one_url(words: Sequence[str]) -> None:
    """Check that a URL is the only word: it would be taken for a program, and is not shown since it may have secrets.

    Raises:
        click.UsageError: There are more words.
    """
    if len(words) > 1 and is_url(words[0]):
        raise click.UsageError(
            "More words follow the URL, but no word may follow it. Put options before the URL, and before `--`."
        )


def _check_one_file(words: Sequence[str]) -> None:
    """Check that a Python file that is not a program is the only word.

    Raises:
        click.UsageError: There are more words.
    """
    file, *more = words
    if not (file.endswith(".py") and Path(file).is_file() and shutil.which(file) is None):
        return
    shown, command = escaped_line(file), escaped_line(join_command(["python", *words]))
    count, them = (
        (f"there is another word, {escaped_line(more[0])!r}", "it")
        if len(more) == 1
        else (f"there are {len(more)} more words", "them")
    )
    raise click.UsageError(f'After {shown} {count}. Leave {them} out, or give the whole command: "{command}".')


def _command(
    words: str | Sequence[str], environment: dict[str, str], directory: str | None, name: str | None = None
) -> Target:
    stderr = StandardError()
    try:
        process = Process(words, environment=environment, directory=directory, on_stderr=stderr.add)
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    return Target(process, "command", stderr, name)


def parse_url(url: str, headers: Sequence[str], bearer_variable: str | None, *, may_ask: bool = True) -> Http:
    """Return the transport to a server at *url*.

    Args:
        url: An ``http`` or ``https`` URL.
        headers: ``NAME: VALUE`` items.
        bearer_variable: The environment variable that has the token, if any.
        may_ask: Whether a user at the terminal may be asked to log in. Without, only stored tokens are used.

    Raises:
        click.UsageError: The URL, a header or the token is not valid.
    """
    parsed: dict[str, str] = {}
    for each in headers:
        name, colon, value = each.partition(":")
        name = name.strip()
        if not (colon and name):  # the text is not shown: it may be a secret without its name
            raise click.UsageError('`--header` must be "NAME: VALUE".')
        if not TOKEN.fullmatch(name):
            allowed = "no space" if " " in name else "only ASCII letters, digits and !#$%&'*+-.^_`|~"
            raise click.UsageError(f"`--header` has an invalid name before its colon; a name contains {allowed}.")
        parsed[name] = value.strip()
    token = None if bearer_variable is None else os.environ.get(bearer_variable, "")
    if token is not None and not token:
        raise click.UsageError(
            f"The environment variable {escaped_line(bearer_variable)} (`--bearer-env`) is not set, or empty."
        )
    # Only a URL needs these.
    from mcpgen.runtime.cli.client.login_page import terminal_login  # noqa: PLC0415
    from mcpgen.runtime.http.client.auth.credentials import OAuth  # noqa: PLC0415

    has_user = "@" in url.partition("://")[2].partition("/")[0]
    has_header = "authorization" in {each.lower() for each in parsed}
    auth: httpx.Auth | OAuth | None = None
    try:
        if token is not None:
            auth = bearer(token)
        elif not has_user and not has_header:
            auth = terminal_login() if may_ask else OAuth(interactive=False)
        return Http(url, headers=parsed, auth=auth)
    except UsageError as error:
        text = sentence(error).replace("`headers`", "`--header`").replace("`auth`", "`--bearer-env`")
        raise click.UsageError(text) from None


def parse_environment(pairs: Sequence[str]) -> dict[str, str]:
    """Return the environment variables of ``KEY=VALUE`` items.

    Raises:
        click.UsageError: One is something else. Its text is not shown.
    """
    made: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (equals and name):  # the text is not shown: it may be a secret without its name
            raise click.UsageError("`--env` must be KEY=VALUE.")
        made[name] = value
    return made


def _is_file(word: str) -> bool:
    """Whether *word* is ``FILE.py`` or ``FILE.py:OBJECT``, rather than a command."""
    file, rest = split_object(word)
    if rest and not (len(file) > 1 and rest[1:].replace(".", "_").isidentifier()):
        return False
    return file.endswith(".py") and (" " not in file or Path(file).is_file())


def _is_module(word: str) -> bool:
    """Whether *word* is ``package.module:OBJECT``."""
    module, colon, name = word.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


def split_object(word: str) -> tuple[str, str]:
    """Split *word* into the file, and the object with the colon before it."""
    file, colon, name = word.rpartition(":")
    return (file, f":{name}") if colon and file.endswith(".py") else (word, "")
