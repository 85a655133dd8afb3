"""Constructs that a type could be a little wrong about: it is exact, or a diagnostic says so in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.codegen import parse
from tests.codegen.packages import build, load
from tests.codegen.verdicts import INTEGER, STRING, assert_exact, obj, ref, refusals

if TYPE_CHECKING:
    from pathlib import Path

EXACT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # bounds beside values
    ({"type": "string", "enum": ["a", "abc"], "minLength": 2}, {}),
    ({"enum": ["a", "abc"], "maxLength": 1}, {}),
    ({"enum": [1, 5, "a", True, None], "minimum": 2}, {}),
    ({"enum": [1, 5], "exclusiveMaximum": 5, "exclusiveMinimum": 0.5}, {}),
    ({"type": ["string", "integer"], "enum": ["a", "abc", 2, 5], "minLength": 2, "maximum": 4}, {}),
    ({"enum": [5, None], "pattern": "a"}, {}),
    ({"const": "abc", "minLength": 3, "minItems": 9}, {}),
    # values that are equal to Python alone
    ({"anyOf": [{"const": 2}, {"const": True}]}, {}),
    ({"anyOf": [{"const": 0}, {"const": False}]}, {}),
    (obj(a={"anyOf": [{"const": 5}, {"const": 1}, {"const": True}]}), {}),
    ({"anyOf": [ref("A"), ref("B")]}, {"A": {"const": 0}, "B": {"const": False}}),
    ({"enum": [True, 5], "const": True}, {}),
    # equal arms
    ({"anyOf": [obj(a=STRING), obj(a=STRING)]}, {}),
    (obj(a={"anyOf": [obj(b=INTEGER), {"type": "null"}, obj(b=INTEGER)]}), {}),
    # required keys that are not described
    ({"type": "object", "required": ["a"]}, {}),
    ({**obj(a=STRING), "required": ["b"]}, {}),
    ({**obj(a=STRING), "required": ["a", "b"], "additionalProperties": {}}, {}),
    (obj(a={"type": "object", "required": ["b"]}), {}),
    ({"allOf": [obj(a=STRING), {"required": ["b"]}]}, {}),
    # keys that must be absent
    (obj(a=False, b=STRING), {}),
    ({**obj(a=False), "additionalProperties": {}}, {}),
    ({**obj(a=False), "additionalProperties": False}, {}),
    ({"anyOf": [obj(a=False, b=STRING), {**obj(a=STRING), "required": ["a"]}]}, {}),
    ({"allOf": [obj(a=STRING), obj(a=False)]}, {}),
    ({"allOf": [obj(a=False), obj(a=STRING)]}, {}),
    # bounds that say nothing here
    ({"type": "object", "properties": {"a": STRING}, "minLength": 2}, {}),
]


@pytest.mark.parametrize(("schema", "definitions"), EXACT, ids=[json.dumps(schema) for schema, _ in EXACT])
@pytest.mark.slow
def test_what_has_a_type_takes_what_json_schema_does(
    schema: dict[str, Any], definitions: dict[str, Any], tmp_path: Path
) -> None:
    assert_exact(schema, tmp_path, **definitions)


def preset(default: Any, /, **schema: Any) -> dict[str, Any]:
    """Return an object with a required key that has *default*."""
    return {**obj(p={**schema, "default": default}), "required": ["p"]}


REFUSED: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    # bounds without a type
    *(({keyword: 2}, [("MG118", "")]) for keyword in ("minLength", "minimum", "exclusiveMaximum", "maxItems")),
    (obj(a={"pattern": "a"}), [("MG118", "/properties/a")]),
    (obj(a={"allOf": [{"minLength": 2}]}), [("MG118", "/properties/a/allOf/0")]),
    # bounds beside values
    ({"enum": ["a", 1], "pattern": "(a+)+$"}, [("MG118", "")]),
    ({"const": "a", "minLength": 2}, [("MG125", "")]),
    ({"type": "integer", "enum": [1, 2], "minimum": 3}, [("MG125", "")]),
    # values that are equal to Python alone
    ({"enum": [1], "const": True}, [("MG125", "")]),
    ({"enum": [False], "const": 0}, [("MG125", "")]),
    # presets
    (preset(5, type="string"), [("MG119", "/properties/p")]),
    (preset("x", type="integer"), [("MG119", "/properties/p")]),
    (preset(True, type="integer"), [("MG119", "/properties/p")]),  # noqa: FBT003 a value
    (preset(1, type="boolean"), [("MG119", "/properties/p")]),
    (preset(1, const=True), [("MG119", "/properties/p")]),
    (preset("c", enum=["a", "b"]), [("MG119", "/properties/p")]),
    (preset("a", type="string", minLength=2), [("MG119", "/properties/p")]),
    (preset(5, type="number", exclusiveMaximum=5), [("MG119", "/properties/p")]),
    (preset("a", type="string", pattern="(a+)+$"), [("MG119", "/properties/p")]),
    (preset("a", type="object"), [("MG119", "/properties/p")]),
    (preset("a", type="array"), [("MG119", "/properties/p")]),
    (preset("a", **ref("X")), [("MG119", "/properties/p")]),
    (preset("a", anyOf=[INTEGER, {"type": "null"}]), [("MG119", "/properties/p")]),
    (preset(2**63, type="integer"), [("MG111", "/properties/p")]),
    (preset(-(2**63) - 1), [("MG111", "/properties/p")]),
    ({"allOf": [obj(p={**STRING, "default": 5}), {"required": ["p"]}]}, [("MG119", "/allOf/0/properties/p")]),
    # more than can be laid out
    ({"enum": [f"v{number}" for number in range(15_000)]}, [("MG126", "")]),
    ({"anyOf": [{"enum": [f"{arm}-{number}" for number in range(6000)]} for arm in "ab"]}, [("MG126", "")]),
]


@pytest.mark.parametrize(("schema", "expected"), REFUSED, ids=[json.dumps(schema)[:80] for schema, _ in REFUSED])
@pytest.mark.slow
def test_what_has_no_exact_type_is_refused_in_its_place(
    schema: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert expected == refusals(schema)


PRESETS: list[tuple[object, dict[str, Any]]] = [
    ("x", STRING),
    ("x", {}),
    ("x", {"type": ["integer", "string"]}),
    ("xy", {"type": "string", "minLength": 2, "maxLength": 2}),
    (5, {"type": "number", "minimum": 5}),
    (2**63 - 1, INTEGER),
    (True, {"type": "boolean"}),
    ("b", {"enum": ["a", "b"]}),
    ("b", ref("Choice")),
    ("b", {"anyOf": [INTEGER, ref("Choice")]}),
]


@pytest.mark.parametrize(("default", "schema"), PRESETS, ids=str)
@pytest.mark.slow
def test_a_default_that_the_key_may_have_is_filled_in(default: object, schema: dict[str, Any], tmp_path: Path) -> None:
    document = {"$defs": {"X": preset(default, **schema), "Choice": {"enum": ["a", "b"]}}}

    assert repr(default) == repr(load(build(document), tmp_path).models.X().p)


def test_a_default_is_looked_up_once_in_each_definition() -> None:
    unions: dict[str, Any] = {"A0": {"enum": ["a"]}, "B0": {"enum": ["b"]}}
    for level in range(1, 50):
        unions[f"A{level}"] = {"anyOf": [ref(f"A{level - 1}"), ref(f"B{level - 1}")]}
        unions[f"B{level}"] = {"anyOf": [ref(f"B{level - 1}"), ref(f"A{level - 1}"), {"type": "null"}]}

    assert [("MG119", "/properties/p")] == refusals(preset(5, **ref("A49")), **unions)


def test_an_enum_of_the_greatest_length_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_VALUES", 3)

    assert "Literal" in build({"$defs": {"X": {"enum": ["a", "b", "c"]}}}).files["models.py"]
    assert [("MG126", "")] == refusals({"enum": ["a", "b", "c", "d"]})
