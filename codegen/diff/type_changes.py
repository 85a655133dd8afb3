"""Compare two types: by arms, values or bounds if both are of one sort, otherwise as a whole."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.diff.model import Effect
from mcpgen.codegen.diff.schema_pair import PairedSchema, SchemaPair, typed
from mcpgen.codegen.diff.type_text import bounds_text, constant_text, type_text

__all__ = ["Difference", "TypeKind", "differences"]

TypeKind: TypeAlias = Literal[
    "type-changed", "arm-added", "arm-removed", "value-added", "value-removed", "bounds-changed"
]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two types, as text; None on the side that lacks it."""

    kind: TypeKind
    effect: Effect
    old: str | None = None
    new: str | None = None
    part: str = ""


def differences(schemas: SchemaPair, old: ir.TypeRef, new: ir.TypeRef, part: str = "") -> list[Difference]:
    """Return the differences from *old* to *new*, which are at *part* inside a type."""
    if schemas.alike(old, new):
        return []
    found = _inside(schemas, old, new, part)
    # Any other difference is clearest as a whole: `list[string]` became `list[integer]`.
    if found and all(each.kind != "type-changed" for each in found):
        return found
    old_words, new_words = type_text(schemas.old.schema, old), type_text(schemas.new.schema, new)
    return [
        Difference(kind="type-changed", effect=schemas.effect(old, new), old=old_words, new=new_words, part=part),
    ]


def _inside(schemas: SchemaPair, old: ir.TypeRef, new: ir.TypeRef, part: str) -> list[Difference]:
    """Return the differences inside two types of one sort, or nothing if their sorts differ."""
    match old, new:
        case (ir.Scalar(), ir.Scalar()) if old.kind == new.kind:
            return _bounds(schemas, old, new, part)
        case ir.Array(), ir.Array():
            before, after = (ir.Array(item=ir.Anything(), bounds=each.bounds) for each in (old, new))
            return _bounds(schemas, before, after, part) + differences(schemas, old.item, new.item, f"{part}[]")
        case ir.Mapping(), ir.Mapping():
            return differences(schemas, old.value, new.value, f"{part}{{}}")
        case ir.Fixed(), ir.Fixed():
            return _values(old, new, part)
        case _:
            return _arms(schemas, old, new, part)


def _bounds(schemas: SchemaPair, old: ir.Scalar | ir.Array, new: ir.Scalar | ir.Array, part: str) -> list[Difference]:
    if old.bounds == new.bounds:
        return []
    before, after = bounds_text(old.bounds), bounds_text(new.bounds)
    return [Difference(kind="bounds-changed", effect=schemas.effect(old, new), old=before, new=after, part=part)]


def _values(old: ir.Fixed, new: ir.Fixed, part: str) -> list[Difference]:
    """Return the added and removed values, or nothing if no value stayed."""
    before, after = typed(old.values), typed(new.values)
    if not before & after:
        return []
    removed = [constant_text(value) for _, value in before - after]
    added = [constant_text(value) for _, value in after - before]
    return [
        *(Difference(kind="value-removed", effect="narrowed", old=each, part=f"{part}[{each}]") for each in removed),
        *(Difference(kind="value-added", effect="widened", new=each, part=f"{part}[{each}]") for each in added),
    ]


def _arms(schemas: SchemaPair, old: ir.TypeRef, new: ir.TypeRef, part: str) -> list[Difference]:
    """Return the added and removed arms, or nothing if no arm stayed or one type is not a union."""
    before, after, shared = _left_over(schemas, old, new)
    found: list[Difference] = []
    for arm, other in _counterparts(before, after):
        before.remove(arm)
        after.remove(other)
        found += differences(schemas, arm, other, part)
        shared += 1
    if not shared or len(schemas.old.arms(old)) == 1 or len(schemas.new.arms(new)) == 1:
        return []
    for arm in before:
        text = type_text(schemas.old.schema, arm)
        effect: Effect = "same" if schemas.new_admits(new, arm) else "narrowed"
        found.append(Difference(kind="arm-removed", effect=effect, old=text, part=f"{part}[{text}]"))
    for arm in after:
        text = type_text(schemas.new.schema, arm)
        effect = "same" if schemas.old_admits(old, arm) else "widened"
        found.append(Difference(kind="arm-added", effect=effect, new=text, part=f"{part}[{text}]"))
    return list(dict.fromkeys(found))  # a union, and one inside it, may have the same arm


def _left_over(schemas: SchemaPair, old: ir.TypeRef, new: ir.TypeRef) -> tuple[list[ir.TypeRef], list[ir.TypeRef], int]:
    """Return the arms of each side that the other lacks, and the number of shared arms.

    An arm that refers to a union is replaced by the union's arms only if the other side lacks the reference.
    """
    before, after = [*schemas.old.arms(old)], [*schemas.new.arms(new)]
    opened_old, opened_new = _names(old), _names(new)
    shared = 0
    while True:
        alike = [(arm, other) for arm in before for other in after if schemas.alike(arm, other)]
        shared += len(alike)
        before = [arm for arm in before if all(arm is not each for each, _ in alike)]
        after = [arm for arm in after if all(arm is not each for _, each in alike)]
        opened = _open(schemas.old, before, opened_old), _open(schemas.new, after, opened_new)
        if not any(opened):
            return before, after, shared


def _open(side: PairedSchema, arms: list[ir.TypeRef], opened: set[str]) -> bool:
    """Replace the first arm that refers to a union by its arms; return whether there was one."""
    for index, arm in enumerate(arms):
        if isinstance(arm, ir.Named) and arm.name not in opened and (inner := side.arms(arm)) != (arm,):
            opened.add(arm.name)
            arms[index : index + 1] = [each for each in inner if each not in arms]
            return True
    return False


def _names(ref: ir.TypeRef) -> set[str]:
    return {ref.name} if isinstance(ref, ir.Named) else set()


def _counterparts(before: list[ir.TypeRef], after: list[ir.TypeRef]) -> list[tuple[ir.TypeRef, ir.TypeRef]]:
    """Pair the arms that are the only ones of their sort, such as two lists. References are not paired."""
    old, new = _by_sort(before), _by_sort(after)
    return [
        (old[sort][0], new[sort][0])
        for sort in sorted(old.keys() & new.keys())
        if len(old[sort]) == len(new[sort]) == 1
    ]


def _by_sort(arms: list[ir.TypeRef]) -> dict[str, list[ir.TypeRef]]:
    found: dict[str, list[ir.TypeRef]] = {}
    for arm in arms:
        match arm:
            case ir.Array() | ir.Mapping() | ir.Fixed():
                found.setdefault(type(arm).__name__, []).append(arm)
            case ir.Scalar(kind=kind):
                found.setdefault(kind, []).append(arm)
            case _:
                pass
    return found
