"""Classify unions: which ones msgspec decodes by itself, and which ones need generated code.

msgspec decodes a union natively if its arms differ in JSON type, or if they are objects with different constants under
one key. Other unions of objects are *structural*: generated code finds the arm by the keys of the value. A value with
such a union, or with an open object whose known keys must be checked, is *settled* (checked again) after decoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.union_arms import json_types_differ

if TYPE_CHECKING:
    from collections.abc import Iterator

# Python's compiler recurses for each arm of `A | B | C` and fails before 3,000 arms. A number counts as two arms; a
# thousand numbers compile on Python 3.11 to 3.13. The largest official union, of any revision or draft, has 18.
MAX_ARMS = 1000


class Native(msgspec.Struct, frozen=True):
    """msgspec selects the arm by JSON type."""


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """msgspec selects one of *objects* by the constant of their key *tag*, and one of *rest* by JSON type."""

    tag: str
    objects: tuple[str, ...]
    rest: tuple[ir.TypeRef, ...]


class Structural(msgspec.Struct, frozen=True):
    """Generated code selects the arm by its keys, after decoding."""


Kind: TypeAlias = Native | Tagged | Structural


class Unions:
    """The unions of one schema, classified."""

    def __init__(self, schema: ir.Schema) -> None:
        self._schema = schema
        self.recursive: frozenset[str] = frozenset(alias.name for alias in schema.aliases() if self._leads_back(alias))
        self._leaves = self._find_leaves()
        self._arms: dict[str, list[ir.TypeRef]] = {}
        self._settled: dict[str, bool] = {}

    def kind(self, ref: ir.TypeRef) -> Kind:
        """Return how the arm of *ref* is selected; a type that is not a union counts as a union of one arm."""
        arms = self.arms(ref)
        objects = [arm.name for arm in arms if isinstance(arm, ir.Named) and not self._is_dict(arm)]
        rest = tuple(arm for arm in arms if not isinstance(arm, ir.Named) or self._is_dict(arm))
        dicts = sum(self._is_dict(arm) for arm in rest)
        if any(isinstance(arm, ir.Anything) for arm in arms):
            return Native() if len(arms) == 1 else Structural()
        if not json_types_differ(rest) or (dicts and len(objects) + dicts > 1):
            return Structural()
        if len(objects) <= 1:
            return Native()
        tag = self._tag(objects)
        return Tagged(tag=tag, objects=tuple(objects), rest=rest) if tag else Structural()

    def arms(self, ref: ir.TypeRef) -> list[ir.TypeRef]:
        """Return the arms of *ref* with aliases followed; objects stay references."""
        match ref:
            case ir.Named(name=name) if isinstance(alias := self._schema.definitions[name], ir.Alias):
                if name not in self._arms:  # each alias once: there can be exponentially many paths to it
                    self._arms[name] = self.arms(alias.type)
                return self._arms[name]
            case ir.Union(arms=arms):
                # By repr, because 1 == True.
                return list({repr(each): each for arm in arms for each in self.arms(arm)}.values())
            case _:
                return [ref]

    def is_swallowing(self, ref: ir.TypeRef) -> bool:
        """Whether *ref* is a recursive alias: msgspec decodes any value as one, so it hides the other arms."""
        while isinstance(ref, ir.Named) and isinstance(alias := self._schema.definitions[ref.name], ir.Alias):
            if ref.name in self.recursive:
                return True
            ref = alias.type
        return False

    def is_settled(self, ref: ir.TypeRef) -> bool:
        """Whether values of *ref* must be checked again after decoding.

        A closed object checks its own content.
        """
        match ref:
            case ir.Named(name=name):
                return self._name_is_settled(name)
            case ir.Union() if isinstance(self.kind(ref), Structural):
                return True
            case _:
                return any(self.is_settled(child) for child in ir.children(ref))

    def is_leaf(self, name: str) -> bool:
        """Whether values of the definition *name* hold no container that could become part of a reference cycle."""
        return name in self._leaves

    def _name_is_settled(self, name: str) -> bool:
        if name not in self._settled:
            target = self._schema.definitions[name]
            if isinstance(target, ir.Object):
                self._settled[name] = target.unknown == "kept"
            else:
                self._settled[name] = name in self.recursive  # the answer for a recursive visit
                self._settled[name] = name in self.recursive or self.is_settled(target.type)
        return self._settled[name]

    def _is_dict(self, ref: ir.TypeRef) -> bool:
        target = self._schema.resolve(ref)
        return isinstance(target, ir.Mapping) or (isinstance(target, ir.Object) and target.unknown == "kept")

    def _tag(self, objects: list[str]) -> str | None:
        """Return the key whose constant differs in all *objects*; the first by name if there are several."""
        tables: list[dict[str, str]] = []
        for name in objects:
            target = self._schema.definitions[name]
            properties = target.properties if isinstance(target, ir.Object) else ()
            constants = {each.wire: each.constant.values[0] for each in properties if each.constant}
            tables.append({key: value for key, value in constants.items() if isinstance(value, str)})
        shared = set(tables[0]).intersection(*tables[1:])
        return min((key for key in shared if len({table[key] for table in tables}) == len(tables)), default=None)

    def _leads_back(self, alias: ir.Alias) -> bool:
        """Whether following aliases from *alias* leads to itself."""
        seen: set[str] = set()
        pending = list(ir.names(alias.type))
        while pending and alias.name not in seen:
            name = pending.pop()
            target = self._schema.definitions[name]
            if name not in seen and isinstance(target, ir.Alias):
                seen.add(name)
                pending += ir.names(target.type)
        return alias.name in seen

    def _find_leaves(self) -> frozenset[str]:
        found: set[str] = set()
        flat = {
            name: {mentioned for ref in _held(each) for mentioned in ir.names(ref)}
            for name, each in self._schema.definitions.items()
            if all(map(_is_flat, _held(each)))
        }
        while grown := [name for name, mentioned in flat.items() if mentioned <= found]:
            found.update(grown)
            for name in grown:
                del flat[name]
        return frozenset(found)


def _held(definition: ir.Definition) -> tuple[ir.TypeRef, ...]:
    """Return the types inside a value of *definition*."""
    if isinstance(definition, ir.Alias):
        return (definition.type,)
    return (ir.Anything(),) if definition.unknown == "kept" else tuple(each.type for each in definition.properties)


def _is_flat(ref: ir.TypeRef) -> bool:
    """Whether *ref* itself is not a container; references are not followed."""
    match ref:
        case ir.Scalar() | ir.Fixed() | ir.Named() | ir.Nothing():
            return True
        case ir.Union(arms=arms):
            return all(map(_is_flat, arms))
        case _:
            return False


def oversized(schema: ir.Schema) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each union of *schema* that Python could not compile."""
    for alias in schema.aliases():
        if isinstance(alias.type, ir.Union) and (count := len(alias.type.arms)) > MAX_ARMS:
            yield Diagnostic(
                code="MG134",
                pointer=alias.pointer,
                message=f"the union has {count} members, more than {MAX_ARMS}",
                hint="Split it into several unions, and make a union of these.",
            )


_ALL_SCALARS = {"string", "number", "boolean", "null"}


def widen_json_value(schema: ir.Schema) -> ir.Schema:
    """Return *schema* with each recursive alias that accepts any JSON value replaced by `ir.Anything`.

    A union of string, number, boolean, null, arrays of itself and objects of itself accepts everything, so there is
    nothing to check. For type checkers ``object`` means the same, and values need no cast.
    """
    unions = Unions(schema)
    wide = {name for name in unions.recursive if _admits_json(unions, name)}
    definitions = {
        name: msgspec.structs.replace(each, type=ir.Anything()) if name in wide else each
        for name, each in schema.definitions.items()
    }
    return ir.Schema(definitions=definitions)


def _admits_json(unions: Unions, name: str) -> bool:
    this = ir.Named(name=name)
    arms = unions.arms(this)
    scalars = {arm.kind for arm in arms if isinstance(arm, ir.Scalar) and not arm.bounds}
    return scalars >= _ALL_SCALARS and ir.Array(item=this) in arms and ir.Mapping(value=this) in arms
