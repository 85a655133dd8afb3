"""Packages as they come: servers that our client starts, clients that start our server, and bridges in between.

``python -m tests.interop.packages.runs`` runs all of them; with names, such as ``git``, it runs these. Whatever our
client says over stdio is judged by the recorder of the tests.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from msgspec.structs import replace

from mcpgen import Process, connect
from tests.installations import Node, folder_of, javascript, node, python
from tests.interop.client_expectations import TOOLS
from tests.interop.http_runs import Host
from tests.interop.peer_packages import OLDEST_NODE
from tests.interop.stdio_runs import environment, server_command
from tests.specification.client.recorded_client import heard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mcpgen import Client

__all__ = ["DIRECTIONS", "Package", "failures", "packages"]

HERE = Path(__file__).parent
HOME = HERE.parents[2] / ".nox" / "interop-peers"

# A program may take long to import on a busy machine, and the rest is quick.
SECONDS = 90

PAGE = 4  # tools, as ../server.py lists them

DIRECTIONS: Final = {
    "server": "our client starts it",
    "client": "it starts our server",
    "to_stdio": "our client starts it, and it connects to our server over HTTP",
    "to_http": "our client connects to it over HTTP, and it starts our server",
    "to_sse": "our client connects to it over HTTP+SSE, and it starts our server",
}


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A program of others, as ``packages.toml`` describes it.

    Attributes:
        name: What the page calls it.
        package: The requirements, for pip or npm, with a space between two.
        versions: What stands for ``{version}`` in `package` and `name`, one after the other.
        program: What runs: a module for ``python -m``, a script of the environment, or a file below ``node_modules``.
        driver: Of a library: the file in ``drivers/`` that uses it.
        arguments: What the program is told.
        environment: Variables that a server needs.
        before: A command that runs first.
        tool: The tool of a server that is called.
        given: The arguments of the call, as JSON.
        sees: A part of the text that comes back.
        reads_first_page: Whether a client lists the first page of our tools alone.
        to_stdio: What a bridge is told to find our server at a URL.
        to_http: What a bridge is told to start our server and listen.
        to_sse: The same over HTTP+SSE.
        always: Whether `nox -s interop` runs it.
    """

    name: str
    package: str
    versions: list[str] = []
    program: str = ""
    driver: str = ""
    arguments: list[str] = []
    environment: dict[str, str] = {}
    before: list[str] = []
    tool: str = ""
    given: str = "{}"
    sees: str = ""
    reads_first_page: bool = False
    to_stdio: list[str] = []
    to_http: list[str] = []
    to_sse: list[str] = []
    always: bool = False

    @property
    def directions(self) -> list[str]:
        """The ways in which it is used, by their names in `DIRECTIONS`."""
        bridged = [each for each in ("to_stdio", "to_http", "to_sse") if getattr(self, each)]
        return bridged or ["server" if self.tool else "client"]


def packages() -> list[Package]:
    """Return all of them, each version of one by itself."""
    table: dict[str, Any] = tomllib.loads((HERE / "packages.toml").read_text(encoding="utf-8"))
    read = [each for kind in ("server", "client", "bridge") for each in msgspec.convert(table[kind], list[Package])]
    return [version for each in read for version in _versions(each)]


def _versions(package: Package) -> list[Package]:
    def filled(text: str, version: str) -> str:
        return text.replace("{version}", version)

    return [
        replace(package, name=filled(package.name, each), package=filled(package.package, each), versions=[])
        for each in package.versions
    ] or [package]


def failures(chosen: Iterable[Package]) -> Iterator[str]:
    """Install and run *chosen*; say what did not come back as it must."""
    runtime = node(HOME, oldest=OLDEST_NODE)
    for package in chosen:
        command = install(package, runtime)
        for direction in package.directions:
            begun = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "note.txt").write_text("forty-two", encoding="utf-8")
                try:
                    _run(package, command, direction, folder)
                except Exception as error:  # noqa: BLE001 (what a program of others does)
                    yield f"{package.name}, {DIRECTIONS[direction]}: {error!r}"
            sys.stdout.write(f"{package.name}, {direction}: {time.monotonic() - begun:.1f} seconds\n")
            sys.stdout.flush()


def install(package: Package, runtime: Node) -> list[str]:
    """Install a package, unless it is there, and return the command that runs its program."""
    folder = folder_of(HOME, package.package)
    if "==" not in package.package:
        javascript(folder, package.package, runtime)
        if package.driver:
            # node looks for packages beside the file that imports them.
            return [runtime.node, shutil.copy(HERE / "drivers" / package.driver, folder)]
        return [runtime.node, str(folder / "node_modules" / package.program)]
    interpreter = python(folder, package.package)
    if package.driver:
        return [interpreter, str(HERE / "drivers" / package.driver)]
    if package.program.startswith("bin/"):
        return [str(Path(interpreter).with_name(package.program.removeprefix("bin/")))]
    return [interpreter, "-m", package.program]


def _run(package: Package, command: Sequence[str], direction: str, folder: str) -> None:
    match direction:
        case "server":
            if package.before:
                subprocess.run(_filled(package.before, folder=folder), check=True)
            started = [*command, *_filled(package.arguments, folder=folder)]
            variables = dict(
                zip(package.environment, _filled(package.environment.values(), folder=folder), strict=True)
            )
            given = json.loads(package.given.replace("{folder}", folder))
            anyio.run(_call, Process(started, environment=variables), package.tool, given, package.sees)
        case "client":
            _started(package, command, folder)
        case "to_stdio":
            with _listening(server_command("--http", "127.0.0.1:0")) as url:
                anyio.run(_add, Process([*command, *_filled(package.to_stdio, url=url)]))
        case _:
            _to_http(package, command, direction)


def _to_http(package: Package, command: Sequence[str], direction: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = _filled(getattr(package, direction), port=str(port))
    bridge = subprocess.Popen(
        [*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        anyio.run(_add, f"http://127.0.0.1:{port}/{'sse' if direction == 'to_sse' else 'mcp'}")
    finally:
        bridge.terminate()
        bridge.wait(SECONDS)


def _filled(arguments: Iterable[str], **values: str) -> list[str]:
    """Return *arguments* with their places filled in; {command} is several arguments, or one behind ``--stdio``."""
    found: list[str] = []
    for each in arguments:
        if each == "{command}" and found[-1:] != ["--stdio"]:
            found += server_command()
            continue
        text = each.replace("{command}", shlex.join(server_command()))
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        found.append(text)
    return found


async def _call(process: Process, tool: str, given: dict[str, Any], sees: str) -> None:
    """Call a tool of a server in the newest revision that it speaks, and in the oldest."""
    for revisions in (None, ["2024-11-05"]):
        with anyio.fail_after(SECONDS):
            async with heard(process, revisions) as transport, connect(transport, revisions=revisions) as client:
                names = [each.name async for each in client.tools()]
                result = await client.call_tool(tool, given)
        if tool not in names:
            raise AssertionError(f"there is no {tool} among {names}")
        if revisions is None:
            _check(sees, result.text)


async def _add(target: Process | str) -> None:
    """Go through our server, behind a bridge."""
    async with AsyncExitStack() as stack:
        stack.enter_context(anyio.fail_after(SECONDS))
        transport = target if isinstance(target, str) else await stack.enter_async_context(heard(target))
        client: Client = await stack.enter_async_context(connect(transport))
        names = [each.name async for each in client.tools()]
        result = await client.call_tool("add", {"a": 2, "b": 3})
    _check(str(TOOLS), str(names))
    _check("5", result.text)


def _started(package: Package, command: Sequence[str], folder: str) -> None:
    """Let a client start our server, and read what it prints."""
    done = subprocess.run(
        [*command, *_filled(package.arguments or ["{command}"])],
        check=False,
        capture_output=True,
        cwd=folder,
        encoding="utf-8",
        env=environment(os.environ),
        timeout=SECONDS,
    )
    if done.returncode:
        raise AssertionError(f"it ended with status {done.returncode}: {done.stderr[-1000:]}")
    if package.driver:
        said: Mapping[str, Any] = json.loads(done.stdout)
        tools = TOOLS[:PAGE] if package.reads_first_page else TOOLS
        _check(str(sorted(tools)), str(sorted(said["tools"])))
        _check("5", said["result"])
    else:
        _check(package.sees, done.stdout)


def _check(expected: str, found: str) -> None:
    if expected not in found:
        raise AssertionError(f"{expected!r} is not in {found[:1000]!r}")


@contextmanager
def _listening(command: Sequence[str]) -> Iterator[str]:
    host = Host(command)
    try:
        yield host.wait()
    finally:
        host.end(0.5)


def _wait_for(port: int) -> None:
    """Return when a program listens.

    Raises:
        TimeoutError: None does.
    """
    last = time.monotonic() + SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            if time.monotonic() > last:
                raise TimeoutError(f"nothing listens at port {port}") from None
            time.sleep(0.1)


def main() -> None:
    """Run those that are named, or all.

    Raises:
        SystemExit: Something else came back than must.
    """
    wanted = sys.argv[1:]
    wrong = list(failures(each for each in packages() if not wanted or each.name in wanted))
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
