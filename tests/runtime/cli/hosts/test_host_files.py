"""The files of hosts are where their documentation says, on each system."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from mcpgen.runtime.cli.hosts.host_files import HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLES = ("XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "CLAUDE_CONFIG_DIR")


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pretend to be on another system."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)

    def pretend(system: str, **variables: str) -> None:
        monkeypatch.setattr(sys, "platform", system)
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return pretend


@pytest.mark.parametrize(
    ("host", "system", "place"),
    [
        ("claude-desktop", "darwin", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", ".config/Claude/claude_desktop_config.json"),
        ("claude-code", "darwin", ".claude.json"),
        ("claude-code", "win32", ".claude.json"),
        ("claude-code", "linux", ".claude.json"),
        ("cursor", "darwin", ".cursor/mcp.json"),
        ("cursor", "win32", ".cursor/mcp.json"),
        ("cursor", "linux", ".cursor/mcp.json"),
        ("vscode", "darwin", "Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", "AppData/Roaming/Code/User/mcp.json"),
        ("vscode", "linux", ".config/Code/User/mcp.json"),
    ],
)
def test_the_file_of_the_user(host: str, system: str, place: str, on: Callable[..., None], tmp_path: Path) -> None:
    on(system)

    assert tmp_path / place == HOSTS[host].user_file()


MOVED = {
    ("claude-desktop", "win32", "APPDATA"): "Claude/claude_desktop_config.json",
    ("claude-desktop", "linux", "XDG_CONFIG_HOME"): "Claude/claude_desktop_config.json",
    ("claude-code", "linux", "CLAUDE_CONFIG_DIR"): ".claude.json",
    ("vscode", "win32", "APPDATA"): "Code/User/mcp.json",
    ("vscode", "linux", "XDG_CONFIG_HOME"): "Code/User/mcp.json",
}


@pytest.mark.parametrize("case", MOVED)
def test_a_variable_moves_the_file(case: tuple[str, str, str], on: Callable[..., None], tmp_path: Path) -> None:
    host, system, variable = case
    on(system, **{variable: str(tmp_path / "there")})

    assert tmp_path / "there" / MOVED[case] == HOSTS[host].user_file()


def test_the_package_of_claude_desktop_on_windows_has_a_folder_of_its_own(
    on: Callable[..., None], tmp_path: Path
) -> None:
    on("win32", LOCALAPPDATA=str(tmp_path))
    folder = tmp_path / "Packages" / "Claude_pzs8sxrjxfjjc" / "LocalCache" / "Roaming" / "Claude"
    (tmp_path / "Packages" / "Claude_empty").mkdir(parents=True)
    folder.mkdir(parents=True)

    assert folder / "claude_desktop_config.json" == HOSTS["claude-desktop"].user_file()


def test_two_packages_of_claude_desktop_are_told_apart_by_the_user(on: Callable[..., None], tmp_path: Path) -> None:
    on("win32", LOCALAPPDATA=str(tmp_path))
    for name in ("Claude_a", "Claude_b"):
        (tmp_path / "Packages" / name / "LocalCache" / "Roaming" / "Claude").mkdir(parents=True)

    with pytest.raises(click.UsageError, match="installed more than once") as failure:
        HOSTS["claude-desktop"].user_file()
    assert "Choose its file with `--file`: " in failure.value.message
    assert all(name in failure.value.message for name in ("Claude_a", "Claude_b"))
