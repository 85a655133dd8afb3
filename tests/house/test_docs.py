"""The documentation: links lead somewhere, and examples do what they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
EXAMPLE = re.compile(r"^```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"^Save this as `(?P<name>\w+\.py)`:\n\n```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)


def save_files(text: str, folder: Path) -> None:
    """Write the files that the page *text* tells its reader to save."""
    for match in SAVED.finditer(text):
        (folder / match["name"]).write_text(match["source"], encoding="utf-8")


def id_of(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    targets = [match["target"].partition("#")[0] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    dead = [name for name in targets if name and "://" not in name and not (page.parent / name).exists()]

    assert [] == dead


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_the_python_examples_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    save_files(text, tmp_path)
    source = "\n".join(match["source"] for match in EXAMPLE.finditer(text))
    command = [sys.executable, "-E", "-s", "-W", "error", "-c", source]
    done = subprocess.run(command, check=False, capture_output=True, cwd=tmp_path, encoding="utf-8")

    assert 0 == done.returncode, done.stderr


def test_every_decision_is_in_the_index() -> None:
    folder = CHECKOUT / "docs" / "adr"
    index = (folder / "README.md").read_text(encoding="utf-8")

    assert [] == [path.name for path in folder.glob("0*.md") if f"({path.name})" not in index]


def test_every_change_fragment_has_a_kind_that_the_changelog_knows() -> None:
    fragments = [path.name for path in (CHECKOUT / "docs" / "changes").iterdir() if path.name != "README.md"]

    assert [] == [name for name in fragments if not re.fullmatch(r"[\w-]+\.(breaking|added|fixed|removed)\.md", name)]
