"""The peers, each with its packages in a folder of its own, so that two versions of one package do not meet."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from tests.installations import Node, folder_of, javascript, python
from tests.interop.transports import STDIO

__all__ = ["OLDEST_NODE", "Peer", "Server", "install", "install_server", "over", "peers", "servers"]

HERE = Path(__file__).parent
OLDEST_NODE = 20  # what the TypeScript SDK 2.x says that it needs


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A client, as ``peers.toml`` describes it.

    Attributes:
        name: What the page calls it.
        driver: The file in ``peers/`` that uses it.
        package: The requirement, for pip or npm.
        revisions: What it offers, oldest first.
        offers: How it is made to.
        over: What else than stdio it has; see `transports`.
        quirks: What its users should know, in sentences.
    """

    name: str
    driver: str
    package: str
    revisions: list[str]
    offers: str
    over: list[str] = []
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
        arguments: For such a one: what it is told for each other transport than stdio.
        revisions: What it speaks, oldest first.
        serves: How it serves them.
        over: What else than stdio it has; see `transports`.
        repertoire: What there is to ask for; see ``peers/mcpgen_client.py``.
        quirks: What its users should know, in sentences.
    """

    name: str
    package: str = ""
    script: str = ""
    module: str = ""
    revisions: list[str]
    serves: str
    over: list[str] = []
    arguments: dict[str, str] = {}
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


def install(peer: Peer, native_revision: Path, runtime: Node) -> list[str]:
    """Install a client in a folder of *home*, unless it is there, and return the command that runs its driver."""
    folder = folder_of(native_revision, peer.package)
    if peer.is_python:
        return [python(folder, peer.package), str(HERE / "peers" / peer.driver)]
    javascript(folder, peer.package, runtime)
    for name in ("conversation.mjs", peer.driver):
        shutil.copy(HERE / "peers" / name, folder)
    return [runtime.node, str(folder / peer.driver)]


def install_server(server: Server, native_revision: Path, runtime: Node) -> list[str]:
    """Install a server in a folder of *home*, unless it is there, and return the command that starts it."""
    folder = folder_of(native_revision, server.package)
    if "==" in server.package:
        interpreter = python(folder, server.package)
        return [interpreter, *(["-m", server.module] if server.module else [str(HERE / "servers" / server.script)])]
    javascript(folder, server.package, runtime)
    if server.module:
        return [runtime.node, str(folder / "node_modules" / server.module)]
    # Beside a client of the same package, whose driver may have the same name.
    beside = folder / "servers"
    beside.mkdir(exist_ok=True)
    for name in ("offered.json", "repertoire.mjs", "listening.mjs", server.script):
        shutil.copy(HERE / "servers" / name, beside)
    return [runtime.node, str(beside / server.script)]


def over(server: Server, command: list[str], transport: str) -> list[str]:
    """Return the command that starts a server over *transport*, given the one for stdio."""
    if transport == STDIO:
        return command
    if not server.module:
        return [*command, transport]
    # It would listen at all addresses of the machine.
    preload = (HERE / "servers" / "loopback.mjs").as_uri()
    return [command[0], "--import", preload, *command[1:], server.arguments[transport]]
