"""Mutants change one thing, in every place, in every way."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle.instances import Instances
from tests.oracle.mutants import REPLACEMENTS, Mutations

if TYPE_CHECKING:
    from tests.oracle.shapes import Json

DOCUMENT: dict[str, Any] = {
    "$defs": {
        "Text": {
            "type": "object",
            "properties": {"type": {"const": "text"}, "text": {"type": "string"}, "maxTokens": {"type": "integer"}},
            "required": ["type", "text"],
        },
        "Image": {
            "type": "object",
            "properties": {"type": {"const": "image"}, "data": {"type": "string"}},
            "required": ["type", "data"],
        },
        "Block": {"anyOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Image"}]},
        "List": {"type": "array", "items": {"$ref": "#/$defs/Block"}, "maxItems": 3},
    }
}
TEXT = {"type": "text", "text": "hi", "maxTokens": 5}


def mutants(instance: Json) -> dict[tuple[str, str], Json]:
    """Return the mutated values by place and kind."""
    found = Mutations(DOCUMENT).of(instance, set())
    return {("/".join(map(str, mutant.position)), mutant.kind): mutant.value for mutant in found}


@pytest.mark.parametrize(
    ("place", "kind", "expected"),
    [
        ("text", "delete", {"type": "text", "maxTokens": 5}),
        ("text", "null", {"type": "text", "text": None, "maxTokens": 5}),
        ("text", "empty string", {"type": "text", "text": "", "maxTokens": 5}),
        ("maxTokens", "integer as float", {"type": "text", "text": "hi", "maxTokens": 5.0}),
        ("maxTokens", "non-integer number", {"type": "text", "text": "hi", "maxTokens": 1.5}),
        ("maxTokens", "string", {"type": "text", "text": "hi", "maxTokens": "mutant"}),
        ("type", "altered string", {"type": "textx", "text": "hi", "maxTokens": 5}),
        ("type", "constant image", {"type": "image", "text": "hi", "maxTokens": 5}),
        ("", "maxTokens in snake case", {"type": "text", "text": "hi", "max_tokens": 5}),
        ("", "unknown key null", {"type": "text", "text": "hi", "maxTokens": 5, "x-unknown": None}),
        ("", "data of another arm null", {"type": "text", "text": "hi", "maxTokens": 5, "data": None}),
        ("", "empty list", []),
        ("", "object in list", [TEXT]),
    ],
)
def test_an_object_is_mutated(place: str, kind: str, expected: Json) -> None:
    assert expected == mutants(TEXT)[place, kind]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("append null", [TEXT, None]),
        ("append non-integer number", [TEXT, 1.5]),
        ("too short", []),
        ("too long", [TEXT] * 4),
        ("list as object", {"0": TEXT}),
    ],
)
def test_a_list_is_mutated(kind: str, expected: Json) -> None:
    assert expected == mutants([TEXT])["", kind]


def test_every_place_meets_every_json_type() -> None:
    found = mutants([TEXT])
    missing = {
        (place, kind)
        for place in ("", "0", "0/type", "0/text", "0/maxTokens")
        for kind in REPLACEMENTS
        if (place, kind) not in found
    }

    assert missing == set()


def test_booleans_and_numbers_are_told_apart() -> None:
    """``True == 1 == 1.0`` must not make a mutation look like none."""
    assert {"integral float", "true"} <= {kind for place, kind in mutants([1]) if place == "0"}


def test_a_mutant_never_equals_its_instance() -> None:
    instance = [TEXT, {"type": "image", "data": ""}]

    assert all(repr(value) != repr(instance) for value in mutants(instance).values())


def test_the_instance_is_left_alone() -> None:
    instance = [copy.deepcopy(TEXT)]
    mutants(instance)

    assert [TEXT] == instance


def test_equal_items_are_mutated_once_and_different_arms_each() -> None:
    image = {"type": "image", "data": ""}

    assert {place.partition("/")[0] for place, _ in mutants([TEXT, TEXT, image]) if place} == {"0", "2"}


def test_a_mutation_is_not_repeated_for_another_instance() -> None:
    mutations, seen = Mutations(DOCUMENT), set[object]()

    assert list(mutations.of(TEXT, seen))
    assert list(mutations.of(copy.deepcopy(TEXT), seen)) == []


def test_all_instances_of_a_definition_are_mutated() -> None:
    seen: set[object] = set()
    mutations = Mutations(DOCUMENT)
    found = [mutant for instance in Instances(DOCUMENT).systematic("List") for mutant in mutations.of(instance, seen)]

    assert any(mutant.position == (0, "data") and mutant.kind == "delete" for mutant in found)
    assert any(mutant.position == (0, "text") and mutant.kind == "delete" for mutant in found)
