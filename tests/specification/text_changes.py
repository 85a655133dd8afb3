"""Which rules a text of the specification has that the ledger lacks, which it lacks, and which have moved."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from shutil import which
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tests.specification.rules import Rule
from tests.specification.sentences import Sentence, headings, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["Changes", "changes", "headings_text", "pages", "report"]

_MAX_SHOWN_CHARS: Final = 160


class Changes(Struct, frozen=True):
    """What differs between a text and the rules that are known of it.

    Attributes:
        came: The rules that are not known.
        went: The known rules that the text does not have.
        moved: The known rules whose words are at another place, and that place.
    """

    came: list[Sentence]
    went: list[Rule]
    moved: list[tuple[Rule, Sentence]]


def changes(known: Iterable[Rule], found: Mapping[str, Sentence]) -> Changes:
    """Compare the *known* rules of a revision with those *found* in a text, by digest."""
    before = {each.digest: each for each in known}
    went = {digest: rule for digest, rule in before.items() if digest not in found}
    came = {digest: each for digest, each in found.items() if digest not in before}
    moved: list[tuple[Rule, Sentence]] = []
    for rule in list(went.values()):
        place = next((each for each in came.values() if each.fingerprint == rule.fingerprint), None)
        if place is not None:
            moved.append((rule, place))
            del went[rule.digest], came[place.digest]
    return Changes(list(came.values()), list(went.values()), moved)


def report(revision: str, found: Changes) -> Iterator[str]:
    """Yield the lines that describe *found*."""
    counts = f"{len(found.came)} came, {len(found.went)} went, {len(found.moved)} moved"
    yield f"{revision}: {counts}"
    for each in found.came:
        yield f"  came  {each.digest} {each.level} {each.section}: {each.text[:_MAX_SHOWN_CHARS]}"
    for rule in found.went:
        yield f"  went  {rule.digest} {rule.level} {rule.section} ({rule.verdict})"
    for rule, place in found.moved:
        yield f"  moved {rule.digest} {rule.level} {rule.section} -> {place.digest} {place.section} ({rule.verdict})"


def pages(repository: Path, folder: str, *, commit: str = "HEAD") -> dict[str, str]:
    """Return the text of each page in a folder of a repository, by name, such as ``basic/index``.

    Args:
        repository: A clone, or its git directory.
        folder: The folder.
        commit: The commit to read.

    Raises:
        LookupError: The commit has no pages there.
    """
    listed = _git(repository, "ls-tree", "-r", "--name-only", commit, f"{folder}/").splitlines()
    paths = [each for each in listed if each.endswith((".md", ".mdx"))]
    if not paths:
        message = f"{repository} has no pages in {folder} at {commit}"
        raise LookupError(message)
    return {
        each.removeprefix(f"{folder}/").rpartition(".")[0]: _git(repository, "show", f"{commit}:{each}")
        for each in paths
    }


def headings_text(found: Mapping[str, Mapping[str, str]]) -> str:
    """Return the file of headings: those of each page, by revision and page, each with the number of its rules."""
    lines = [
        f'"{revision}": {{\n'
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in _counts(texts).items())
        + "\n}"
        for revision, texts in sorted(found.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _counts(texts: Mapping[str, str]) -> dict[str, dict[str, int]]:
    sections = Counter(each.section for each in sentences(texts).values())
    return {
        page: {"": sections[page]} | {each: sections[f"{page}#{each}"] for each in headings(text)}
        for page, text in sorted(texts.items())
    }


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        [which("git") or "git", "-C", str(repository), *arguments], check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout
