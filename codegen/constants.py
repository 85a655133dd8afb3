"""Presets: what is filled in on construction has to be what the decoder of the same key accepts."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.keywords import INT64, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["json_type", "keeps", "preset_findings"]

_JSON_TYPES: dict[type, ir.ScalarKind] = {bool: "boolean", int: "integer", str: "string", type(None): "null"}


def json_type(value: ir.Constant) -> ir.ScalarKind:
    """Return the JSON type of a constant."""
    return _JSON_TYPES[type(value)]


# By keyword of msgspec.Meta. A pattern is not among them: there are some that Python would try to match for years.
_KEPT: dict[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "min_length": lambda value, bound: len(value) >= bound,
    "max_length": lambda value, bound: len(value) <= bound,
}


def keeps(value: ir.Constant, bounds: Sequence[tuple[str, str | int | float]]) -> bool:
    """Whether *value* is surely within *bounds*, which are those of its own type: of a pattern that is not known."""
    return all(name in _KEPT and _KEPT[name](value, bound) for name, bound in bounds)


def preset_findings(schema: ir.Schema) -> Iterator[Diagnostic]:
    """Yield each preset of *schema* that is not a value of its key: the bindings would write what is not valid."""
    for each in (key for target in schema.objects() for key in target.properties if key.preset is not None):
        if type(each.preset) is int and each.preset not in INT64:
            message = f"the default {shown(each.preset)} does not fit into 64 bits"
            yield Diagnostic(
                code="MG111", pointer=each.pointer, message=message, hint="Use a default of 64 bits, or none."
            )
        elif not admits(schema, each.type, each.preset):
            message = f"the default {shown(each.preset)} is not known to be valid here, where it is filled in"
            hint = "Correct the default, or leave it out; one beside a pattern is never tried."
            yield Diagnostic(code="MG119", pointer=each.pointer, message=message, hint=hint)


def admits(schema: ir.Schema, ref: ir.TypeRef, value: ir.Constant) -> bool:
    """Whether *value* is surely one of the values of *ref*, a type of *schema*."""
    kinds = {json_type(value), "number"} if json_type(value) == "integer" else {json_type(value)}
    pending, seen = [ref], set[str]()  # there may be exponentially many ways to a definition
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
