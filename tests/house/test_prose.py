"""The prose of the repository: plain words, and examples that type checkers accept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.house.test_docs import EXAMPLE, save_files

CHECKOUT = Path(__file__).parents[2]
README = CHECKOUT / "README.md"

# Words that hide the subject of a sentence: name it instead (a client, the caller, the user).
REFUSED = re.compile(r"\b(nobody|somebody|whoever|whosoever|take it that)\b", re.IGNORECASE)
ROOMS = (".package", "codegen", "generated", "runtime", "schema", "templates")
TEXTS = (".jinja", ".md", ".py", ".toml")


def texts() -> list[Path]:
    found = [path for room in ROOMS for path in (CHECKOUT / room).rglob("*") if path.suffix in TEXTS]
    pages = [README, CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "tests" / "README.md"]
    docs = [*(CHECKOUT / "docs").glob("*.md"), *(CHECKOUT / "docs" / "guide").glob("*.md")]
    bench = (CHECKOUT / "tests" / "bench").rglob("*.py")  # which writes docs/benchmarks.md
    return sorted([*found, *docs, *bench, *(page for page in pages if page.exists())])


def test_prose_names_its_subjects() -> None:
    guilty = [
        f"{path.relative_to(CHECKOUT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if REFUSED.search(line)
    ]

    assert [] == guilty


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_examples_of_the_readme_satisfy_a_type_checker(checker: str, tmp_path: Path) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is in the dependency group `types`, which `nox -s types` installs")
    text = README.read_text(encoding="utf-8")
    save_files(text, tmp_path)
    source = "\n".join(match["source"] for match in EXAMPLE.finditer(text))
    (tmp_path / "readme.py").write_text(source, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    command = {
        "mypy": ["mypy", "--strict", "--config-file=", "--cache-dir=.cache", "readme.py"],
        "pyright": ["pyright", "--pythonpath", sys.executable, "-p", "."],
    }
    done = subprocess.run(
        [sys.executable, "-m", *command[checker]],
        check=False,
        capture_output=True,
        cwd=tmp_path,
        encoding="utf-8",
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )

    assert 0 == done.returncode, done.stdout + done.stderr
