"""Build the functions that adapt values of one revision to another, from both schemas and the rules between them.

Theory of operation. `FunctionBuilder` walks the payloads of both revisions side by side, in one direction. It compares
each type of the source with the type at the same place in the target; the difference decides what the function does.
Each pair of types becomes one function, however often it occurs, and recursion ends there. Some differences have no
mechanical conversion. For these, the builder asks the rules. A difference without a rule becomes a `Need`, which stops
the build. A third builder walks the target beside itself and makes the *closing* functions: they remove foreign keys
from values that are already valid in the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from mcpgen.codegen import ir, names
from mcpgen.codegen.adapters.discriminators import conditions
from mcpgen.codegen.adapters.objects import operations
from mcpgen.codegen.adapters.ops import (
    Call,
    Case,
    Condition,
    Converted,
    Function,
    Keep,
    Refused,
    Switch,
    Transform,
)
from mcpgen.codegen.adapters.pairing import Pairing
from mcpgen.codegen.adapters.rules import Found, Need, Place, Rules, Way
from mcpgen.codegen.changes import vocabulary as v
from mcpgen.codegen.diff.type_changes import differences
from mcpgen.codegen.diff.type_text import type_text

if TYPE_CHECKING:
    from mcpgen.codegen.adapters.known_keys import Lineages, ObjectKeys, RevisionTypes
    from mcpgen.codegen.diff.schema_pair import SchemaPair

__all__ = ["Mode", "FunctionBuilder"]

# The effects after which some values of the source are not valid in the target.
_HARMFUL: dict[Way, frozenset[str]] = {
    "up": frozenset({"narrowed", "changed"}),
    "down": frozenset({"widened", "changed"}),
}

Mode: TypeAlias = Literal["up", "down", "close"]


class FunctionBuilder:
    """Builds the functions of one direction, and collects the differences that need a declared change."""

    def __init__(  # noqa: PLR0913, PLR0917 a step has all of these
        self,
        mode: Mode,
        source: RevisionTypes,
        target: RevisionTypes,
        lineages: Lineages,
        schemas: SchemaPair | None,
        rules: Rules | None,
    ) -> None:
        """Prepare the conversion from *source* to *target*. In mode ``close``, both are the target, without rules."""
        self.mode: Mode = mode
        self.source = source
        self.target = target
        self.lineages = lineages
        self.functions: dict[str, Function] = {}
        self.pairs: dict[str, str] = {}
        self.met: set[str] = set()  # the definitions of the source that were visited
        self.needs: dict[Need, None] = {}
        self.pairing: Pairing = Pairing(source, target, self.way, schemas)
        self._schemas = schemas
        self._rules = rules
        self._made: dict[tuple[str, str], str] = {}
        self.closing: FunctionBuilder = (
            self if schemas is None else FunctionBuilder("close", target, target, lineages, None, None)
        )

    @property
    def way(self) -> Way:
        """The direction for which rules are looked up."""
        return "down" if self.mode == "down" else "up"

    def place(self, source: str, target: str) -> Place:
        """Return the place with the names *source* and *target* in the two revisions."""
        return Place(old=target, new=source) if self.mode == "down" else Place(old=source, new=target)

    def _spelled(self, place: Place) -> tuple[str, str]:
        """Return the names of *place* in the source and in the target."""
        return (place.new, place.old) if self.mode == "down" else (place.old, place.new)

    def transform(self, source: ir.TypeRef, target: ir.TypeRef, place: Place, *, is_covered: bool = False) -> Transform:
        """Return the conversion of a value of *source* at *place* to one of *target*.

        Args:
            source: A type of the source.
            target: The type at the same place in the target.
            place: The place, for rules and names.
            is_covered: Whether a rule already handles values that are not valid in the target.
        """
        if isinstance(source, ir.Named):
            self.met.add(source.name)
        arms, others = self.source.unions.arms(source), self.target.unions.arms(target)
        if len(arms) == 1 == len(others):
            kind = self._kind_changed(source, target)
            return self._single(arms[0], others[0], place, is_covered=is_covered, kind=kind)
        before, after = (ref.name if isinstance(ref, ir.Named) else "" for ref in (source, target))
        if " " in place.new:  # a result: its union is named after the message
            place = replace(place, also=(*place.also, *filter(None, (after, before))))
        elif before and after:
            named = self.place(before, after)
            place = replace(named, also=(*named.also, *place.spellings))
        elif before or after:
            place = replace(place, also=(before or after, *place.also))
        union = self._union(arms, others, place, is_covered=is_covered)
        if before and after and self.pairing.are_paired(before, after):
            self.pairs[before] = after
            self._made[before, after] = union.function
        return union

    def found(self, *places: str) -> Found | None:
        """Return the rule for one of *places*, and count it as used."""
        return None if self._rules is None else self._rules.action(self.way, *places)

    def declared(self, *places: str) -> v.Action | None:
        """Return the action for one of *places*, without counting it as used."""
        return None if self._rules is None else self._rules.peek(self.way, *places)

    def opposite(self, *places: str) -> v.Action | None:
        """Return the action for one of *places* in the other direction, without counting it as used."""
        return None if self._rules is None else self._rules.peek("up" if self.mode == "down" else "down", *places)

    def says(self, *places: str) -> str | None:
        """Return the sentence of the declared change at one of *places*, if there is one."""
        return None if self._rules is None else self._rules.says(*places)

    def need(self, kind: str, id_: str, pointer: str, problem: str, known: Found | None = None) -> Found | None:
        """Return the rule for a difference that has no mechanical conversion, or record a `Need`.

        Args:
            kind: The kind of the difference.
            id_: The id of the difference.
            pointer: The place in the document of the side that has it.
            problem: The reason, for the message.
            known: The rule for the place itself. With one, the difference needs no rule of its own.
        """
        wanted = Need(kind=kind, id=id_, way=self.way, pointer=pointer, problem=problem)
        met = None if self._rules is None else self._rules.meet(wanted)
        if met is None and known is None:
            self.needs[wanted] = None
        return met

    def convert(
        self, found: Found, function: v.Conversion, key: str | None = None, *, spelled: str | None = None
    ) -> Converted:
        """Return the operation that calls *function* for *key*, whose name in the source is *spelled*."""
        return Converted(key=key, spelled=spelled or key, function=function.__name__, reason=found.reason)

    def function(self, source: str, target: str) -> Transform:
        """Return the conversion that was built for two definitions."""
        made = self._made.get((source, target))
        return Keep() if made is None else Call(made)

    # Types

    def _kind_changed(self, source: ir.TypeRef, target: ir.TypeRef) -> str:
        """Return the newer name of a definition that is an object on one side only, else an empty string."""
        if not (isinstance(source, ir.Named) and isinstance(target, ir.Named)):
            return ""
        if not self.pairing.are_paired(source.name, target.name):
            return ""
        one, other = self.source.schema.definitions[source.name], self.target.schema.definitions[target.name]
        changed = isinstance(one, ir.Object) != isinstance(other, ir.Object)
        return (source if self.mode == "down" else target).name if changed else ""

    def _single(
        self, source: ir.TypeRef, target: ir.TypeRef, place: Place, *, is_covered: bool, kind: str = ""
    ) -> Transform:
        """Return the conversion between two types that are not unions; *kind* is a definition that changed its kind."""
        if isinstance(target, ir.Anything):
            return Keep()
        spelled = self._spelled(place)
        one, other = self.source.object_keys(source, spelled[0]), self.target.object_keys(target, spelled[1])
        if one is not None and other is not None:
            return self._object(one, other)
        match source, target:
            case ir.Array(), ir.Array():
                fitted = None if is_covered else self._fitted(_bare(source), _bare(target), place)
                inner = self.transform(source.item, target.item, place.inside("[]"))
                return self._after(fitted, self._over("items", inner, place), place)
            case ir.Mapping(), ir.Mapping():
                return self._over("members", self.transform(source.value, target.value, place.inside("{}")), place)
            case _:
                fitted = None if is_covered else self._fitted(source, target, place, kind)
                return self._after(fitted, Keep(), place)

    def _fitted(  # noqa: C901 one case per action
        self, source: ir.TypeRef, target: ir.TypeRef, place: Place, kind: str = ""
    ) -> Converted | Case | None:
        """Return the declared conversion for values of *source* that *target* does not accept, or record needs."""
        if self._schemas is None or self.pairing.admits(target, source):
            return None
        old, new = (target, source) if self.mode == "down" else (source, target)
        asked: list[tuple[str, str, str | None, str | None]] = [
            (each.kind, place.new + each.part, each.old, each.new)
            for each in differences(self._schemas, old, new)
            if each.effect in _HARMFUL[self.way]
        ]
        if kind:  # a diff reports this at the definition, not at its content
            both = type_text(self.source.schema, source), type_text(self.target.schema, target)
            asked = [("definition-kind-changed", kind, *both)]
        found: dict[str, Found] = {}
        for what, id_, old_words, new_words in asked:
            before, after = (new_words, old_words) if self.mode == "down" and not kind else (old_words, new_words)
            changed = f"the schema changes from {before} to {after}, so some values may be invalid"
            problem = changed if after else f"values of {before} are not valid there"
            if (declared := self.need(what, id_, "", problem)) is not None:
                found[declared.change.name] = declared
        applied: list[Converted] = []
        for met in found.values():
            if met.change.at:
                continue  # applied at its own places
            match met.action:
                case v.Convert(function=function):
                    applied.append(self.convert(met, function))
                case v.Refuse(service=service):
                    condition = conditions(self.source, [source])[0][1]
                    refused = Refused(key=None, reason=met.reason, service=service)
                    return Case(arm=type_text(self.source.schema, source), condition=condition, refused=refused)
                case v.Keep():
                    pass
                case _:
                    self.misplaced(met, place.new)
        if len({each.function for each in applied}) > 1:
            self.misplaced(next(iter(found.values())), place.new)  # only one conversion can apply to a value
        return applied[0] if applied else None

    def _after(self, fitted: Converted | Case | None, inner: Transform, place: Place) -> Transform:
        """Return a conversion that applies *fitted* and then *inner*, which is for a list."""
        if fitted is None:
            return inner
        name = self._name(f"{place.new}_fitted")
        cases = () if isinstance(inner, Keep) else (Case(arm="", condition=Condition(sort="array"), transform=inner),)
        body = (
            Switch(first=fitted, cases=cases) if isinstance(fitted, Converted) else Switch(first=None, cases=(fitted,))
        )
        before, after = self._spelled(place)
        self.functions[name] = Function(name=name, source=before, target=after, body=body)
        return Call(name)

    def _over(self, over: Literal["items", "members"], inner: Transform, place: Place) -> Transform:
        """Return *inner* applied to each item of a list or each value of a map."""
        if isinstance(inner, Keep):
            return inner
        if inner.over == "value":
            return Call(inner.function, over)
        name = self._name(f"{place.new}_{over}")
        before, after = self._spelled(place)
        self.functions[name] = Function(name=name, source=before, target=after, body=inner)
        return Call(name, over)

    def _object(self, one: ObjectKeys, other: ObjectKeys) -> Transform:
        key = (one.name, other.name)
        if key not in self._made:
            if one.is_defined and other.is_defined:
                if one.name not in self.pairs or self.pairing.are_paired(one.name, other.name):
                    self.pairs[one.name] = other.name
                self._check_names(one.name, other.name)
            self._made[key] = name = self._name(one.name)
            body = operations(self, one, other)
            self.functions[name] = Function(
                name=name, source=one.name, target=other.name, is_closing=self.mode == "close", body=body
            )
        return Call(self._made[key])

    def _check_names(self, source: str, target: str) -> None:
        """Record a need if two definitions at one place have no other partner: they may be one that was renamed."""
        if self._schemas is None or self.pairing.are_one(source, target) or self.declared(source, target) is not None:
            return
        old, new = (target, source) if self.mode == "down" else (source, target)
        if old not in self._schemas.old.partners and new not in self._schemas.new.partners:
            pointer = self._schemas.new.schema.definitions[new].pointer
            problem = f"in the same place, the type {old} became the type {new}, and no rename is declared"
            self.needs[
                Need(kind="definition-added", id=new, way=self.way, pointer=pointer, problem=problem, renamed=old)
            ] = None

    # Unions

    def _union(self, arms: list[ir.TypeRef], others: list[ir.TypeRef], place: Place, *, is_covered: bool) -> Call:
        key = (f"{place.old} union", f"{place.new} union")
        if key not in self._made:
            before, after = self._spelled(place)
            self._made[key] = name = self._name(before)
            first = self._first(place)
            covered = is_covered or first is not None
            cases = [
                self._case(arm, others, condition, place, is_covered=covered)
                for arm, condition in conditions(self.source, arms)
            ]
            self.functions[name] = Function(
                name=name,
                source=before,
                target=after,
                is_closing=self.mode == "close",
                body=Switch(first=first, cases=tuple(cases)),
            )
        return Call(self._made[key])

    def _first(self, place: Place) -> Converted | None:
        """Return the conversion that is declared for the whole union, by its name."""
        found = self.found(*(each for each in place.spellings if each.isidentifier()))
        if found is None:
            return None
        if not isinstance(found.action, v.Convert):
            self.misplaced(found, place.new)
            return None
        return self.convert(found, found.action.function)

    def _case(
        self, arm: ir.TypeRef, others: list[ir.TypeRef], condition: Condition, place: Place, *, is_covered: bool
    ) -> Case:
        """Return the case of one arm: its condition and the conversion of its values."""
        text = type_text(self.source.schema, arm)
        inside = place.inside(f"[{text}]")
        case = Case(arm=text, condition=condition, definition=arm.name if isinstance(arm, ir.Named) else "")
        found = self.found(*inside.spellings)
        partner = self.pairing.counterpart(arm, others)
        if partner is None and not is_covered:
            kind = "arm-added" if self.mode == "down" else "arm-removed"
            pointer = self.source.schema.definitions[arm.name].pointer if isinstance(arm, ir.Named) else ""
            id_ = inside.new if self._rules is None else self._rules.listed(kind, *inside.spellings)
            problem = f"{self.target.label} does not allow the type `{text}` there"
            met = self.need(kind, id_, pointer, problem, known=found)
            found = found or met
        if found is not None:
            match found.action:
                case v.Convert(function=function):
                    return replace(case, converted=self.convert(found, function))
                case v.Refuse(service=service):
                    return replace(case, refused=Refused(key=None, reason=found.reason, service=service))
                case v.Read(name=name):
                    partner = ir.Named(name=name)
                case _:
                    self.misplaced(found, inside.new)
        if partner is None:
            return case
        return replace(case, transform=self._single(arm, partner, inside, is_covered=is_covered))

    def misplaced(self, found: Found, place: str) -> None:
        """Record a need for another action, because the one *found* does not apply at *place*."""
        problem = f"the action {type(found.action).__name__} of the change {found.change.name!r} does not apply there"
        self.needs[Need(kind="misplaced", id=place, way=self.way, pointer="", problem=problem)] = None

    def _name(self, place: str) -> str:
        """Return an unused function name for *place*."""
        stem = f"{self.mode}_{names.snake(place)}"
        name, number = stem, 1
        while name in self.functions or name in self._made.values():
            number += 1
            name = f"{stem}_{number}"
        return name


def _bare(ref: ir.Array) -> ir.Array:
    return ir.Array(item=ir.Anything(), bounds=ref.bounds)
