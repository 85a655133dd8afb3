"""JSON schemas as short text: types, constraints and tables of properties.

A server's schema may be malformed, recursive or huge. So this code never relies on its shape, and limits how deep and
how far it looks. References let a small schema use a long text, or many subschemas, in each of its properties. So texts
are cut, only known keywords are looked at, and the type of a subschema is computed once for a table.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from mcpgen.runtime.adapt.json_pointer import is_array, is_object, look_up, tokens_of
from mcpgen.runtime.cli.terminal_text import as_json, escaped_line, join_words, range_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "NOTHING_ALLOWED",
    "PropertyRow",
    "constraints",
    "resolve_ref",
    "property_rows",
    "repeats_name",
    "type_text",
    "type_names",
]

_MAX_DEPTH: Final = 3  # a deeper table is not readable
_MAX_REFERENCES: Final = 8
_MAX_CHOICES: Final = 24
_MAX_ARMS: Final = 8  # of a union; with references, their number can multiply at each level
_MAX_TYPES: Final = 1000  # that are looked at, of the values of an enum
_MAX_VALUE: Final = 120
_MAX_NAME: Final = 1000
_MAX_TEXT: Final = 10_000
_MAX_ROWS: Final = 300

_KEYWORDS: Final = (
    *("type", "const", "enum", "anyOf", "oneOf", "allOf", "items", "format", "pattern", "multipleOf", "default"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"),
    *("properties", "patternProperties", "additionalProperties", "required", "title", "description"),
)

_SEPARATORS: Final = re.compile(r"[\s_-]+")

_ALTERNATIVES: Final = ("anyOf", "oneOf")


class PropertyRow(NamedTuple):
    """One property of an object.

    Attributes:
        name: The name; with ``.`` before it in a nested object, ``[].`` in the items of an array.
        depth: The level of nesting, from 0.
        type: The type as text.
        is_required: Whether the property is required.
        text: The description from the schema.
        notes: The choices, limits and default as text.
    """

    name: str
    depth: int
    type: str
    is_required: bool
    text: str
    notes: str


class Memo(Struct):
    """The types of the subschemas of one root, each by the identity of the subschema and its depth.

    Attributes:
        texts: What `type_text` has returned.
        names: What `type_names` has returned.
    """

    texts: dict[tuple[int, int], str] = {}
    names: dict[tuple[int, int], list[str]] = {}


def resolve_ref(schema: object, root: object) -> Mapping[str, Any]:
    """Follow the references of *schema* within *root*, and merge the known keywords beside them."""
    found: object = schema
    beside: dict[str, Any] = {}
    for _ in range(_MAX_REFERENCES):
        if not is_object(found):
            return beside
        reference = found.get("$ref")
        if not (isinstance(reference, str) and reference.startswith("#")):
            return {**_known(found), **beside}
        beside = {**_known(found), **beside}
        if len(reference) > _MAX_NAME:
            return beside
        try:
            found = look_up(root, tokens_of(reference[1:]))
        except ValueError:  # the name of an anchor, which tables do not follow
            return beside
    return beside


def _known(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in _KEYWORDS if key in schema}


def type_names(schema: object, root: object, depth: int = 0, memo: Memo | None = None) -> list[str]:
    """Return the names of the JSON types that *schema*, a part of *root*, allows; empty for any type."""
    memo = Memo() if memo is None else memo
    key = id(schema), depth
    if key not in memo.names:
        memo.names[key] = _names(resolve_ref(schema, root), root, depth, memo)
    return memo.names[key]


def _names(whole: Mapping[str, Any], root: object, depth: int, memo: Memo) -> list[str]:
    declared = whole.get("type")
    if isinstance(declared, str):
        return [declared]
    if is_array(declared):
        return [each for each in declared[:_MAX_ARMS] if isinstance(each, str)]
    if "const" in whole:
        return [_type_of(whole["const"])]
    choices = whole.get("enum")
    if is_array(choices):
        return list(dict.fromkeys(map(_type_of, choices[:_MAX_TYPES])))
    found: dict[str, None] = {}
    for arm in _arms(whole):
        of_arm = type_names(arm, root, depth + 1, memo) if depth < _MAX_DEPTH else []
        if not of_arm:
            return []
        found |= dict.fromkeys(of_arm)
    if found:
        return list(found)
    for arm in _all(whole):
        of_arm = type_names(arm, root, depth + 1, memo) if depth < _MAX_DEPTH else []
        if of_arm:
            return of_arm
    return ["object"] if "properties" in whole else ["array"] if "items" in whole else []


def _arms(whole: Mapping[str, Any]) -> list[object]:
    for key in _ALTERNATIVES:
        arms = whole.get(key)
        if is_array(arms) and arms:
            return arms[:_MAX_ARMS]
    return []


def _all(whole: Mapping[str, Any]) -> list[object]:
    arms = whole.get("allOf")
    return arms[:_MAX_ARMS] if is_array(arms) else []


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def type_text(schema: object, root: object, depth: int = 0, memo: Memo | None = None) -> str:
    """Return the type of *schema*, a part of *root*, as text: ``array of integer``, ``string or null``, ``any``."""
    memo = Memo() if memo is None else memo
    key = id(schema), depth
    if key not in memo.texts:
        memo.texts[key] = _text(resolve_ref(schema, root), root, depth, memo)
    return memo.texts[key]


def _text(whole: Mapping[str, Any], root: object, depth: int, memo: Memo) -> str:
    words: dict[str, None] = {}
    arms = _arms(whole) if "type" not in whole else []
    if arms and depth < _MAX_DEPTH:
        words = dict.fromkeys(type_text(arm, root, depth + 1, memo) for arm in arms)
        return "any" if "any" in words else join_words(words)
    for name in _names(whole, root, depth, memo):
        word = escaped_line(_cut(name, _MAX_VALUE))
        if name == "array":
            # Up to draft 7, `items` of a tuple is an array.
            items = whole.get("items", True)
            of = type_text(items, root, depth + 1, memo) if depth < _MAX_DEPTH and is_object(items) else "any"
            word = "array" if of == "any" else f"array of ({of})" if " or " in of else f"array of {of}"
        elif name == "object" and "properties" not in whole and is_object(whole.get("additionalProperties")):
            of = type_text(whole["additionalProperties"], root, depth + 1, memo) if depth < _MAX_DEPTH else "any"
            word = "object" if of == "any" else f"object of {of}"
        elif name == "string" and isinstance(whole.get("format"), str):
            word = f"string ({escaped_line(_cut(whole['format'], _MAX_VALUE))})"
        words[word] = None
    return join_words(words) or "any"


_RANGES: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", "character"),
    ("minItems", "maxItems", "item"),
)

_BOUNDS: Final = (
    ("exclusiveMinimum", "more than {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("pattern", "matches {}"),
)


NOTHING_ALLOWED: Final = "no value is allowed"
"""The constraint of an ``enum`` without values."""


def constraints(schema: object, root: object) -> Iterator[str]:
    """Yield the constraints beside the type as text: ``one of "a", "b"``, ``at least 3``, ``default 5``."""
    whole = resolve_ref(schema, root)
    arms = [resolve_ref(each, root) for each in _arms(whole)]
    choices = whole.get("enum")
    if "const" in whole:
        choices = [whole["const"]]
    if not is_array(choices) and arms and all("const" in arm for arm in arms):
        choices = [arm["const"] for arm in arms]
    if is_array(choices):
        yield _choices_text(choices)
    not_null = [arm for arm in arms if arm.get("type") != "null"]
    bounded = not_null[0] if len(not_null) == 1 and len(arms) > 1 else whole
    if bounded is not whole and not is_array(choices) and ("enum" in bounded or "const" in bounded):
        yield from constraints({key: bounded[key] for key in ("enum", "const") if key in bounded}, root)
    items = resolve_ref(bounded.get("items"), root)
    if "enum" in items:
        found = constraints({"enum": items["enum"]}, root)
        yield from ("no item is allowed" if each == NOTHING_ALLOWED else f"each {each}" for each in found)
    for least, most, noun in _RANGES:
        yield from range_text(bounded.get(least), bounded.get(most), noun)
    for key, words in _BOUNDS:
        value = bounded.get(key)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            yield words.format(escaped_line(_cut(str(value), _MAX_NAME)))
    if whole.get("default") is not None:
        yield f"default {_value(whole['default'])}"


def _choices_text(choices: list[Any]) -> str:
    if not choices:
        return NOTHING_ALLOWED
    listed = [_value(each) for each in choices[:_MAX_CHOICES]]
    more = len(choices) - len(listed)
    return f"{'one of ' if len(choices) > 1 else 'only '}{', '.join(listed)}{f' and {more} more' if more else ''}"


def repeats_name(title: object, name: str) -> bool:
    """Whether *title* only repeats *name*, as titles made by schema generators do."""
    return _SEPARATORS.sub("", str(title)).casefold() == _SEPARATORS.sub("", name).casefold()


def _value(value: object) -> str:
    beginning = _beginning(value, [_MAX_VALUE])
    text = as_json(beginning, is_pretty=False) if not isinstance(beginning, str) else f'"{escaped_line(beginning)}"'
    return _cut(text, _MAX_VALUE)


def _beginning(value: object, room: list[int]) -> object:
    """Return *value* without most of what has no place in *room* characters, at least one for each value."""
    room[0] -= 1
    if isinstance(value, str):
        return value[:_MAX_VALUE]
    if is_array(value):
        return [_beginning(each, room) for each in islice(value, _MAX_VALUE) if room[0] > 0]
    if is_object(value):
        members = islice(value.items(), _MAX_VALUE)
        return {key[:_MAX_VALUE]: _beginning(each, room) for key, each in members if room[0] > 0}
    return value


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def property_rows(  # noqa: PLR0913 (most are for what is nested)
    schema: object,
    *,
    before: str = "",
    root: object = None,
    depth: int = 0,
    most: int = _MAX_ROWS,
    memo: Memo | None = None,
) -> list[PropertyRow]:
    """Return the properties of an object, each followed by its nested properties: up to *most*, and a note."""
    root, memo = schema if root is None else root, Memo() if memo is None else memo
    whole = resolve_ref(schema, root)
    properties = whole.get("properties")
    if not is_object(properties):
        return []
    required = whole.get("required")
    made: list[PropertyRow] = []
    for key, each in properties.items():
        if len(made) >= most:
            made.append(PropertyRow("…", depth, "", is_required=False, text="More properties are not shown.", notes=""))
            break
        inner = resolve_ref(each, root)
        is_required = is_array(required) and key in required
        name, title = _cut(key, _MAX_NAME), _shown(inner.get("title"))
        text = _shown(inner.get("description")) or title
        text = "" if text == title and repeats_name(title, name) else text
        notes = "; ".join(constraints(each, root))
        made.append(PropertyRow(f"{before}{name}", depth, type_text(each, root, 0, memo), is_required, text, notes))
        for part, sign in ((inner, "."), (resolve_ref(inner.get("items"), root), "[].")):
            if depth < _MAX_DEPTH - 1 and len(made) < most:
                room = most - len(made)
                made += property_rows(part, before=sign, root=root, depth=depth + 1, most=room, memo=memo)
    return made


def _shown(text: object) -> str:
    return _cut(text, _MAX_TEXT) if isinstance(text, str) else _value(text) if text else ""
