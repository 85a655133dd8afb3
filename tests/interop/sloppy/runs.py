"""Running clients and servers of all SDKs through all kinds.

``python -m tests.interop.sloppy.runs`` does only that, and writes the readings and their part of the page. With the
names of readers or kinds, such as ``mcpgen`` or ``null-tool-title``, it reads these again, and keeps the rest.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.installations import folder_of, javascript, node, python
from tests.interop.http_runs import Host
from tests.interop.peer_packages import OLDEST_NODE, install_server, over, peers, servers
from tests.interop.sloppy import page
from tests.interop.sloppy.kinds import REVISIONS, client_kinds, server_kinds
from tests.interop.sloppy.readings import OURS, Key, Verdict, judge_answer, judge_outcome, stored, write
from tests.interop.sloppy.scripted_client import over_http, over_sse, over_stdio, script
from tests.interop.sloppy.scripted_http import serving
from tests.interop.stdio_runs import environment, server_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.interop.peer_packages import Server
    from tests.interop.sloppy.kinds import Kind

__all__ = ["read_all", "read_clients", "read_servers"]

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[2]
PAGE = CHECKOUT / "docs" / "interop.md"
HOME = CHECKOUT / ".nox" / "interop-peers"
AT_ONCE = 6
TALKS_AT_ONCE = 12  # most of them wait, for servers that start or say nothing
PLAN_LENGTH = 40  # readings of one process

# The files in readers/; peers.toml says which package each needs.
READERS = {
    OURS: "mcpgen_reader.py",
    "Python SDK 1.30": "python_sdk.py",
    "Python SDK 2.3": "python_sdk.py",
    "TypeScript SDK 1.32": "typescript_v1.mjs",
    "TypeScript SDK 2.4": "typescript_v2.mjs",
}
MODERN = {OURS, "Python SDK 2.3", "TypeScript SDK 2.4"}  # the others have no stateless revision


def plan(kind: Kind, revision: str, address: str) -> dict[str, Any]:
    """Return one reading, as readers/reading.py has it."""
    server = [sys.executable, "-I", "-S", "-Xutf8", str(HERE / "scripted_server.py"), kind.name, revision]
    target = server if kind.http is None else f"{address}/{kind.name}/{revision}/mcp"
    return {"kind": kind.name, "revision": revision, "target": target, "do": kind.do, "waits": kind.waits}


def reader_command(name: str) -> list[str]:
    """Install a reader, unless it is there, and return the command that runs it."""
    file = READERS[name]
    if name == OURS:
        return [sys.executable, str(HERE / "readers" / file)]
    [requirement] = [peer.package for peer in peers() if peer.name == name]
    folder = folder_of(HOME, requirement)
    if file.endswith(".py"):
        return [python(folder, requirement), str(HERE / "readers" / file)]
    runtime = node(HOME, oldest=OLDEST_NODE)
    javascript(folder, requirement, runtime)
    beside = folder / "readers"
    beside.mkdir(exist_ok=True)
    for each in ("reading.mjs", file):
        shutil.copy(HERE / "readers" / each, beside)
    return [runtime.node, str(beside / file)]


def read_servers(readers: Iterable[str], kinds: Sequence[str]) -> dict[Key, Verdict]:
    """Let *readers* read sloppy servers of some *kinds*; return what became of each reading."""
    results: dict[Key, Verdict] = {}
    commands = {name: reader_command(name) for name in READERS if name in readers}
    with serving() as address, ThreadPoolExecutor(AT_ONCE) as pool:
        running = [
            (name, pool.submit(_go_through, command, part))
            for name, command in commands.items()
            for part in _plans(REVISIONS if name in MODERN else REVISIONS[:-1], kinds, address)
        ]
        for name, future in running:
            for line in future.result():
                kind = server_kinds()[line["kind"]]
                results[Key("server", line["kind"], line["revision"], name)] = judge_outcome(kind, line)
    return results


def _plans(revisions: Iterable[str], kinds: Sequence[str], address: str) -> Iterator[list[dict[str, Any]]]:
    """Yield what one process after the other reads: one revision each, since some SDKs have it in a constant."""
    for revision in revisions:
        among = [kind for kind in server_kinds().values() if kind.name in kinds and revision in kind.revisions]
        whole = [plan(kind, revision, address) for kind in among]
        yield from (whole[start : start + PLAN_LENGTH] for start in range(0, len(whole), PLAN_LENGTH))


def _go_through(command: list[str], plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run a reader; one that dies is started again after the kind that it died of."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        while len(found) < len(plans):
            file = Path(folder) / "plan.json"
            file.write_text(json.dumps(plans[len(found) :]), encoding="utf-8")
            done = subprocess.run(
                [*command, str(file)], capture_output=True, text=True, check=False, env=environment(os.environ)
            )
            lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            found += lines
            if len(found) < len(plans):
                lost = plans[len(found)]
                reason = f"the reader has exited: {done.stderr.strip()[-300:]}"
                found.append({"kind": lost["kind"], "revision": lost["revision"], "found": {}, "failure": reason})
    return found


def read_clients(names: Iterable[str], kinds: Sequence[str]) -> dict[Key, Verdict]:
    """Let the servers that are named answer sloppy clients of some *kinds*; return what became of each."""
    results: dict[Key, Verdict] = {}
    among = [kind for kind in client_kinds().values() if kind.name in kinds]
    if not among:
        return results
    with ThreadPoolExecutor(TALKS_AT_ONCE) as pool:
        for name, server in _servers(names):
            command = server_command()
            if server.package:
                command = install_server(server, HOME, node(HOME, oldest=OLDEST_NODE))
            talks = {}
            with _listening(server, command) as urls:
                for kind in among:
                    for revision in kind.revisions:
                        if revision in server.revisions and (kind.over == "stdio" or kind.over in urls):
                            key = Key("client", kind.name, revision, name)
                            talks[key] = pool.submit(_talk, kind, revision, command, urls.get(kind.over, ""))
                results |= {key: talk.result() for key, talk in talks.items()}
    return results


def _servers(names: Iterable[str]) -> Iterator[tuple[str, Server]]:
    """Yield the servers, by the names that they have here."""
    wanted = set(names)
    for server in servers():
        name = OURS if not server.package else server.name.removesuffix(" server")
        if name in wanted:
            yield name, server


@contextmanager
def _listening(server: Server, command: list[str]) -> Iterator[Mapping[str, str]]:
    """Serve over HTTP and HTTP+SSE within the block, as far as the server does; gives the URLs."""
    ours = server_command("--http", "127.0.0.1:0")
    wanted = [each for each in server.over if each in {"http", "sse"}]
    hosts = {each: Host(over(server, command, each) if server.package else ours) for each in wanted}
    try:
        urls = {each: host.wait() for each, host in hosts.items()}
        yield {each: url.replace("/mcp", "/sse") if each == "sse" else url for each, url in urls.items()}
    finally:
        for host in hosts.values():
            host.end(0.5)


def _talk(kind: Kind, revision: str, command: list[str], url: str) -> Verdict:
    match kind.over:
        case "stdio":
            opened = over_stdio(command, environment(os.environ))
        case "http":
            opened = over_http(kind, revision, url)
        case _:
            opened = over_sse(kind, url)
    answer: dict[str, Any] = {}
    try:
        with opened as exchange:
            for step in script(kind, revision):
                answer = exchange(step) or answer
                if "error" in answer:
                    break
    except (queue.Empty, TimeoutError):
        return Verdict("hangs", "no answer")
    except (OSError, ConnectionError) as error:
        return Verdict("refuses", str(error))
    return judge_answer(kind, answer)


def read_all(words: Iterable[str] = ()) -> dict[Key, Verdict]:
    """Let the readers that are named, or all, go through the kinds that are named, or all."""
    wanted = set(words)
    known = [*server_kinds(), *client_kinds()]
    readers = [each for each in READERS if each in wanted] or list(READERS)
    kinds = [each for each in known if each in wanted] or known
    return read_servers(readers, kinds) | read_clients(readers, kinds)


if __name__ == "__main__":
    write(read_all(sys.argv[1:]))
    text = PAGE.read_text(encoding="utf-8").partition(page.TITLE)[0]
    PAGE.write_text(text + "".join(page.lines(stored())), encoding="utf-8", newline="\n")
