"""JSON schemas as text, malformed ones included."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcpgen.runtime.cli.client import schema_text
from mcpgen.runtime.cli.client.schema_text import constraints, property_rows, type_names, type_text
from tests.patience import PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"type": "string", "format": "date"}, "string (date)"),
        ({"type": "array", "items": {"type": "integer"}}, "array of integer"),
        ({"type": "array", "items": {"type": ["integer", "null"]}}, "array of (integer or null)"),
        ({"type": "array", "items": [{"type": "integer"}]}, "array"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "object of string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"oneOf": [{"const": 1}, {"const": "a"}]}, "integer or string"),
        ({"enum": ["a", None, 1.5]}, "string, null or number"),
        ({"$ref": "#/$defs/A~1B"}, "boolean"),
        ({"allOf": [{"$ref": "#/$defs/A~1B"}]}, "boolean"),
        ({"properties": {}}, "object"),
        ({"$ref": "#/$defs/itself"}, "any"),
        ({"$ref": "https://example.com/x"}, "any"),
        ({}, "any"),
        (True, "any"),
        ("nonsense", "any"),
        ({"type": 5, "anyOf": 7, "enum": 8}, "any"),
    ],
)
def test_a_type_is_told_in_words(schema: object, expected: str) -> None:
    root = {"$defs": {"A/B": {"type": "boolean"}, "itself": {"$ref": "#/$defs/itself"}}}

    assert expected == type_text(schema, root)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"enum": ["a", 1]}, ['one of "a", 1']),
        ({"const": "a"}, ['only "a"']),
        ({"enum": []}, ["no value is allowed"]),
        ({"type": "array", "items": {"enum": []}}, ["no item is allowed"]),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, ['one of "a", "b"']),
        ({"minimum": 1, "maximum": 2.5, "default": 0}, ["1 to 2.5", "default 0"]),
        ({"minLength": 1, "maxLength": 2}, ["1 to 2 characters"]),
        (
            {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}], "default": None},
            ["at least 3"],
        ),
        ({"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 1}, ['each one of "x", "y"', "at least 1 item"]),
        ({"default": "\x1b[0m"}, ['default "\\x1b[0m"']),
        ({"minItems": 2, "maxItems": 2}, ["exactly 2 items"]),
        ({"exclusiveMinimum": 0, "multipleOf": 3, "pattern": "^a"}, ["more than 0", "a multiple of 3", "matches ^a"]),
        ({"minimum": [], "maximum": True}, []),
    ],
)
def test_what_a_value_has_to_fit_is_told_in_words(schema: dict[str, Any], expected: list[str]) -> None:
    assert expected == list(constraints(schema, schema))


def test_what_is_nested_follows_what_it_is_in() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "array", "items": {"properties": {"c": {}}}}}}

    found = [(row.name, row.depth) for row in property_rows({"properties": {"a": inner, "d": {}}})]
    assert [("a", 0), (".b", 1), ("[].c", 2), ("d", 0)] == found


def test_a_title_that_only_repeats_the_name_is_not_told() -> None:
    properties = {"user_name": {"title": "User Name"}, "x": {"title": "How many"}}

    assert ["", "How many"] == [row.text for row in property_rows({"properties": properties})]


@pytest.mark.slow
def test_schemas_that_refer_to_themselves_many_times_take_no_time() -> None:
    loop = {"$ref": "#"}
    schema: dict[str, Any] = {"anyOf": [loop] * 500, "properties": {f"p{number}": loop for number in range(500)}}
    begin = time.monotonic()

    found = property_rows(schema)
    type_text(schema, schema)
    type_names(schema, schema)
    assert time.monotonic() - begin < PATIENCE_SECONDS
    assert len(found) < 400
    assert "More properties are not shown." == found[-1].text


@pytest.mark.parametrize(
    "keyword",
    [
        {"description": "x" * 100_000},
        {"title": "x" * 100_000},
        {"description": ["x" * 100_000]},
        {"type": "x" * 100_000},
        {"type": "string", "format": "x" * 100_000},
        {"pattern": "x" * 100_000},
        {"properties": {"x" * 100_000: {}}},
        {"properties": {f"q{number}": {"$ref": "#/$defs/x"} for number in range(200)}},
    ],
)
def test_what_many_properties_share_is_cut(keyword: dict[str, Any]) -> None:
    properties = {f"p{number}": {"$ref": "#/$defs/x"} for number in range(200)}

    rows = property_rows({"properties": properties, "$defs": {"x": keyword}})
    assert sum(len(part) for row in rows for part in (row.name, row.type, row.text, row.notes)) < 4_000_000
    assert len(rows) <= 303


def test_the_subschemas_of_many_properties_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[object] = []
    resolve = schema_text.resolve_ref
    monkeypatch.setattr(
        schema_text, "resolve_ref", lambda schema, root: looked_at.append(schema) or resolve(schema, root)
    )
    again = [{"$ref": "#/$defs/x"} for _ in range(8)]
    properties = {f"p{number}": {"$ref": "#/$defs/x"} for number in range(100)}

    property_rows({"properties": properties, "$defs": {"x": {"anyOf": again, "allOf": again}}})
    assert len(looked_at) < 3000


def test_a_long_value_is_not_encoded_to_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    as_json = schema_text.as_json
    monkeypatch.setattr(
        schema_text, "as_json", lambda value, **options: encoded.append(as_json(value, **options)) or encoded[-1]
    )
    value = [{"a" * 1000: ["x" * 1000] * 1000}] * 1000

    assert 'default [{"aaa' == next(constraints({"default": value}, {}))[:14]
    assert sum(map(len, encoded)) < 50_000


def test_keywords_that_are_not_shown_are_not_copied() -> None:
    schema = {"$ref": "#/$defs/a", "x-one": 1, "$defs": {"a": {"type": "string", "x-two": 2}}}

    assert {"type": "string"} == schema_text.resolve_ref(schema, schema)
