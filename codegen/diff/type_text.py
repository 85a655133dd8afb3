"""Types in the words of a schema, for people: ``string | integer``, ``list[ContentBlock]``, ``map[InputRequest]``."""

from __future__ import annotations

import json
from typing import assert_never

from mcpgen.codegen import ir

__all__ = ["bounds_words", "constant_words", "definition_words", "words"]

_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >=", "max_length": "length <="}


def words(schema: ir.Schema, ref: ir.TypeRef, *, inside: tuple[str, ...] = ()) -> str:
    """Return *ref* in words; an inline union goes by what it holds, since nobody outside knows its name.

    Args:
        schema: Where the names in *ref* are defined.
        ref: The type.
        inside: The inline unions that are being spelt out: a recursive one goes by its name.
    """
    match ref:
        case ir.Anything():
            return "any"
        case ir.Scalar(kind=kind, bounds=bounds):
            return kind + _bounded(bounds)
        case ir.Fixed(values=values):
            return " | ".join(map(constant_words, values))
        case ir.Array(item=item, bounds=bounds):
            return f"list[{words(schema, item, inside=inside)}]{_bounded(bounds)}"
        case ir.Mapping(value=ir.Anything()):
            return "object"
        case ir.Mapping(value=value):
            return f"map[{words(schema, value, inside=inside)}]"
        case ir.Named(name=name):
            target = schema.definitions[name]
            if isinstance(target, ir.Alias) and target.anonymous and name not in inside:
                return words(schema, target.type, inside=(*inside, name))
            return name
        case ir.Union(arms=arms):
            return " | ".join(words(schema, arm, inside=inside) for arm in arms)
        case _:
            assert_never(ref)


def definition_words(schema: ir.Schema, definition: ir.Definition) -> str:
    """Return what a definition says: an object by its keys, with ``?`` where optional and constants by their value."""
    if isinstance(definition, ir.Alias):
        return words(schema, definition.type, inside=(definition.name,))
    keys = [_key_words(each) for each in definition.properties]
    return "{" + ", ".join(keys + (["..."] if definition.unknown == "kept" else [])) + "}"


def constant_words(value: ir.Constant) -> str:
    """Return a constant as JSON."""
    return json.dumps(value, ensure_ascii=False)


def bounds_words(bounds: tuple[tuple[str, str | int | float], ...]) -> str:
    """Return bounds in words, ``>= 0, <= 1``; ``unbounded`` where there are none."""
    return ", ".join(_bound_words(keyword, value) for keyword, value in bounds) or "unbounded"


def _bound_words(keyword: str, value: str | float) -> str:
    return f"{_BOUNDS.get(keyword, keyword)} {json.dumps(value, ensure_ascii=False)}"


def _bounded(bounds: tuple[tuple[str, str | int | float], ...]) -> str:
    return f" ({bounds_words(bounds)})" if bounds else ""


def _key_words(each: ir.Property) -> str:
    if each.constant:
        return f"{each.wire}: {constant_words(each.constant.values[0])}"
    return each.wire if each.required else f"{each.wire}?"
