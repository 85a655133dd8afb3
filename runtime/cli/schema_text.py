"""JSON schemas in words: what a value may be, as far as a line can say it.

Whoever wrote the schema may have written anything, so that nothing here relies on its shape, and references are
followed a few steps only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcpgen.runtime.adapt.json_pointer import is_array, is_object
from mcpgen.runtime.cli.terminal_text import as_json, escaped_line, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Row", "constraints", "resolved", "rows", "says_nothing", "type_in_words", "types"]

# Of what is nested: deeper, nobody reads a table.
_DEEPEST: Final = 3
_MOST_REFERENCES: Final = 8
_MOST_CHOICES: Final = 24
_MOST_ARMS: Final = 8  # of a union; with references they may multiply at each step
_LONGEST_VALUE: Final = 120
_MOST_ROWS: Final = 300

_SEPARATORS: Final = re.compile(r"[\s_-]+")

_ALTERNATIVES: Final = ("anyOf", "oneOf")


class Row(NamedTuple):
    """One property of an object.

    Attributes:
        name: Its name; behind a dot if it stands in another, behind ``[].`` if in the items of one.
        depth: In how many objects that is.
        type: What it is, in words.
        is_required: Whether it has to be there.
        text: What its author has written about it.
        notes: Its choices, default and bounds, in words.
    """

    name: str
    depth: int
    type: str
    is_required: bool
    text: str
    notes: str


def resolved(schema: object, root: object) -> Mapping[str, Any]:
    """Return *schema*, or what it refers to within *root*, with what stands beside the reference; empty if nothing."""
    found: object = schema
    beside: dict[str, Any] = {}
    for _ in range(_MOST_REFERENCES):
        if not is_object(found):
            return beside
        reference = found.get("$ref")
        if not (isinstance(reference, str) and reference.startswith("#")):
            return {**found, **beside}
        beside = {**{key: value for key, value in found.items() if key != "$ref"}, **beside}
        found = _pointed(root, reference[1:])
    return beside


def _pointed(root: object, pointer: str) -> object:
    for key in pointer.split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        root = root.get(name) if is_object(root) else None
    return root


def types(schema: object, root: object, depth: int = 0) -> list[str]:
    """Return the names of the JSON types that *schema* allows, as far as it says; empty for any."""
    whole = resolved(schema, root)
    declared = whole.get("type")
    if isinstance(declared, str):
        return [declared]
    if is_array(declared):
        return [each for each in declared if isinstance(each, str)]
    if "const" in whole:
        return [_type_of(whole["const"])]
    choices = whole.get("enum")
    if is_array(choices):
        return list(dict.fromkeys(map(_type_of, choices)))
    found: dict[str, None] = {}
    for arm in _arms(whole):
        of_arm = types(arm, root, depth + 1) if depth < _DEEPEST else []
        if not of_arm:
            return []
        found |= dict.fromkeys(of_arm)
    if found:
        return list(found)
    for arm in _all(whole):
        of_arm = types(arm, root, depth + 1) if depth < _DEEPEST else []
        if of_arm:
            return of_arm
    return ["object"] if "properties" in whole else ["array"] if "items" in whole else []


def _arms(whole: Mapping[str, Any]) -> list[object]:
    for key in _ALTERNATIVES:
        arms = whole.get(key)
        if is_array(arms) and arms:
            return arms[:_MOST_ARMS]
    return []


def _all(whole: Mapping[str, Any]) -> list[object]:
    arms = whole.get("allOf")
    return arms[:_MOST_ARMS] if is_array(arms) else []


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


def type_in_words(schema: object, root: object, depth: int = 0) -> str:
    """Return what *schema* allows: ``array of integer``, ``string or null``, ``any``."""
    whole = resolved(schema, root)
    words: dict[str, None] = {}
    arms = _arms(whole) if "type" not in whole else []
    if arms and depth < _DEEPEST:
        words = dict.fromkeys(type_in_words(arm, root, depth + 1) for arm in arms)
        return "any" if "any" in words else joined(words)
    for name in types(whole, root, depth):
        word = escaped_line(name)
        if name == "array":
            # Draft-07 and before list the types of the members of a tuple here.
            items = whole.get("items", True)
            of = type_in_words(items, root, depth + 1) if depth < _DEEPEST and is_object(items) else "any"
            word = "array" if of == "any" else f"array of ({of})" if " or " in of else f"array of {of}"
        elif name == "object" and "properties" not in whole and is_object(whole.get("additionalProperties")):
            of = type_in_words(whole["additionalProperties"], root, depth + 1) if depth < _DEEPEST else "any"
            word = "object" if of == "any" else f"object of {of}"
        elif name == "string" and isinstance(whole.get("format"), str):
            word = f"string ({escaped_line(whole['format'])})"
        words[word] = None
    return joined(words) or "any"


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


def constraints(schema: object, root: object) -> Iterator[str]:
    """Yield what a value has to fit beside its type, in words: ``one of "a", "b"``, ``at least 3``, ``default 5``."""
    whole = resolved(schema, root)
    arms = [resolved(each, root) for each in _arms(whole)]
    choices = whole.get("enum")
    if "const" in whole:
        choices = [whole["const"]]
    if not is_array(choices) and arms and all("const" in arm for arm in arms):
        choices = [arm["const"] for arm in arms]
    if is_array(choices):
        listed = [_value(each) for each in choices[:_MOST_CHOICES]]
        more = len(choices) - len(listed)
        yield f"{'one of ' if len(choices) > 1 else 'only '}{', '.join(listed)}{f' and {more} more' if more else ''}"
    not_null = [arm for arm in arms if arm.get("type") != "null"]
    bounded = not_null[0] if len(not_null) == 1 and len(arms) > 1 else whole
    if bounded is not whole and not is_array(choices) and ("enum" in bounded or "const" in bounded):
        yield from constraints({key: bounded[key] for key in ("enum", "const") if key in bounded}, root)
    items = resolved(bounded.get("items"), root)
    if "enum" in items:
        yield from (f"each {each}" for each in constraints({"enum": items["enum"]}, root))
    for least, most, noun in _RANGES:
        yield from _range(bounded.get(least), bounded.get(most), noun)
    for key, words in _BOUNDS:
        value = bounded.get(key)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            yield words.format(escaped_line(value))
    if whole.get("default") is not None:
        yield f"default {_value(whole['default'])}"


def _range(least: object, most: object, noun: str) -> Iterator[str]:
    low, high = (
        each if isinstance(each, int | float) and not isinstance(each, bool) else None for each in (least, most)
    )
    last = low if high is None else high
    unit = f" {noun}{'' if last == 1 else 's'}" if noun else ""
    if low is not None and high is not None:
        yield f"{low} to {high}{unit}" if low != high else f"exactly {low}{unit}"
    elif last is not None:
        yield f"{'at most' if low is None else 'at least'} {last}{unit}"


def says_nothing(title: object, name: str) -> bool:
    """Whether *title* only repeats *name*: generators of schemas make titles of names."""
    return _SEPARATORS.sub("", str(title)).casefold() == _SEPARATORS.sub("", name).casefold()


def _value(value: object) -> str:
    text = as_json(value, is_pretty=False) if not isinstance(value, str) else f'"{escaped_line(value)}"'
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def rows(schema: object, *, before: str = "", root: object = None, depth: int = 0) -> list[Row]:
    """Return the properties of an object, each followed by those that it has itself."""
    root = schema if root is None else root
    whole = resolved(schema, root)
    properties = whole.get("properties")
    if not is_object(properties):
        return []
    required = whole.get("required")
    made: list[Row] = []
    for name, each in properties.items():
        if len(made) >= _MOST_ROWS:
            made.append(Row("…", depth, "", is_required=False, text="There are more than are shown here.", notes=""))
            break
        inner = resolved(each, root)
        is_required = is_array(required) and name in required
        text = inner.get("description") or inner.get("title")
        title = inner.get("title")
        text = "" if text == title and says_nothing(title, name) else text
        notes = "; ".join(constraints(each, root))
        made.append(Row(f"{before}{name}", depth, type_in_words(each, root), is_required, str(text or ""), notes))
        if depth < _DEEPEST - 1:
            made += rows(inner, before=".", root=root, depth=depth + 1)
            items = resolved(inner.get("items"), root)
            made += rows(items, before="[].", root=root, depth=depth + 1)
    return made
