"""Where each host keeps its servers, and in which form. Each place has its source beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from mcpgen.runtime.transports.environment import HOME_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HOSTS", "Host"]


class Host(Struct, frozen=True):
    """A host that reads its servers from a file.

    Attributes:
        title: Its name for people.
        user_file: Returns the file with the servers of the user. It raises `click.UsageError` if there is no home.
        project_file: The file with the servers of a project, relative to the project's folder; None if it has none.
        section: The key under which the servers are.
        has_type: Whether an entry says ``"type": "stdio"``.
        advice: What the user has to do before the host uses a new server. ``{name}`` stands for its name.
    """

    title: str
    user_file: Callable[[], Path]
    project_file: str | None
    section: str
    has_type: bool
    advice: str

    def entry(self, command: str, arguments: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
        """Return the entry of a server that is a program."""
        made: dict[str, Any] = {"type": "stdio"} if self.has_type else {}
        made |= {"command": command, "args": arguments}
        return {**made, "env": dict(environment)} if environment else made


def _home() -> Path:
    """Return the home folder of the user.

    Raises:
        click.UsageError: There is none.
    """
    try:
        return Path.home()
    except RuntimeError:
        way_out = f"Set the environment variable {HOME_VARIABLE}, or name the file with `--file`."
        raise click.UsageError(f"This user has no home folder. {way_out}") from None


def _application_data(name: str) -> Path:
    """Return the folder in which an application that is built with Electron keeps the data of the user.

    https://www.electronjs.org/docs/latest/api/app, `app.getPath(name)`: `appData` and `userData`.
    """
    match sys.platform:
        case "win32":
            found = os.environ.get("APPDATA")
            return (Path(found) if found else _home() / "AppData" / "Roaming") / name
        case "darwin":
            return _home() / "Library" / "Application Support" / name
        case _:
            found = os.environ.get("XDG_CONFIG_HOME")
            return (Path(found) if found else _home() / ".config") / name


def _claude_desktop() -> Path:
    """Return the file of Claude Desktop.

    macOS and Windows: https://modelcontextprotocol.io/docs/develop/connect-local-servers, "Access Developer Settings".
    On Linux it is a beta; the folder is that of other Electron applications.

    On Windows, the application is an MSIX package since February 2026, and the system redirects the documented folder
    to one in the package: https://github.com/anthropics/claude-code/issues/26073.
    """
    name = "claude_desktop_config.json"
    if sys.platform != "win32":
        return _application_data("Claude") / name
    local = os.environ.get("LOCALAPPDATA")
    packages = (Path(local) if local else _home() / "AppData" / "Local") / "Packages"
    folders = [each / "LocalCache" / "Roaming" / "Claude" for each in sorted(packages.glob("Claude_*"))]
    found = [each for each in folders if each.is_dir()]
    if len(found) > 1:
        listed = " or ".join(str(each / name) for each in found)
        raise click.UsageError(f"Claude Desktop is installed more than once. Choose its file with `--file`: {listed}")
    return (found[0] if found else _application_data("Claude")) / name


def _claude_code() -> Path:
    """Return the file of Claude Code with the servers of the user.

    https://code.claude.com/docs/en/mcp, "MCP installation scopes": local and user scope are in ``~/.claude.json``.
    `CLAUDE_CONFIG_DIR` moves the file: https://github.com/anthropics/claude-code/issues/48448.
    """
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(folder) if folder else _home()) / ".claude.json"


def _cursor() -> Path:
    """Return the file of Cursor with the servers of the user.

    https://cursor.com/docs/context/mcp, "Configuration locations".
    """
    return _home() / ".cursor" / "mcp.json"


def _vscode() -> Path:
    """Return the file of VS Code with the servers of the user, in the default profile.

    https://code.visualstudio.com/docs/copilot/reference/mcp-configuration, "Configuration file", says that it is in the
    user profile; https://code.visualstudio.com/docs/configure/settings, "Settings file locations", where that is.
    `XDG_CONFIG_HOME` moves it: `src/vs/platform/environment/node/userDataPath.ts` in https://github.com/microsoft/vscode.
    """
    return _application_data("Code") / "User" / "mcp.json"


# The files of projects: the sources above, and for Claude Code its "Project scope".
HOSTS: Final[Mapping[str, Host]] = {
    "claude-desktop": Host(
        "Claude Desktop", _claude_desktop, None, "mcpServers", has_type=False, advice="Quit and start Claude Desktop."
    ),
    "claude-code": Host(
        "Claude Code", _claude_code, ".mcp.json", "mcpServers", has_type=True, advice="Start a new session."
    ),
    "cursor": Host(
        "Cursor",
        _cursor,
        ".cursor/mcp.json",
        "mcpServers",
        has_type=True,
        advice="Enable {name} in the settings of Cursor.",
    ),
    "vscode": Host(
        "VS Code",
        _vscode,
        ".vscode/mcp.json",
        "servers",
        has_type=True,
        advice='Run the command "MCP: List Servers" in VS Code to start the server.',
    ),
}
"""The hosts, by the name that `--host` takes."""
