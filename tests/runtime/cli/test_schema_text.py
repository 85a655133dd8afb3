"""JSON schemas as text, malformed ones included."""

from __future__ import annotations

import time
from typing import Any

import pytest

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
