"""From two revisions and the rules between them to the functions that adapt values of one to the other.

Theory of operation. `Walk` goes through the payloads of both revisions side by side, in one direction: what a type
became in the target decides what a value of it needs. Types that correspond become one function, however often they
are met; recursion ends there. What the mechanical part cannot do is looked up in the rules, and where these are silent
too it becomes a `Need`, which stops the build. A third walk, of the target beside itself, gives the *closing*
functions: they take foreign keys out of values that are the target's already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from mcpgen.codegen import ir, names
from mcpgen.codegen.adapters.arms import conditions, same_sort
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
from mcpgen.codegen.adapters.rules import Found, Need, Rules, Way
from mcpgen.codegen.changes import vocabulary as v
from mcpgen.codegen.diff_words import words

if TYPE_CHECKING:
    from mcpgen.codegen.adapters.sides import Lineages, Side, Thing
    from mcpgen.codegen.diff_kinship import Kinship

__all__ = ["Mode", "Place", "Walk"]

Mode: TypeAlias = Literal["up", "down", "close"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where two types stand side by side.

    Attributes:
        old: As the older side spells it.
        new: As the newer side spells it.
        also: Other ways to spell it: aliases whose values stand there.
    """

    old: str
    new: str
    also: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """All ways to spell it, the newer side's first: a diff's ids are of that side."""
        return tuple(dict.fromkeys((self.new, self.old, *self.also)))

    def inside(self, part: str) -> Place:
        """Return the place *part* inside this one: ``.key``, ``[]``, ``{}`` or ``[arm]``."""
        return Place(old=self.old + part, new=self.new + part, also=tuple(each + part for each in self.also))


class Walk:
    """Makes the functions of one direction; collects what nothing covers."""

    def __init__(  # noqa: PLR0913, PLR0917 all of them are what a step is
        self, mode: Mode, source: Side, target: Side, lineages: Lineages, kinship: Kinship | None, rules: Rules | None
    ) -> None:
        """Prepare to walk from *source* to *target*; to close, both are the target, without kinship and rules."""
        self.mode: Mode = mode
        self.source = source
        self.target = target
        self.lineages = lineages
        self.functions: dict[str, Function] = {}
        self.pairs: dict[str, str] = {}
        self.met: set[str] = set()  # definitions of the source, whatever stands in their place
        self.needs: dict[Need, None] = {}
        self.conversions: dict[str, v.Conversion] = {}
        self._kinship = kinship
        self._rules = rules
        self._made: dict[tuple[str, str], str] = {}
        self.closing: Walk = self if kinship is None else Walk("close", target, target, lineages, None, None)

    @property
    def way(self) -> Way:
        """The direction in which rules are looked up."""
        return "down" if self.mode == "down" else "up"

    def place(self, source: str, target: str) -> Place:
        """Return the place that the two sides spell so."""
        return Place(old=target, new=source) if self.mode == "down" else Place(old=source, new=target)

    def transform(self, source: ir.TypeRef, target: ir.TypeRef, place: Place, *, is_covered: bool = False) -> Transform:
        """Return what a value of *source* at *place* needs to become one of *target*.

        Args:
            source: A type of the source.
            target: What stands in its place in the target.
            place: For rules and names.
            is_covered: A rule has taken care of what does not fit.
        """
        if isinstance(source, ir.Named):
            self.met.add(source.name)
        arms, others = self.source.unions.arms(source), self.target.unions.arms(target)
        if len(arms) == 1 == len(others):
            return self._single(arms[0], others[0], place, is_covered=is_covered)
        before, after = (ref.name if isinstance(ref, ir.Named) else "" for ref in (source, target))
        if " " in place.new:  # an answer: its union is called after the message
            place = replace(place, also=(*place.also, *filter(None, (after, before))))
        elif before and after:
            named = self.place(before, after)
            place = replace(named, also=(*named.also, *place.spellings))
        elif before or after:
            place = replace(place, also=(before or after, *place.also))
        union = self._union(arms, others, place, is_covered=is_covered)
        if before and after and self.are_kin(before, after):
            self.pairs[before] = after
            self._made[before, after] = union.function
        return union

    def found(self, *places: str) -> Found | None:
        """Return what the rules say of one of *places*."""
        return None if self._rules is None else self._rules.action(self.way, *places)

    def declared(self, *places: str) -> v.Action | None:
        """Return what the rules say of one of *places*, without counting it as used."""
        return None if self._rules is None else self._rules.peek(self.way, *places)

    def opposite(self, *places: str) -> v.Action | None:
        """Return what the rules say of one of *places* in the other direction."""
        return None if self._rules is None else self._rules.peek("up" if self.mode == "down" else "down", *places)

    def says(self, *places: str) -> str | None:
        """Return why something is different at one of *places*, if a change says it."""
        return None if self._rules is None else self._rules.says(*places)

    def need(self, kind: str, id_: str, pointer: str, problem: str, known: Found | None = None) -> Found | None:
        """Return the action for what the mechanical part cannot do; if there is none, it is asked for.

        Args:
            kind: Of the difference.
            id_: Of the difference.
            pointer: Where, in the document of the side that has it.
            problem: In a sentence.
            known: What is declared for the place itself; the difference then only counts as covered.
        """
        wanted = Need(kind=kind, id=id_, way=self.way, pointer=pointer, problem=problem)
        met = None if self._rules is None else self._rules.meet(wanted)
        if met is None and known is None:
            self.needs[wanted] = None
        return met

    def convert(self, found: Found, function: v.Conversion, key: str | None = None) -> Converted:
        """Return the operation that calls a declared *function*, which the adapter will hold."""
        self.conversions[function.__name__] = function
        return Converted(key=key, function=function.__name__, reason=found.reason)

    def are_kin(self, source: str, target: str) -> bool:
        """Whether two definitions are the same one."""
        return source == target if self._kinship is None else self.partner(source) == target

    def are_one(self, source: str, target: str) -> bool:
        """Whether two definitions that stand in one place are the same one: kin, or inline, with no other place."""
        inline = self.source.schema.definitions[source].anonymous and self.target.schema.definitions[target].anonymous
        return inline or self.are_kin(source, target)

    def partner(self, source: str) -> str | None:
        """Return what the target calls the definition *source*."""
        if self._kinship is None:
            return source
        side = self._kinship.new if self.mode == "down" else self._kinship.old
        return side.partners.get(source)

    def admits(self, target: ir.TypeRef, source: ir.TypeRef) -> bool:
        """Whether every value of *source* is one of *target*."""
        if self._kinship is None:
            return True
        if self.mode == "down":
            return self._kinship.old_admits(target, source)
        return self._kinship.new_admits(target, source)

    def function(self, source: str, target: str) -> Transform:
        """Return what was made for two definitions."""
        made = self._made.get((source, target))
        return Keep() if made is None else Call(made)

    # Types

    def _single(self, source: ir.TypeRef, target: ir.TypeRef, place: Place, *, is_covered: bool) -> Transform:
        """Return the transform between two types that are no unions."""
        if isinstance(target, ir.Anything):
            return Keep()
        spelled = (place.new, place.old) if self.mode == "down" else (place.old, place.new)
        one, other = self.source.thing(source, spelled[0]), self.target.thing(target, spelled[1])
        if one is not None and other is not None:
            return self._object(one, other)
        match source, target:
            case ir.Array(), ir.Array():
                if not is_covered and not self.admits(_bare(target), _bare(source)):
                    self._ask("bounds-changed", source, target, place)
                return self._over("items", self.transform(source.item, target.item, place.inside("[]")), place)
            case ir.Mapping(), ir.Mapping():
                return self._over("members", self.transform(source.value, target.value, place.inside("{}")), place)
            case _:
                if not is_covered and not self.admits(target, source):
                    self._ask("type-changed", source, target, place)
                return Keep()

    def _over(self, over: Literal["items", "members"], inner: Transform, place: Place) -> Transform:
        """Return the transform of a list or a map of what *inner* transforms."""
        if isinstance(inner, Keep):
            return inner
        if inner.over == "value":
            return Call(inner.function, over)
        name = self._name(f"{place.new}_{over}")
        self.functions[name] = Function(name=name, source=place.old, target=place.new, body=inner)
        return Call(name, over)

    def _ask(self, kind: str, source: ir.TypeRef, target: ir.TypeRef, place: Place) -> None:
        before, after = words(self.source.schema, source), words(self.target.schema, target)
        self.need(kind, place.new, "", f"{before} is not always {after}")

    def _object(self, one: Thing, other: Thing) -> Transform:
        key = (one.name, other.name)
        if key not in self._made:
            if one.is_defined and other.is_defined:
                self.pairs[one.name] = other.name
                self._check_names(one.name, other.name)
            self._made[key] = name = self._name(one.name)
            body = operations(self, one, other)
            self.functions[name] = Function(
                name=name, source=one.name, target=other.name, is_closing=self.mode == "close", body=body
            )
        return Call(self._made[key])

    def _check_names(self, source: str, target: str) -> None:
        """Ask whether two definitions that stand in one place are one, where neither has another counterpart."""
        if self._kinship is None or self.are_one(source, target) or self.declared(source, target) is not None:
            return
        old, new = (target, source) if self.mode == "down" else (source, target)
        if old not in self._kinship.old.partners and new not in self._kinship.new.partners:
            pointer = self._kinship.new.schema.definitions[new].pointer
            problem = f"it stands where {old} stood, and nothing says that they are one"
            self.needs[
                Need(kind="definition-added", id=new, way=self.way, pointer=pointer, problem=problem, renamed=old)
            ] = None

    # Unions

    def _union(self, arms: list[ir.TypeRef], others: list[ir.TypeRef], place: Place, *, is_covered: bool) -> Call:
        key = (f"{place.old} union", f"{place.new} union")
        if key not in self._made:
            self._made[key] = name = self._name(place.new if self.mode == "down" else place.old)
            first = self._first(place)
            covered = is_covered or first is not None
            cases = [
                self._case(arm, others, condition, place, is_covered=covered)
                for arm, condition in conditions(self.source, arms)
            ]
            self.functions[name] = Function(
                name=name,
                source=place.old,
                target=place.new,
                is_closing=self.mode == "close",
                body=Switch(first=first, cases=tuple(cases)),
            )
        return Call(self._made[key])

    def _first(self, place: Place) -> Converted | None:
        """Return the conversion that is declared for the union as a whole, by its name."""
        found = self.found(*(each for each in place.spellings if each.isidentifier()))
        if found is None or not isinstance(found.action, v.Convert):
            return None
        return self.convert(found, found.action.function)

    def _case(
        self, arm: ir.TypeRef, others: list[ir.TypeRef], condition: Condition, place: Place, *, is_covered: bool
    ) -> Case:
        """Return what becomes of the values of one arm."""
        text = words(self.source.schema, arm)
        inside = place.inside(f"[{text}]")
        case = Case(arm=text, condition=condition)
        found = self.found(*inside.spellings)
        partner = self._counterpart(arm, others)
        if partner is None and not is_covered:
            kind = "arm-added" if self.mode == "down" else "arm-removed"
            pointer = self.source.schema.definitions[arm.name].pointer if isinstance(arm, ir.Named) else ""
            id_ = inside.new if self._rules is None else self._rules.listed(kind, *inside.spellings)
            met = self.need(kind, id_, pointer, f"{self.target.label} has no {text} there", known=found)
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
        """Ask for another action than the one *found* at *place*, which makes no sense there."""
        problem = f"{type(found.action).__name__} of the change {found.change.name!r} cannot be applied there"
        self.needs[Need(kind="misplaced", id=place, way=self.way, pointer="", problem=problem)] = None

    def _counterpart(self, arm: ir.TypeRef, others: list[ir.TypeRef]) -> ir.TypeRef | None:
        """Return the arm of the target that the values of *arm* belong to."""
        for other in others:
            if isinstance(other, ir.Anything):
                return other
            if isinstance(arm, ir.Named) and isinstance(other, ir.Named) and self.are_kin(arm.name, other.name):
                return other
        return next((other for other in others if same_sort(arm, other) and self._admits_arm(other, arm)), None)

    def _admits_arm(self, other: ir.TypeRef, arm: ir.TypeRef) -> bool:
        return isinstance(arm, (ir.Array, ir.Mapping)) or self.admits(other, arm)

    def _name(self, place: str) -> str:
        """Return a free name for a function about *place*."""
        stem = f"{self.mode}_{names.snake(place)}"
        name, number = stem, 1
        while name in self.functions or name in self._made.values():
            number += 1
            name = f"{stem}_{number}"
        return name


def _bare(ref: ir.Array) -> ir.Array:
    return ir.Array(item=ir.Anything(), bounds=ref.bounds)
