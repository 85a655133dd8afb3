"""What msgspec can tell apart by itself, and what it cannot: proven by building a decoder for it."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.codegen import ir
from mcpgen.codegen.parse import parse
from mcpgen.codegen.unions import Native, Structural, Tagged, Unions, widen_json_value

STRING = {"type": "string"}
INTEGER = {"type": "integer"}

DEFINITIONS: dict[str, Any] = {
    "Text": {"properties": {"type": {"const": "text"}, "role": {"const": "a"}, "text": STRING}, "required": ["type"]},
    "Image": {"properties": {"type": {"const": "image"}, "role": {"const": "a"}}, "required": ["type", "role"]},
    "Other": {"properties": {"type": {"const": "text"}, "more": STRING}, "required": ["type"]},
    "Plain": {"properties": {"plain": STRING}},
    "Number": {"properties": {"type": {"const": 1}}, "required": ["type"]},
    "Open": {"properties": {"type": {"const": "open"}}, "required": ["type"], "additionalProperties": {}},
    "Alias": {"anyOf": [{"$ref": "#/$defs/Text"}, STRING]},
    "Map": {"type": "object", "additionalProperties": STRING},
    "Leaf": {"properties": {"a": STRING, "b": {"$ref": "#/$defs/Plain"}, "c": {"enum": [1, "x", None]}}},
    "Holder": {"properties": {"a": {"type": "array", "items": STRING}}},
    "Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}},
    "Tree": {"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/Tree"}}]},
    "There": {"type": "array", "items": {"$ref": "#/$defs/Back"}},
    "Back": {"type": "object", "additionalProperties": {"$ref": "#/$defs/There"}},
    "Outside": {"type": "array", "items": {"$ref": "#/$defs/There"}},
    "Json": {
        "anyOf": [
            *({"type": kind} for kind in ("string", "number", "boolean", "null")),
            {"type": "array", "items": {"$ref": "#/$defs/Json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
        ]
    },
    "AlmostJson": {
        "anyOf": [
            *({"type": kind} for kind in ("string", "integer", "boolean", "null")),
            {"type": "array", "items": {"$ref": "#/$defs/AlmostJson"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/AlmostJson"}},
        ]
    },
}


def schema_with(*arms: Any) -> ir.Schema:
    """Return the schema of `DEFINITIONS` and ``Subject``, a union of *arms*; a string is a definition's name."""
    union = {"anyOf": [{"$ref": f"#/$defs/{arm}"} if isinstance(arm, str) else arm for arm in arms]}
    return parse({"$defs": {**DEFINITIONS, "Subject": union}})


SUBJECT = ir.Named(name="Subject")


@pytest.mark.parametrize(
    "arms",
    [
        (STRING, INTEGER),
        ("Text",),
        ("Text", STRING, {"type": "array"}, {"type": "null"}),
        ("Plain", {"type": "number"}),
        ("Map", STRING),
        ("Open", INTEGER),
        ("Alias", INTEGER),
        ({"enum": ["a", 1]}, {"type": "boolean"}),
    ],
)
def test_arms_of_different_json_types_are_left_to_msgspec(arms: tuple[Any, ...]) -> None:
    assert isinstance(Unions(schema_with(*arms)).kind(SUBJECT), Native)


@pytest.mark.parametrize("arms", [("Text", "Image"), ("Text", "Image", STRING), ("Alias", "Image")])
def test_objects_that_a_constant_tells_apart_are_tagged(arms: tuple[Any, ...]) -> None:
    kind = Unions(schema_with(*arms)).kind(SUBJECT)

    assert isinstance(kind, Tagged)
    assert ("type", ("Text", "Image")) == (kind.tag, kind.objects)


@pytest.mark.parametrize(
    "arms",
    [
        ("Text", "Other"),  # the same constant
        ("Text", "Plain"),  # a constant in one only
        ("Text", "Number"),  # constants of two types
        ("Text", "Image", "Plain"),
        ("Open", "Text"),  # an open object is a dict
        ("Map", "Plain"),
        ("Map", "Open"),
        ({"type": "array", "items": STRING}, {"type": "array", "items": INTEGER}),
        ({"type": "string", "maxLength": 1}, {"enum": ["long"]}),
        ({"type": "integer", "minimum": 1}, {"type": "number", "maximum": 0}),
    ],
)
def test_what_no_constant_and_no_json_type_tells_apart_is_structural(arms: tuple[Any, ...]) -> None:
    assert isinstance(Unions(schema_with(*arms)).kind(SUBJECT), Structural)


def test_arms_are_those_of_all_aliases_once_and_in_order() -> None:
    arms = Unions(schema_with("Image", "Alias", "Text", {"type": "null"})).arms(SUBJECT)

    assert ["Image", "Text", "string", "null"] == [
        getattr(arm, "name", None) or getattr(arm, "kind", "") for arm in arms
    ]


@pytest.mark.parametrize("name", ["Plain", "Leaf", "Text"])
def test_an_object_of_scalars_is_a_leaf(name: str) -> None:
    assert Unions(schema_with("Text")).is_leaf(name)


@pytest.mark.parametrize("name", ["Holder", "Node", "Open", "Map", "Tree", "There"])
def test_what_could_be_part_of_a_cycle_is_no_leaf(name: str) -> None:
    assert not Unions(schema_with("Text")).is_leaf(name)


def test_an_alias_is_recursive_if_it_leads_back_to_itself() -> None:
    assert {"Tree", "There", "Back", "Json", "AlmostJson"} == Unions(schema_with("Text")).recursive


@pytest.mark.parametrize(("name", "settled"), [("Open", True), ("Tree", True), ("Plain", False), ("Map", False)])
def test_what_msgspec_decodes_completely_is_not_settled_again(name: str, settled: bool) -> None:  # noqa: FBT001 a value
    assert settled is Unions(schema_with("Text")).is_settled(ir.Array(item=ir.Named(name=name)))


def test_only_a_union_that_admits_all_of_json_is_widened() -> None:
    widened = widen_json_value(schema_with("Text")).definitions

    assert ["Json"] == [
        name for name, each in widened.items() if isinstance(each, ir.Alias) and each.type == ir.Anything()
    ]
