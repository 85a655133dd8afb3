"""That each MUST of the task extension has tests, which cite its section."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from tests.specification.tasks.rules import MODULES, digests, rules

PAGE: Final = "specification/draft/tasks"


def cited(test: str) -> set[str]:
    """Return the places of the extension that *test* cites."""
    module, _, function = test.partition("::")
    found: Any = getattr(import_module(MODULES[module]), function, None)
    marks = [each.args for each in getattr(found, "pytestmark", []) if each.name == "spec"]
    return {place for revision, place in marks if revision == "ext-tasks"}


def test_every_rule_has_tests_that_cite_its_section() -> None:
    wanted = [(test, f"{PAGE}#{each.section}") for each in rules() for test in each.tests]

    assert [] == [(test, place) for test, place in wanted if place not in cited(test)]
    assert all(each.tests for each in rules())


def test_the_list_has_each_sentence_once() -> None:
    found = [each.digest for each in rules()]

    assert 41 == len(found) == len(set(found))  # 42 MUSTs, two of them in one sentence


def test_a_sentence_is_found_under_its_section() -> None:
    text = """## Task Polling\n\nIt **MAY** wait. It **MUST** answer.\n\n### Response\n\n- It **MUST NOT** lie."""

    assert [("task-polling", "It **MUST** answer."), ("task-polling", "- It **MUST NOT** lie.")] == list(
        digests(text).values()
    )
