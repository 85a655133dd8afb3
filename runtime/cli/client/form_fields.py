"""One field of an elicitation form: its description for the user, and the value of what the user types.

Spec:
    2025-06-18, 2025-11-25 and 2026-07-28, client/elicitation, "Requested Schema".
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.terminal_text import escaped_line, join_words, range_text
from mcpgen.runtime.client.form_answers import get_choices

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FormField", "InvalidFieldValue", "FieldValue", "parse_form"]

FieldValue: TypeAlias = str | int | float | bool | list[str]
"""The value of a field."""

_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,6})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", re.ASCII)
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_LONGEST_NUMBER: Final = 300


class InvalidFieldValue(ValueError):  # noqa: N818 (never leaves the form)
    """The typed text is not a value of the field. The message tells the user why."""


class FormField:
    """One field of a form.

    Attributes:
        name: The key in the answer.
        title: The label, escaped.
        description: The description; empty if there is none.
        is_required: Whether the field is required.
        default: The value if the user types nothing; None if there is none.
        choices: The values to choose from, with their labels; empty for free text.
        is_many: Whether several choices are allowed.
    """

    def __init__(self, name: str, schema: dict[str, Any], *, is_required: bool) -> None:
        self.name: str = name
        self.title: str = escaped_line(schema.get("title") or name)
        self.description: str = str(schema.get("description") or "")
        self.is_required: bool = is_required
        self.type: str = str(schema.get("type") or "string")
        self.is_many: bool = self.type == "array"
        self.default: FieldValue | None = schema.get("default")
        self.choices: list[tuple[str, str]] = get_choices(schema)
        self._schema = schema

    @property
    def kind(self) -> str:
        """The kind of value that the field takes, as text."""
        if self.choices:
            words = "any of these" if self.is_many else "one of these"
            return ", ".join([words, *self._bounds("minItems", "maxItems", "")])
        match self.type:
            case "boolean":
                return "yes or no"
            case "integer" | "number":
                word = "a whole number" if self.type == "integer" else "a number"
                return ", ".join([word, *self._bounds("minimum", "maximum", "")])
            case _:
                form = _FORMATS.get(str(self._schema.get("format")))
                word = form[0] if form else "text"
                return ", ".join([word, *self._bounds("minLength", "maxLength", "character")])

    def shown(self, value: FieldValue | None) -> str:
        """Return *value* as text for the user."""
        names = dict(self.choices)
        match value:
            case None:
                return "(no answer)"
            case bool():
                return "yes" if value else "no"
            case list():
                return ", ".join(escaped_line(names.get(each, each)) for each in value) or "(none)"
            case str():
                return escaped_line(names.get(value, value)) if value else '""'
            case _:
                return str(value)

    @property
    def takes_empty(self) -> bool:
        """Whether empty text, or no choice of several, is a value of this field."""
        if not self.is_many and (self.choices or self.type != "string"):
            return False
        try:
            self._checked([] if self.is_many else "")
        except InvalidFieldValue:
            return False
        return True

    def read(self, text: str) -> FieldValue | None:
        """Return the value of *text*; None for no answer.

        Raises:
            InvalidFieldValue: The text is not a value of this field.
        """
        text = text.strip()
        if not text:
            if self.default is not None:
                return self._checked(self.default)
            if not self.is_required:
                return None
            more = ' Type "" for empty text.' if self.takes_empty and not self.is_many else ""
            raise InvalidFieldValue(f"This field is required.{more}")
        return self._checked(self._value(text))

    def _value(self, text: str) -> FieldValue:
        if self.is_many:
            words = [] if text.casefold() == "none" else [each for each in re.split(r"[,\s]+", text) if each]
            return list(dict.fromkeys(self._choice(each) for each in words))
        if self.choices:
            return self._choice(text)
        match self.type:
            case "boolean":
                if text.casefold() in _YES | _NO:
                    return text.casefold() in _YES
                raise InvalidFieldValue("Type yes or no.")
            case "integer" | "number":
                if _INTEGER.fullmatch(text) and len(text) < _LONGEST_NUMBER:
                    return int(text)
                if self.type == "number" and _NUMBER.fullmatch(text) and len(text) < _LONGEST_NUMBER:
                    return float(text)
                raise InvalidFieldValue(f"Type {'a whole number' if self.type == 'integer' else 'a number'}.")
            case _:
                return "" if text == '""' else text

    def _choice(self, text: str) -> str:
        what = escaped_line(text)
        if _INTEGER.fullmatch(text) and len(text) < _LONGEST_NUMBER:
            if 1 <= int(text) <= len(self.choices):
                return self.choices[int(text) - 1][0]
            what = f"with the number {what}"  # there can be one whose text is this number
        else:
            for value, title in self.choices:
                if text.casefold() in (value.casefold(), title.casefold()):
                    return value
        raise InvalidFieldValue(f"There is no choice {what}. Type a number from 1 to {len(self.choices)}.")

    def _checked(self, value: FieldValue) -> FieldValue:
        match value:
            case bool():
                is_right = self.type == "boolean"
            case int() | float():
                is_whole = isinstance(value, int) or value.is_integer()  # a float has no place for 400 digits
                is_right = self.type == "number" or (self.type == "integer" and is_whole)
                self._check(value, "minimum", "maximum", "The number must be {}.")
            case list():
                names = dict(self.choices)
                is_right = self.is_many and all(each in names for each in value)
                self._check(len(value), "minItems", "maxItems", "Choose {}" + f", not {len(value)}.")
            case _:
                is_right = self.type not in ("boolean", "integer", "number", "array")
                is_right = is_right and (not self.choices or value in dict(self.choices))
                self._check_text(value)
        if not is_right:
            raise InvalidFieldValue("The server's default value is not valid. Type another value.")
        return value

    def _check_text(self, value: str) -> None:
        if self.choices:
            return
        self._check(len(value), "minLength", "maxLength", "The text must have {} characters" + f", not {len(value)}.")
        form = _FORMATS.get(str(self._schema.get("format")))
        if form is not None and not form[1](value):
            raise InvalidFieldValue(f"Type {form[0]}.")

    def _check(self, value: float, least: str, most: str, sentence: str) -> None:
        low, high = self._schema.get(least), self._schema.get(most)
        if (low is not None and value < low) or (high is not None and value > high):
            raise InvalidFieldValue(sentence.format(join_words(self._bounds(least, most, ""), "and")))

    def _bounds(self, least: str, most: str, noun: str) -> list[str]:
        return list(range_text(self._schema.get(least), self._schema.get(most), noun))


def parse_form(schema: object) -> list[FormField]:
    """Return the fields of a form."""
    found: Any = schema
    properties, listed = found.get("properties"), found.get("required")
    required = {each for each in listed if isinstance(each, str)} if is_array(listed) else set[str]()
    return [
        FormField(name, each, is_required=name in required)
        for name, each in (properties.items() if is_object(properties) else ())
        if is_object(each)
    ]


def _iso(form: re.Pattern[str], parse: Callable[[str], object]) -> Callable[[str], bool]:
    def is_valid(text: str) -> bool:
        try:
            return bool(form.fullmatch(text) and parse(text.upper()))
        except ValueError:
            return False

    return is_valid


_FORMATS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "email": ("an e-mail address", _EMAIL.fullmatch),
    "uri": ("a URI, such as https://example.com", _URI.fullmatch),
    "date": ("a date, such as 2026-01-31", _iso(_DATE, date.fromisoformat)),
    "date-time": ("a date and time, such as 2026-01-31T12:00:00Z", _iso(_TIME, datetime.fromisoformat)),
}
