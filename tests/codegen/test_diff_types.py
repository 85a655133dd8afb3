"""What a diff reports about a type that changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.codegen.editions import INTEGER, STRING, any_of, changes, obj, read, ref, type_changes


@pytest.mark.parametrize(
    ("old", "new", "before", "after", "effect"),
    [
        (STRING, INTEGER, "string", "integer", "changed"),
        (INTEGER, {"type": "number"}, "integer", "number", "widened"),
        (STRING, {"type": ["string", "integer"]}, "string", "string | integer", "widened"),
        ({}, STRING, "any", "string", "narrowed"),
        ({"const": 1}, {"const": 2}, "1", "2", "changed"),
        ({"enum": ["a", "b"]}, STRING, '"a" | "b"', "string", "widened"),
        ({"const": "a"}, {"const": "b"}, '"a"', '"b"', "changed"),
        (
            {"type": "array", "items": STRING},
            {"type": "array", "items": INTEGER},
            "list[string]",
            "list[integer]",
            None,
        ),
        ({"type": "object"}, {"type": "object", "additionalProperties": STRING}, "object", "map[string]", "narrowed"),
        (STRING, ref("Other"), "string", "Other", "changed"),
        ({"type": "object"}, ref("Other"), "object", "Other", "narrowed"),
        ({"type": "string"}, ref("Text"), "string", "Text", "same"),
        (ref("Text"), {"type": ["integer", "null"]}, "Text", "integer | null", "changed"),
    ],
)
def test_a_type_that_changed_is_shown_on_both_sides(old: Any, new: Any, before: str, after: str, effect: str) -> None:
    found = type_changes(old, new, Other=obj(o=STRING), Text=STRING)

    assert [("type-changed", "A.x", before, after, effect or "changed")] == found


def test_the_order_of_arms_and_values_does_not_matter() -> None:
    old, new = any_of(STRING, {"enum": [1, 2]}, ref("B")), any_of(ref("B"), {"enum": [2, 1]}, STRING)

    assert [] == type_changes(old, new, B=obj(b=STRING))


def test_the_members_of_an_enumeration_come_and_go_one_by_one() -> None:
    assert [
        ("value-removed", 'A.x["b"]', '"b"', None, "narrowed"),
        ("value-added", 'A.x["c"]', None, '"c"', "widened"),
    ] == type_changes({"enum": ["a", "b"]}, {"enum": ["a", "c"]})


def test_the_arms_of_a_union_come_and_go_one_by_one() -> None:
    blocks = {name: obj("type", type={"const": name}) for name in ("Text", "Image", "Audio")}
    old = read(Block=any_of(ref("Text"), ref("Image")), **blocks)
    new = read(Block=any_of(ref("Text"), ref("Audio")), **blocks)

    assert [
        ("arm-added", "Block[Audio]", None, "Audio", "widened"),
        ("arm-removed", "Block[Image]", "Image", None, "narrowed"),
    ] == changes(old, new)


def test_a_union_under_another_name_is_compared_arm_by_arm() -> None:
    blocks = {name: obj("type", type={"const": name}) for name in ("Text", "Image", "Audio")}
    block = {"Block": any_of(ref("Text"), ref("Image"))}
    content = any_of(ref("Text"), ref("Image"), ref("Audio"), {"type": "array", "items": ref("Block")})

    found = type_changes(ref("Block"), content, **blocks, **block)
    assert [
        ("arm-added", "A.x[Audio]", None, "Audio", "widened"),
        ("arm-added", "A.x[list[Block]]", None, "list[Block]", "widened"),
    ] == [each for each in found if each[0] != "definition-added"]


def test_a_union_inside_a_union_is_taken_apart_where_the_other_side_did_so() -> None:
    blocks = {name: obj("type", type={"const": name}) for name in ("Text", "Image", "Audio")}
    old, new = any_of(ref("Block"), INTEGER), any_of(ref("Text"), ref("Image"), ref("Audio"), INTEGER)
    found = changes(
        read(A=old, **blocks, Block=any_of(ref("Text"), ref("Image"))),
        read(A=new, **blocks, Block=any_of(ref("Text"), ref("Image"))),
    )

    assert [("arm-added", "A[Audio]", None, "Audio", "widened")] == found


def test_an_arm_that_another_arm_held_already_changes_no_value() -> None:
    wide = {"type": "object", "additionalProperties": {}}
    old, new = any_of(ref("Wide"), STRING), any_of(ref("Wide"), STRING, ref("Part"))

    assert [("arm-added", "AX[Part]", None, "Part", "same")] == type_changes(old, new, Wide=wide, Part=obj(p=STRING))


@pytest.mark.slow
def test_bounds_are_a_change_of_their_own() -> None:
    assert [("bounds-changed", "A.x", "length <= 5", "length <= 9", "widened")] == type_changes(
        {"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 9}
    )
    assert [("bounds-changed", "A.x", "unbounded", ">= 0, <= 1", "narrowed")] == type_changes(
        {"type": "number"}, {"type": "number", "minimum": 0, "maximum": 1}
    )
    assert [("bounds-changed", "A.x", "length <= 5", "unbounded", "widened")] == type_changes(
        {"type": "array", "items": STRING, "maxItems": 5}, {"type": "array", "items": STRING}
    )


def test_a_change_inside_lists_and_maps_says_where_it_is() -> None:
    old = {"type": "object", "additionalProperties": {"type": "array", "items": {"enum": ["a", "b"]}}}
    new = {"type": "object", "additionalProperties": {"type": "array", "items": {"enum": ["a", "b", "c"]}}}

    assert [("value-added", 'A.x{}[]["c"]', None, '"c"', "widened")] == type_changes(old, new)


OBJECTS: dict[str, Any] = {
    "Loose": obj(a=STRING),
    "Strict": obj("a", a=STRING),
    "More": obj(a=STRING, b=STRING),
    "Other": obj(a=INTEGER),
    "Open": {**obj(a=STRING), "additionalProperties": {}},
    "OpenMore": {**obj(a=STRING, b=STRING), "additionalProperties": {}},
    "Texts": {"type": "object", "additionalProperties": STRING},
    "List": obj(next=ref("List"), a=STRING),
    "Chain": obj(next=ref("Chain"), a=STRING, b=STRING),
    "Tree": obj(next=ref("Tree"), a=INTEGER),
}


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ("Loose", "Strict", "narrowed"),
        ("Loose", "More", "widened"),
        ("Loose", "Other", "changed"),
        ("Loose", "Open", "widened"),
        ("Open", "OpenMore", "narrowed"),
        ("Strict", "More", "widened"),
        ("More", "Texts", "widened"),
        ("Open", "Texts", "narrowed"),
        ("List", "Chain", "widened"),
        ("List", "Tree", "changed"),
    ],
)
def test_what_became_of_the_values_is_seen_inside_objects(old: str, new: str, effect: str) -> None:
    assert [("type-changed", "A.x", old, new, effect)] == type_changes(ref(old), ref(new), **OBJECTS)


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ({"minimum": 0}, {"exclusiveMinimum": 0}, "narrowed"),
        ({"exclusiveMaximum": 5}, {"maximum": 5}, "widened"),
        ({"exclusiveMinimum": 1}, {"minimum": 0}, "widened"),
        ({"minimum": 0}, {"maximum": 5}, "changed"),
        ({"minimum": 0, "maximum": 5}, {"minimum": 1, "maximum": 6}, "changed"),
        ({"minimum": -1}, {"minimum": -2}, "widened"),
    ],
)
def test_what_became_of_the_values_follows_from_bounds(old: Any, new: Any, effect: str) -> None:
    (found,) = type_changes({"type": "number", **old}, {"type": "number", **new})

    assert ("bounds-changed", "A.x", effect) == (found[0], found[1], found[-1])


@pytest.mark.parametrize(("old", "new"), [("^a", "^b"), ("^a", "^ab")])
def test_patterns_are_not_compared(old: str, new: str) -> None:
    found = type_changes({"type": "string", "pattern": old}, {"type": "string", "pattern": new})

    assert [("bounds-changed", "A.x", f'pattern "{old}"', f'pattern "{new}"', "changed")] == found


def test_true_is_not_one() -> None:
    assert [("type-changed", "A.x", "1", "true", "changed")] == type_changes({"const": 1}, {"const": True})


def test_a_bounded_type_does_not_take_constants_on_trust() -> None:
    found = type_changes({"const": 5}, {"type": "integer", "minimum": 0})

    assert [("type-changed", "A.x", "5", "integer (>= 0)", "changed")] == found


def test_arms_that_say_the_same_count_once() -> None:
    once, twice = {"enum": ["a", "b"]}, {"enum": ["b", "a"]}
    lists = [{"type": "array", "items": each} for each in (once, twice)]

    assert [] == type_changes(any_of(STRING, *lists), any_of(*lists[::-1], STRING))
