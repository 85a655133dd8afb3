"""Adapters obey their laws, for all ordered pairs of revisions and everything that both revisions have.

``MCPGEN_FUZZ`` says how many instances of everything are tried; ``nox -s fuzz`` tries 10,000.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.adapters.laws import Judge
from tests.adapters.real import PAIRS, RealRoutes
from tests.adapters.subjects import Subject
from tests.oracle.subjects import REVISIONS

pytestmark = pytest.mark.slow

# The longest way first: it takes longest, and the last test to start decides when the whole suite ends.
NEIGHBOURS = {pair for old, new in pairwise(REVISIONS) for pair in ((old, new), (new, old))}
pairs = pytest.mark.parametrize(("source", "target"), PAIRS[::-1])


def judge(source: str, target: str) -> Judge:
    return Judge(source, target, RealRoutes())


@pairs
def test_there_is_a_route_for_what_both_revisions_have_and_a_named_service_for_the_rest(
    source: str, target: str
) -> None:
    findings = judge(source, target).existence()

    assert not findings, str(findings)


@pairs
def test_outputs_are_valid_in_the_closed_target_and_every_change_is_reported(source: str, target: str) -> None:
    trial = judge(source, target)
    findings = trial.outputs()

    assert not findings, str(findings)
    # A route that refuses everything would obey every law.
    assert trial.adapted > trial.trials / 2


@pairs
def test_there_and_back_and_there_again_is_there(source: str, target: str) -> None:
    findings = judge(source, target).returns()

    assert not findings, str(findings)


@pytest.mark.parametrize(("source", "target"), [pair for pair in PAIRS[::-1] if pair not in NEIGHBOURS])
def test_composing_equals_stepping(source: str, target: str) -> None:
    findings = judge(source, target).stepping()

    assert not findings, str(findings)


@pairs
def test_what_is_kept_is_valid_and_comes_back(source: str, target: str) -> None:
    findings = judge(source, target).keeping()

    assert not findings, str(findings)


@pairs
def test_what_its_own_revision_forbids_never_comes_out_invalid(source: str, target: str) -> None:
    findings = judge(source, target).hostile()

    assert not findings, str(findings)


@pytest.mark.parametrize("source", ["2025-11-25", "2026-07-28"])
def test_a_choice_with_titles_does_not_pass_as_a_text_field(source: str) -> None:
    """The one thing that the closed documents do not see: to 2025-06-18, oneOf is a key that nobody knows."""
    choice = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
    form = {"type": "object", "properties": {"colour": choice}}
    route = RealRoutes()(source, "2025-06-18", Subject("params", "elicitation/create", "server"))
    adapted = route.adapt({"message": "", "requestedSchema": form}).value

    assert adapted["requestedSchema"]["properties"] == {
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
    }
