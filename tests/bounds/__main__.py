"""``python -m tests.bounds``: attack a server in all ways that are tested, and print what it took.

With ``--python PATH``, attack the mcpgen of another interpreter, such as that of an older checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

COLUMNS: Final = (
    "start MiB",
    "peak MiB",
    "end MiB",
    "threads",
    "descriptors",
    "longest stall s",
    "honest calls",
    "lost",
)


class Table:
    """Collect the figures that tests attach to their reports."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("::test_")[2].replace("_", " ")
        row = self.rows.setdefault(name, {"outcome": "held"})
        row.update(report.user_properties)
        if report.failed:
            row["outcome"] = "failed"
            crash = getattr(report.longrepr, "reprcrash", None)
            row.setdefault("why", str(getattr(crash, "message", report.longrepr)).partition("\n")[0][:200])

    def __str__(self) -> str:
        lines = [f"| attack | outcome | {' | '.join(COLUMNS)} |", f"|---|---|{'--:|' * len(COLUMNS)}"]
        for name, row in self.rows.items():
            cells = ["-" if row.get(each) is None else f"{row[each]}" for each in COLUMNS]
            lines.append(f"| {name} | {row['outcome']} | {' | '.join(cells)} |")
        return "\n".join(lines)


def main() -> int:
    """Run the tests of this folder; return the status of pytest."""
    parser = argparse.ArgumentParser(prog="python -m tests.bounds", description="Attack a server, and print a table.")
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose mcpgen is attacked")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="run only these, as pytest's -k")
    given = parser.parse_args()
    os.environ["MCPGEN_ATTACKED_PYTHON"] = given.python
    table = Table()
    options = ["--quiet", "--tb=no", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", given.k]
    status = pytest.main([str(Path(__file__).parent), *options], plugins=[table])
    print(table)  # noqa: T201 (this is a command)
    if given.json is not None:
        given.json.write_text(json.dumps(table.rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
