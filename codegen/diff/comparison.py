"""Compare two editions and return a `Diff`.

Definitions are paired first: by name, and by structure if only the name changed. Then each difference is reported once,
at the definition that contains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.diff.messages import compare_errors, compare_messages, holders
from mcpgen.codegen.diff.model import TURNED, Change, Diff, Effect, Site, change, sort_changes, subject
from mcpgen.codegen.diff.renames import find_renames
from mcpgen.codegen.diff.schema_pair import PairedSchema, SchemaPair, body
from mcpgen.codegen.diff.type_changes import differences
from mcpgen.codegen.diff.type_text import definition_text, type_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcpgen.codegen.diff.editions import Edition

__all__ = ["compare"]


def compare(old: Edition, new: Edition, *, renames: Mapping[str, str] | None = None) -> Diff:
    """Return the differences from *old* to *new*.

    Args:
        old: Either edition, not necessarily the older one: ``compare(b, a)`` equals ``mirrored(compare(a, b))``.
        new: The other edition.
        renames: New name by old name, for definitions whose name and structure both changed.

    Raises:
        ValueError: A name in *renames* does not exist, or two renames have the same new name.
    """
    declared = _checked(renames or {}, old.schema, new.schema)
    found = find_renames(old.schema, new.schema, declared)
    schemas = SchemaPair(old.schema, new.schema, found)
    uncompared: list[str] = []
    changes = [*_definitions(schemas, found), *compare_messages(schemas, old.methods, new.methods)]
    if old.era is None or new.era is None:
        uncompared.append("era")
    elif old.era != new.era:
        changes.append(change("era-changed", old=Site(name="era", shape=old.era), new=Site(name="era", shape=new.era)))
    if old.errors is None or new.errors is None:
        uncompared.append("errors")
    else:
        changes += compare_errors(old.errors, new.errors)
    if old.deprecated is None or new.deprecated is None:
        uncompared.append("deprecations")
    else:
        changes += _deprecations(schemas, old.deprecated, new.deprecated)
    changes = _with_holders(changes, holders(old.schema, old.methods), holders(new.schema, new.methods))
    return Diff(old=old.label, new=new.label, uncompared=tuple(uncompared), changes=sort_changes(changes))


def _checked(renames: Mapping[str, str], old: ir.Schema, new: ir.Schema) -> Mapping[str, str]:
    for name, other in renames.items():
        if name not in old.definitions or other not in new.definitions:
            raise ValueError(f"`renames` has {name} to {other}, but one of these definitions does not exist")
    if len(set(renames.values())) < len(renames):
        raise ValueError("`renames` gives the same new name twice")
    return renames


def _definitions(schemas: SchemaPair, renames: Mapping[str, str]) -> Iterator[Change]:
    """Yield which definitions were added, removed or renamed, and how the others changed."""
    old, new = schemas.old.schema.definitions, schemas.new.schema.definitions
    for name, one in old.items():
        partner = schemas.old.partners.get(name)
        if partner is not None:
            if name in renames:
                yield change(
                    "definition-renamed", old=_defined(schemas.old, one), new=_defined(schemas.new, new[partner])
                )
            yield from _compared(schemas, one, new[partner])
        if partner != name and name in new and _is_object(one) != _is_object(new[name]):
            yield _kind_change(schemas, one, new[name])  # another kind of definition took the name
        elif partner is None:
            yield change("definition-removed", old=_defined(schemas.old, one))
    for name, other in new.items():
        if name not in schemas.new.partners and (name not in old or _is_object(old[name]) == _is_object(other)):
            yield change("definition-added", new=_defined(schemas.new, other))


def _compared(schemas: SchemaPair, old: ir.Definition, new: ir.Definition) -> Iterator[Change]:
    """Yield how one definition changed, without its name."""
    match old, new:
        case ir.Object(), ir.Object():
            yield from _objects(schemas, old, new)
        case ir.Alias(), ir.Alias():
            sites = Site(name=old.name, pointer=old.pointer), Site(name=new.name, pointer=new.pointer)
            yield from _types(schemas, (sites[0], old.type), (sites[1], new.type))
        case _:
            yield _kind_change(schemas, old, new)


def _objects(schemas: SchemaPair, old: ir.Object, new: ir.Object) -> Iterator[Change]:
    if old.unknown != new.unknown:
        yield change(
            "unknown-keys-changed",
            old=Site(name=old.name, pointer=old.pointer, shape=old.unknown),
            new=Site(name=new.name, pointer=new.pointer, shape=new.unknown),
            effect="widened" if _OPENNESS.index(new.unknown) > _OPENNESS.index(old.unknown) else "narrowed",
        )
    before, after = ({each.wire: each for each in one.properties} for one in (old, new))
    for wire in sorted(before.keys() | after.keys()):
        one, other = before.get(wire), after.get(wire)
        if one is None and other is not None:
            effect = _appearance(other, unknown=old.unknown)
            yield change("key-added", new=_key(schemas.new, new, other), effect=effect)
        elif one is not None and other is None:
            effect = TURNED[_appearance(one, unknown=new.unknown)]
            yield change("key-removed", old=_key(schemas.old, old, one), effect=effect)
        elif one is not None and other is not None:
            sites = _key(schemas.old, old, one), _key(schemas.new, new, other)
            if one.required != other.required:
                effect = "narrowed" if other.required else "widened"
                yield change("requiredness-changed", old=sites[0], new=sites[1], effect=effect)
            bare = [msgspec.structs.replace(site, required=None) for site in sites]
            yield from _types(schemas, (bare[0], one.type), (bare[1], other.type))


def _appearance(key: ir.Property, *, unknown: str) -> Effect:
    """Return the effect of a new key on an object that treats unknown keys as *unknown* says."""
    if unknown == "kept":  # the object accepted the key before, with any value
        return "same" if isinstance(key.type, ir.Anything) and not key.required else "narrowed"
    return "changed" if key.required else "widened"


def _types(schemas: SchemaPair, old: tuple[Site, ir.TypeRef], new: tuple[Site, ir.TypeRef]) -> Iterator[Change]:
    """Yield the differences between the types at two sites."""
    for each in differences(schemas, old[1], new[1]):
        one, other = (
            msgspec.structs.replace(site, part=each.part, shape=shape) if shape is not None else None
            for site, shape in ((old[0], each.old), (new[0], each.new))
        )
        yield change(each.kind, old=one, new=other, effect=each.effect)


def _kind_change(schemas: SchemaPair, old: ir.Definition, new: ir.Definition) -> Change:
    effect = schemas.effect(body(schemas.old.schema, old.name), body(schemas.new.schema, new.name))
    sites = _defined(schemas.old, old), _defined(schemas.new, new)
    return change("definition-kind-changed", old=sites[0], new=sites[1], effect=effect)


def _followed(side: PairedSchema, name: str) -> str:
    """Return the other side's name of a definition, or of a key of one (``Tool.icons``)."""
    definition, dot, key = name.partition(".")
    return side.partners.get(definition, definition) + dot + key


def _deprecations(schemas: SchemaPair, old: frozenset[str], new: frozenset[str]) -> Iterator[Change]:
    """Yield the definitions and keys that are deprecated on one side only."""
    still = {_followed(schemas.old, name) for name in old}
    for name in sorted(new - still):
        yield change("definition-deprecated", new=Site(name=name, pointer=_pointer(schemas.new, name)))
    again = {_followed(schemas.new, name) for name in new}
    for name in sorted(old - again):
        yield change("definition-undeprecated", old=Site(name=name, pointer=_pointer(schemas.old, name)))


def _with_holders(changes: list[Change], old: dict[str, set[str]], new: dict[str, set[str]]) -> list[Change]:
    """Return *changes* with the messages that contain each changed definition."""
    found: list[Change] = []
    for each in changes:
        held: set[str] = set()
        if subject(each) in {"definition", "content"}:
            for site, labels in ((each.old, old), (each.new, new)):
                held |= labels.get(site.name, set()) if site else set()
        found.append(msgspec.structs.replace(each, affects=tuple(sorted(held))))
    return found


def _defined(side: PairedSchema, definition: ir.Definition) -> Site:
    shape = definition_text(side.schema, definition)
    return Site(name=definition.name, pointer=definition.pointer, shape=shape)


def _key(side: PairedSchema, holder: ir.Object, key: ir.Property) -> Site:
    shape = type_text(side.schema, key.type)
    return Site(name=holder.name, key=key.wire, pointer=key.pointer, shape=shape, required=key.required)


def _pointer(side: PairedSchema, name: str) -> str:
    return side.schema.definitions[name].pointer if name in side.schema.definitions else ""


def _is_object(definition: ir.Definition) -> bool:
    return isinstance(definition, ir.Object)


_OPENNESS = ("refused", "dropped", "kept")
