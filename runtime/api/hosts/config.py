"""The configuration of a host: the servers that it names, and how each is reached.

Each host has its own file, but the entry of a server has the same keys in all of them: `command`, `args`, `env` and
`cwd` for a program, `url` and `headers` for a URL, and `type`. The servers are under `mcpServers`, in VS Code under
`servers`.

Values may refer to variables, in the forms that hosts know:

* ``${NAME}`` and ``${NAME:-default}``, as in Claude Code (https://code.claude.com/docs/en/mcp, "Environment variable
  expansion in .mcp.json");
* ``${env:NAME}``, ``${userHome}``, ``${pathSeparator}``, ``${/}`` and ``${workspaceFolder}``, as in Cursor
  (https://cursor.com/docs/context/mcp, "Config interpolation") and VS Code
  (https://code.visualstudio.com/docs/reference/variables-reference).

Any other reference, such as ``${input:key}``, has a value in the host only, so the entry is refused.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from msgspec import Struct

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.api.hosts.jsonc import JsoncError, parse_jsonc
from mcpgen.runtime.api.hosts.variables import EntryError, Variables, check_unicode, kind_of
from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.http.client.transport import Http
from mcpgen.runtime.protocol.argument_checks import check_file_path
from mcpgen.runtime.transports.command_line import missing_scheme
from mcpgen.runtime.transports.process_transport import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.transports.child_process import ChildProcess
    from mcpgen.runtime.transports.interfaces import Transport

__all__ = ["SECTIONS", "ServerEntry", "decode_config", "parse_config", "read_config"]

SECTIONS: Final = ("mcpServers", "servers")
"""The keys under which hosts have their servers."""

_EXAMPLE: Final = '{"mcpServers": {"name": {"command": "python", "args": ["server.py"]}}}'

_COMMAND: Final = ("command", "args", "env", "cwd")
_URL: Final = ("url", "headers")
_KNOWN: Final = (*_COMMAND, *_URL, "type", "disabled")

# The spellings of `type` in hosts. A URL is asked in the same way for all of them: the client finds out what it speaks.
_STDIO: Final = frozenset({"stdio", "local"})
_HTTP: Final = frozenset({"http", "streamable-http", "streamableHttp", "sse", "remote"})

_FOLDER: Final = "${workspaceFolder}"

# The configuration of Claude Code holds the state of all its projects, and has some hundred KiB.
_MAX_BYTES: Final = 16 * 1024 * 1024

# The folders in a project that hold the file of a host.
_PROJECT_FOLDERS: Final = frozenset({".vscode", ".cursor"})


class ServerEntry(Struct, frozen=True):
    """One server of a configuration.

    Attributes:
        name: Its name in the configuration.
        settings: The values, with those of variables.
        written: The values as they are written. Errors show these, because variables may hold secrets.
        problem: Why it cannot be started; empty if it can. It shows no value of the entry.
        ignored: The keys of the entry that have no meaning here.
        is_disabled: Whether the entry says that the server must not be started.
    """

    name: str
    settings: Mapping[str, Any]
    problem: str = ""
    ignored: tuple[str, ...] = ()
    is_disabled: bool = False
    written: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"  # without the settings, which may hold secrets

    def transport(self, on_stderr: Callable[[str], None] | None = None) -> Transport:
        """Return the transport to the server.

        Raises:
            UsageError: The entry has a problem.
        """
        if self.problem:
            raise UsageError(f"the server {self.name!r} of the configuration is wrong: {self.problem}")
        try:
            if "url" in self.settings:
                return Http(self.settings["url"], headers=self.settings.get("headers"))
            return _NamedProcess(self, on_stderr)
        except UsageError as error:
            raise UsageError(f"the server {self.name!r} of the configuration is wrong: {error}") from None


class _NamedProcess(Process):
    """A process that messages call by its name in the configuration, because its arguments may be secret."""

    def __init__(self, entry: ServerEntry, on_stderr: Callable[[str], None] | None) -> None:
        settings, written = entry.settings, entry.written
        super().__init__(
            [settings["command"], *settings.get("args", ())],
            environment=settings.get("env"),
            directory=settings.get("cwd"),
            on_stderr=on_stderr,
        )
        self._name = entry.name
        self._written_command = str(written["command"])
        self._shown = self._written_command, written.get("cwd")
        self._command_word: str = settings["command"]

    def spawn(self) -> ChildProcess:
        """Start the process. What is wrong is said in the words of the configuration.

        Raises:
            UsageError: It cannot be started.
        """
        word = self._shown_word()
        if self._directory is not None and not Path(self._directory).is_dir():
            raise UsageError(f"{word!r} cannot be started: `cwd` is not a folder; correct it in the configuration")
        try:
            return super().spawn()
        except UsageError:
            if problem := self._problem():
                raise UsageError(f"{word!r} cannot be started: {problem}") from None
            raise

    def _shown_word(self) -> str:
        """Return `command` for a message, without the arguments and the query in it, which may be secret."""
        written = self._written_command
        program = written if self._is_program() else written.split(" ", 1)[0]
        if "://" in program or missing_scheme(program) is not None:
            program = program.split("?", 1)[0]
        return written if program == written else f"{program} …"

    def _is_program(self) -> bool:
        """Return whether `command` has no arguments; the path of a program may have spaces."""
        word = self._command_word
        path = os.path.join(self._directory or "", word)  # noqa: PTH118 (the test below raises no PermissionError)
        is_path = Path(word).name != word
        return " " not in word or which(word) is not None or (is_path and os.path.exists(path))  # noqa: PTH110

    def _problem(self) -> str:
        """Return what is wrong with `command`, where a configuration needs other words than a command line."""
        word = self._command_word
        path = os.path.join(self._directory or "", word)  # noqa: PTH118 (the test below raises no PermissionError)
        if word.endswith(".py") and os.path.isfile(path):  # noqa: PTH113
            return 'it is a Python file; write "python" as `command`, and the file into `args`'
        if "://" in word or missing_scheme(word) is not None:
            return "it is a URL; write it as `url` instead of `command`"
        if not self._is_program():
            return "the program does not exist; put its arguments into `args`"
        return ""

    @property
    def description(self) -> str:
        """The name of the server in the configuration."""
        return self._name


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the configuration of a host that is in a file, for `connect`.

    The file is JSON, and may have comments and trailing commas. ``${workspaceFolder}`` is replaced by the folder of the
    project: the folder of the file, or the folder above if the file is in ``.vscode`` or ``.cursor``.

    Raises:
        UsageError: The file cannot be read, or it is not the configuration of a host.
    """
    check_file_path("path", path)
    shown = printable(str(path))
    try:
        file = Path(path).expanduser()
        shown = printable(str(file))
        with file.open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}") from None
    except (RuntimeError, UnicodeEncodeError):  # RuntimeError: there is no such user
        raise UsageError(f"{shown} cannot be read: there is no such file") from None
    try:
        config = parse_jsonc(decode_config(data, shown)).value
    except JsoncError as error:
        raise UsageError(f"{shown} cannot be read as JSON: {error}") from None
    try:
        _section(config)
    except UsageError as error:
        raise UsageError(f"{shown}: {error}") from None
    folder = file.absolute().parent
    project = folder.parent if folder.name in _PROJECT_FOLDERS else folder
    try:
        return cast("dict[str, Any]", _with_folder(config, str(project), Variables()))
    except EntryError as error:
        raise UsageError(f"{shown} cannot be used: {error}") from None


def decode_config(data: bytes, shown: str) -> str:
    """Return the text of a configuration file, without a byte order mark. *shown* is its name for messages.

    Raises:
        UsageError: It is too large, or not UTF-8.
    """
    if len(data) > _MAX_BYTES:
        limit = f"more than {_MAX_BYTES} bytes, the most that mcpgen reads"
        raise UsageError(f"{shown} has {limit}; check that it is the configuration of a host")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{shown} is not UTF-8; save it as UTF-8") from None


def _with_folder(value: Any, folder: str, variables: Variables) -> Any:
    if isinstance(value, str):
        variables.take(value.count(_FOLDER) * len(folder))
        return value.replace(_FOLDER, folder)
    if is_array(value):
        return [_with_folder(each, folder, variables) for each in value]
    if is_object(value):
        return {key: _with_folder(each, folder, variables) for key, each in value.items()}
    return value


def parse_config(config: object) -> list[ServerEntry]:
    """Return the servers of the configuration of a host.

    Raises:
        UsageError: It is not such a configuration, or it names no server.
    """
    variables = Variables()
    return [_entry(str(name), settings, variables) for name, settings in _section(config).items()]


def _section(config: object) -> Mapping[str, Any]:
    """Return the servers by their names.

    Raises:
        UsageError: There are none. The message shows keys, but no values.
    """
    if not isinstance(config, Mapping):
        raise UsageError(f"the configuration must be a JSON object; an example is {_EXAMPLE}")
    found = [each for each in SECTIONS if each in config]
    if not found:
        raise UsageError(f"the configuration has no `mcpServers` (in VS Code, `servers`); an example is {_EXAMPLE}")
    if len(found) > 1:
        raise UsageError("the configuration has both `mcpServers` and `servers`; remove one of them")
    section = cast("Mapping[str, Any]", config)[found[0]]
    if not isinstance(section, Mapping):
        raise UsageError(f"`{found[0]}` of the configuration must be a JSON object; an example is {_EXAMPLE}")
    if not section:
        raise UsageError(f"the configuration names no server; add one, as in {_EXAMPLE}")
    return cast("Mapping[str, Any]", section)


def _entry(name: str, settings: object, variables: Variables) -> ServerEntry:
    if not isinstance(settings, Mapping):
        return ServerEntry(name, {}, f"the entry must be a JSON object, not {kind_of(settings)}")
    given = cast("Mapping[str, Any]", settings)
    ignored = tuple(str(each) for each in given if each not in _KNOWN)
    try:
        used = _checked(given, ignored, variables)
    except EntryError as error:
        return ServerEntry(name, {}, str(error), ignored, given.get("disabled") is True)
    return ServerEntry(name, used, "", ignored, given.get("disabled") is True, given)


def _checked(given: Mapping[str, Any], ignored: tuple[str, ...], variables: Variables) -> dict[str, Any]:
    """Return the settings of a server, checked and with the values of variables.

    Raises:
        EntryError: One of them is wrong.
    """
    kind = _transport_kind(given, ignored)
    used: dict[str, Any] = {}
    for key in _COMMAND if kind == "command" else _URL:
        if given.get(key) is None:
            continue
        value = given[key]
        match key:
            case "args":
                used[key] = [
                    variables.replaced(f"args[{index}]", each) for index, each in enumerate(_sequence(key, value))
                ]
            case "env" | "headers":
                used[key] = {
                    name: variables.replaced(f"{key}.{name}", each) for name, each in _texts(key, value).items()
                }
            case _ if not isinstance(value, str):  # a number is text in `args`, but never a command or a URL
                raise EntryError(f"`{key}` must be a string, not {kind_of(value)}")
            case _:
                used[key] = variables.replaced(key, value)
    if kind == "command" and not used["command"]:
        raise EntryError("`command` is empty")
    return used | {"cwd": _cwd(used["cwd"])} if "cwd" in used else used


def _cwd(folder: str) -> str:
    """Return *folder* with the home folder of a user in place of ``~``.

    Raises:
        EntryError: It cannot be a folder.
    """
    try:
        found = Path(folder).expanduser()
        found.is_dir()  # raises if the system cannot look: a process could not start there either
        return str(found)
    except (OSError, RuntimeError):  # such as a name that is too long; RuntimeError: there is no such user
        raise EntryError("`cwd` is not a folder; correct it in the configuration") from None


def _transport_kind(given: Mapping[str, Any], ignored: tuple[str, ...]) -> str:
    """Return ``command`` or ``url``: the key that says how the server is reached."""
    named = given.get("type")
    if named is not None and (not isinstance(named, str) or named not in _STDIO | _HTTP):
        shown = printable(named[:40]) if isinstance(named, str) else kind_of(named)
        raise EntryError(f"`type` is {shown}; write stdio, http or sse")
    kinds = [each for each in ("command", "url") if given.get(each) is not None]
    if named is not None:
        expected = "command" if named in _STDIO else "url"
        if expected not in kinds:
            raise EntryError(f"`{expected}` is missing, which the `type` {named} requires")
        return expected
    if len(kinds) > 1:
        raise EntryError("it has both `command` and `url`; remove one of them, or add `type`")
    if not kinds:
        for meant in ("command", "url"):
            for written in difflib.get_close_matches(meant, ignored, 1):
                hint = f"did you write `{printable(written)}` instead of `{meant}`?"
                raise EntryError(f"it has neither `command` nor `url`; {hint}")
        raise EntryError("it has neither `command` nor `url`; add one of them")
    return kinds[0]


def _sequence(key: str, value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise EntryError(f'`{key}` must be a list of strings, such as ["server.py"], not {kind_of(value)}')
    return list(cast("list[Any]", value))


def _texts(key: str, value: object) -> dict[str, Any]:
    if not _is_mapping(value):
        raise EntryError(f'`{key}` must be an object with strings, such as {{"NAME": "value"}}, not {kind_of(value)}')
    for name in value:
        check_unicode(f"a name in `{key}`", str(name))
    # VS Code removes a variable whose value is null; the server does not inherit any but the basic ones anyway.
    return {printable(str(name)): each for name, each in value.items() if each is not None}


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)
