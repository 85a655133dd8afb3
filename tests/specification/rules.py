"""The rules of the specification, what mcpgen makes of each, and which tests name which.

`tests/rules.jsonl` has a line for each rule, without its words. A test names the rules that it checks in its marker:
``spec("2025-11-25", "basic/lifecycle#initialization", "5dcfc85e")``. It checks them in the revisions that it runs in:
those of its parameter ``revision`` or ``peer``, or else those of the markers that name the rule.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
import pytest
from msgspec import Struct

from tests.specification.citation import LABELS, TASKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["HEADINGS", "LEDGER", "Citation", "Rule", "Verdict", "citations", "checked", "headings", "read", "written"]

TESTS: Final = Path(__file__).parents[1]
LEDGER: Final = TESTS / "rules.jsonl"
HEADINGS: Final = Path(__file__).with_name("headings.json")

Verdict: TypeAlias = Literal["tested", "missing", "contradicted", "not applicable", "done", "not done"]
"""``missing`` and ``contradicted`` are for MUST, ``done`` and ``not done`` for SHOULD, and the others for both."""

_RUNS: Final = ("revision", "peer")
_PARAMETERS: Final = type(pytest.param())


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rule in those revisions that have it at the same place, and of which the same is true.

    Attributes:
        digest: Names the rule; `tests/specification/sentences.py` says what it depends on.
        fingerprint: Names the words alone.
        section: The page, and the heading if there is one.
        revisions: Oldest first; of a rule of the extension for tasks, `ext-tasks`.
        level: MUST or SHOULD.
        actor: The side that has to keep it.
        verdict: What mcpgen makes of it.
        reason: Why it is not tested or not done.
    """

    digest: str
    fingerprint: str
    section: str
    revisions: tuple[str, ...]
    level: Literal["MUST", "SHOULD"]
    actor: Literal["both", "client", "host", "server", "transport"]
    verdict: Verdict
    reason: str = ""


class Citation(Struct, frozen=True):
    """A marker of a test.

    Attributes:
        test: The file and the name of the test.
        revision: The first argument.
        section: The second argument.
        digests: The others.
        runs: The revisions that the test runs in, if it has a parameter for them.
    """

    test: str
    revision: str
    section: str
    digests: tuple[str, ...]
    runs: frozenset[str]


def read(path: Path = LEDGER) -> list[Rule]:
    """Return the rules of the file."""
    decode = msgspec.json.Decoder(Rule).decode
    return [decode(line) for line in path.read_bytes().splitlines()]


def written(rules: Iterable[Rule]) -> str:
    """Return *rules* as the file has them."""
    lines = sorted((each.section, each.revisions, each.digest, msgspec.json.encode(each).decode()) for each in rules)
    return "".join(f"{line}\n" for *_, line in lines)


@cache
def headings() -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """Return the headings of each page of each revision, as `slug` spells them, with the number of their rules.

    The empty heading stands for what is above the first one.
    """
    found: dict[str, dict[str, dict[str, int]]] = json.loads(HEADINGS.read_text(encoding="utf-8"))
    return found


@cache
def citations() -> tuple[Citation, ...]:
    """Return the markers of all tests that run."""
    files = [path for path in sorted(TESTS.rglob("test_*.py")) if "spec(" in path.read_text(encoding="utf-8")]
    return tuple(each for path in files for each in _of_module(path))


def checked(found: Iterable[Citation], rules: Iterable[Rule]) -> Counter[tuple[str, str]]:
    """Return how many markers check each rule in each revision, by digest and revision."""
    stands: dict[str, set[str]] = {}
    for each in rules:
        stands.setdefault(each.digest, set()).update(each.revisions)
    return Counter(
        (digest, revision)
        for each in found
        for digest in each.digests
        for revision in (each.runs if each.runs and each.revision != TASKS else {each.revision})
        & stands.get(digest, set())
    )


def _of_module(path: Path) -> Iterator[Citation]:
    name = ".".join(("tests", *path.relative_to(TESTS).with_suffix("").parts))
    module = sys.modules.get(name) or import_module(name)
    for name, function in vars(module).items():
        marks: list[Any] = getattr(function, "pytestmark", []) if re.match("test_", name) else []
        if any(each.name == "skip" for each in marks):
            continue
        runs = frozenset(label for mark in marks if mark.name == "parametrize" for label in _revisions(*mark.args[:2]))
        for mark in marks:
            if mark.name == "spec":
                revision, section, *digests = mark.args
                yield Citation(f"{path.relative_to(TESTS)}::{name}", revision, section, tuple(digests), runs)


def _revisions(names: str | Iterable[str], values: Iterable[Any]) -> Iterator[str]:
    """Yield the revisions among the values of a parameter of a test."""
    listed = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    for place in (listed.index(each) for each in _RUNS if each in listed):
        for each in values:
            is_param = type(each) is _PARAMETERS
            row = each.values if is_param else each if len(listed) > 1 else (each,)
            if isinstance(row[place], str) and row[place] in LABELS:
                yield row[place]
