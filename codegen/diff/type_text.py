"""Types as short text for reports: ``string | integer``, ``list[ContentBlock]``, ``map[InputRequest]``."""

from __future__ import annotations

import json
from typing import assert_never

from mcpgen.codegen import ir

__all__ = ["bounds_text", "constant_text", "definition_text", "type_text"]

_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >=", "max_length": "length <="}


def type_text(schema: ir.Schema, ref: ir.TypeRef, *, inside: tuple[str, ...] = ()) -> str:
    """Return *ref* as text. An inline union is expanded, because its generated name means nothing to readers.

    Args:
        schema: The definitions that *ref* refers to.
        ref: The type.
        inside: The inline unions that are being expanded. A recursive union is shown by its name.
    """
    match ref:
        case ir.Anything() | ir.Nothing():
            return "any" if isinstance(ref, ir.Anything) else "absent"
        case ir.Scalar(kind=kind, bounds=bounds):
            return kind + _bounded(bounds)
        case ir.Fixed(values=values):
            return " | ".join(map(constant_text, values))
        case ir.Array(item=item, bounds=bounds):
            return f"list[{type_text(schema, item, inside=inside)}]{_bounded(bounds)}"
        case ir.Mapping(value=ir.Anything()):
            return "object"
        case ir.Mapping(value=value):
            return f"map[{type_text(schema, value, inside=inside)}]"
        case ir.Named(name=name):
            target = schema.definitions[name]
            if isinstance(target, ir.Alias) and target.anonymous and name not in inside:
                return type_text(schema, target.type, inside=(*inside, name))
            return name
        case ir.Union(arms=arms):
            return " | ".join(type_text(schema, arm, inside=inside) for arm in arms)
        case _:
            assert_never(ref)


def definition_text(schema: ir.Schema, definition: ir.Definition) -> str:
    """Return a definition as text: an object as its keys, with ``?`` if optional and with constant values."""
    if isinstance(definition, ir.Alias):
        return type_text(schema, definition.type, inside=(definition.name,))
    keys = [_key_text(each) for each in definition.properties]
    return "{" + ", ".join(keys + (["..."] if definition.unknown == "kept" else [])) + "}"


def constant_text(value: ir.Constant) -> str:
    """Return a constant as JSON."""
    return json.dumps(value, ensure_ascii=False)


def bounds_text(bounds: tuple[tuple[str, str | int | float], ...]) -> str:
    """Return bounds as text, ``>= 0, <= 1``, or ``unbounded``."""
    return ", ".join(_bound_text(keyword, value) for keyword, value in bounds) or "unbounded"


def _bound_text(keyword: str, value: str | float) -> str:
    return f"{_BOUNDS.get(keyword, keyword)} {json.dumps(value, ensure_ascii=False)}"


def _bounded(bounds: tuple[tuple[str, str | int | float], ...]) -> str:
    return f" ({bounds_text(bounds)})" if bounds else ""


def _key_text(each: ir.Property) -> str:
    if each.constant:
        return f"{each.wire}: {constant_text(each.constant.values[0])}"
    return each.wire if each.required else f"{each.wire}?"
