"""The ledger of rules, and the tests that name them."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests.specification.__main__ import PAGE
from tests.specification.citation import TEXTS
from tests.specification.rules import LEDGER, Rule, checked, citations, headings, read, written
from tests.specification.rules_page import LEVELS, text
from tests.specification.sentences import slug

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="tests of terminals cannot be imported there")

RULES = read()
PLACES = {(each.digest, revision): each.section for each in RULES for revision in each.revisions}
UNTESTED = ("missing", "contradicted", "not applicable", "not done")


def test_every_citation_names_a_heading_that_the_revision_has() -> None:
    unknown = []
    for each in citations():
        page, mark, heading = each.section.partition("#")
        pages = headings()[each.revision]
        if page not in pages or (mark and heading not in pages[page]):
            unknown.append((each.test, each.revision, each.section))

    assert len(citations()) > 1500  # or they are not found
    assert [] == unknown


def test_every_heading_is_spelled_in_one_way() -> None:
    spelled = {heading for pages in headings().values() for page in pages.values() for heading in page}

    assert [] == [each for each in spelled if each != slug(each)]


def test_every_digest_is_that_of_a_rule_at_the_place_that_is_cited() -> None:
    wrong = [
        (each.test, each.revision, each.section, digest)
        for each in citations()
        for digest in each.digests
        if PLACES.get((digest, each.revision)) != each.section
    ]

    assert [] == wrong


def test_every_tested_rule_has_a_test_in_each_of_its_revisions() -> None:
    found = checked(citations(), RULES)
    tested = [(each.digest, revision) for each in RULES if each.verdict == "tested" for revision in each.revisions]

    assert len(tested) > 600  # or the ledger has lost them
    assert [] == [each for each in tested if not found[each]]


def test_a_rule_that_is_not_kept_is_named_by_no_test() -> None:
    """A test that names a rule shows that it is kept: change the verdict."""
    found = checked(citations(), RULES)

    assert [] == [
        (each.digest, revision, each.verdict)
        for each in RULES
        if each.verdict in UNTESTED
        for revision in each.revisions
        if found[each.digest, revision]
    ]


def test_a_rule_has_a_reason_if_and_only_if_it_is_not_kept() -> None:
    assert [] == [each for each in RULES if bool(each.reason) != (each.verdict in UNTESTED)]


def test_a_rule_has_a_verdict_of_its_level_and_is_listed_once_in_a_revision() -> None:
    listed = [(each.digest, revision) for each in RULES for revision in each.revisions]

    assert [] == [each for each in RULES if each.verdict not in LEVELS[each.level]]
    assert [] == [each for each in RULES if list(each.revisions) != [x for x in TEXTS if x in each.revisions]]
    assert len(listed) == len(set(listed))


def test_every_rule_is_at_a_heading_that_its_revisions_have() -> None:
    def has(rule: Rule, revision: str) -> bool:
        page, mark, heading = rule.section.partition("#")
        return page in headings()[revision] and (not mark or heading in headings()[revision][page])

    assert [] == [each for each in RULES if not all(has(each, revision) for revision in each.revisions)]


def test_the_ledger_has_as_many_rules_at_each_heading_as_the_text() -> None:
    """``python -m tests.specification compare`` names the rules that it lacks."""
    listed = Counter((revision, each.section) for each in RULES for revision in each.revisions)
    counted = {
        (revision, f"{page}#{heading}" if heading else page): count
        for revision in TEXTS
        for page, found in headings()[revision].items()
        for heading, count in found.items()
        if count
    }

    assert counted == dict(listed)


def test_the_ledger_is_in_order() -> None:
    assert written(RULES) == LEDGER.read_text(encoding="utf-8")


def test_the_page_of_rules_is_current() -> None:
    """Write it with ``python -m tests.specification page``."""
    assert text(RULES) == PAGE.read_text(encoding="utf-8")
