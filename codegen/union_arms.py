"""The arms of a union: simplify them, and name the inline ones."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec.structs import replace

from mcpgen.codegen import ir, names
from mcpgen.codegen.constants import json_type
from mcpgen.codegen.frontend import SchemaNode, SchemaObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def json_types_differ(arms: Sequence[ir.TypeRef]) -> bool:
    """Whether each JSON type has at most one arm. msgspec does not support two string types, two arrays and so on."""
    kinds: list[str] = []
    for arm in arms:
        match arm:
            case ir.Scalar(kind="number"):
                kinds += ["integer", "number"]
            case ir.Scalar(kind=kind):
                kinds.append(kind)
            case ir.Fixed(values=values):
                kinds += sorted({json_type(value) for value in values})
            case ir.Array():
                kinds.append("array")
            case ir.Mapping():
                kinds.append("object")
            case _:
                pass
    return len(kinds) == len(set(kinds))


def simplified(arms: Sequence[ir.TypeRef]) -> ir.TypeRef:
    """Return the union of *arms*: flat, without duplicates, and without an arm that another one contains."""
    every = (each for arm in arms for each in (arm.arms if isinstance(arm, ir.Union) else (arm,)))
    flat = list({repr(arm): arm for arm in every}.values())  # compared as text, because 1 == True
    if any(isinstance(arm, ir.Anything) for arm in flat):
        return ir.Anything()
    flat = [arm for arm in flat if not isinstance(arm, ir.Nothing)] or flat
    wide: set[str] = {arm.kind for arm in flat if isinstance(arm, ir.Scalar) and not arm.bounds}
    kept = [arm for arm in flat if not _is_contained(arm, wide)]
    if (fixed := [arm for arm in kept if isinstance(arm, ir.Fixed)]) and len(fixed) > 1:
        merged = [value for arm in fixed for value in arm.values]
        others = [arm for arm in kept if not isinstance(arm, ir.Fixed)]
        kept = [*(each for each in _fixed_arms(merged)), *others]
    return kept[0] if len(kept) == 1 else ir.Union(arms=tuple(kept))


def fixed_type(values: Sequence[ir.Constant]) -> ir.TypeRef:
    """Return the exact type for *values*: both booleans become the type boolean, and null a separate type."""
    arms = _fixed_arms(values)
    return arms[0] if len(arms) == 1 else ir.Union(arms=tuple(arms))


def _fixed_arms(values: Sequence[ir.Constant]) -> list[ir.TypeRef]:
    # Keyed by type too, because 1 == True in Python.
    distinct = list({(type(value), value): value for value in values}.values())
    plain = tuple(value for value in distinct if value is not None and not isinstance(value, bool))
    booleans = tuple(value for value in distinct if isinstance(value, bool))
    arms: list[ir.TypeRef] = []
    if plain:
        arms.append(ir.Fixed(values=plain))
    if booleans:
        arms.append(ir.Scalar(kind="boolean") if len(booleans) > 1 else ir.Fixed(values=booleans))
    if None in distinct:
        arms.append(ir.Scalar(kind="null"))
    return arms


def _is_contained(arm: ir.TypeRef, wide: set[str]) -> bool:
    """Whether an unbounded scalar type in *wide* accepts every value of *arm*."""
    match arm:
        case ir.Fixed(values=values):
            kinds = {json_type(value) for value in values}
            return all(kind in wide or (kind == "integer" and "number" in wide) for kind in kinds)
        case ir.Scalar(kind="integer", bounds=bounds):
            return "number" in wide or ("integer" in wide and bool(bounds))
        case ir.Scalar(kind=kind, bounds=bounds):
            return bool(bounds) and kind in wide
        case _:
            return False


def suffixes(arms: Sequence[SchemaNode]) -> list[str]:
    """Return a name suffix for each inline arm of a union, from its content and never from its position.

    The first of these that differs in all arms: the title; the constants; the constants with the required keys; with
    all keys; with all keys and the required keys of their objects. An array is named after the definitions that its
    items refer to.
    """
    inline = [
        (index, _flat(arm)) for index, arm in enumerate(arms) if isinstance(arm, SchemaObject) and _is_structured(arm)
    ]
    found: dict[int, str] = {}
    for describe in (_title, _constants, _constants_and_required, _constants_and_keys, _constants_and_inner_keys):
        found = {index: names.pascal("_".join(describe(arm))) for index, arm in inline}
        if all(found.values()) and len(set(found.values())) == len(found):
            break
    return [(found[index] or "Object") if index in found else "" for index in range(len(arms))]


def _flat(arm: SchemaObject) -> SchemaObject:
    """Return *arm* with the keys of the inline members of its `allOf`."""
    members = [each for each in arm.all_of if isinstance(each, SchemaObject) and not each.ref]
    properties = {key: node for each in (*members, arm) for key, node in (each.properties or {}).items()}
    required = frozenset[str]().union(arm.required, *(each.required for each in members))
    return replace(arm, properties=properties or arm.properties, required=required)


def _is_structured(arm: SchemaObject) -> bool:
    return not arm.ref and bool(arm.properties or arm.items or arm.all_of or arm.any_of)


def _title(arm: SchemaObject) -> list[str]:
    return [arm.title] if arm.title else []


def _constants(arm: SchemaObject) -> list[str]:
    fixed = [node.fixed for _, node in _inner(arm) if node.fixed is not None]
    return [str(values[0]) for values in fixed if len(values) == 1] + list(_mentioned(arm.items))


def _constants_and_required(arm: SchemaObject) -> list[str]:
    return _constants(arm) + sorted(arm.required)


def _constants_and_keys(arm: SchemaObject) -> list[str]:
    return _constants(arm) + sorted(arm.properties or {})


def _constants_and_inner_keys(arm: SchemaObject) -> list[str]:
    return _constants(arm) + [word for key, node in _inner(arm) for word in (key, *sorted(node.required))]


def _inner(arm: SchemaObject) -> Iterator[tuple[str, SchemaObject]]:
    pairs = sorted((arm.properties or {}).items(), key=lambda pair: pair[0])
    return ((key, node) for key, node in pairs if isinstance(node, SchemaObject))


def _mentioned(items: SchemaNode | None) -> Iterator[str]:
    """Yield the names of the definitions that *items*, those of an array, refer to."""
    if isinstance(items, SchemaObject):
        if items.ref:
            yield ref_name(items.ref)
        for arm in items.any_of:
            yield from _mentioned(arm)


def ref_name(ref: str) -> str:
    """Return the definition that a checked ``$ref`` names."""
    return unquote(ref.rsplit("/", 1)[-1]).replace("~1", "/").replace("~0", "~")
