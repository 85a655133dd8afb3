"""Find the conditions by which adapters recognise the arm of a union that a wire value belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from mcpgen.codegen import ir
from mcpgen.codegen.adapters.ops import Condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.codegen.adapters.known_keys import RevisionTypes

__all__ = ["conditions", "may_overlap", "same_sort"]

Sort: TypeAlias = Literal["object", "array", "string", "number", "boolean", "null"]

_SCALARS: dict[ir.ScalarKind, Sort] = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_CONSTANTS: dict[type, Sort] = {str: "string", bool: "boolean", int: "number", type(None): "null"}


def same_sort(one: ir.TypeRef, other: ir.TypeRef) -> bool:
    """Whether values of two types have the same JSON type. References are not followed and never match."""
    return not isinstance(one, ir.Named) and not isinstance(other, ir.Named) and _sort(one) == _sort(other)


def may_overlap(one: Condition, other: Condition) -> bool:
    """Whether one value can satisfy both conditions."""
    if one.sort != other.sort:
        return False
    ours, theirs = dict(one.constants), dict(other.constants)
    return all(set(ours[key]) & set(theirs[key]) for key in ours.keys() & theirs.keys())


def conditions(side: RevisionTypes, arms: Sequence[ir.TypeRef]) -> list[tuple[ir.TypeRef, Condition]]:
    """Return *arms*, each with its condition, in the order in which adapters try them: the strictest first.

    Two arms may have the same required keys while one has more optional keys. That arm is tried first, if one of these
    keys is present. Arms that only differ deeper inside cannot be distinguished: the first in the schema's order is
    used.
    """
    plain = [_condition(side, arm) for arm in arms]
    found = [
        (arm, each if _has_rival(each, plain) else replace(each, keys=()))
        for arm, each in zip(arms, plain, strict=True)
    ]
    found.sort(key=lambda each: -_demands(each[1]))
    optional = [_optional(side, arm) for arm, _ in found]
    distinct: list[tuple[ir.TypeRef, Condition]] = []
    bare: list[tuple[ir.TypeRef, Condition]] = []
    last: list[tuple[ir.TypeRef, Condition]] = []
    for (arm, condition), keys in zip(found, optional, strict=True):
        rivals = [others for (_, other), others in zip(found, optional, strict=True) if other == condition]
        extra = keys.difference(*(each for each in rivals if each is not keys))
        if len(rivals) > 1 and extra:
            distinct.append((arm, replace(condition, some_of=tuple(sorted(extra)))))
            last.append((arm, condition))
        elif len(rivals) > 1:
            bare.append((arm, condition))
        else:
            distinct.append((arm, condition))
    bare.sort(key=lambda each: -len(_optional(side, each[0])))  # the arm with the most optional keys first
    return distinct + bare + last


def _has_rival(one: Condition, others: Sequence[Condition]) -> bool:
    return any(other is not one and may_overlap(one, other) for other in others)


def _condition(side: RevisionTypes, arm: ir.TypeRef) -> Condition:
    target = side.schema.resolve(arm)
    if not isinstance(target, ir.Object):
        return Condition(sort=_sort(target))
    required = [each for each in target.properties if each.required]
    constants = tuple(
        (each.wire, fixed.values) for each in required if isinstance(fixed := side.schema.resolve(each.type), ir.Fixed)
    )
    fixed_keys = {key for key, _ in constants}
    return Condition(
        sort="object", constants=constants, keys=tuple(each.wire for each in required if each.wire not in fixed_keys)
    )


def _optional(side: RevisionTypes, arm: ir.TypeRef) -> set[str]:
    target = side.schema.resolve(arm)
    return {each.wire for each in target.properties if not each.required} if isinstance(target, ir.Object) else set()


def _demands(condition: Condition) -> int:
    return 2 * len(condition.constants) + len(condition.keys)


def _sort(ref: ir.TypeRef | ir.Object) -> Sort:
    match ref:
        case ir.Array():
            return "array"
        case ir.Scalar(kind=kind):
            return _SCALARS[kind]
        case ir.Fixed(values=values):
            return _CONSTANTS[type(values[0])]
        case _:
            return "object"
