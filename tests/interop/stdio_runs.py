"""Letting one client and one server talk in one revision; and judging what the client says that it got."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.interop import server_expectations
from tests.interop.client_expectations import FEATURES, LABELS, Verdict, judge
from tests.interop.stdio_recording import breaches, violations
from tests.interop.transports import ALL, STDIO, Cell, looked_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tests.interop.peer_packages import Server

__all__ = ["agreements", "ask", "converse", "driver_of_ours", "environment", "offers", "said_by", "server_command"]

HERE = Path(__file__).parent

# All features together take seconds; a client that does not come back is stopped, and what it did not say has failed.
CONVERSATION_SECONDS = 120


def server_command(*options: str) -> list[str]:
    """Return how to serve ``server.py`` with the mcpgen that is installed."""
    scripts = Path(sys.executable).parent
    command = [str(scripts / ("mcpgen.exe" if os.name == "nt" else "mcpgen")), "serve", str(HERE / "server.py")]
    return [*command, *options]


def driver_of_ours() -> list[str]:
    """Return how to run our client."""
    return [sys.executable, str(HERE / "peers" / "mcpgen_client.py")]


def converse(driver: Sequence[str], cell: Cell, server: Sequence[str]) -> dict[str, Verdict]:
    """Let them talk twice, the second time with a recorder between them; return what became of each feature."""
    revision = cell.revision
    talk = _talk([*driver, revision], server)
    said = dict(talk.said)
    # A client that probes in a process of its own stops that one before it ends by itself.
    said["end"] = ("observed", [int(status) for status in talk.ends if status != "stopped"])
    said["wire"] = ("observed", _talk([*driver, revision], server, violations).violations)
    asked = looked_at(FEATURES, STDIO, revision)
    verdicts = {feature: judge(feature, revision, *said.get(feature, ("failed", "not said"))) for feature in asked}
    if any(said.get(feature, ("failed",))[0] == "failed" for feature in asked):
        sys.stderr.write(f"--- what was said beside that: {cell}\n{talk.noise}\n")
    return verdicts


def ask(server: Server, command: Sequence[str], cell: Cell) -> dict[str, Verdict]:
    """Let our client talk to a server, with a recorder between them; return what became of each feature."""
    driver = [*driver_of_ours(), server.repertoire, cell.revision]
    offered = LABELS if cell.revision == ALL else [cell.revision]
    talk = _talk(driver, command, lambda folder: breaches(folder, offered))
    said = dict(talk.said)
    said["end"] = ("observed", talk.ends)
    said["wire"] = ("observed", talk.violations)
    verdicts = {
        feature: server_expectations.judge(server, feature, cell, *said.get(feature, ("failed", "not said")))
        for feature in server_expectations.asked_of(server, cell)
    }
    if any(verdict.outcome == "failed" for verdict in verdicts.values()):
        sys.stderr.write(f"--- what was said beside that: {cell}\n{talk.noise}\n")
    return verdicts


def agreements(server: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return what our client and our server agree on, by what is offered and what is served: one revision, or all."""
    output, noise = _run([sys.executable, str(HERE / "peers" / "offers.py"), ",".join(LABELS), *server], str(HERE))
    sys.stderr.write(noise)
    found = [json.loads(line) for line in output.splitlines()]
    return {(_choice(each["offered"]), _choice(each["served"])): each["outcome"] for each in found}


def offers(url: str) -> Iterator[tuple[str, str]]:
    """Yield what our client offers to the server at *url*, one revision or all, and what comes of it."""
    output, noise = _run([sys.executable, str(HERE / "peers" / "offers.py"), ",".join(LABELS), url], str(HERE))
    sys.stderr.write(noise)
    yield from ((_choice(each["offered"]), each["outcome"]) for each in map(json.loads, output.splitlines()))


def _choice(revisions: list[str]) -> str:
    return ALL if len(revisions) > 1 else revisions[0]


class Talk(NamedTuple):
    """A conversation: what the driver said of each feature, how each server ended, and which rules they broke."""

    said: Mapping[str, tuple[str, Any]]
    ends: list[str]
    violations: list[str]
    noise: str


def _talk(driver: Sequence[str], server: Sequence[str], judged: Callable[[Path], Iterable[str]] | None = None) -> Talk:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ["--record"] if judged else []
        watched = [sys.executable, str(HERE / "watch.py"), *options, name, *server]
        said, noise = said_by([*driver, *watched], name)
        ends = folder / "ends.txt"
        return Talk(
            said=said,
            ends=ends.read_text(encoding="utf-8").split() if ends.exists() else [],
            violations=list(judged(folder)) if judged else [],
            noise=noise,
        )


def said_by(driver: Sequence[str], folder: str | None = None) -> tuple[dict[str, tuple[str, Any]], str]:
    """Run a driver; return the outcome and the detail of each feature that it speaks of, and what else it printed."""
    output, noise = _run(driver, folder)
    lines = map(json.loads, output.splitlines())
    return {line["feature"]: (line["outcome"], line["detail"]) for line in lines}, noise


def _run(command: Sequence[str], folder: str | None) -> tuple[str, str]:
    env = environment(os.environ)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=env) as process:
        try:
            output, noise = process.communicate(timeout=CONVERSATION_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, noise = process.communicate()
    return output.decode(), noise.decode(errors="replace")


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what lets this process import from the checkout: a client is another program."""
    return {key: value for key, value in ours.items() if key not in {"PYTHONPATH", "PYTHONSAFEPATH"}}
