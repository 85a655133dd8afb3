"""Each limit in the tables of docs/guide/limits.md is set by a test of this folder, which measures a process."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

GUIDE: Final = Path(__file__).parents[2] / "docs" / "guide" / "limits.md"

# The tests of these are elsewhere, or measure them under another name.
ELSEWHERE: Final = {
    "max_threads": "test_threads.py, by counting threads",
    "lease_seconds": "tests/faults/test_task_faults.py, with processes that are killed",
}


def documented() -> set[str]:
    """Return the names in the first column of each table."""
    rows = [line.split("|")[1] for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}


def named_in_tests() -> set[str]:
    """Return the strings and the names of arguments in the tests of this folder."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path.name != Path(__file__).name else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg is not None:
                found.add(node.arg)
    return found


def test_each_limit_of_the_guide_is_tested_against_a_process() -> None:
    limits = documented()

    assert len(limits) >= 70
    assert set() == limits - named_in_tests() - ELSEWHERE.keys()
    assert ELSEWHERE.keys() <= limits - named_in_tests()
