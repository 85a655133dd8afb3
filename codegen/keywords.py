"""The keywords of JSON Schema that are supported, and the shape that the value of each must have.

A keyword is here if msgspec can honour exactly what it says. Everything else is refused rather than ignored, unknown
keywords and ``x-`` extensions included: the front end gives meanings of its own to some of those.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeGuard

    from mcpgen.codegen.json_pointers import Json

__all__ = ["ANNOTATIONS", "CHECKS", "HINTS", "INT64", "ROOT_ONLY", "Fault", "bounds_faults", "shown"]

# They say nothing about which values are valid, so they may stand beside a $ref in every revision of JSON Schema.
ANNOTATIONS = frozenset({"title", "description", "$comment", "default", "examples", "deprecated"})

# They speak about the document, or would change what references mean; only its top may have them.
ROOT_ONLY = frozenset({"$schema", "$id", "definitions", "$defs"})

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")

# msgspec keeps integers of constants and bounds in 64 bits, signed.
INT64 = range(-(2**63), 2**63)

_LONGEST_SHOWN = 60


class Fault(NamedTuple):
    """What is wrong with the value of one keyword; ``at`` leads from the keyword to the place."""

    code: str
    message: str
    hint: str
    at: tuple[str | int, ...] = ()


def shown(value: Json) -> str:
    """Return *value* for a message: on one line, in ASCII, and not longer than a line."""
    text = repr(value) if isinstance(value, (str, int, float, bool)) or value is None else f"an {_kind(value)}"
    return text.encode("ascii", "backslashreplace").decode("ascii")[:_LONGEST_SHOWN]


def _kind(value: Json) -> str:
    return "array" if isinstance(value, list) else "object"


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Json) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault("MG102", f"{shown(value)} stands where a string is due", "Give a string.")


def _flag(value: Json) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield Fault("MG102", f"{shown(value)} stands where true or false is due", "Give true or false.")


def _list(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"{shown(value)} stands where an array is due", "Give an array.")


def _anything(_value: Json) -> Iterator[Fault]:
    yield from ()


def _object(value: Json) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault("MG102", f"{shown(value)} stands where an object is due", "Give an object: name to schema.")


def _properties(value: Json) -> Iterator[Fault]:
    yield from _object(value)
    for name in value if isinstance(value, dict) else ():
        if not name or any(character in '"\\' or character < " " for character in name):
            reason = "is empty" if not name else "holds a quotation mark, a backslash or a control character"
            hint = "Rename the property: msgspec cannot write such a key."
            yield Fault("MG204", f"the property name {shown(name)} {reason}", hint, (name,))


def _required(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"{shown(value)} stands where an array is due", "List the names of required properties.")
        return
    for index, name in enumerate(value):
        if not isinstance(name, str):
            yield Fault("MG102", f"{shown(name)} is not the name of a property", "List strings only.", (index,))


def _type(value: Json) -> Iterator[Fault]:
    if not isinstance(value, (str, list)):
        yield Fault("MG102", f"{shown(value)} is not a type", f"Use {', '.join(TYPES)}, or an array of them.")
        return
    names: list[Json] = [value] if isinstance(value, str) else value
    if not names:
        yield Fault("MG114", "`type` lists no type", "List at least one type, or leave the keyword out.")
    for index, name in enumerate(names):
        at = () if isinstance(value, str) else (index,)
        if not isinstance(name, str):
            yield Fault("MG102", f"{shown(name)} is not the name of a type", f"Use {', '.join(TYPES)}.", at)
        elif name not in TYPES:
            yield Fault("MG103", f"{shown(name)} is not a type of JSON Schema", f"Use {', '.join(TYPES)}.", at)


def _items(value: Json) -> Iterator[Fault]:
    if isinstance(value, list):
        hint = "Give one schema for all items; a schema for each position has no exact msgspec type."
        yield Fault("MG101", "`items` as an array of schemas is not supported", hint)


def _alternatives(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"{shown(value)} stands where an array of schemas is due", "Give an array of schemas.")
    elif not value:
        yield Fault("MG114", "there is no alternative", "Give at least one schema, or leave the keyword out.")


def _constant(value: Json) -> Iterator[Fault]:
    if isinstance(value, int) and value not in INT64:
        yield Fault("MG111", f"{shown(value)} does not fit into 64 bits", "Use an integer of 64 bits, or a string.")
    elif not isinstance(value, (str, int)) and value is not None:
        hint = "Constants can be strings, integers, booleans or null."
        yield Fault("MG110", f"{shown(value)} cannot be a constant", hint)


def _enum(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"{shown(value)} stands where an array of values is due", "List the values.")
        return
    if not value:
        yield Fault("MG114", "`enum` lists no value", "List at least one value, or leave the keyword out.")
    for index, member in enumerate(value):
        yield from (fault._replace(at=(index,)) for fault in _constant(member))


def _bound(value: Json) -> Iterator[Fault]:
    if not _is_number(value):
        yield Fault("MG102", f"{shown(value)} stands where a number is due", "Give a number.")
    elif not INT64.start <= value < INT64.stop:
        yield Fault("MG111", f"{shown(value)} does not fit into 64 bits", "Use a bound of 64 bits, or none.")


def _exclusive_minimum(value: Json) -> Iterator[Fault]:
    yield from _bound(value)
    # msgspec adds 1 to an exclusive bound, and the sum has to fit.
    if _is_number(value) and value == INT64[-1]:
        yield Fault("MG111", f"no integer of 64 bits is greater than {shown(value)}", "Use a smaller bound, or none.")


def _exclusive_maximum(value: Json) -> Iterator[Fault]:
    yield from _bound(value)
    if _is_number(value) and value == INT64[0]:
        yield Fault("MG111", f"no integer of 64 bits is less than {shown(value)}", "Use a greater bound, or none.")


def _length(value: Json) -> Iterator[Fault]:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        yield Fault("MG102", f"{shown(value)} stands where a length is due", "Give an integer that is 0 or more.")
    elif value not in INT64:
        yield Fault("MG111", f"{shown(value)} does not fit into 64 bits", "Use a shorter length, or none.")


# Escapes and classes of characters, each as a whole; which of them ECMA-262 reads otherwise; and of what is left, what
# it does not have: flags, comments, conditions, names with P, atomic groups, possessive quantifiers.
_PATTERN_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_READ_OTHERWISE = ("\\A", "\\Z", "[]", "[^]")
_PYTHONS_OWN = re.compile(r"\(\?(?:[P#>(]|[aiLmsux-]+[:)])|(?:[*+?]|\{\d*,?\d*\})\+")


def _pattern(value: Json) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield from _text(value)
        return
    try:
        with warnings.catch_warnings():
            # "[[a]" warns that its meaning may change; the bindings would warn on every import.
            warnings.simplefilter("error")
            re.compile(value)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        message = f"{shown(value)} is no regular expression to Python: {str(error)[:_LONGEST_SHOWN]}"
        yield Fault("MG115", message, "Use the syntax that ECMA-262 and Python share.")
        return
    parts = _PATTERN_PARTS.findall(value)
    plain = "".join(part if len(part) == 1 else "x" for part in parts)
    if any(part.startswith(_READ_OTHERWISE) for part in parts) or _PYTHONS_OWN.search(plain):
        message = f"{shown(value)} says something in Python that it does not say in ECMA-262"
        yield Fault("MG115", message, "Use the syntax that ECMA-262 and Python share.")


def _property_names(value: Json) -> Iterator[Fault]:
    if value != {"type": "string"}:
        hint = 'Leave it out: only {"type": "string"}, which is always true, is taken.'
        yield Fault("MG101", "`propertyNames` restricts the keys", hint)


CHECKS: dict[str, Callable[[Json], Iterator[Fault]]] = {
    "$comment": _text,
    "$defs": _object,
    "$id": _text,
    "$ref": _text,
    "$schema": _text,
    # Draft-07 lets it speak only beside an array of `items`, which is refused; later revisions do not have it.
    "additionalItems": _anything,
    "additionalProperties": _anything,  # a schema or a boolean: the walk sees to that, here and for `items`
    "allOf": _alternatives,
    "anyOf": _alternatives,
    "const": _constant,
    "default": _anything,
    "definitions": _object,
    "deprecated": _flag,
    "description": _text,
    "enum": _enum,
    "examples": _list,
    "exclusiveMaximum": _exclusive_maximum,
    "exclusiveMinimum": _exclusive_minimum,
    "format": _text,  # an annotation in both dialects, unless a validator is told otherwise
    "items": _items,
    "maxItems": _length,
    "maxLength": _length,
    "maximum": _bound,
    "minItems": _length,
    "minLength": _length,
    "minimum": _bound,
    "pattern": _pattern,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "title": _text,
    "type": _type,
}

# What to write instead of the keywords that people reach for; for others there is nothing better than leaving them out.
HINTS = {
    "oneOf": "Use anyOf: where the alternatives exclude each other it means the same.",
    "nullable": 'Add "null" to the type: `nullable` is OpenAPI, not JSON Schema.',
    "prefixItems": "Give one schema for all items; a schema for each position has no exact msgspec type.",
    "patternProperties": "Use additionalProperties: msgspec has no keys by pattern.",
    "$dynamicRef": "Use $ref.",
    "$recursiveRef": "Use $ref.",
}

_PAIRS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("exclusiveMinimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "maximum"),
    ("minimum", "exclusiveMaximum"),
)
_TWICE = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


def bounds_faults(schema: dict[str, Json]) -> Iterator[Fault]:
    """Yield what is wrong between the bounds of *schema*; ``at`` leads from the schema itself."""
    for low, high in _PAIRS:
        lower, upper = schema.get(low), schema.get(high)
        if not (_is_number(lower) and _is_number(upper)):
            continue
        empty = lower >= upper if "exclusive" in low + high else lower > upper
        if empty:
            message = f"{low} {shown(lower)} and {high} {shown(upper)} leave no value"
            yield Fault("MG112", message, "Correct one of the bounds.", (low,))
    for plain, exclusive in _TWICE:
        if plain in schema and exclusive in schema:
            hint = "Keep the narrower one: msgspec takes one bound in each direction."
            yield Fault("MG112", f"{plain} and {exclusive} are both given", hint, (exclusive,))
