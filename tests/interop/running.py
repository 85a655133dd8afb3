"""Letting one client and one server talk in one revision; and judging what the client says that it got."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.interop import theirs
from tests.interop.expectations import FEATURES, LABELS, Verdict, judge
from tests.interop.recording import breaches, violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.interop.installing import Peer, Server

__all__ = ["agreements", "ask", "converse", "server_command"]

HERE = Path(__file__).parent

# All features together take seconds; a client that does not come back is stopped, and what it did not say has failed.
CONVERSATION_SECONDS = 120


def server_command() -> list[str]:
    """Return how to serve ``server.py`` with the mcpgen that is installed."""
    scripts = Path(sys.executable).parent
    return [str(scripts / ("mcpgen.exe" if os.name == "nt" else "mcpgen")), "serve", str(HERE / "server.py")]


def converse(peer: Peer, driver: Sequence[str], revision: str, server: Sequence[str]) -> dict[str, Verdict]:
    """Let them talk twice, the second time with a recorder between them; return what became of each feature."""
    talk = _talk([*driver, revision], server)
    said = dict(talk.said)
    # A client that probes in a process of its own stops that one before it ends by itself.
    said["end of input"] = ("observed", [int(status) for status in talk.ends if status != "stopped"])
    said["wire"] = ("observed", _talk([*driver, revision], server, violations).violations)
    verdicts = {feature: judge(feature, revision, *said.get(feature, ("failed", "not said"))) for feature in FEATURES}
    if any(said.get(feature, ("failed",))[0] == "failed" for feature in FEATURES):
        sys.stderr.write(f"--- what {peer.name} and its servers said beside that, {revision}\n{talk.noise}\n")
    return verdicts


def ask(server: Server, command: Sequence[str], revision: str) -> dict[str, Verdict]:
    """Let our client talk to a server, with a recorder between them; return what became of each feature."""
    driver = [sys.executable, str(HERE / "peers" / "ours.py"), server.repertoire, revision]
    offered = LABELS if revision == theirs.ALL else [revision]
    talk = _talk(driver, command, lambda folder: breaches(folder, offered))
    said = dict(talk.said)
    said["end of input"] = ("observed", talk.ends)
    said["wire"] = ("observed", talk.violations)
    verdicts = {
        feature: theirs.judge(server, feature, revision, *said.get(feature, ("failed", "not said")))
        for feature in theirs.asked_of(server)
    }
    if any(verdict.outcome == "failed" for verdict in verdicts.values()):
        sys.stderr.write(f"--- what our client and {server.name} said beside that, {revision}\n{talk.noise}\n")
    return verdicts


def agreements(server: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return what our client and our server agree on, by what is offered and what is served: one revision, or all."""
    output, noise = _run([sys.executable, str(HERE / "peers" / "offers.py"), ",".join(LABELS), *server], str(HERE))
    sys.stderr.write(noise)
    found = [json.loads(line) for line in output.splitlines()]
    return {(_choice(each["offered"]), _choice(each["served"])): each["outcome"] for each in found}


def _choice(revisions: list[str]) -> str:
    return theirs.ALL if len(revisions) > 1 else revisions[0]


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
        output, noise = _run([*driver, *watched], name)
        ends = folder / "ends.txt"
        return Talk(
            said={line["feature"]: (line["outcome"], line["detail"]) for line in map(json.loads, output.splitlines())},
            ends=ends.read_text(encoding="utf-8").split() if ends.exists() else [],
            violations=list(judged(folder)) if judged else [],
            noise=noise,
        )


def _run(command: Sequence[str], folder: str) -> tuple[str, str]:
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
