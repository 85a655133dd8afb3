"""Arguments from a command line: what the schema wants is what they become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from mcpgen.runtime.cli.client.arguments import (
    InvalidArguments,
    convert_arguments,
    did_you_mean,
    parse_json_object,
    parse_pairs,
)

if TYPE_CHECKING:
    from pathlib import Path


def given(schema: object, *words: str) -> dict[str, Any]:
    return convert_arguments(parse_pairs(words), schema)


def reasons(schema: object, *words: str) -> tuple[str, ...]:
    with pytest.raises(InvalidArguments) as caught:
        given(schema, *words)
    return caught.value.reasons


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, "a=b", "a=b"),
        ({"type": "string"}, "", ""),
        ({"type": "integer"}, "-5", -5),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "1.5e3", 1500.0),
        ({"type": "boolean"}, "false", False),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": ["string", "integer"]}, "5", "5"),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "true", True),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
        ({"$ref": "#/$defs/Count"}, "7", 7),
        ({"enum": [1, "two", None]}, "1", 1),
        ({"enum": [1, "two", None]}, "two", "two"),
        ({}, "5", 5),
        ({}, "five", "five"),
        (True, "true", True),
    ],
)
def test_a_value_becomes_what_its_schema_wants(schema: object, text: str, expected: object) -> None:
    whole = {"properties": {"x": schema}, "$defs": {"Count": {"type": "integer"}}}

    made = given(whole, f"x={text}")["x"]
    assert expected == made
    assert type(expected) is type(made)


def test_json_is_taken_as_it_is_whatever_the_schema_says() -> None:
    assert {"x": {"a": [1]}} == given({"properties": {"x": {"type": "string"}}}, 'x:={"a": [1]}')


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "integer"}, "5.0", "`x` must be of type integer, not '5.0'."),
        ({"type": "integer"}, "1_000", "`x` must be of type integer, not '1_000'."),
        ({"type": "number"}, "nan", "`x` must be of type number, not 'nan'."),
        ({"type": "number"}, "1e999", "`x` must be of type number, not '1e999'."),
        ({"type": "boolean"}, "yes", "`x` must be of type boolean, not 'yes'. Write true or false."),
        ({"enum": [True, "a"]}, "c", "`x` must be one of true, \"a\", not 'c'."),
        ({"type": "array"}, "a", "`x` must be of type array, not 'a'. Write JSON: x='[…]'"),
        ({"type": "object"}, "{a}", "`x` must be of type object, not '{a}'. Write JSON: x='{…}'"),
        ({"enum": []}, "1", "`x` cannot have a value: its schema has an empty `enum`."),
        ({"enum": ["a", "b"]}, "c", '`x` must be one of "a", "b", not \'c\'.'),
    ],
)
def test_a_value_that_cannot_be_that_is_refused(schema: object, text: str, expected: str) -> None:
    assert (expected,) == reasons({"properties": {"x": schema}}, f"x={text}")


def test_forced_json_that_is_none_is_refused() -> None:
    (reason,) = reasons({"properties": {"x": {}}}, "x:={")

    assert "`x` cannot be read as JSON: line 1, column 2: a key in double quotes is missing." == reason


def test_a_number_with_too_many_digits_is_refused() -> None:
    (reason,) = reasons({"properties": {"x": {"type": "integer"}}}, f"x:={'1' * 5000}")

    assert "`x` cannot be read as JSON: a number has too many digits." == reason


def test_text_that_is_forced_to_be_json_is_told_how_to_be_text() -> None:
    (reason,) = reasons({"properties": {"x": {}}}, "x:=tea time")

    assert (
        "`x` cannot be read as JSON: line 1, column 1: a JSON value is missing; for text, write 'x=tea time'." == reason
    )


def test_text_that_is_forced_to_be_json_is_not_told_how_to_be_text_if_the_tool_takes_no_text() -> None:
    (reason,) = reasons({"properties": {"x": {"type": "integer"}}}, "x:=tea")

    assert "`x` cannot be read as JSON: line 1, column 1: a JSON value is missing." == reason


def test_unknown_and_missing_arguments_are_told_together() -> None:
    schema = {"properties": {"name": {}, "age": {}, "size": {}}, "required": ["name", "age"]}

    assert (
        "There is no argument `nam`. Did you mean name?",
        "Arguments `name` and `age` are missing.",
    ) == reasons(schema, "nam=x")
    assert ("There is no argument `zzz`.",) == reasons({"properties": {"a": {}}}, "zzz=1")
    assert ("Argument `age` is missing.",) == reasons(schema, "name=x")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"anyOf": [{"properties": {"x": {"type": "integer"}}}, {"properties": {"y": {"type": "string"}}}]},
        {"properties": {"y": {}}, "if": {"required": ["y"]}, "then": {"properties": {"x": {}}}},
        {"properties": {"y": {}}, "dependentSchemas": {"y": {"properties": {"x": {}}}}},
        {"$ref": "#/$defs/it", "$defs": {"it": {"properties": {}, "allOf": [{"properties": {"x": {}}}]}}},
    ],
    ids=str,
)
def test_a_schema_may_name_arguments_elsewhere_than_in_its_properties(schema: dict[str, Any]) -> None:
    assert {"x": 1} == given(schema, "x=1")


@pytest.mark.parametrize(
    "more",
    [
        {"anyOf": [{"required": ["path"]}, {"required": ["url"]}]},
        {"allOf": [{"if": {"required": ["path"]}, "then": {"required": ["url"]}}], "additionalProperties": False},
        {"dependencies": {"path": ["url"]}},
    ],
    ids=str,
)
def test_a_mistyped_argument_is_found_beside_schemas_that_name_no_others(more: dict[str, Any]) -> None:
    schema = {"properties": {"path": {}, "url": {}}, **more}

    assert ("There is no argument `paht`. Did you mean path?",) == reasons(schema, "paht=x")


def test_a_tool_that_takes_anything_gets_anything() -> None:
    schema = {"properties": {}, "additionalProperties": {"type": "integer"}}

    assert {"x": 5} == given(schema, "x=5")
    assert ("`x` must be of type integer, not 'a'.",) == reasons(schema, "x=a")
    assert {"y": "a"} == given({"additionalProperties": True}, "y=a")


@pytest.mark.parametrize("word", ["x", "=5", "x:5"])
def test_a_word_that_is_no_pair_is_wrong_usage(word: str) -> None:
    with pytest.raises(click.UsageError, match="KEY=VALUE"):
        parse_pairs([word])


def test_a_key_comes_once() -> None:
    with pytest.raises(click.UsageError, match="twice"):
        parse_pairs(["x=1", "x:=2"])


def test_all_arguments_can_come_as_json(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}', encoding="utf-8")

    assert {"a": 1} == parse_json_object(f"@{file}") == parse_json_object('{"a": 1}')


@pytest.mark.parametrize("source", ["[1]", "{", "@/no/such/file", '{"a": NaN}', "[" * 100_000])
def test_what_is_no_json_object_is_wrong_usage(source: str) -> None:
    with pytest.raises(click.UsageError):
        parse_json_object(source)


def test_names_that_are_like_it_are_suggested() -> None:
    assert " Did you mean find_boats?" == did_you_mean("findboat", ["find_boats", "book"])
    assert "" == did_you_mean("zzz", ["find_boats", "book"])


def test_a_thousand_names_are_compared_with_a_wrong_one() -> None:
    names = iter([f"boat{number}" for number in range(5000)])
    assert did_you_mean("boat", names).startswith(" Did you mean boat")
    assert 4000 == len(list(names))
