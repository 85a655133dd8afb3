"""The judge finds what it is there to find: neither nothing nor almost the right thing passes."""

from __future__ import annotations

import pytest

from tests.adapters import fakes
from tests.adapters.fakes import FakeRoutes
from tests.adapters.laws import Judge
from tests.adapters.subjects import INSTANCES, Subject

pytestmark = pytest.mark.slow

NEXT = ("2025-11-25", "2025-06-18")
FAR = ("2026-07-28", "2024-11-05")
down = pytest.mark.parametrize(("source", "target"), [NEXT, FAR])
pairs = pytest.mark.parametrize(("source", "target"), [NEXT, NEXT[::-1], FAR, FAR[::-1]])
FOREIGN = "a key that is foreign to the target"


@pairs
def test_doing_nothing_leaves_foreign_keys(source: str, target: str) -> None:
    findings = Judge(source, target, FakeRoutes(fakes.identity)).outputs()

    assert {subject for law, subject, says in findings.counts if law == "validity" and says == FOREIGN}


@down
def test_doing_nothing_leaves_foreign_keys_also_in_messages_without_surprises(source: str, target: str) -> None:
    trial = Judge(source, target, FakeRoutes(fakes.identity))
    clean = [
        (subject, value)
        for subject in trial.subjects
        for value in trial.sent.instances(subject)
        if trial.sent.clean(subject, value)
    ]

    assert [1 for subject, value in clean if not trial.received.clean(subject, value)]


@pairs
def test_dropping_foreign_keys_everywhere_is_not_enough(source: str, target: str) -> None:
    findings = Judge(source, target, FakeRoutes(fakes.naive)).outputs()

    assert "validity" in findings.laws
    # It drops the keys, wherever they are, and says so; it does not know what to put in their place.
    assert not findings.laws & {"crashes", "inputs stay", "losses"}


def test_losses_that_are_not_reported_are_found() -> None:
    findings = Judge(*NEXT, FakeRoutes(fakes.silent)).outputs()

    assert "losses" in findings.laws
    assert any("/_meta/io.modelcontextprotocol~1serverInfo" in says for _, _, says in findings.counts)


def test_dropping_what_nobody_defines_is_found() -> None:
    findings = Judge(*NEXT, FakeRoutes(fakes.greedy)).outputs()

    assert any(says == "/x-unknown vanished without a loss" for _, _, says in findings.counts)


def test_another_order_of_keys_is_found() -> None:
    findings = Judge(*NEXT, FakeRoutes(fakes.sorting)).outputs()

    assert any("another order" in says for _, _, says in findings.counts)


def test_changing_the_input_is_found() -> None:
    assert "inputs stay" in Judge(*NEXT, FakeRoutes(fakes.meddling)).outputs().laws


def test_what_adds_up_is_found() -> None:
    assert "returns" in Judge(*NEXT, FakeRoutes(fakes.growing)).returns().laws
    assert "stepping" in Judge(*FAR, FakeRoutes(fakes.growing)).stepping().laws


def test_what_is_not_restored_is_found() -> None:
    findings = Judge(*NEXT, FakeRoutes(fakes.naive)).keeping()

    assert {says for law, _, says in findings.counts if law == "keeping"} >= {"nothing is kept"}


def test_crashes_are_findings() -> None:
    assert "crashes" in Judge(*NEXT, FakeRoutes(fakes.crashing)).outputs().laws
    assert "crashes" in Judge(*NEXT, FakeRoutes(fakes.crashing)).hostile().laws


def test_refusals_that_name_no_service_are_found() -> None:
    assert Judge(*NEXT, FakeRoutes(fakes.undeclared)).outputs().laws == {"refusals"}


def test_passing_on_what_was_invalid_is_found() -> None:
    assert "validity of what was invalid" in Judge(*NEXT, FakeRoutes(fakes.identity)).hostile().laws


def test_a_route_for_a_method_that_the_target_lacks_is_found() -> None:
    findings = Judge(*FAR, FakeRoutes(fakes.identity)).existence()

    assert {
        str(Subject("params", "server/discover", "client")),
        str(Subject("params", "subscriptions/listen", "client")),
    } <= {subject for law, subject, _ in findings.counts if law == "routes"}


def test_refusing_everything_is_found() -> None:
    findings = Judge(*NEXT, FakeRoutes(fakes.refusing)).outputs()

    assert {says for _, _, says in findings.counts} == {f"only 0 of {INSTANCES} instances can be expressed"}


def test_dropping_what_is_valid_in_the_target_is_found() -> None:
    assert "need" in Judge("2025-06-18", "2025-11-25", FakeRoutes(fakes.dropping)).outputs().laws


def test_losses_that_did_not_happen_are_found() -> None:
    findings = Judge(*NEXT, FakeRoutes(fakes.complaining)).outputs()

    assert any(says == "/x-unknown is reported as dropped and did not change" for _, _, says in findings.counts)
