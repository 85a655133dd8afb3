"""Letting one client, in one revision, talk to the server; and judging what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.interop.expectations import FEATURES, Verdict, judge
from tests.interop.recording import violations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.interop.installing import Peer

__all__ = ["converse", "server_command"]

HERE = Path(__file__).parent

# All features together take seconds; a client that does not come back is stopped, and what it did not say has failed.
CONVERSATION_SECONDS = 120


def server_command() -> list[str]:
    """Return how to serve ``server.py`` with the mcpgen that is installed."""
    scripts = Path(sys.executable).parent
    return [str(scripts / ("mcpgen.exe" if os.name == "nt" else "mcpgen")), "serve", str(HERE / "server.py")]


def converse(peer: Peer, driver: Sequence[str], revision: str, server: Sequence[str]) -> dict[str, Verdict]:
    """Let them talk twice, the second time with a recorder between them; return what became of each feature."""
    talk = _talk([*driver, revision], [], server)
    said = dict(talk.said)
    # A client that probes in a process of its own stops that one before it ends by itself.
    said["end of input"] = ("observed", [int(status) for status in talk.ends if status != "stopped"])
    said["wire"] = ("observed", _talk([*driver, revision], ["--record"], server).violations)
    verdicts = {feature: judge(feature, revision, *said.get(feature, ("failed", "not said"))) for feature in FEATURES}
    if any(said.get(feature, ("failed",))[0] == "failed" for feature in FEATURES):
        sys.stderr.write(f"--- what {peer.name} and its servers said beside that, {revision}\n{talk.noise}\n")
    return verdicts


class Talk(NamedTuple):
    """A conversation: what the driver said of each feature, how each server ended, and which rules they broke."""

    said: Mapping[str, tuple[str, Any]]
    ends: list[str]
    violations: list[str]
    noise: str


def _talk(driver: Sequence[str], options: Sequence[str], server: Sequence[str]) -> Talk:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        watched = [sys.executable, str(HERE / "watch.py"), *options, name, *server]
        output, noise = _run([*driver, *watched], name)
        ends = folder / "ends.txt"
        return Talk(
            said={line["feature"]: (line["outcome"], line["detail"]) for line in map(json.loads, output.splitlines())},
            ends=ends.read_text(encoding="utf-8").split() if ends.exists() else [],
            violations=list(violations(folder)) if options else [],
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
