"""Unusual ways to write a schema are read as what they mean: bindings and JSON Schema agree on every value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.equivalents import simplified
from mcpgen.codegen.pinned import SchemaRoom
from tests.codegen.verdicts import INTEGER, STRING, assert_exact, obj, ref, refusals

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

NOTHING: dict[str, Any] = {"not": {}}
A_OR_B = {"anyOf": [{"const": "a", "type": "string"}, {"const": "b"}]}

NEEDS_A = {**obj(a=STRING), "required": ["a"]}
NEEDS_K = {**obj(k=STRING), "required": ["k"]}

SAME: list[dict[str, Any]] = [
    {**obj(a=STRING), "additionalProperties": NOTHING},
    {**obj(a=STRING), "additionalProperties": {"not": True, "description": "None."}},
    {"type": "object", "additionalProperties": NOTHING},
    {"type": "object", "propertyNames": A_OR_B},
    {"type": "object", "propertyNames": A_OR_B, "additionalProperties": INTEGER},
    {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"anyOf": [STRING, INTEGER]}},
    {"type": "object", "propertyNames": {"const": "a"}, "required": ["a"], "additionalProperties": STRING},
    {"type": "object", "propertyNames": A_OR_B, "required": ["a", "b"], "additionalProperties": {}},
    {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": INTEGER},
    obj(a={"type": "object", "propertyNames": {"enum": ["b"]}, "additionalProperties": INTEGER}),
    {"anyOf": [{"type": "object", "propertyNames": {"const": "k"}, "additionalProperties": STRING}, {"type": "null"}]},
    {"type": "array", "items": {"type": "object", "additionalProperties": NOTHING}},
    {"allOf": [obj(b=INTEGER), {"anyOf": [NEEDS_A, NEEDS_K]}]},
    {"allOf": [{"anyOf": [NEEDS_A, NEEDS_K]}, obj(b=INTEGER), ref("Other")]},
    {**obj(a=STRING), "$defs": {"Unused": STRING}},
]


@pytest.mark.parametrize("schema", SAME, ids=str)
def test_an_unusual_schema_is_exact(schema: dict[str, Any], tmp_path: Path) -> None:
    assert_exact(schema, tmp_path, Other=obj(b=INTEGER))


def test_a_definition_may_repeat_the_dialect_of_its_document() -> None:
    dialect = "https://json-schema.org/draft/2020-12/schema"
    inner = {"$schema": dialect, "type": "string"}
    read = simplified({"$schema": dialect, "$defs": {"A": inner, "B": obj(a=inner)}})

    assert {"$schema": dialect, "$defs": {"A": STRING, "B": obj(a=STRING)}} == read


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$schema": "https://json-schema.org/draft-07/schema#", **STRING}, ("MG101", "/$schema")),
        ({**obj(a=NOTHING), "required": ["a"]}, ("MG104", "/required/0")),
        ({"not": STRING}, ("MG101", "/not")),
        ({"not": {}, "type": "string"}, ("MG101", "/not")),
        ({"type": "object", "propertyNames": {"pattern": "^a"}}, ("MG101", "/propertyNames")),
        ({"type": "object", "propertyNames": ref("Key")}, ("MG101", "/propertyNames")),
        ({**obj(a=STRING), "propertyNames": {"const": "a"}}, ("MG101", "/propertyNames")),
    ],
    ids=str,
)
def test_a_schema_without_an_equal_form_is_refused(schema: dict[str, Any], expected: tuple[str, str]) -> None:
    assert [expected] == refusals(schema, Key={"enum": ["a"]})


def nested(depth: int) -> dict[str, Any]:
    if not depth:
        return STRING
    return {"allOf": [obj(p=nested(depth - 1)), {"anyOf": [obj(**{f"a{each}": STRING}) for each in range(10)]}]}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [*[{}] * 3000, {"anyOf": [{}] * 3000}]},
        nested(14),
        {
            "type": "object",
            "propertyNames": {"enum": [f"k{each}" for each in range(3000)]},
            "additionalProperties": obj(**{f"a{each}": STRING for each in range(3000)}),
        },
    ],
    ids=["wide", "nested", "keys"],
)
def test_what_repeats_schemas_without_end_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        simplified({"$defs": {"A": schema}})

    (finding,) = refused.value.diagnostics
    assert ("MG012", "the generator would copy more than 20000 schemas") == (
        finding.code,
        finding.message.partition(":")[0],
    )


def test_values_are_not_schemas() -> None:
    document = {"$defs": {"A": {"enum": ["a"], "examples": [{"not": {}}], "default": {"propertyNames": {"const": 1}}}}}

    assert document == simplified(document)


@pytest.mark.parametrize("revision", SchemaRoom().revisions)
def test_vendored_documents_stay_as_they_are(revision: str) -> None:
    assert simplified(SchemaRoom().document(revision)) == SchemaRoom().document(revision)
