"""Which types of an extension are types of its base: a comparison apart from names and descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import ir

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Shared", "share"]

# Comparisons inside one pair of types. The largest pair of the official extensions needs 400.
_MOST_STEPS = 20_000


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of an extension, with the types of its base under their names.

    Attributes:
        schema: All definitions.
        imported: The definitions that are those of the base.
    """

    schema: ir.Schema
    imported: frozenset[str]


def share(own: ir.Schema, base: ir.Schema) -> Shared:
    """Return *own* with the classes of *base* in place of each equal type.

    A definition with the name and the structure of one of the base is imported. An inline type with the structure of a
    definition of the base is replaced by it. A definition with another name is another type, whatever its structure.
    """
    imported = {name for name in own.definitions if name in base.definitions and _equal(own, base, name, name)}
    renamed: dict[str, str] = {}
    for name, definition in own.definitions.items():
        if definition.anonymous and name not in imported and (partner := _partner(own, base, definition)):
            renamed[name] = partner
    found = {name: _with_names(each, renamed) for name, each in own.definitions.items() if name not in renamed}
    pending = [*renamed.values()]
    while pending:
        if (name := pending.pop()) not in found:
            found[name] = base.definitions[name]
            imported.add(name)
            pending += _mentioned(base.definitions[name])
    return Shared(schema=ir.Schema(definitions=dict(sorted(found.items()))), imported=frozenset(imported))


def _partner(own: ir.Schema, base: ir.Schema, definition: ir.Definition) -> str:
    """Return the definition of *base* with the structure of *definition*, or nothing; its inline types come last."""
    is_union = isinstance(definition, ir.Alias) and isinstance(definition.type, ir.Union)
    if not is_union and not (isinstance(definition, ir.Object) and definition.properties):
        return ""
    candidates = sorted(base.definitions.values(), key=lambda each: (each.anonymous, each.name))
    for each in candidates:
        fits = type(each) is type(definition) and _outline(each) == _outline(definition)
        # The name may already be that of another definition of the extension.
        taken = each.name in own.definitions and not _equal(own, base, each.name, each.name)
        needed = ((name, name) for name in _reached(base, each.name) if name in own.definitions)
        if fits and not taken and all(_equal(own, base, *pair) for pair in ((definition.name, each.name), *needed)):
            return each.name
    return ""


def _reached(schema: ir.Schema, name: str) -> set[str]:
    found: set[str] = set()
    pending = [name]
    while pending:
        if (each := pending.pop()) not in found:
            found.add(each)
            pending += _mentioned(schema.definitions[each])
    return found


def _outline(definition: ir.Definition) -> object:
    """Return what is equal for equal definitions and cheap to compare."""
    if isinstance(definition, ir.Object):
        return definition.unknown, sorted((each.wire, each.required) for each in definition.properties)
    return len(definition.type.arms) if isinstance(definition.type, ir.Union) else 0


def _mentioned(definition: ir.Definition) -> list[str]:
    types = [definition.type] if isinstance(definition, ir.Alias) else [each.type for each in definition.properties]
    return [name for each in types for name in ir.names(each)]


def _with_names(definition: ir.Definition, renamed: dict[str, str]) -> ir.Definition:
    """Return *definition* with other names in its references."""
    if isinstance(definition, ir.Alias):
        return msgspec.structs.replace(definition, type=_renamed(definition.type, renamed))
    properties = tuple(
        msgspec.structs.replace(each, type=_renamed(each.type, renamed)) for each in definition.properties
    )
    return msgspec.structs.replace(definition, properties=properties)


def _renamed(ref: ir.TypeRef, renamed: dict[str, str]) -> ir.TypeRef:
    match ref:
        case ir.Named(name=name):
            return ir.Named(name=renamed.get(name, name))
        case ir.Array(item=item):
            return msgspec.structs.replace(ref, item=_renamed(item, renamed))
        case ir.Mapping(value=value):
            return ir.Mapping(value=_renamed(value, renamed))
        case ir.Union(arms=arms):
            return ir.Union(arms=tuple(_renamed(arm, renamed) for arm in arms))
        case _:
            return ref


def _equal(own: ir.Schema, base: ir.Schema, name: str, partner: str) -> bool:
    """Whether the definition *name* of *own* has the structure of *partner* of *base*."""
    return _Comparison(own, base).definitions_equal(name, partner)


class _Comparison:
    """Compares types of two schemas. Types can be recursive: the claim being proven is assumed further inside."""

    def __init__(self, own: ir.Schema, base: ir.Schema) -> None:
        self._own = own
        self._base = base
        self._assumed: set[tuple[str, str]] = set()
        self._steps = 0

    def definitions_equal(self, name: str, partner: str) -> bool:
        if (name, partner) in self._assumed:
            return True
        self._assumed.add((name, partner))
        left, right = self._own.definitions[name], self._base.definitions[partner]
        if isinstance(left, ir.Object) and isinstance(right, ir.Object):
            return self._objects_equal(left, right)
        if isinstance(left, ir.Object):
            return isinstance(right, ir.Alias) and self._equal(ir.Named(name=name), right.type)
        return self._equal(left.type, ir.Named(name=partner) if isinstance(right, ir.Object) else right.type)

    def _objects_equal(self, left: ir.Object, right: ir.Object) -> bool:
        if _outline(left) != _outline(right):
            return False
        partners = {each.wire: each for each in right.properties}
        return all(self._equal(each.type, partners[each.wire].type) for each in left.properties)

    def _equal(self, left: ir.TypeRef, right: ir.TypeRef) -> bool:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return False
        match left, right:
            case ir.Named(), ir.Named():
                return self.definitions_equal(left.name, right.name)
            case ir.Named(), _:
                held = self._own.definitions[left.name]
                return isinstance(held, ir.Alias) and self._equal(held.type, right)
            case _, ir.Named():
                held = self._base.definitions[right.name]
                return isinstance(held, ir.Alias) and self._equal(left, held.type)
            case ir.Union(), ir.Union():
                return self._unions_equal(left.arms, right.arms)
            case ir.Array(), ir.Array():
                return left.bounds == right.bounds and self._equal(left.item, right.item)
            case ir.Mapping(), ir.Mapping():
                return self._equal(left.value, right.value)
            case ir.Fixed(), ir.Fixed():
                return _typed(left.values) == _typed(right.values)
            case _:
                return left == right

    def _unions_equal(self, left: Sequence[ir.TypeRef], right: Sequence[ir.TypeRef]) -> bool:
        """Whether the arms are equal, in any order."""
        if len(left) != len(right):
            return False
        pending = list(right)
        for arm in left:
            partner = next((each for each in pending if self._tried(arm, each)), None)
            if partner is None:
                return False
            pending.remove(partner)
        return True

    def _tried(self, left: ir.TypeRef, right: ir.TypeRef) -> bool:
        """Compare two types, and forget what was assumed if they differ."""
        assumed = set(self._assumed)
        if self._equal(left, right):
            return True
        self._assumed = assumed
        return False


def _typed(values: Sequence[ir.Constant]) -> set[tuple[type, ir.Constant]]:
    """Return *values* with their types, because 1 equals True in Python."""
    return {(type(each), each) for each in values}
