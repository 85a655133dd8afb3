"""The supported keywords of JSON Schema, with a check of the value of each.

A keyword is supported if msgspec can enforce it exactly. All others are refused, not ignored. This includes unknown
keywords and ``x-`` extensions, because the front end gives some of these a meaning of its own.
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

# Annotations do not affect validation, so every revision of JSON Schema allows them beside a $ref.
ANNOTATIONS = frozenset({"title", "description", "$comment", "default", "examples", "deprecated"})

# These describe the document or change the target of references, so only the root of the document may have them.
ROOT_ONLY = frozenset({"$schema", "$id", "definitions", "$defs"})

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")

# msgspec stores integer constants and bounds as signed 64-bit integers.
INT64 = range(-(2**63), 2**63)

_LONGEST_SHOWN = 60


class Fault(NamedTuple):
    """A fault in the value of one keyword; ``at`` is the path from the keyword to the fault."""

    code: str
    message: str
    hint: str
    at: tuple[str | int, ...] = ()


def shown(value: Json) -> str:
    """Return *value* as short ASCII text on one line, for a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, (str, int, float)) else f"an {_kind(value)}"
    return text.encode("ascii", "backslashreplace").decode("ascii")[:_LONGEST_SHOWN]


def _kind(value: Json) -> str:
    return "array" if isinstance(value, list) else "object"


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Json) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault("MG102", f"expected a string, but found {shown(value)}", "Use a string.")


def _flag(value: Json) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield Fault("MG102", f"expected true or false, but found {shown(value)}", "Use true or false.")


def _list(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"expected an array, but found {shown(value)}", "Use an array.")


def _anything(_value: Json) -> Iterator[Fault]:
    yield from ()


def _object(value: Json) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault(
            "MG102", f"expected an object, but found {shown(value)}", "Use an object that maps names to schemas."
        )


def _properties(value: Json) -> Iterator[Fault]:
    yield from _object(value)
    for name in value if isinstance(value, dict) else ():
        yield from _name(name, name)


def _name(name: str, at: str | int) -> Iterator[Fault]:
    if not name:
        hint = "Give the property a name: the bindings form the name of its Python attribute from it."
        yield Fault("MG204", f"the property name {shown(name)} is empty", hint, (at,))
    elif any(character in '"\\' or character < " " for character in name):
        reason = "contains a quotation mark, a backslash or a control character"
        hint = "Rename the property: msgspec cannot encode such a key."
        yield Fault("MG204", f"the property name {shown(name)} {reason}", hint, (at,))


def _required(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"expected an array, but found {shown(value)}", "Use an array of property names.")
        return
    for index, name in enumerate(value):
        if not isinstance(name, str):
            yield Fault(
                "MG102", f"expected the name of a property, but found {shown(name)}", "Use only strings.", (index,)
            )
        else:  # a name that `properties` does not describe becomes a property, too
            yield from _name(name, index)


def _type(value: Json) -> Iterator[Fault]:
    if not isinstance(value, (str, list)):
        yield Fault(
            "MG102",
            f"expected the name of a type, but found {shown(value)}",
            f"Use {', '.join(TYPES)}, or an array of them.",
        )
        return
    names: list[Json] = [value] if isinstance(value, str) else value
    if not names:
        yield Fault("MG114", "`type` is an empty array", "Name at least one type, or remove `type`.")
    for index, name in enumerate(names):
        at = () if isinstance(value, str) else (index,)
        if not isinstance(name, str):
            yield Fault(
                "MG102", f"expected the name of a type, but found {shown(name)}", f"Use {', '.join(TYPES)}.", at
            )
        elif name not in TYPES:
            yield Fault("MG103", f"JSON Schema has no type {shown(name)}", f"Use {', '.join(TYPES)}.", at)


def _items(value: Json) -> Iterator[Fault]:
    if isinstance(value, list):
        hint = "Use one schema for all items: msgspec has no exact type for a schema per position."
        yield Fault("MG101", "`items` as an array of schemas is not supported", hint)


def _alternatives(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"expected an array of schemas, but found {shown(value)}", "Use an array of schemas.")
    elif not value:
        yield Fault("MG114", "the array of schemas is empty", "Give at least one schema, or remove the keyword.")


def _constant(value: Json) -> Iterator[Fault]:
    if isinstance(value, int) and value not in INT64:
        yield Fault("MG111", f"{shown(value)} does not fit into 64 bits", "Use a 64-bit integer or a string.")
    elif not isinstance(value, (str, int)) and value is not None:
        hint = "Use a string, an integer, a boolean or null."
        yield Fault("MG110", f"{shown(value)} cannot be a constant", hint)


def _enum(value: Json) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault("MG102", f"expected an array of values, but found {shown(value)}", "Use an array of values.")
        return
    if not value:
        yield Fault("MG114", "`enum` is an empty array", "List at least one value, or remove `enum`.")
    for index, member in enumerate(value):
        yield from (fault._replace(at=(index,)) for fault in _constant(member))


def _bound(value: Json) -> Iterator[Fault]:
    if not _is_number(value):
        yield Fault("MG102", f"expected a number, but found {shown(value)}", "Use a number.")
    elif not INT64.start <= value < INT64.stop:
        # Not "does not fit into 64 bits": as a float, 1e30 does. Bounds of integers and numbers have one range.
        message = f"the bound {shown(value)} is outside of the range of 64-bit integers"
        yield Fault("MG111", message, "Use a bound from -2**63 to 2**63 - 1, or remove it.")


def _exclusive_minimum(value: Json) -> Iterator[Fault]:
    yield from _bound(value)
    # msgspec adds 1 to an exclusive bound, and the sum must fit into 64 bits too.
    if _is_number(value) and value == INT64[-1]:
        yield Fault("MG111", f"no 64-bit integer is greater than {shown(value)}", "Use a smaller bound, or remove it.")


def _exclusive_maximum(value: Json) -> Iterator[Fault]:
    yield from _bound(value)
    if _is_number(value) and value == INT64[0]:
        yield Fault("MG111", f"no 64-bit integer is less than {shown(value)}", "Use a greater bound, or remove it.")


def _length(value: Json) -> Iterator[Fault]:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        yield Fault("MG102", f"expected a length, but found {shown(value)}", "Use an integer that is 0 or more.")
    elif value not in INT64:
        yield Fault("MG111", f"{shown(value)} does not fit into 64 bits", "Use a smaller length, or remove it.")


# _PATTERN_PARTS splits a pattern into escapes, character classes and single characters. ECMA-262 gives the parts in
# _READ_OTHERWISE another meaning. It has none of the syntax in _PYTHONS_OWN: flags, comments, conditions, names with P,
# atomic groups, possessive quantifiers. Both take time in proportion to a pattern, also to one with a comment of
# brackets that nothing closes, or with a brace before digits that is no quantifier.
_PATTERN_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\Z)|.", re.DOTALL)
_READ_OTHERWISE = ("\\A", "\\Z", "[]", "[^]")
_PYTHONS_OWN = re.compile(r"\(\?(?:[P#>(]|[aiLmsux-]+[:)])|(?:[*+?]|\{\d*(?:,\d*)?\})\+")


def _pattern(value: Json) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield from _text(value)
        return
    try:
        with warnings.catch_warnings():
            # Python warns that the meaning of "[[a]" may change. The bindings would warn at every import.
            warnings.simplefilter("error")
            re.compile(value)
    except Warning as error:
        message = f"{shown(value)} can get another meaning in a later Python: {str(error)[:_LONGEST_SHOWN]}"
        hint = r"In the character class, write \[ for [, \- for a second -, and one &, | or ~ instead of two."
        yield Fault("MG115", message, hint)
        return
    # ValueError: flags that contradict each other, or a number with more digits than Python converts.
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        message = f"{shown(value)} is not a regular expression in Python: {str(error)[:_LONGEST_SHOWN]}"
        yield Fault("MG115", message, "Use only syntax that ECMA-262 and Python share.")
        return
    parts = _PATTERN_PARTS.findall(value)
    plain = "".join(part if len(part) == 1 else "x" for part in parts)
    if any(part.startswith(_READ_OTHERWISE) for part in parts) or _PYTHONS_OWN.search(plain):
        message = f"{shown(value)} has syntax that ECMA-262 reads in another way than Python, or not at all"
        yield Fault("MG115", message, "Use only syntax that ECMA-262 and Python share.")


def _property_names(value: Json) -> Iterator[Fault]:
    if value != {"type": "string"}:
        hint = (
            'Remove it. The generator supports `propertyNames` only if it is {"type": "string"}, which every key '
            'satisfies, or if it lists the keys as constants, in an object with `"type": "object"` and without '
            "`properties`."
        )
        yield Fault("MG101", "`propertyNames` restricts the keys", hint)


CHECKS: dict[str, Callable[[Json], Iterator[Fault]]] = {
    "$comment": _text,
    "$defs": _object,
    "$id": _text,
    "$ref": _text,
    "$schema": _text,
    # In draft-07 it only has an effect beside an array of `items`, which is refused. Later drafts do not have it.
    "additionalItems": _anything,
    "additionalProperties": _anything,  # a schema or a boolean: schema_checks.py checks that, also for `items`
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
    "format": _text,  # by default an annotation, in draft-07 and in 2020-12
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

# Hints for common keywords that are not supported. Other keywords can only be removed.
HINTS = {
    "oneOf": "Use `anyOf`: it means the same if the alternatives exclude each other.",
    "nullable": 'Add "null" to the type: `nullable` is OpenAPI, not JSON Schema.',
    "prefixItems": "Use one schema for all items: msgspec has no exact type for a schema per position.",
    "patternProperties": "Use `additionalProperties`: msgspec cannot match keys by pattern.",
    "$dynamicRef": "Use `$ref`.",
    "$recursiveRef": "Use `$ref`.",
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
    """Yield the conflicts between the bounds of *schema*; ``at`` is the path from the schema."""
    for low, high in _PAIRS:
        lower, upper = schema.get(low), schema.get(high)
        if not (_is_number(lower) and _is_number(upper)):
            continue
        empty = lower >= upper if "exclusive" in low + high else lower > upper
        if empty:
            message = f"no value satisfies both `{low}` {shown(lower)} and `{high}` {shown(upper)}"
            yield Fault("MG112", message, "Correct one of the bounds.", (low,))
    for plain, exclusive in _TWICE:
        if plain in schema and exclusive in schema:
            hint = "Keep the narrower one: msgspec supports one lower and one upper bound."
            yield Fault("MG112", f"the schema has both `{plain}` and `{exclusive}`", hint, (exclusive,))
