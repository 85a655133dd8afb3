"""What msgspec can tell apart by itself, and what needs help.

msgspec decodes a union natively if its arms differ by JSON type, or are objects that a constant of one key tells
apart. Other unions of objects are *structural*: the arm is found by the keys that a value has. Whatever holds such a
union, or an open object whose known keys must be checked, is *settled* after it was decoded.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.arms import json_types_differ


class Native(msgspec.Struct, frozen=True):
    """msgspec tells the arms apart by their JSON type."""


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """msgspec tells the *objects* apart by the constant of their key *tag*, and the *rest* by JSON type."""

    tag: str
    objects: tuple[str, ...]
    rest: tuple[ir.TypeRef, ...]


class Structural(msgspec.Struct, frozen=True):
    """The arms are told apart by their keys, after decoding."""


Kind: TypeAlias = Native | Tagged | Structural


class Unions:
    """Answers questions about the types of one schema."""

    def __init__(self, schema: ir.Schema) -> None:
        self._schema = schema
        self.recursive = frozenset(alias.name for alias in schema.aliases() if self._reaches(alias.type, alias.name))
        self._settled: dict[str, bool] = {}

    def kind(self, ref: ir.TypeRef) -> Kind:
        """Say how the arms of *ref* are told apart; a type that is no union counts as one of a single arm."""
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

    def arms(self, ref: ir.TypeRef, seen: tuple[str, ...] = ()) -> list[ir.TypeRef]:
        """Return the arms of *ref* with aliases followed; objects stay names, recursion stops."""
        match ref:
            case ir.Named(name=name) if isinstance(alias := self._schema.definitions[name], ir.Alias):
                return [] if name in seen else self.arms(alias.type, (*seen, name))
            case ir.Union(arms=arms):
                found = [each for arm in arms for each in self.arms(arm, seen)]
                return list(dict.fromkeys(found))
            case _:
                return [ref]

    def is_settled(self, ref: ir.TypeRef) -> bool:
        """Whether values of *ref* must be looked at again after msgspec decoded them.

        What a closed object holds is settled by that object itself.
        """
        match ref:
            case ir.Named(name=name):
                return self._name_is_settled(name)
            case ir.Union() if isinstance(self.kind(ref), Structural):
                return True
            case _:
                return any(self.is_settled(child) for child in ir.children(ref))

    def is_leaf(self, ref: ir.TypeRef, seen: tuple[str, ...] = ()) -> bool:
        """Whether values of *ref* hold no container that could ever be made part of a reference cycle."""
        match ref:
            case ir.Scalar() | ir.Fixed():
                return True
            case ir.Union(arms=arms):
                return all(self.is_leaf(arm, seen) for arm in arms)
            case ir.Named(name=name) if name not in seen:
                target = self._schema.definitions[name]
                if isinstance(target, ir.Alias):
                    return self.is_leaf(target.type, (*seen, name))
                held = (each.type for each in target.properties)
                return target.unknown != "kept" and all(self.is_leaf(each, (*seen, name)) for each in held)
            case _:
                return False

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
        """Return the key whose constant differs in all *objects*, the first by name if there are several."""
        tables: list[dict[str, str]] = []
        for name in objects:
            target = self._schema.definitions[name]
            properties = target.properties if isinstance(target, ir.Object) else ()
            constants = {each.wire: each.constant.values[0] for each in properties if each.constant}
            tables.append({key: value for key, value in constants.items() if isinstance(value, str)})
        shared = set(tables[0]).intersection(*tables[1:])
        return min((key for key in shared if len({table[key] for table in tables}) == len(tables)), default=None)

    def _reaches(self, ref: ir.TypeRef, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether following aliases from *ref* leads to the alias *name*."""
        for mentioned in ir.names(ref):
            if mentioned == name:
                return True
            target = self._schema.definitions[mentioned]
            if mentioned not in seen and isinstance(target, ir.Alias):
                seen |= {mentioned}
                if self._reaches(target.type, name, seen):
                    return True
        return False


_ALL_SCALARS = {"string", "number", "boolean", "null"}


def widen_json_value(schema: ir.Schema) -> ir.Schema:
    """Return *schema* with every recursive alias that admits all of JSON as the type `ir.Anything`.

    A union of string, number, boolean, null, arrays of itself and objects of itself refuses nothing, so there is
    nothing to check; ``object`` says the same to a type checker, and any value can be put there without a cast.
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
