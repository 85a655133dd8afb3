"""Constants of a schema: their JSON type, their bounds, and the presets of required keys."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.keywords import INT64, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["json_type", "json_types", "keeps", "preset_findings"]

_JSON_TYPES: dict[type, ir.ScalarKind] = {bool: "boolean", int: "integer", str: "string", type(None): "null"}


def json_type(value: ir.Constant) -> ir.ScalarKind:
    """Return the JSON type of a constant."""
    return _JSON_TYPES[type(value)]


def json_types(value: ir.Constant) -> set[str]:
    """Return the JSON types that accept a constant: an integer is also a number."""
    kind = json_type(value)
    return {kind, "number"} if kind == "integer" else {kind}


# By keyword of msgspec.Meta. Patterns are not tested: some would keep Python busy for years.
_KEPT: dict[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "min_length": lambda value, bound: len(value) >= bound,
    "max_length": lambda value, bound: len(value) <= bound,
}


def keeps(value: ir.Constant, bounds: Sequence[tuple[str, str | int | float]]) -> bool:
    """Whether *value* satisfies *bounds*, the bounds of its own type; False if a pattern is among them."""
    return all(name in _KEPT and _KEPT[name](value, bound) for name, bound in bounds)


def preset_findings(schema: ir.Schema) -> Iterator[Diagnostic]:
    """Yield a finding for each preset of *schema* that its key does not accept.

    A preset is the ``default`` of a required key. The bindings fill it in on construction, so it must be valid.
    """
    for each in (key for target in schema.objects() for key in target.properties if key.preset is not None):
        if type(each.preset) is int and each.preset not in INT64:
            message = f"the default {shown(each.preset)} does not fit into 64 bits"
            yield Diagnostic(
                code="MG111", pointer=each.pointer, message=message, hint="Use a 64-bit default, or remove it."
            )
        elif not admits(schema, each.type, each.preset):
            message = (
                f"the default {shown(each.preset)}, which the bindings would fill in, is invalid or cannot be tested"
            )
            hint = "Correct or remove the default. The generator does not test a default against a `pattern`."
            yield Diagnostic(code="MG119", pointer=each.pointer, message=message, hint=hint)


def admits(schema: ir.Schema, ref: ir.TypeRef, value: ir.Constant) -> bool:
    """Whether *ref*, a type of *schema*, certainly accepts *value*."""
    kinds = json_types(value)
    pending, seen = [ref], set[str]()  # there can be exponentially many paths to a definition
    while pending:
        match pending.pop():
            case ir.Anything():
                return True
            case ir.Scalar(kind=kind, bounds=bounds) if kind in kinds and keeps(value, bounds):
                return True
            case ir.Fixed(values=values) if any(type(each) is type(value) and each == value for each in values):
                return True
            case ir.Union(arms=arms):
                pending += arms
            case ir.Named(name=name) if name not in seen:
                seen.add(name)
                target = schema.definitions[name]
                pending += [target.type] if isinstance(target, ir.Alias) else []
            case _:
                pass
    return False
