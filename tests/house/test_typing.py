"""The consumer code in tests/typing, which the type checkers judge (``nox -s types``), is code that runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "typing"
CONSUMERS = sorted(FOLDER.glob("*.py"))
IGNORE = re.compile(r"# (?P<checker>type|pyright): ignore\[[\w-]+(, [\w-]+)*\]")


def imported(source: str) -> set[str]:
    """Return the packages that *source* imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.partition(".")[0])
    return found


def test_there_are_consumers() -> None:
    assert CONSUMERS


@pytest.mark.parametrize("path", CONSUMERS, ids=lambda path: path.stem)
def test_a_consumer_uses_only_the_installed_package(path: Path) -> None:
    assert imported(path.read_text(encoding="utf-8")) <= {"mcpgen", "msgspec", *sys.stdlib_module_names}


@pytest.mark.parametrize("path", CONSUMERS, ids=lambda path: path.stem)
@pytest.mark.slow
def test_a_consumer_can_be_imported(path: Path) -> None:
    done = subprocess.run([sys.executable, "-I", str(path)], check=False, capture_output=True, encoding="utf-8")

    assert 0 == done.returncode, done.stderr


def test_every_mistake_has_to_be_refused_by_both_checkers() -> None:
    lines = (FOLDER / "consumer_mistakes.py").read_text(encoding="utf-8").splitlines()
    judges = {line: [match["checker"] for match in IGNORE.finditer(line)] for line in lines if "ignore[" in line}

    assert judges
    assert [] == [line for line, checkers in judges.items() if checkers != ["type", "pyright"]]


def test_nothing_but_mistakes_is_ignored() -> None:
    others = [path for path in CONSUMERS if path.stem != "consumer_mistakes"]

    assert [] == [path.name for path in others if "ignore" in path.read_text(encoding="utf-8")]
