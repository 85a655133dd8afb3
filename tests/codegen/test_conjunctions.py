"""What is made of ``allOf``: exactly what it says, or a diagnostic at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.codegen import ir, parse
from mcpgen.codegen.diagnostics import Refused
from tests.codegen.packages import build, load
from tests.codegen.verdicts import INTEGER, STRING, assert_exact, obj, ref, refusals

if TYPE_CHECKING:
    from pathlib import Path

CLOSED = {"type": "object", "additionalProperties": False}
NEEDS_B = {**obj(b=INTEGER), "required": ["b"]}
NEEDS_K = {**obj(k=STRING), "required": ["k"]}
OPEN_UNION = {"anyOf": [{**each, "additionalProperties": {}} for each in (NEEDS_B, NEEDS_K)]}

EXACT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # a type beside properties or in another arm
    ({"type": "object", "allOf": [{"properties": {"a": STRING}}]}, {}),
    ({"allOf": [{"type": ["object", "null"], "properties": {"a": STRING}}, {"type": "object"}]}, {}),
    ({"type": ["object", "null"], "allOf": [ref("Y")]}, {"Y": obj(a=STRING)}),
    ({"allOf": [ref("Y"), obj(b=INTEGER)]}, {"Y": {"type": "object"}}),
    ({"allOf": [ref("Y"), obj(b=INTEGER)]}, {"Y": ref("Z"), "Z": obj(a=STRING)}),
    ({"type": "object", "allOf": [ref("Y")]}, {"Y": {"type": ["object", "null"], "properties": {"a": STRING}}}),
    (obj(a={"type": "object", "allOf": [ref("Y")]}), {"Y": {"type": "object", "additionalProperties": INTEGER}}),
    (obj(a={"type": "object", "allOf": [ref("Y")]}), {"Y": {"type": ["object", "null"], "properties": {"b": INTEGER}}}),
    # recursion
    (obj(k=INTEGER, next={"type": "object", "allOf": [ref("X")]}), {}),
    (obj(next={"allOf": [ref("X"), obj(k=INTEGER)]}), {}),
    (obj(next={"anyOf": [{"type": "null"}, {"allOf": [ref("X"), obj(k=INTEGER)]}]}), {}),
    ({"allOf": [ref("A"), ref("B")]}, {"A": obj(next={}), "B": obj(next={"allOf": [ref("X"), obj(k=INTEGER)]})}),
    # properties that several arms describe
    ({"allOf": [obj(a=STRING), obj(a=STRING)]}, {}),
    ({"allOf": [obj(a=ref("Y")), obj(a=ref("Y"))]}, {"Y": STRING}),
    ({"allOf": [obj(a={}), obj(a=ref("Y"))]}, {"Y": STRING}),
    ({"allOf": [obj(a=STRING), obj(a={"minLength": 2})]}, {}),
    ({"allOf": [obj(a=STRING), obj(a={"enum": ["x", 5]})]}, {}),
    ({"allOf": [obj(a={"type": "string", "enum": ["x", "xyz"]}), obj(a={"minLength": 2})]}, {}),
    ({"allOf": [obj(a={"type": "array"}), obj(a={"type": "array", "items": STRING})]}, {}),
    ({"allOf": [obj(a={"type": "object", "additionalProperties": {}}), obj(a=obj(b=INTEGER))]}, {}),
    ({"allOf": [obj(a=STRING, b=INTEGER), {"required": ["a"]}]}, {}),
    ({"allOf": [{**obj(a=STRING), "additionalProperties": False}] * 2}, {}),
    # members that forbid keys of others
    ({"allOf": [CLOSED, obj(a={})]}, {}),
    ({"allOf": [obj(a=STRING), {**obj(b=INTEGER), "additionalProperties": False}]}, {}),
    ({"allOf": [obj(b=INTEGER), {**obj(a=STRING), "additionalProperties": False, "required": ["a"]}]}, {}),
    ({"allOf": [{**obj(a={}, b=INTEGER), **CLOSED}, {**obj(a=STRING, k=STRING), **CLOSED}]}, {}),
    ({"allOf": [ref("Y"), {**obj(a={}), "additionalProperties": {}}]}, {"Y": {**obj(a=STRING), **CLOSED}}),
    ({"allOf": [obj(b=STRING), {"anyOf": [{**obj(a=STRING), **CLOSED}, {**obj(k=STRING), **CLOSED}]}]}, {}),
    # objects under one key
    ({"allOf": [obj(a=ref("Y")), obj(a={"properties": {"b": INTEGER}})]}, {"Y": obj(c=STRING)}),
    ({"allOf": [obj(a={"allOf": [obj(b=INTEGER)]}), obj(a={**obj(c={}), "required": ["b"]})]}, {}),
    ({"allOf": [obj(a=CLOSED), obj(a=obj(b=INTEGER))]}, {}),
    ({"allOf": [obj(a=obj(b=INTEGER)), obj(a=ref("Y")), obj(a={**obj(b={}), "required": ["b"]})]}, {"Y": obj(k={})}),
    ({"allOf": [obj(a={"type": "object", "additionalProperties": {}}), obj(a=ref("Y"))]}, {"Y": obj(b=INTEGER)}),
    ({"allOf": [obj(a=ref("Y")), obj(a={"type": "object"})]}, {"Y": {"anyOf": [NEEDS_B, NEEDS_K]}}),
    ({"allOf": [obj(a={"type": "object", "additionalProperties": {}}), obj(a=ref("Y"))]}, {"Y": OPEN_UNION}),
]


@pytest.mark.parametrize(("schema", "definitions"), EXACT, ids=[str(schema) for schema, _ in EXACT])
@pytest.mark.slow
def test_what_can_be_merged_takes_what_json_schema_does(
    schema: dict[str, Any], definitions: dict[str, Any], tmp_path: Path
) -> None:
    assert_exact(schema, tmp_path, **definitions)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = [
    # types
    ({"type": ["object", "null"], "allOf": [ref("Y")]}, {"Y": {"properties": {"a": {}}}}, [("MG123", "")]),
    (obj(p={"type": ["object", "null"], "allOf": [{"properties": {"a": {}}}]}), {}, [("MG123", "/properties/p")]),
    ({"allOf": [{"type": "string", "properties": {"a": {}}}, {"properties": {"b": {}}}]}, {}, [("MG123", "")]),
    ({"allOf": [{"type": "string", "properties": {"a": {}}}, obj(b={})]}, {}, [("MG123", "")]),
    (
        {"allOf": [{"type": ["object", "null"], "properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {},
        [("MG123", "")],
    ),
    (
        {"allOf": [{"type": ["object", "integer"], "properties": {}}, {"type": ["object", "number"]}, obj(a={})]},
        {},
        [("MG123", "/allOf/1")],
    ),
    # what else decides
    ({"allOf": [{"allOf": [obj(a={})], "anyOf": [{"type": "object"}]}]}, {}, [("MG124", "/allOf/0")]),
    ({"allOf": [{"allOf": [obj(a={})], "enum": [1]}, obj(b={})]}, {}, [("MG125", "/allOf/0")]),
    # properties that several arms describe
    ({"allOf": [obj(a=STRING), obj(a=INTEGER)]}, {}, [("MG122", "/allOf/1/properties/a")]),
    ({"allOf": [obj(a=STRING), obj(a=ref("Y"))]}, {"Y": INTEGER}, [("MG122", "/allOf/1/properties/a")]),
    ({"allOf": [obj(a=ref("Y")), obj(a=STRING)]}, {"Y": INTEGER}, [("MG122", "/allOf/1/properties/a")]),
    ({"allOf": [obj(a=obj(b={})), obj(a=ref("Y"))]}, {"Y": OPEN_UNION}, [("MG122", "/allOf/1/properties/a")]),
    (
        {"allOf": [obj(a={"type": "object", "additionalProperties": {}}), obj(a=ref("Y"))]},
        {"Y": {"anyOf": [NEEDS_B, NEEDS_K]}},
        [("MG122", "/allOf/1/properties/a")],
    ),
    ({"allOf": [obj(a={"type": "object"}), obj(a=ref("Y"))]}, {"Y": STRING}, [("MG122", "/allOf/1/properties/a")]),
    (
        {"allOf": [obj(a={"allOf": [obj(b=STRING)]}), obj(a=obj(b=INTEGER))]},
        {},
        [("MG122", "/allOf/1/properties/a/properties/b")],
    ),
    ({"allOf": [obj(a={"const": 1}), obj(a={"const": True})]}, {}, [("MG122", "/allOf/1/properties/a")]),
    # keys that are not described, or forbidden
    ({"allOf": [CLOSED, {**obj(a={}), "required": ["a"]}]}, {}, [("MG113", "/allOf/1/required/0")]),
    ({"allOf": [CLOSED, ref("Y")]}, {"Y": NEEDS_B}, [("MG113", "")]),
    (
        {"allOf": [{**CLOSED, "properties": {"a": {}}}, {"type": "object", "additionalProperties": STRING}]},
        {},
        [("MG121", "/allOf/1")],
    ),
]


@pytest.mark.parametrize(("schema", "definitions", "expected"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_what_cannot_be_merged_exactly_is_refused_in_its_place(
    schema: dict[str, Any], definitions: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert expected == refusals(schema, **definitions)


def test_keys_that_a_member_forbids_are_no_attributes_and_a_warning_names_them(tmp_path: Path) -> None:
    package = build({"$defs": {"X": {"allOf": [obj(a=STRING, b=STRING), {**obj(a={}), **CLOSED}]}}})

    assert ["a"] == list(load(package, tmp_path).X.__struct_fields__)
    assert [("MG127", "warning", "/$defs/X")] == [(each.code, each.severity, each.pointer) for each in package.findings]
    assert "'b'" in package.findings[0].message


def test_a_reference_is_kept_if_another_member_only_says_that_the_value_is_an_object() -> None:
    schema = parse.parse({"$defs": {"X": {"allOf": [obj(a={"type": "object"}), obj(a=ref("Y"))]}, "Y": OPEN_UNION}})

    assert ["X", "Y", "YB", "YK"] == list(schema.definitions)


def test_an_object_with_the_keys_of_two_members_is_open_if_one_of_them_is() -> None:
    loose = {"type": "object", "additionalProperties": {}}
    schema = parse.parse({"$defs": {"X": {"allOf": [obj(a=loose), obj(a=ref("Y"))]}, "Y": obj(b=STRING)}})

    assert ["X", "XA", "Y"] == list(schema.definitions)
    assert ["dropped", "kept", "dropped"] == [each.unknown for each in schema.objects()]


def test_an_allof_of_one_object_that_says_that_it_is_an_object_is_that_object() -> None:
    schema = parse.parse({"$defs": {"Node": obj(next={"type": "object", "allOf": [ref("Node")]})}})

    assert ["Node"] == list(schema.definitions)


def test_what_an_object_inherits_of_itself_is_one_type() -> None:
    schema = parse.parse({"$defs": {"Node": obj(next={"allOf": [ref("Node"), obj(k=STRING)]})}})

    assert ["Node", "NodeNext"] == list(schema.definitions)
    assert schema.member("NodeNext", ("next", "next")) == schema.member("Node", ("next",))


def test_each_definition_is_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    diamonds = {f"A{level}": {"allOf": [ref(f"A{level - 1}")] * 2} for level in range(1, 40)}
    monkeypatch.setattr(parse, "MAX_INHERITED", 2 * 40 * 40)

    merged = parse.parse({"$defs": {"A0": obj(a=STRING), **diamonds}}).definitions["A39"]

    assert isinstance(merged, ir.Object)
    assert ["a"] == [each.wire for each in merged.properties]


BOMBS: dict[str, dict[str, Any]] = {
    "two of each level": {
        "A0": obj(z=STRING),
        **{
            f"A{level}": obj(**{key: {"allOf": [ref(f"A{level - 1}"), obj(k=STRING)]} for key in "ab"})
            for level in range(1, 40)
        },
    },
    "each holds all": {
        f"A{one}": obj(
            **{f"n{other}": {"allOf": [ref(f"A{other}"), obj(**{f"k{one}": STRING})]} for other in range(12)}
        )
        for one in range(12)
    },
    "deep before it is wide": {
        "A": obj(**{f"n{key}": {"allOf": [ref("A"), obj(**{f"k{key}": STRING})]} for key in range(250)})
    },
    "inline types": {
        "A": obj(**{f"p{key}": obj(a=STRING) for key in range(200)}),
        **{f"B{heir}": {"allOf": [ref("A")]} for heir in range(200)},
    },
    "texts": {
        "A": obj(a={"type": "string", "description": "word " * 10_000}),
        **{f"B{heir}": {"allOf": [ref("A"), obj(b=STRING)]} for heir in range(12)},
    },
    "references": {f"A{level}": {"allOf": [ref(f"A{level - 1}")] * 240} for level in range(1, 40)}
    | {"A0": obj(a=STRING)},
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.slow
def test_a_document_that_inherits_without_end_is_refused_soon_and_in_a_place(bomb: str) -> None:
    with pytest.raises(Refused) as refused:
        build({"$defs": BOMBS[bomb]})
    (finding,) = refused.value.diagnostics

    assert "MG006" == finding.code
    assert finding.pointer.startswith("/$defs/")
    assert "inherit" in finding.message


@pytest.mark.slow
def test_a_definition_that_exhausts_the_stack_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_INHERITED", 10**9)
    monkeypatch.setattr(parse, "MAX_INHERITED_BYTES", 10**9)

    assert [("MG006", "")] == refusals(
        obj(**{f"n{key}": {"allOf": [ref("X"), obj(**{f"k{key}": STRING})]} for key in range(400)})
    )
