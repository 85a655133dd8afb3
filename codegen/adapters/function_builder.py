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
from mcpgen.codegen.adapters.discriminators import conditions, same_sort
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
from mcpgen.codegen.adapters.rules import Found, Need, Place, Rules, Way
from mcpgen.codegen.changes import vocabulary as v
from mcpgen.codegen.diff.type_changes import differences
from mcpgen.codegen.diff.type_text import words

if TYPE_CHECKING:
    from mcpgen.codegen.adapters.known_keys import Lineages, ObjectKeys, RevisionTypes
    from mcpgen.codegen.diff.schema_pair import SchemaPair

__all__ = ["Mode", "FunctionBuilder"]

# The effects of a difference that leave values of the source without a place in the target.
_HARMFUL: dict[Way, frozenset[str]] = {
    "up": frozenset({"narrowed", "changed"}),
    "down": frozenset({"widened", "changed"}),
}

Mode: TypeAlias = Literal["up", "down", "close"]


class FunctionBuilder:
    """Makes the functions of one direction; collects what nothing covers."""

    def __init__(  # noqa: PLR0913, PLR0917 all of them are what a step is
        self,
        mode: Mode,
        source: RevisionTypes,
        target: RevisionTypes,
        lineages: Lineages,
        schemas: SchemaPair | None,
        rules: Rules | None,
    ) -> None:
        """Prepare to walk from *source* to *target*; to close, both are the target, without schemas and rules."""
        self.mode: Mode = mode
        self.source = source
        self.target = target
        self.lineages = lineages
        self.functions: dict[str, Function] = {}
        self.pairs: dict[str, str] = {}
        self.met: set[str] = set()  # definitions of the source, whatever stands in their place
        self.needs: dict[Need, None] = {}
        self._schemas = schemas
        self._rules = rules
        self._made: dict[tuple[str, str], str] = {}
        self.closing: FunctionBuilder = (
            self if schemas is None else FunctionBuilder("close", target, target, lineages, None, None)
        )

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
            kind = self._kind_changed(source, target)
            return self._single(arms[0], others[0], place, is_covered=is_covered, kind=kind)
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

    def convert(
        self, found: Found, function: v.Conversion, key: str | None = None, *, spelled: str | None = None
    ) -> Converted:
        """Return the operation that calls a declared *function* for *key*, which the source calls *spelled*."""
        return Converted(key=key, spelled=spelled or key, function=function.__name__, reason=found.reason)

    def are_kin(self, source: str, target: str) -> bool:
        """Whether two definitions are the same one."""
        return source == target if self._schemas is None else self.partner(source) == target

    def are_one(self, source: str, target: str) -> bool:
        """Whether two definitions that stand in one place are the same one: kin, or inline, with no other place."""
        inline = self.source.schema.definitions[source].anonymous and self.target.schema.definitions[target].anonymous
        return inline or self.are_kin(source, target)

    def partner(self, source: str) -> str | None:
        """Return what the target calls the definition *source*."""
        if self._schemas is None:
            return source
        side = self._schemas.new if self.mode == "down" else self._schemas.old
        return side.partners.get(source)

    def admits(self, target: ir.TypeRef, source: ir.TypeRef) -> bool:
        """Whether every value of *source* is one of *target*."""
        if self._schemas is None:
            return True
        if self.mode == "down":
            return self._schemas.old_admits(target, source)
        return self._schemas.new_admits(target, source)

    def function(self, source: str, target: str) -> Transform:
        """Return what was made for two definitions."""
        made = self._made.get((source, target))
        return Keep() if made is None else Call(made)

    # Types

    def _kind_changed(self, source: ir.TypeRef, target: ir.TypeRef) -> str:
        """Return the name of a definition, on the newer side, that is an object on one side only; else nothing."""
        if not (
            isinstance(source, ir.Named) and isinstance(target, ir.Named) and self.are_kin(source.name, target.name)
        ):
            return ""
        one, other = self.source.schema.definitions[source.name], self.target.schema.definitions[target.name]
        changed = isinstance(one, ir.Object) != isinstance(other, ir.Object)
        return (source if self.mode == "down" else target).name if changed else ""

    def _single(
        self, source: ir.TypeRef, target: ir.TypeRef, place: Place, *, is_covered: bool, kind: str = ""
    ) -> Transform:
        """Return the transform between two types that are no unions; *kind* is a definition that changed its kind."""
        if isinstance(target, ir.Anything):
            return Keep()
        spelled = (place.new, place.old) if self.mode == "down" else (place.old, place.new)
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
        """Return what makes values of *target* of those of *source* that are none; what nothing covers is asked for."""
        if self._schemas is None or self.admits(target, source):
            return None
        old, new = (target, source) if self.mode == "down" else (source, target)
        asked: list[tuple[str, str, str | None, str | None]] = [
            (each.kind, place.new + each.part, each.old, each.new)
            for each in differences(self._schemas, old, new)
            if each.effect in _HARMFUL[self.way]
        ]
        if kind:  # a diff says it of the definition, not of what is inside
            both = words(self.source.schema, source), words(self.target.schema, target)
            asked = [("definition-kind-changed", kind, *both)]
        found: dict[str, Found] = {}
        for what, id_, old_words, new_words in asked:
            before, after = (new_words, old_words) if self.mode == "down" and not kind else (old_words, new_words)
            problem = f"{before or 'nothing'} is not always {after or 'there'}"
            if (declared := self.need(what, id_, "", problem)) is not None:
                found[declared.change.name] = declared
        applied: list[Converted] = []
        for met in found.values():
            if met.change.at:
                continue  # applied where it says
            match met.action:
                case v.Convert(function=function):
                    applied.append(self.convert(met, function))
                case v.Refuse(service=service):
                    condition = conditions(self.source, [source])[0][1]
                    refused = Refused(key=None, reason=met.reason, service=service)
                    return Case(arm=words(self.source.schema, source), condition=condition, refused=refused)
                case v.Keep():
                    pass
                case _:
                    self.misplaced(met, place.new)
        if len({each.function for each in applied}) > 1:
            self.misplaced(next(iter(found.values())), place.new)  # one value, one conversion
        return applied[0] if applied else None

    def _after(self, fitted: Converted | Case | None, inner: Transform, place: Place) -> Transform:
        """Return what first does *fitted* and then *inner*, which is about a list."""
        if fitted is None:
            return inner
        name = self._name(f"{place.new}_fitted")
        cases = () if isinstance(inner, Keep) else (Case(arm="", condition=Condition(sort="array"), transform=inner),)
        body = (
            Switch(first=fitted, cases=cases) if isinstance(fitted, Converted) else Switch(first=None, cases=(fitted,))
        )
        self.functions[name] = Function(name=name, source=place.old, target=place.new, body=body)
        return Call(name)

    def _over(self, over: Literal["items", "members"], inner: Transform, place: Place) -> Transform:
        """Return the transform of a list or a map of what *inner* transforms."""
        if isinstance(inner, Keep):
            return inner
        if inner.over == "value":
            return Call(inner.function, over)
        name = self._name(f"{place.new}_{over}")
        self.functions[name] = Function(name=name, source=place.old, target=place.new, body=inner)
        return Call(name, over)

    def _object(self, one: ObjectKeys, other: ObjectKeys) -> Transform:
        key = (one.name, other.name)
        if key not in self._made:
            if one.is_defined and other.is_defined:
                if one.name not in self.pairs or self.are_kin(one.name, other.name):
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
        if self._schemas is None or self.are_one(source, target) or self.declared(source, target) is not None:
            return
        old, new = (target, source) if self.mode == "down" else (source, target)
        if old not in self._schemas.old.partners and new not in self._schemas.new.partners:
            pointer = self._schemas.new.schema.definitions[new].pointer
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
        if found is None:
            return None
        if not isinstance(found.action, v.Convert):
            self.misplaced(found, place.new)
            return None
        return self.convert(found, found.action.function)

    def _case(
        self, arm: ir.TypeRef, others: list[ir.TypeRef], condition: Condition, place: Place, *, is_covered: bool
    ) -> Case:
        """Return what becomes of the values of one arm."""
        text = words(self.source.schema, arm)
        inside = place.inside(f"[{text}]")
        case = Case(arm=text, condition=condition, definition=arm.name if isinstance(arm, ir.Named) else "")
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
        alike = [other for other in others if same_sort(arm, other) and self._admits_arm(other, arm)]
        return next((other for other in alike if self._are_alike(arm, other)), alike[0] if alike else None)

    def _are_alike(self, arm: ir.TypeRef, other: ir.TypeRef) -> bool:
        if self._schemas is None:
            return arm == other
        return self._schemas.alike(other, arm) if self.mode == "down" else self._schemas.alike(arm, other)

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
