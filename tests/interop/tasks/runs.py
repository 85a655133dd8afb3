"""Tasks with implementations of others: their clients with our server, and our client with their servers.

``python -m tests.interop.tasks.runs`` runs all of them, over stdio and HTTP.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from mcpgen import Process, RequestRefused, TaskCancelled, connect
from mcpgen.generated.v2026_07_28 import ElicitResult
from tests.installations import folder_of, javascript, node, python
from tests.interop.http_runs import Host
from tests.interop.peer_packages import OLDEST_NODE
from tests.interop.stdio_runs import environment, server_command
from tests.interop.tasks.expectations import FEATURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcpgen import Client, TaskHandle

__all__ = ["TRANSPORTS", "Missing", "TaskPeer", "failures", "missing", "task_peers"]

HERE = Path(__file__).parent
HOME = HERE.parents[2] / ".nox" / "interop-peers"

TRANSPORTS: Final = ("stdio", "http")

# A program may take long to import on a busy machine, and the rest takes seconds.
SECONDS = 120


class TaskPeer(msgspec.Struct, frozen=True, kw_only=True):
    """An implementation of tasks, as ``peers.toml`` describes it.

    Attributes:
        name: What the page calls it.
        package: The requirements, for pip or npm.
        driver: Of a client: the file in ``drivers/`` that uses it.
        script: Of a server: the file in ``servers/``.
        revisions: Whose tasks it has.
        always: The transports over which `nox -s interop` runs it.
        quirks: What its users should know, in sentences.
    """

    name: str
    package: str
    driver: str = ""
    script: str = ""
    revisions: list[str]
    always: list[str] = []
    quirks: str = ""

    @property
    def is_client(self) -> bool:
        return bool(self.driver)


class Missing(msgspec.Struct, frozen=True):
    """What a peer does not have, and why."""

    peer: str
    what: str
    reason: str


def _table() -> dict[str, Any]:
    return tomllib.loads((HERE / "peers.toml").read_text(encoding="utf-8"))


def task_peers() -> list[TaskPeer]:
    """Return the clients, then the servers."""
    table = _table()
    return [each for kind in ("client", "server") for each in msgspec.convert(table[kind], list[TaskPeer])]


def missing() -> list[Missing]:
    """Return what peers do not have."""
    return msgspec.convert(_table()["missing"], list[Missing])


def failures(is_wanted: Callable[[TaskPeer, str], bool]) -> Iterator[str]:
    """Install and run the peers that are wanted over a transport; say what did not come back as it must."""
    for peer in task_peers():
        for transport in TRANSPORTS:
            for revision in peer.revisions if is_wanted(peer, transport) else ():
                begun = time.monotonic()
                where = f"{peer.name}, {'client' if peer.is_client else 'server'}, {transport}, {revision}"
                try:
                    found = _said(peer, transport, revision)
                except Exception as error:  # noqa: BLE001 (what a program of others does)
                    yield f"{where}: {error!r}"
                else:
                    yield from (f"{where}, {each}" for each in _differences(found, revision))
                sys.stdout.write(f"{where}: {time.monotonic() - begun:.1f} seconds\n")
                sys.stdout.flush()


def _differences(found: dict[str, Any], revision: str) -> Iterator[str]:
    if len(found) < len(FEATURES) - 2:  # a peer without lists, or without references, has the rest
        yield f"says too little: {sorted(found)}"
    for feature, said in found.items():
        if said != FEATURES[feature][revision]:
            yield f"{feature}: {FEATURES[feature][revision]!r} must come of it, and {said!r} does"


def _said(peer: TaskPeer, transport: str, revision: str) -> dict[str, Any]:
    command = _install(peer)
    if not peer.is_client:
        return anyio.run(_ask, command, transport)
    ours = [*server_command()[:-1], str(HERE / "bakery.py")]
    if transport == "stdio":
        return _converse([*command, revision, *ours])
    with _listening([*ours, "--http", "127.0.0.1:0"]) as url:
        return _converse([*command, revision, url])


def _install(peer: TaskPeer) -> list[str]:
    """Install a peer, unless it is there, and return the command that runs it."""
    folder = folder_of(HOME, peer.package)
    if "==" in peer.package:
        script = HERE / "drivers" / peer.driver if peer.is_client else HERE / "servers" / peer.script
        return [python(folder, peer.package), str(script)]
    runtime = node(HOME, oldest=OLDEST_NODE)
    javascript(folder, peer.package, runtime)
    shutil.copy(HERE / "drivers" / peer.driver, folder)
    return [runtime.node, str(folder / peer.driver)]


def _converse(command: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run(
        command, check=False, capture_output=True, encoding="utf-8", env=environment(os.environ), timeout=SECONDS
    )
    if done.returncode:
        raise AssertionError(f"it ended with status {done.returncode}: {done.stderr[-1000:]}")
    return msgspec.convert(json.loads(done.stdout), dict[str, Any])


@contextmanager
def _listening(command: Sequence[str]) -> Iterator[str]:
    host = Host(command)
    try:
        url = host.wait()
        if not url:
            raise AssertionError(f"it does not listen: {host.noise[-1000:]}")
        yield url
    finally:
        host.end(0.5)


async def _ask(command: Sequence[str], transport: str) -> dict[str, Any]:
    """Return what our client gets from a server."""
    if transport == "stdio":
        return await _features(Process(command, environment=environment(os.environ)))
    with _listening([*command, "http"]) as url:
        return await _features(url)


async def _features(target: Process | str) -> dict[str, Any]:
    asked: list[str] = []

    def elicit(params: Any, _context: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "Ada"})

    said: dict[str, Any] = {}
    with anyio.fail_after(SECONDS):
        async with connect(target, tasks=True, revisions=["2026-07-28"], elicit=elicit) as client:
            greeting = await client.start_tool("greet")
            said["immediate"] = ["" if greeting.task_id else "immediate", (await greeting.result()).text]
            loaves = await client.start_tool("bake", {"loaves": 3})
            said["call"] = ["task" if loaves.task_id else "", (await loaves.result()).text]
            said["required"] = (await client.call_tool("ferment")).text
            said["ask"] = [(await client.call_tool("deliver")).text, asked == ["Who?"]]
            messages: list[str | None] = []
            kneading = await client.start_tool("knead")
            result = await kneading.result(on_progress=lambda _step, _total, message: messages.append(message))
            said["progress"] = [result.text, messages == ["Kneading"]]
            burning = await client.start_tool("burn")
            burnt = await burning.result()
            said["tool error"] = [(await burning.state()).status, burnt.is_error, burnt.text]
            exploding = await client.start_tool("explode")
            refused = await _refusal(exploding)
            said["protocol error"] = [(await exploding.state()).status, refused.code, refused.message]
            said["cancel"], said["resume"] = await _cancelled(client)
            said["unknown task"] = (await _refusal(client.task("unknown"))).code
    return said


async def _refusal(task: TaskHandle) -> RequestRefused:
    try:
        await task.result()
    except RequestRefused as refused:
        return refused
    raise AssertionError("it was not refused")


async def _cancelled(client: Client) -> tuple[list[str], str]:
    """Return what comes of a task that is cancelled, and of one that is taken up by its id before."""
    ends: list[str] = []
    for takes_up in (False, True):
        task = await client.start_tool("rest")
        task = client.task(task.task_id) if takes_up else task
        await task.cancel()
        try:
            await task.result()
        except TaskCancelled:
            ends.append("cancelled")
    return [(await task.state()).status, ends[0]], ends[-1]


def main() -> None:
    """Run all of them.

    Raises:
        SystemExit: Something else came back than must.
    """
    wrong = list(failures(lambda _peer, _transport: True))
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
