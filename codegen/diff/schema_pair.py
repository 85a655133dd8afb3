"""Two schemas with paired definitions: which types are alike, and which types accept the values of which.

Theory of operation. A difference is reported at the definition that contains it. So two types are *alike* if they refer
to the same definitions, even if these definitions changed. Two definitions are the same if they have the same name,
unless a rename says otherwise. A rename can free the old name for a new definition: ``JSONRPCResponse`` of 2025-11-25
is not the one of 2025-06-18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import msgspec

from mcpgen.codegen import ir

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcpgen.codegen.diff.model import Effect

__all__ = ["Body", "SchemaPair", "PairedSchema", "body", "typed"]

Body: TypeAlias = ir.TypeRef | ir.Object

# Limits for following names, because untrusted documents can nest and multiply definitions. MCP's documents need a
# tenth of them. A question that reaches a limit is answered with False.
_MOST_DEPTH = 60
_MOST_STEPS = 20_000


class PairedSchema(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two schemas.

    Attributes:
        schema: The definitions.
        partners: The other side's name for each definition that exists there.
    """

    schema: ir.Schema
    partners: dict[str, str]

    def arms(self, ref: ir.TypeRef) -> tuple[ir.TypeRef, ...]:
        """Return the arms of a union or of an alias of a union. Any other type counts as one arm."""
        if isinstance(ref, ir.Named) and isinstance(target := self.schema.definitions[ref.name], ir.Alias):
            return target.type.arms if isinstance(target.type, ir.Union) else (ref,)
        return ref.arms if isinstance(ref, ir.Union) else (ref,)


class SchemaPair:
    """Two schemas, some of whose definitions correspond."""

    def __init__(self, old: ir.Schema, new: ir.Schema, renames: Mapping[str, str]) -> None:
        """Pair the definitions by *renames* (old name to new name), then by name."""
        taken = set(renames.values())
        partners = {name: name for name in old.definitions if name in new.definitions and name not in taken}
        partners |= renames
        self.old: PairedSchema = PairedSchema(schema=old, partners=partners)
        self.new: PairedSchema = PairedSchema(
            schema=new, partners={after: before for before, after in partners.items()}
        )

    def alike(self, old: ir.TypeRef, new: ir.TypeRef) -> bool:
        """Whether two types are equal; the order of arms and values does not matter."""
        match old, new:
            case ir.Named(), ir.Named():
                return self.old.partners.get(old.name) == new.name
            case ir.Fixed(), ir.Fixed():
                return typed(old.values) == typed(new.values)
            case ir.Array(), ir.Array():
                return old.bounds == new.bounds and self.alike(old.item, new.item)
            case ir.Mapping(), ir.Mapping():
                return self.alike(old.value, new.value)
            case ir.Union(), ir.Union():
                return all(any(self.alike(arm, other) for other in new.arms) for arm in old.arms) and all(
                    any(self.alike(arm, other) for arm in old.arms) for other in new.arms
                )
            case _:
                return old == new

    def effect(self, old: Body, new: Body) -> Effect:
        """Return how the set of valid values changed from *old* to *new*."""
        widened, narrowed = self.new_admits(new, old), self.old_admits(old, new)
        if widened and narrowed:
            return "same"
        return "widened" if widened else "narrowed" if narrowed else "changed"

    def new_admits(self, new: Body, old: Body) -> bool:
        """Whether *new*, of the new schema, certainly accepts all values of *old*, of the old schema."""
        return _Containment(self.new, self.old).admits(new, old)

    def old_admits(self, old: Body, new: Body) -> bool:
        """Whether *old*, of the old schema, certainly accepts all values of *new*, of the new schema."""
        return _Containment(self.old, self.new).admits(old, new)


class _Containment:
    """Decide whether a type of *wide* accepts every value of a type of *narrow*; False if in doubt."""

    def __init__(self, wide: PairedSchema, narrow: PairedSchema) -> None:
        self._wide = wide
        self._narrow = narrow
        self._assumed: set[tuple[str, str]] = set()
        self._steps = 0
        self._depth = 0

    def admits(self, wide: Body, narrow: Body) -> bool:
        self._steps += 1
        if self._steps > _MOST_STEPS or self._depth > _MOST_DEPTH:
            return False
        self._depth += 1
        try:
            return self._admits(wide, narrow)
        finally:
            self._depth -= 1

    def _admits(self, wide: Body, narrow: Body) -> bool:
        # A name is followed last, because the other side may have the same definition.
        match wide, narrow:
            case (ir.Anything(), _) | (_, ir.Nothing()):
                return True
            case ir.Named(), ir.Named():
                return self._names_admit(wide, narrow)
            case _, ir.Union(arms=arms):
                return all(self.admits(wide, arm) for arm in arms)
            case _, ir.Named(name=name) if not isinstance(held := body(self._narrow.schema, name), ir.Object):
                return self.admits(wide, held)
            case ir.Union(arms=arms), _:
                return any(self.admits(arm, narrow) for arm in arms)
            case ir.Named(name=name), _:
                return self.admits(body(self._wide.schema, name), narrow)
            case _, ir.Named(name=name):
                return self.admits(wide, body(self._narrow.schema, name))
            case _:
                return self._structure_admits(wide, narrow)

    def _structure_admits(self, wide: Body, narrow: Body) -> bool:
        """Decide for two types that are neither names nor unions."""
        match wide, narrow:
            case (ir.Object() | ir.Mapping(), ir.Object() | ir.Mapping()):
                return self._keys_admit(wide, narrow)
            case ir.Array(), ir.Array():
                return _bounds_admit(wide.bounds, narrow.bounds) and self.admits(wide.item, narrow.item)
            case ir.Fixed(), ir.Fixed():
                return typed(narrow.values) <= typed(wide.values)
            case ir.Scalar(), ir.Fixed(values=values):
                return not wide.bounds and all(_kind_admits(wide.kind, _KINDS[type(value)]) for value in values)
            case ir.Scalar(), ir.Scalar():
                return _kind_admits(wide.kind, narrow.kind) and _bounds_admit(wide.bounds, narrow.bounds)
            case _:
                return False

    def _names_admit(self, wide: ir.Named, narrow: ir.Named) -> bool:
        if self._narrow.partners.get(narrow.name) == wide.name or (wide.name, narrow.name) in self._assumed:
            return True
        # Types can be recursive. The claim being proven may be assumed further inside, and only there.
        self._assumed.add((wide.name, narrow.name))
        held, opened = body(self._narrow.schema, narrow.name), body(self._wide.schema, wide.name)
        if not isinstance(held, ir.Object):
            found = self.admits(wide, held)
        elif not isinstance(opened, ir.Object):
            found = self.admits(opened, narrow)
        else:
            found = self.admits(opened, held)
        self._assumed.discard((wide.name, narrow.name))
        return found

    def _keys_admit(self, wide: ir.Object | ir.Mapping, narrow: ir.Object | ir.Mapping) -> bool:
        """Whether *wide* accepts the objects of *narrow*. An object that drops unknown keys counts as having none."""
        ours, theirs = _properties(wide), _properties(narrow)
        if any(each.required and not (wire in theirs and theirs[wire].required) for wire, each in ours.items()):
            return False
        others, unknown = _rest(wide), _rest(narrow)
        if unknown is not None and (others is None or not self.admits(others, unknown)):
            return False
        for wire in sorted({*ours, *theirs}):
            held = theirs[wire].type if wire in theirs else unknown
            admitted = ours[wire].type if wire in ours else others
            if held is not None and (admitted is None or not self.admits(admitted, held)):
                return False
        return True


def body(schema: ir.Schema, name: str) -> Body:
    """Return the definition *name*: an object, or the type of an alias."""
    target = schema.definitions[name]
    return target if isinstance(target, ir.Object) else target.type


def _properties(holder: ir.Object | ir.Mapping) -> dict[str, ir.Property]:
    return {each.wire: each for each in holder.properties} if isinstance(holder, ir.Object) else {}


def _rest(holder: ir.Object | ir.Mapping) -> ir.TypeRef | None:
    """Return the type of unknown keys, or None if they are not kept."""
    if isinstance(holder, ir.Mapping):
        return holder.value
    return ir.Anything() if holder.unknown == "kept" else None


_KINDS: dict[type, ir.ScalarKind] = {bool: "boolean", int: "integer", str: "string", type(None): "null"}


def typed(values: Iterable[ir.Constant]) -> set[tuple[type, ir.Constant]]:
    """Return *values* with their types, so that 1 and true differ."""
    return {(type(value), value) for value in values}


def _kind_admits(wide: ir.ScalarKind, narrow: ir.ScalarKind) -> bool:
    return wide == narrow or (wide == "number" and narrow == "integer")


def _bounds_admit(
    wide: Iterable[tuple[str, str | int | float]], narrow: Iterable[tuple[str, str | int | float]]
) -> bool:
    """Whether every value within the bounds *narrow* is within the bounds *wide*."""
    given = dict(narrow)
    return all(_bound_admits(keyword, limit, given) for keyword, limit in wide)


def _bound_admits(keyword: str, limit: str | float, given: Mapping[str, str | int | float]) -> bool:
    if isinstance(limit, str):
        return given.get(keyword) == limit  # patterns are only compared for equality
    direction, inclusive, strict = _STRICTER[keyword]
    margins = [
        (key, direction * (number - limit)) for key in (inclusive, strict) if _is_number(number := given.get(key))
    ]
    return any(margin > 0 or (margin == 0 and (key == strict or keyword == inclusive)) for key, margin in margins)


def _is_number(value: str | float | None) -> TypeGuard[int | float]:
    return isinstance(value, (int, float))


# For each bound: whether larger (1) or smaller (-1) is stricter, and the two bounds that can imply it.
_STRICTER = {
    "ge": (1, "ge", "gt"),
    "gt": (1, "ge", "gt"),
    "le": (-1, "le", "lt"),
    "lt": (-1, "le", "lt"),
    "min_length": (1, "min_length", ""),
    "max_length": (-1, "max_length", ""),
}
