"""Fields of a form: what is typed is checked against what the server asks for before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.runtime.cli.client.form_fields import FormField, InvalidFieldValue, parse_form

CHOICE = {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]}
MANY = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2}
TITLED = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Ape"}, {"const": "b", "title": "Bee"}]}}


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "string"}, " hello ", "hello"),
        ({"type": "string"}, '""', ""),
        ({"type": "integer", "minimum": 3}, "3", 3),
        ({"type": "number"}, "-2.5", -2.5),
        ({"type": "number"}, "2", 2),
        ({"type": "boolean"}, "Y", True),
        ({"type": "boolean"}, "no", False),
        (CHOICE, "2", "l"),
        (CHOICE, "small", "s"),
        (MANY, "3, 1", ["c", "a"]),
        (MANY, "a a", ["a"]),
        (TITLED, "bee", ["b"]),
        (TITLED, "none", []),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-28"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T12:00:00Z", "2026-02-28T12:00:00Z"),
        ({"type": "string", "format": "email"}, "a@b", "a@b"),
        ({"type": "string", "format": "uri"}, "mailto:x", "mailto:x"),
        ({"type": "integer", "default": 5}, "", 5),
        ({"type": "integer", "default": 10**400}, "", 10**400),
        ({"type": "number", "default": 10**400}, "", 10**400),
        ({"type": "string"}, "", None),
    ],
)
def test_what_is_typed_becomes_a_value(schema: dict[str, Any], text: str, expected: object) -> None:
    made = FormField("x", schema, is_required=False).read(text)

    assert expected == made
    assert type(expected) is type(made)


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 3}, "a", "The text must have 2 to 3 characters, not 1."),
        ({"type": "string", "maxLength": 3}, "abcd", "The text must have at most 3 characters, not 4."),
        ({"type": "integer", "minimum": 3}, "2", "The number must be at least 3."),
        ({"type": "integer", "minimum": 3, "maximum": 3}, "2", "The number must be exactly 3."),
        ({"type": "integer"}, "2.0", "Type a whole number."),
        ({"type": "number"}, "nan", "Type a number."),
        ({"type": "boolean"}, "maybe", "Type yes or no."),
        (CHOICE, "3", "There is no choice with the number 3. Type a number from 1 to 2."),
        (CHOICE, "0", "There is no choice with the number 0. Type a number from 1 to 2."),
        (MANY, "1 2 3", "Choose 1 to 2, not 3."),
        (MANY, "none", "Choose 1 to 2, not 0."),
        ({"type": "string", "format": "date"}, "2026-02-30", "Type a date, such as 2026-01-31."),
        (
            {"type": "string", "format": "date-time"},
            "2026-02-28",
            "Type a date and time, such as 2026-01-31T12:00:00Z.",
        ),
        ({"type": "string", "format": "email"}, "a b@c", "Type an e-mail address."),
        ({"type": "string", "format": "uri"}, "x", "Type a URI, such as https://example.com."),
        ({"type": "integer"}, "", "This field is required."),
        ({"type": "string"}, "", 'This field is required. Type "" for empty text.'),
        ({"type": "string", "minLength": 1}, "", "This field is required."),
        ({"type": "integer", "default": 1, "minimum": 2}, "", "The number must be at least 2."),
        (CHOICE | {"default": "x"}, "", "The server's default value is not valid. Type another value."),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(schema: dict[str, Any], text: str, expected: str) -> None:
    with pytest.raises(InvalidFieldValue) as caught:
        FormField("x", schema, is_required=True).read(text)

    assert expected == str(caught.value)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, True),
        ({"type": "string", "minLength": 1}, False),
        ({"type": "string", "format": "email"}, False),
        (CHOICE, False),
        (TITLED, True),
        (MANY, False),
        ({"type": "integer"}, False),
    ],
)
def test_an_empty_answer_is_offered_where_it_is_valid(schema: dict[str, Any], *, expected: bool) -> None:
    assert expected is FormField("x", schema, is_required=True).takes_empty


def test_fields_come_in_the_order_of_the_server() -> None:
    schema = {"properties": {"b": {"type": "string", "title": "Bee"}, "a": CHOICE}, "required": ["a"]}

    assert [("b", "Bee", False), ("a", "a", True)] == [(f.name, f.title, f.is_required) for f in parse_form(schema)]


def test_values_are_shown_as_people_chose_them() -> None:
    field = FormField("x", CHOICE, is_required=False)

    assert ["Large", "(no answer)", "yes", "7", '""'] == [field.shown(each) for each in ("l", None, True, 7, "")]
    assert "\\x1b" == field.shown("\x1b")
    assert "Ape, Bee" == FormField("x", TITLED, is_required=False).shown(["a", "b"])


def test_a_default_of_many_choices_is_checked_in_one_pass() -> None:
    passes: list[object] = []

    class Choices(list[tuple[str, str]]):
        def __iter__(self) -> Any:
            passes.append(self)
            return super().__iter__()

    names = [str(number) for number in range(100)]
    field = FormField("x", {"type": "array", "items": {"enum": names}, "default": names}, is_required=False)
    field.choices = Choices(field.choices)

    assert names == field.read("")
    assert len(passes) < 5
