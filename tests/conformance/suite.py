"""The official conformance suite: where it comes from, how it is run, and what it writes down."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from tests.installations import folder_of, javascript, node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["PACKAGE", "RUNS", "Result", "Run", "Side", "environment", "install", "results", "run"]

# The tag "latest" is an older one, which knows nothing of 2026-07-28.
PACKAGE: Final = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
OLDEST_NODE: Final = 22  # what the package says that it needs

PATIENT_SERVERS: Final = Path(__file__).with_name("patient_servers.mjs")

# Whole runs take a minute at most, on cores that other processes keep busy several; one that does not end has to fail.
RUN_SECONDS: Final = 900
# The suite starts all clients of a run at once, on however few cores there are.
CLIENT_MILLISECONDS: Final = 600_000

Side: TypeAlias = Literal["server", "client"]


class Run(msgspec.Struct, frozen=True):
    """One run of the suite.

    Attributes:
        side: Whom it judges.
        scenarios: Those that a revision requires, in its frozen set, or all that the suite has for it; or all again,
            but our client is not told which revision it is, and has to find out.
        revision: What is spoken.
    """

    side: Side
    scenarios: Literal["required", "all", "found"]
    revision: str

    @property
    def title(self) -> str:
        return f"{self.scenarios} {self.revision}"

    @property
    def options(self) -> list[str]:
        if self.scenarios == "required":
            return ["--requirements", self.revision]
        return ["--suite", "all", "--spec-version", self.revision]


# All that the suite knows: two frozen sets, and the revisions that it can ask for. What it has for clients of
# 2025-03-26 is about authorization alone, and none gets so far as to speak it.
_REQUIRED: Final = ("2025-11-25", "2026-07-28")
_REVISIONS: Final = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
RUNS: Final = [
    *[Run("server", "required", each) for each in _REQUIRED],
    *[Run("server", "all", each) for each in _REVISIONS],
    *[Run("client", "required", each) for each in _REQUIRED],
    *[Run("client", "all", each) for each in _REVISIONS],
    *[Run("client", "found", each) for each in _REVISIONS[1:]],
]


class Result(msgspec.Struct, frozen=True):
    """What came of one scenario.

    Attributes:
        scenario: Its name.
        checks: What was looked at, as the suite wrote it down; None if nothing was.
        output: What the client printed, of a client.
        noise: What it printed as errors.
    """

    scenario: str
    checks: list[dict[str, Any]] | None
    output: str = ""
    noise: str = ""


def install(native_revision: Path) -> list[str]:
    """Install the suite in a folder of *home*, unless it is there, and return the command that runs it."""
    folder = folder_of(native_revision, PACKAGE)
    runtime = node(native_revision, oldest=OLDEST_NODE)
    javascript(folder, PACKAGE, runtime)
    program = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    return [runtime.node, "--import", PATIENT_SERVERS.as_uri(), str(program)]


def run(suite: Sequence[str], which: Run, subject: str | Sequence[str], scenario: str = "") -> tuple[list[Result], str]:
    """Run the suite once; return what came of each scenario, and what the suite printed.

    Args:
        suite: The command of the suite.
        which: What to run.
        subject: The server's URL, or the client's command.
        scenario: The only one to run.
    """
    if isinstance(subject, str):
        judged = ["server", "--url", subject]
    else:
        # It starts a shell; with exec, what it stops when the time is over is the client.
        judged = ["client", "--command", f"exec {shlex.join(subject)}", "--timeout", str(CLIENT_MILLISECONDS)]
    options = ["--scenario", scenario, "--spec-version", which.revision] if scenario else which.options
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [*suite, *judged, *options, "--output-dir", name],
            check=False,  # it ends with 1 where anything fails, even what it calls not scored
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env=environment(),
            timeout=RUN_SECONDS,
        )
        return list(results(Path(name))), done.stdout


def environment() -> dict[str, str]:
    """Return the environment without what lets this process import from the checkout: judged is what is installed."""
    return {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONSAFEPATH"}}


# The folder of a scenario, which has a slash in its name where it has one.
_FOLDER: Final = re.compile(r"(?:server-)?(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


def results(folder: Path) -> Iterator[Result]:
    """Return what the suite wrote into *folder*, by the name of the scenario."""
    found = [(match["scenario"], each) for each in folder.rglob("*") if (match := _match(folder, each))]
    for scenario, each in sorted(found):
        checks = each / "checks.json"
        yield Result(
            scenario,
            json.loads(checks.read_text(encoding="utf-8")) if checks.exists() else None,
            *(
                (each / name).read_text(encoding="utf-8")
                for name in ("stdout.txt", "stderr.txt")
                if (each / name).exists()
            ),
        )


def _match(folder: Path, each: Path) -> re.Match[str] | None:
    return _FOLDER.fullmatch(each.relative_to(folder).as_posix()) if each.is_dir() else None
