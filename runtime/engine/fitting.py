"""Whether what a user filled in fits the form: the part of JSON Schema that forms have.

Spec:
    2025-06-18, client/elicitation, "Requested Schema"; 2025-11-25 and 2026-07-28, the same, and "Security
    Considerations": both sides SHOULD validate the content against the schema.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mcpgen.runtime.adapting.pointers import is_array, is_object, pointer_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["misfit"]


def misfit(content: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the pointer to what does not fit, and why; None if all does. Members that nobody asked for pass."""
    missing = [name for name in schema.get("required", ()) if name not in content]
    if missing:
        return "", f"{missing[0]!r} is missing"
    for name, each in schema.get("properties", {}).items():
        reason = _wrong(content[name], each) if name in content else None
        if reason is not None:
            return pointer_to((name,)), reason
    return None


def _wrong(value: Any, schema: Mapping[str, Any]) -> str | None:
    check = _CHECKS.get(schema.get("type", ""))
    if check is None:
        return None
    fits, rules = check
    if not fits(value):
        return f"it is not {'an' if schema['type'][0] in 'aio' else 'a'} {schema['type']}"
    return rules(value, schema)


def _text(value: Any, schema: Mapping[str, Any]) -> str | None:
    allowed = _choices(schema)
    if allowed is not None and value not in allowed:
        return f"it is none of {', '.join(map(str, allowed))}"
    return _length(len(value), schema, "minLength", "maxLength")


def _number(value: Any, schema: Mapping[str, Any]) -> str | None:
    if value < schema.get("minimum", -math.inf):
        return f"it is less than {schema['minimum']}"
    if value > schema.get("maximum", math.inf):
        return f"it is more than {schema['maximum']}"
    return None


def _several(value: Any, schema: Mapping[str, Any]) -> str | None:
    allowed = _choices(schema.get("items", {}))
    strange = [each for each in value if not isinstance(each, str) or (allowed is not None and each not in allowed)]
    if strange:
        return "one of its items is none of the choices"
    return _length(len(value), schema, "minItems", "maxItems")


def _length(length: int, schema: Mapping[str, Any], least: str, most: str) -> str | None:
    if length < schema.get(least, 0):
        return f"it is shorter than {schema[least]}"
    if length > schema.get(most, math.inf):
        return f"it is longer than {schema[most]}"
    return None


def _choices(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return what may be chosen, in whichever of the ways forms have to say so; None if anything may."""
    titled = schema.get("oneOf", schema.get("anyOf"))
    if is_array(titled):
        return [each.get("const") for each in titled if is_object(each)]
    listed = schema.get("enum")
    return listed if is_array(listed) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_CHECKS: dict[str, tuple[Callable[[Any], bool], Callable[[Any, Mapping[str, Any]], str | None]]] = {
    "string": (lambda value: isinstance(value, str), _text),
    "number": (_is_number, _number),
    "integer": (_is_whole, _number),
    "boolean": (lambda value: isinstance(value, bool), lambda _value, _schema: None),
    "array": (is_array, _several),
}
