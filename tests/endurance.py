"""``nox -s endurance``: run what is too long for CI, and write down in ``docs/endurance.md`` how it ended."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).parents[1] / "docs" / "endurance.md"

RUNS: Final = {
    "fuzz": "The laws of the adapters, with {MCPGEN_FUZZ} instances of each type for each pair of revisions.",
    "soak": "A million calls over stdio and in memory, and 400,000 over HTTP: nothing grows, and a thousand calls that "
    "wait at once are all answered.",
    "attack": "Random hostile traffic over HTTP and stdio for {MCPGEN_MINUTES} minutes beside an honest client: it "
    "loses no call and hardly waits longer, and the server keeps nothing.",
}

HEAD: Final = """\
# Endurance

Written by `nox -s endurance`; do not edit. Each row is the last run of its kind. The last part of that session writes
[the benchmarks](benchmarks.md).

| run | tries | ended | minutes | on |
|---|---|---|--:|---|
"""


class Row(NamedTuple):
    """The last run of one kind."""

    name: str
    tries: str
    ended: str
    minutes: str
    machine: str

    def __str__(self) -> str:
        return f"| {' | '.join(self)} |\n"


def rows(page: str) -> dict[str, Row]:
    """Return the rows of *page* by name."""
    found = re.findall(rf"^\| ({'|'.join(RUNS)}) \| (.*) \| (.*) \| (.*) \| (.*) \|$", page, re.MULTILINE)
    return {each[0]: Row(*each) for each in found}


def text(found: dict[str, Row]) -> str:
    """Return the page."""
    return HEAD + "".join(str(found[name]) for name in RUNS if name in found)


def main(name: str, command: list[str]) -> int:
    """Run *command*, write its row, and return its status."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures"
        env = {**os.environ, "MCPGEN_FIGURES": str(figures)}
        status = subprocess.run(command, check=False, env=env).returncode
        found = f": {figures.read_text(encoding='utf-8')}" if figures.exists() else ""
    minutes = (time.monotonic() - begin) / 60
    instances = f"{int(os.environ.get('MCPGEN_FUZZ', '0')):,}"
    tries = RUNS[name].format(MCPGEN_FUZZ=instances, MCPGEN_MINUTES=os.environ.get("MCPGEN_MINUTES", "60"))
    machine = (
        f"{os.cpu_count()} logical processors ({platform.machine()}), {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )
    row = Row(name, tries, ("well" if status == 0 else f"with status {status}") + found, f"{minutes:.0f}", machine)
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(text({**rows(before), name: row}), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[sys.argv.index("--") + 1 :]))
