"""What changed between two revisions: ``compare`` two editions, get a `Diff`.

``edition → names → kinship → definitions, messages, errors → Diff``: definitions are paired first, by name and by
structure where only the name changed; then each difference is reported once, where it is defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.claims import unfounded
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.diff_kinship import Kinship, Side, body
from mcpgen.codegen.diff_messages import compare_errors, compare_messages, holders
from mcpgen.codegen.diff_renames import find_renames
from mcpgen.codegen.diff_types import differences
from mcpgen.codegen.diff_values import TURNED, Change, Diff, Effect, Site, change, mirrored, sort_changes, subject
from mcpgen.codegen.diff_words import definition_words, words
from mcpgen.codegen.document import check_document
from mcpgen.codegen.methods import Method, Methods
from mcpgen.codegen.overlay import ErrorCode
from mcpgen.codegen.parse import parse
from mcpgen.codegen.unions import widen_json_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcpgen.codegen.build import Source

__all__ = ["Edition", "compare", "edition", "mirrored"]


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared of one revision.

    Attributes:
        schema: Its definitions, from the document with its overlay.
        methods: Its messages.
        era: None where nothing says it: a document tells neither its era nor its error codes nor what is deprecated.
        errors: The same.
        reserved_errors: The range of codes in which only those of *errors* may be used.
        deprecated: The same.
        findings: Warnings from reading the document.
    """

    label: str
    schema: ir.Schema
    methods: tuple[Method, ...]
    era: str | None = None
    errors: tuple[ErrorCode, ...] | None = None
    reserved_errors: tuple[int, int] | None = None
    deprecated: frozenset[str] | None = None
    findings: tuple[Diagnostic, ...] = ()


def edition(source: Source, *, vendored: bool) -> Edition:
    """Return the edition that *source* is; one that is not *vendored* has no overlay to tell its era and errors.

    Raises:
        Refused: The document has a construct that has no exact type, or the overlay speaks of what it does not have.
    """
    patched = source.patched()
    noticed = check_document(patched)
    if any(each.severity == "error" for each in noticed):
        raise Refused(noticed)
    schema = widen_json_value(parse(patched))
    reader = Methods(schema, source.overlay, source.shared)
    methods = tuple(reader.read())
    found = (*noticed, *reader.diagnostics, *unfounded(schema, methods, source.overlay, source.shared))
    if any(each.severity == "error" for each in found):
        raise Refused(found)
    known = Edition(
        label=source.revision,
        schema=schema,
        methods=methods,
        findings=found,
    )
    if not vendored:
        return known
    return msgspec.structs.replace(
        known,
        era=source.overlay.era,
        errors=(*source.shared.errors, *source.overlay.errors),
        reserved_errors=source.overlay.reserved_errors,
        deprecated=frozenset(name for each in source.overlay.deprecated for name in each.names),
    )


def compare(old: Edition, new: Edition, *, renames: Mapping[str, str] | None = None) -> Diff:
    """Return what changed from *old* to *new*.

    Args:
        old: Need not be the older one; ``compare(b, a)`` is ``mirrored(compare(a, b))``.
        new: The other one.
        renames: New name by old name, for definitions that changed more than their name and are still the same ones.

    Raises:
        ValueError: One of *renames* is not there on its side, or two of them have one new name.
    """
    declared = _checked(renames or {}, old.schema, new.schema)
    found = find_renames(old.schema, new.schema, declared)
    kinship = Kinship(old.schema, new.schema, found)
    uncompared: list[str] = []
    changes = [*_definitions(kinship, found), *compare_messages(kinship, old.methods, new.methods)]
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
        changes += _deprecations(kinship, old.deprecated, new.deprecated)
    changes = _with_holders(changes, holders(old.schema, old.methods), holders(new.schema, new.methods))
    return Diff(old=old.label, new=new.label, uncompared=tuple(uncompared), changes=sort_changes(changes))


def _checked(renames: Mapping[str, str], old: ir.Schema, new: ir.Schema) -> Mapping[str, str]:
    for name, other in renames.items():
        if name not in old.definitions or other not in new.definitions:
            raise ValueError(f"the rename of {name} to {other} matches nothing")
    if len(set(renames.values())) < len(renames):
        raise ValueError("two renames lead to one name")
    return renames


def _definitions(kinship: Kinship, renames: Mapping[str, str]) -> Iterator[Change]:
    """Yield what became of each definition, and how it changed."""
    old, new = kinship.old.schema.definitions, kinship.new.schema.definitions
    for name, one in old.items():
        partner = kinship.old.partners.get(name)
        if partner is not None:
            if name in renames:
                yield change(
                    "definition-renamed", old=_defined(kinship.old, one), new=_defined(kinship.new, new[partner])
                )
            yield from _compared(kinship, one, new[partner])
        if partner != name and name in new and _is_object(one) != _is_object(new[name]):
            yield _kind_change(kinship, one, new[name])  # the name was left to something else
        elif partner is None:
            yield change("definition-removed", old=_defined(kinship.old, one))
    for name, other in new.items():
        if name not in kinship.new.partners and (name not in old or _is_object(old[name]) == _is_object(other)):
            yield change("definition-added", new=_defined(kinship.new, other))


def _compared(kinship: Kinship, old: ir.Definition, new: ir.Definition) -> Iterator[Change]:
    """Yield how one definition changed, its name apart."""
    match old, new:
        case ir.Object(), ir.Object():
            yield from _objects(kinship, old, new)
        case ir.Alias(), ir.Alias():
            sites = Site(name=old.name, pointer=old.pointer), Site(name=new.name, pointer=new.pointer)
            yield from _types(kinship, (sites[0], old.type), (sites[1], new.type))
        case _:
            yield _kind_change(kinship, old, new)


def _objects(kinship: Kinship, old: ir.Object, new: ir.Object) -> Iterator[Change]:
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
            yield change("key-added", new=_key(kinship.new, new, other), effect=effect)
        elif one is not None and other is None:
            effect = TURNED[_appearance(one, unknown=new.unknown)]
            yield change("key-removed", old=_key(kinship.old, old, one), effect=effect)
        elif one is not None and other is not None:
            sites = _key(kinship.old, old, one), _key(kinship.new, new, other)
            if one.required != other.required:
                effect = "narrowed" if other.required else "widened"
                yield change("requiredness-changed", old=sites[0], new=sites[1], effect=effect)
            bare = [msgspec.structs.replace(site, required=None) for site in sites]
            yield from _types(kinship, (bare[0], one.type), (bare[1], other.type))


def _appearance(key: ir.Property, *, unknown: str) -> Effect:
    """Say what a new key does to the values of an object that did with unknown keys as *unknown* says."""
    if unknown == "kept":  # the key could be there before, with any value
        return "same" if isinstance(key.type, ir.Anything) and not key.required else "narrowed"
    return "changed" if key.required else "widened"


def _types(kinship: Kinship, old: tuple[Site, ir.TypeRef], new: tuple[Site, ir.TypeRef]) -> Iterator[Change]:
    """Yield the differences between the types at two sites."""
    for each in differences(kinship, old[1], new[1]):
        one, other = (
            msgspec.structs.replace(site, part=each.part, shape=shape) if shape is not None else None
            for site, shape in ((old[0], each.old), (new[0], each.new))
        )
        yield change(each.kind, old=one, new=other, effect=each.effect)


def _kind_change(kinship: Kinship, old: ir.Definition, new: ir.Definition) -> Change:
    effect = kinship.effect(body(kinship.old.schema, old.name), body(kinship.new.schema, new.name))
    sites = _defined(kinship.old, old), _defined(kinship.new, new)
    return change("definition-kind-changed", old=sites[0], new=sites[1], effect=effect)


def _followed(side: Side, name: str) -> str:
    """Return what the other side calls the definition *name*, or the key of one (``Tool.icons``)."""
    definition, dot, key = name.partition(".")
    return side.partners.get(definition, definition) + dot + key


def _deprecations(kinship: Kinship, old: frozenset[str], new: frozenset[str]) -> Iterator[Change]:
    """Yield the definitions that are deprecated on one side only."""
    still = {_followed(kinship.old, name) for name in old}
    for name in sorted(new - still):
        yield change("definition-deprecated", new=Site(name=name, pointer=_pointer(kinship.new, name)))
    again = {_followed(kinship.new, name) for name in new}
    for name in sorted(old - again):
        yield change("definition-undeprecated", old=Site(name=name, pointer=_pointer(kinship.old, name)))


def _with_holders(changes: list[Change], old: dict[str, set[str]], new: dict[str, set[str]]) -> list[Change]:
    """Return *changes* with the messages that hold each changed definition."""
    found: list[Change] = []
    for each in changes:
        held: set[str] = set()
        if subject(each) in {"definition", "content"}:
            for site, labels in ((each.old, old), (each.new, new)):
                held |= labels.get(site.name, set()) if site else set()
        found.append(msgspec.structs.replace(each, affects=tuple(sorted(held))))
    return found


def _defined(side: Side, definition: ir.Definition) -> Site:
    shape = definition_words(side.schema, definition)
    return Site(name=definition.name, pointer=definition.pointer, shape=shape)


def _key(side: Side, holder: ir.Object, key: ir.Property) -> Site:
    shape = words(side.schema, key.type)
    return Site(name=holder.name, key=key.wire, pointer=key.pointer, shape=shape, required=key.required)


def _pointer(side: Side, name: str) -> str:
    return side.schema.definitions[name].pointer if name in side.schema.definitions else ""


def _is_object(definition: ir.Definition) -> bool:
    return isinstance(definition, ir.Object)


_OPENNESS = ("refused", "dropped", "kept")
