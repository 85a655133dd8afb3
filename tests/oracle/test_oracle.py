"""The bindings are exact: what the patched document accepts they accept and give back, what it refuses they refuse."""

from __future__ import annotations

import random

import pytest

from tests.oracle import disagreements, report, subjects
from tests.oracle.oracle import SHOWN, Comparison

LEAST_AGREEMENT = 0.995
RANDOM_INSTANCES = 20

RULES = disagreements.load(disagreements.FILE.read_text(encoding="utf-8"))

# The newest first: it takes longest, and the last test to start decides when the whole suite ends.
revisions = pytest.mark.parametrize("revision", subjects.REVISIONS[::-1])


def comparison(revision: str) -> Comparison:
    return Comparison(subjects.patched(revision), subjects.bindings(revision))


@revisions
@pytest.mark.slow
def test_valid_instances_round_trip(revision: str) -> None:
    failures = list(comparison(revision).round_trips())

    assert not failures, "\n".join(failures[:SHOWN])


@revisions
@pytest.mark.slow
def test_bindings_agree_with_the_schema_on_every_mutant(revision: str) -> None:
    """One test for all that needs the whole comparison: it takes seconds, and processes of xdist share nothing."""
    outcome = report.outcome(revision)
    found = disagreements.problems(outcome.disagreements, RULES, revision=revision)
    text = report.FILE.read_text(encoding="utf-8")

    assert not outcome.lossy, "\n".join(outcome.lossy[:SHOWN])
    assert not found, "\n".join(found)
    # The rules may cover what they say, but not hide that bindings and schema drift apart.
    assert outcome.agreement >= LEAST_AGREEMENT
    # jsonschema-rs, which saw every mutant, stands for jsonschema, which saw a sample.
    assert outcome.crossed == []
    assert report.row(revision) in text, report.STALE
    assert report.section(revision) in text, report.STALE


def test_the_report_says_nothing_else() -> None:
    text = report.FILE.read_text(encoding="utf-8")
    lines = text.splitlines()

    assert text.startswith(report.INTRODUCTION)
    assert report.EXPLANATION in text
    headings = [line.lower() for line in lines if line.startswith("## ")]
    assert [f"## {report.title(each)}" for each in report.SUBJECTS] == headings
    assert len(report.SUBJECTS) == len([line for line in lines if line.startswith(("| 20", "| extension "))])


@revisions
@pytest.mark.slow
def test_random_instances_and_their_mutants_hold_no_surprise(revision: str) -> None:
    """Combinations that the systematic instances leave out; the rules apply, their counts do not."""
    compared = comparison(revision)
    failures: list[str] = []
    rng = random.Random(revision)  # noqa: S311  (repeatable on purpose)
    for name in compared.instances.names:
        instances = [compared.instances.random(name, rng) for _ in range(RANDOM_INSTANCES)]
        failures += compared.round_trip_failures(name, instances)
        failures += [
            str(each)
            for each in compared.disagreements(name, instances[:1])
            if each.is_crash or not any(rule.covers(each) for rule in RULES)
        ]

    assert not failures, "\n".join(failures[:SHOWN])


def test_every_rule_covers_something_of_a_known_revision() -> None:
    for rule in RULES:
        assert rule.predicate in disagreements.PREDICATES
        assert rule.count
        assert rule.count.keys() <= set(report.SUBJECTS)
        assert min(rule.count.values()) > 0
        assert rule.reason


def test_rules_have_different_names() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
