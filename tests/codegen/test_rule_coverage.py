"""Each difference between vendored revisions has the rule that covers it, whatever lies between them."""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from mcpgen.codegen.adapters.declared import Declared, declared_steps
from mcpgen.codegen.adapters.plan import survey_steps
from mcpgen.codegen.adapters.rule_coverage import compare_vendored
from mcpgen.codegen.build import pinned_source
from mcpgen.codegen.changes.vocabulary import Change, Default, Drop, Refuse, Step
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.diff import Edition, compare, edition, mirrored
from tests.codegen.editions import INTEGER, ROOM, STRING, any_of, obj, read, ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.codegen.diff.model import Diff

REVISIONS = ROOM.revisions
A, B, C, D, E = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"


@cache
def released() -> tuple[Edition, ...]:
    return tuple(edition(pinned_source(ROOM, each), vendored=True) for each in REVISIONS)


@cache
def diff(old: str, new: str) -> Diff:
    return compare_vendored(old, new, released())


def rules(found: Diff) -> dict[str, str]:
    """Return the rule of each difference, by its kind and id."""
    return {f"{each.kind} {each.id}": each.rule for each in found.changes}


# Neighbours

NEIGHBOURS = {
    (A, B): {
        "arm-added ContentBlock[AudioContent]": "audio",
        "arm-added SamplingMessageContentBlock[AudioContent]": "audio-in-sampling",
        "key-added Tool.annotations": "tool-annotations",
        "capability-changed client completion/complete": "completions-capability",
        "definition-added AudioContent": "mechanical",
    },
    (B, C): {
        "key-added CallToolResult.structuredContent": "structured-content",
        "key-added Prompt.title": "titles",
        "request-added server elicitation/create": "elicitation",
        "key-added Prompt._meta": "mechanical",
    },
    (C, D): {
        # These places bear the names that the step declares: ElicitRequestParams became ElicitRequestFormParams.
        "key-added ElicitRequestFormParams.mode": "elicitation-mode",
        "params-changed server elicitation/create": "url-elicitation",
        "arm-added SamplingMessage.content[list[SamplingMessageContentBlock]]": "several-blocks",
        "arm-added SamplingMessage.content[ToolUseContent]": "tool-blocks",
        "error-added -32042": "url-elicitation-error",
        "definition-renamed LegacyTitledEnumSchema": "mechanical",
    },
    (D, E): {
        "key-added CallToolResult.resultType": "result-type",
        "requiredness-changed CallToolRequestParams._meta": "request-metadata",
        "request-removed client logging/setLevel": "log-level-of-a-session",
        "carrier-changed server roots/list": "input-requests",
        "definition-deprecated Root": "mechanical",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), NEIGHBOURS)
def test_between_neighbours_the_rule_is_the_name_of_the_change(old: str, new: str) -> None:
    found = rules(diff(old, new))

    assert NEIGHBOURS[old, new] == {each: found.get(each) for each in NEIGHBOURS[old, new]}


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), NEIGHBOURS)
def test_the_diff_of_neighbours_is_the_one_that_their_changes_are_written_for(old: str, new: str) -> None:
    (step,) = (each.step for each in declared_steps(REVISIONS) if (each.step.old, each.step.new) == (old, new))
    plain = compare(*(each for each in released() if each.label in {old, new}), renames=step.renames)

    assert plain == replace(diff(old, new), changes=tuple(replace(each, rule="") for each in diff(old, new).changes))


@pytest.mark.slow
def test_going_back_has_the_same_rules() -> None:
    assert "audio" == rules(diff(B, A))["arm-removed ContentBlock[AudioContent]"]
    assert "elicitation" == rules(diff(C, B))["request-removed server elicitation/create"]
    assert "elicitation-mode" == rules(diff(D, C))["key-removed ElicitRequestFormParams.mode"]
    assert "result-type" == rules(diff(E, D))["key-removed CallToolResult.resultType"]


# All pairs


@pytest.mark.parametrize(("old", "new"), list(itertools.combinations(REVISIONS, 2)))
@pytest.mark.slow
def test_the_way_back_is_the_mirror_image(old: str, new: str) -> None:
    assert mirrored(diff(old, new)) == diff(new, old)
    assert mirrored(diff(new, old)) == diff(old, new)


@pytest.mark.parametrize(("old", "new"), list(itertools.combinations(REVISIONS, 2)))
@pytest.mark.slow
def test_every_difference_between_released_revisions_is_covered(old: str, new: str) -> None:
    assert [] == [each.id for each in diff(old, new).changes if each.rule in {"", "none"}]


@pytest.mark.parametrize("revision", [A, E])
@pytest.mark.slow
def test_a_revision_does_not_differ_from_itself(revision: str) -> None:
    assert () == diff(revision, revision).changes


@pytest.mark.slow
def test_later_revisions_are_not_looked_at() -> None:
    assert diff(B, C) == compare_vendored(B, C, released()[:3])


# Far pairs


@pytest.mark.slow
def test_between_a_far_pair_the_rule_stands_with_its_step() -> None:
    found = rules(diff(A, E))

    assert f"{A} to {B}: audio" == found["arm-added ContentBlock[AudioContent]"]
    assert f"{D} to {E}: result-type" == found["key-added CallToolResult.resultType"]
    assert "mechanical" == found["definition-added AudioContent"]
    assert f"{A} to {B}: audio" == rules(diff(E, A))["arm-removed ContentBlock[AudioContent]"]


@pytest.mark.slow
def test_what_was_added_in_one_step_and_changed_in_another_has_the_rules_of_both() -> None:
    found = rules(diff(A, E))["key-added CallToolResult.structuredContent"]

    assert f"{B} to {C}: structured-content; {D} to {E}: structured-values" == found


@pytest.mark.slow
def test_two_rules_of_one_step_are_named_together() -> None:
    found = rules(diff(B, D))["request-added server elicitation/create"]

    assert f"{B} to {C}: elicitation; {C} to {D}: url-elicitation, task-augmentation" == found


@pytest.mark.slow
def test_what_is_in_an_alias_at_first_is_found_by_the_alias() -> None:
    # SamplingMessage.content was a SamplingMessageContentBlock, which gained audio, before it became a union.
    assert f"{A} to {B}: audio-in-sampling" == rules(diff(A, D))["arm-added SamplingMessage.content[AudioContent]"]


@pytest.mark.slow
def test_a_declared_rename_counts_between_a_far_pair_too() -> None:
    found = rules(diff(C, E))

    assert "definition-renamed ElicitRequestFormParams" in found
    assert f"{D} to {E}: input-request-metadata" == found["key-removed ElicitRequestParams._meta"]


# What is not covered


def without(*names: str) -> list[Declared]:
    """Return what is declared, without the changes called *names*."""
    return [
        replace(each, step=replace(each.step, changes=tuple(c for c in each.step.changes if c.name not in names)))
        for each in declared_steps(REVISIONS)
    ]


@pytest.mark.slow
def test_what_nothing_covers_has_no_rule() -> None:
    reduced = without("audio", "result-type")

    assert {
        "arm-added ContentBlock[AudioContent]": "none",
        "arm-added SamplingMessageContentBlock[AudioContent]": "audio-in-sampling",
    }.items() <= rules(compare_vendored(A, B, released(), reduced)).items()
    assert "none" == rules(compare_vendored(B, A, released(), reduced))["arm-removed ContentBlock[AudioContent]"]
    assert "none" == rules(compare_vendored(A, E, released(), reduced))["arm-added ContentBlock[AudioContent]"]
    assert "none" == rules(compare_vendored(D, E, released(), reduced))["key-added CallToolResult.resultType"]
    assert diff(B, C) == compare_vendored(B, C, released(), reduced)


@pytest.mark.slow
def test_one_step_without_a_rule_leaves_a_far_difference_without() -> None:
    reduced = without("structured-values")

    assert "none" == rules(compare_vendored(A, E, released(), reduced))["key-added CallToolResult.structuredContent"]


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        # What a plan asks for is not always spelt as the difference that it comes from.
        ("input-required", "result-changed client tools/call"),
        ("changed-roots-capability", "type-changed ClientCapabilities.roots"),
        ("task-results", "task-result-changed client tools/call"),
        ("progress-of-roots", "definition-added ListRootsRequestParams"),
    ],
)
@pytest.mark.slow
def test_what_is_asked_for_beyond_the_diff_marks_the_nearest_difference(name: str, difference: str) -> None:
    assert "none" == rules(compare_vendored(D, E, released(), without(name)))[difference]


@pytest.mark.parametrize("renames", [True, False])
@pytest.mark.slow
def test_a_step_without_changes_shows_all_that_has_to_be_done(renames: bool) -> None:  # noqa: FBT001 a parameter of tests
    bare = [
        replace(each, step=replace(each.step, changes=(), renames=each.step.renames if renames else {}))
        for each in declared_steps(REVISIONS)
    ]
    for plan in survey_steps(released(), bare):
        found = rules(compare_vendored(plan.declared.step.old, plan.declared.step.new, released(), bare))
        asked = {f"{need.kind} {need.id}" for need in plan.needs}

        assert {"none", "mechanical"} == set(found.values())
        assert set() == {each for each in asked & found.keys() if found[each] != "none"}


# Small revisions, with what no released pair has


def small(*schemas: dict[str, Any]) -> list[Edition]:
    """Return editions called 1, 2, 3, ... of messages that hold ``A``, whatever that is."""
    message = obj("method", "params", method={"const": "go", "type": "string"}, params=ref("GoParams"))
    around = {"GoRequest": message, "GoParams": obj(a=ref("A")), "ClientRequest": any_of(ref("GoRequest"))}
    around |= {"GoResult": obj(), "ServerNotification": any_of(ref("DoneNotification"))}
    around["DoneNotification"] = obj("method", method={"const": "notifications/done", "type": "string"})
    return [replace(read(**(around | each)), label=str(at)) for at, each in enumerate(schemas, 1)]


def change(name: str, covers: str, **actions: Any) -> Change:
    return Change(name=name, says="-", spec="-", covers=(covers,), **actions)


def steps(*changes: Sequence[Change], renames: dict[int, dict[str, str]] | None = None) -> list[Declared]:
    return [
        Declared(
            step=Step(old=str(at), new=str(at + 1), changes=tuple(each), renames=(renames or {}).get(at, {})),
        )
        for at, each in enumerate(changes, 1)
    ]


@pytest.mark.slow
def test_a_key_that_left_and_came_back_as_something_else_has_the_rules_of_both() -> None:
    editions = small(
        {"A": obj(n=STRING, x=STRING)},
        {"A": obj(n=STRING)},
        {"A": obj(n=STRING, x=INTEGER)},
        {"A": obj(n=STRING, x={"type": "number"})},
    )
    declared = steps(
        [change("gone", "key-removed A.x", up=Drop())],
        [change("back", "key-added A.x", down=Drop())],
        [change("wide", "type-changed A.x", down=Refuse())],
    )
    found = rules(compare_vendored("1", "4", editions, declared))

    assert {"type-changed A.x": "1 to 2: gone; 2 to 3: back; 3 to 4: wide"} == found


@pytest.mark.slow
def test_a_key_of_what_was_no_object_in_between_has_the_rules_of_the_whole() -> None:
    editions = small({"A": obj(x=STRING)}, {"A": STRING}, {"A": obj(x=INTEGER)})
    declared = steps(
        [change("said", "definition-kind-changed A", up=Refuse(), down=Refuse())],
        [change("unsaid", "definition-kind-changed A", up=Refuse(), down=Refuse())],
    )
    found = rules(compare_vendored("1", "3", editions, declared))

    assert {"type-changed A.x": "1 to 2: said; 2 to 3: unsaid"} == found


@pytest.mark.slow
def test_type_and_requiredness_of_a_key_do_not_share_a_rule() -> None:
    editions = small({"A": obj(x=INTEGER)}, {"A": obj("x", x=INTEGER)}, {"A": obj("x", x={"type": "number"})})
    declared = steps(
        [change("needed", "requiredness-changed A.x", up=Default(value=0))],
        [change("wide", "type-changed A.x", down=Refuse())],
    )
    found = rules(compare_vendored("1", "3", editions, declared))

    assert {"requiredness-changed A.x": "1 to 2: needed", "type-changed A.x": "2 to 3: wide"} == found


@pytest.mark.slow
def test_a_place_is_followed_through_the_names_of_its_definition() -> None:
    editions = small(
        {"A": ref("Old"), "Old": obj(n=STRING)},
        {"A": ref("Old"), "Old": obj(n=STRING, x=STRING)},
        {"A": ref("New"), "New": obj(n=STRING, x=STRING, y=INTEGER)},
    )
    declared = steps([change("said", "key-added Old.x", down=Drop())], [], renames={2: {"Old": "New"}})
    far = compare_vendored("1", "3", editions, declared)

    assert "1 to 2: said" == rules(far)["key-added New.x"]
    assert "mechanical" == rules(far)["key-added New.y"]
    assert mirrored(far) == compare_vendored("3", "1", editions, declared)


@pytest.mark.slow
def test_what_is_gone_is_found_uncovered_under_the_old_name_of_its_definition() -> None:
    # The diff says where the key was, Old.x, and the plan where it is missing, New.x.
    editions = small({"A": ref("Old"), "Old": obj(n=STRING, x=STRING)}, {"A": ref("New"), "New": obj(n=STRING)})
    renames = {1: {"Old": "New"}}

    assert "none" == rules(compare_vendored("1", "2", editions, steps([], renames=renames)))["key-removed Old.x"]
    for spelling in ("Old.x", "New.x"):
        declared = steps([change("gone", f"key-removed {spelling}", up=Drop())], renames=renames)

        assert "gone" == rules(compare_vendored("1", "2", editions, declared))["key-removed Old.x"]


@pytest.mark.slow
def test_a_revision_that_is_being_added_has_a_diff_before_anything_is_declared() -> None:
    editions = small({"A": obj(x=STRING)}, {"A": obj("y", x=STRING, y=INTEGER, z=INTEGER)})
    found = rules(compare_vendored("1", "2", editions, steps([])))

    assert {"key-added A.y": "none", "key-added A.z": "mechanical"} == found


def test_a_rename_that_names_nothing_is_refused() -> None:
    editions = small({"A": obj(x=STRING)}, {"A": obj(x=STRING)})

    with pytest.raises(Refused) as refused:
        compare_vendored("1", "2", editions, steps([], renames={1: {"Gone": "A"}}))

    assert ["MG503"] == [each.code for each in refused.value.diagnostics]
