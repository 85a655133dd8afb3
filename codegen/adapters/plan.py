"""Plan the steps between neighbouring revisions in both directions, and check the declared changes.

The foreign keys of a revision depend on all other revisions. So each step is planned twice: the first time to find the
objects that are the same one in different revisions, the second time for the operations.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from mcpgen.codegen import ir
from mcpgen.codegen.adapters.declared import Declared
from mcpgen.codegen.adapters.function_builder import FunctionBuilder
from mcpgen.codegen.adapters.known_keys import Lineages, RevisionTypes
from mcpgen.codegen.adapters.merge import final, merged
from mcpgen.codegen.adapters.messages import ErrorCase, MessagePlan, Messages
from mcpgen.codegen.adapters.missing_changes import missing_changes
from mcpgen.codegen.adapters.ops import (
    Admit,
    Call,
    Function,
    Keep,
    Nested,
    Operation,
    Switch,
    Transform,
    called,
    is_idle,
)
from mcpgen.codegen.adapters.rules import Need, Rules
from mcpgen.codegen.changes import vocabulary as v
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.diff import Edition, compare
from mcpgen.codegen.diff.model import Diff
from mcpgen.codegen.diff.renames import find_renames
from mcpgen.codegen.diff.schema_pair import SchemaPair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["DirectionPlan", "StepPlan", "plan_steps", "survey_steps"]


_Kept: TypeAlias = frozenset[tuple[str, str, str]]
"""(revision, definition, key) of each key that a change keeps although the revision does not name it."""


class DirectionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One direction of a step.

    Attributes:
        functions: The functions that change values, by name, in the order of discovery. Equal functions are merged.
        apart: The same functions before equal ones are merged.
        idle: The names of the functions that change only values with foreign keys.
        messages: The plan of each method of the source.
        errors: The error codes that change.
        definitions: For each definition of the source, its name in the target and its conversion.
    """

    source: str
    target: str
    functions: dict[str, Function]
    apart: tuple[Function, ...]
    idle: frozenset[str]
    messages: tuple[MessagePlan, ...]
    errors: tuple[ErrorCase, ...]
    definitions: dict[str, tuple[str, Transform]]


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A step in both directions, with its differences and declared changes.

    Attributes:
        declared: The declared changes.
        diff: The differences.
        rules: The declared changes by place.
        lineages: The objects that are the same one in different revisions.
        definitions: The names of the definitions of each revision.
        senders: The (sender, method) pairs of each revision.
        codes: The error codes of each revision.
        up: The direction from the older to the newer revision.
        down: The direction from the newer to the older revision.
        needs: The differences that need a declared change and have none.
    """

    declared: Declared
    diff: Diff
    rules: Rules
    lineages: Lineages
    up: DirectionPlan
    down: DirectionPlan
    needs: tuple[Need, ...]
    definitions: dict[str, frozenset[str]] = {}
    senders: dict[str, frozenset[tuple[str, str]]] = {}
    codes: dict[str, frozenset[int]] = {}


def plan_steps(editions: Sequence[Edition], declared: Sequence[Declared]) -> list[StepPlan]:
    """Return the plans of the steps between neighbouring *editions*; *declared* has the changes of each step.

    Raises:
        Refused: MG501, a difference needs a declared change; MG502, a change is not needed; MG503, a rename is wrong.
    """
    plans = survey_steps(editions, declared)
    findings: list[Diagnostic] = []
    for plan in plans:
        findings += missing_changes(plan.declared, plan.diff, plan.needs)
        findings += [] if plan.needs else plan.rules.unused()
    if findings:
        raise Refused(findings)
    return plans


def survey_steps(editions: Sequence[Edition], declared: Sequence[Declared]) -> list[StepPlan]:
    """Return the plans that `plan_steps` returns, even if changes are missing: they are in the ``needs`` of a plan.

    Raises:
        Refused: MG503, a rename names a definition that does not exist.
    """
    codes = {each.label: frozenset(error.code for error in each.errors or ()) for each in editions}
    everywhere = frozenset[int]().union(*codes.values())
    steps = [_Step(old, new, each, everywhere) for (old, new), each in zip(pairwise(editions), declared, strict=True)]
    kept, tolerated = _kept(steps), _tolerated(steps)
    lineages = Lineages()
    for step in steps:
        step.trace(lineages, kept, tolerated)
    definitions = {each.label: frozenset(each.schema.definitions) for each in editions}
    senders = {each.label: frozenset((method.sender, method.name) for method in each.methods) for each in editions}
    return [
        replace(step.plan(lineages, kept, tolerated), definitions=definitions, senders=senders, codes=codes)
        for step in steps
    ]


class _Step:
    """One step before it is planned."""

    def __init__(self, old: Edition, new: Edition, declared: Declared, codes: frozenset[int]) -> None:
        renames = declared.step.renames
        self.old = old
        self.new = new
        self.declared = declared
        self.codes = codes
        try:
            self.diff: Diff = compare(old, new, renames=renames)
        except ValueError as error:
            hint = f"Correct the renames in {declared.where}."
            finding = Diagnostic(code="MG503", message=f"{old.label} to {new.label}: {error}", hint=hint)
            raise Refused([finding]) from None
        self.schemas = SchemaPair(old.schema, new.schema, find_renames(old.schema, new.schema, renames))

    def trace(self, lineages: Lineages, kept: _Kept, tolerated: _Kept) -> None:
        """Record in *lineages* the objects that are the same one on both sides, including those in no message."""
        builder = self._builders(lineages, kept, tolerated, Rules(self.declared.step, self.diff))[0]
        for name, partner in self.schemas.old.partners.items():
            one, other = ir.Named(name=name), ir.Named(name=partner)
            builder.transform(one, other, builder.place(name, partner))
        Messages(builder).plan()

    def plan(self, lineages: Lineages, kept: _Kept, tolerated: _Kept) -> StepPlan:
        """Return the plan of this step."""
        rules = Rules(self.declared.step, self.diff)
        builders = self._builders(lineages, kept, tolerated, rules)
        up, down = (_direction(builder, self.codes) for builder in builders)
        rules.settle(name for builder in builders for name in (*builder.pairs, *builder.pairs.values()))
        needs = tuple(need for builder in builders for need in (*builder.needs, *builder.closing.needs))
        return StepPlan(
            declared=self.declared, diff=self.diff, rules=rules, lineages=lineages, up=up, down=down, needs=needs
        )

    def _builders(
        self, lineages: Lineages, kept: _Kept, tolerated: _Kept, rules: Rules
    ) -> tuple[FunctionBuilder, FunctionBuilder]:
        old, new = (RevisionTypes(each, _of(each, kept), _of(each, tolerated)) for each in (self.old, self.new))
        return (
            FunctionBuilder("up", old, new, lineages, self.schemas, rules),
            FunctionBuilder("down", new, old, lineages, self.schemas, rules),
        )


def _of(edition: Edition, keys: _Kept) -> frozenset[tuple[str, str]]:
    return frozenset((name, key) for label, name, key in keys if label == edition.label)


def _tolerated(steps: Sequence[_Step]) -> _Kept:
    """Return the keys that stay in values of older revisions, which do not define them."""
    found: set[tuple[str, str, str]] = set()
    for step in reversed(steps):
        after = {(name, key) for label, name, key in found if label == step.new.label}
        rules = Rules(step.declared.step, step.diff)
        for each in step.diff.changes:
            change = rules.covering.get((each.kind, each.id))
            if each.kind == "key-added" and each.new and change and isinstance(change.down, v.Keep):
                after.add((each.new.name, each.new.key))
        for name, key in after:
            if partner := step.schemas.new.partners.get(name):
                found.add((step.old.label, partner, key))
    return frozenset(found)


def _kept(steps: Sequence[_Step]) -> _Kept:
    """Return the keys that stay in values of newer revisions, which do not define them any more."""
    kept: set[tuple[str, str, str]] = set()
    for step in steps:
        before = {(name, key) for label, name, key in kept if label == step.old.label}
        rules = Rules(step.declared.step, step.diff)
        for each in step.diff.changes:
            change = rules.covering.get((each.kind, each.id))
            if each.kind == "key-removed" and each.old and change and isinstance(change.up, v.Keep):
                before.add((each.old.name, each.old.key))
        for name, key in before:
            if partner := step.schemas.old.partners.get(name):
                kept.add((step.new.label, partner, key))
    return frozenset(kept)


def _direction(builder: FunctionBuilder, codes: frozenset[int]) -> DirectionPlan:
    messages = Messages(builder)
    plans = messages.plan()
    functions = {**builder.functions, **builder.closing.functions}
    busy = _spread(functions, {name for name, each in functions.items() if _acts(each)})
    idle = frozenset(busy - _spread(functions, {name for name, each in functions.items() if not is_idle(each)}))
    apart = {name: _trimmed(each, busy) for name, each in functions.items() if name in busy}
    builder.needs |= dict.fromkeys(_untold(builder, apart.values()))
    kept, names = merged(apart)
    made = {one: builder.function(one, other) for one, other in sorted(builder.pairs.items())}
    return DirectionPlan(
        source=builder.source.label,
        target=builder.target.label,
        functions=kept,
        apart=tuple(apart.values()),
        idle=idle & kept.keys(),
        messages=tuple(_final_message(each, names) for each in plans),
        errors=tuple(messages.errors(codes)),
        definitions={one: (other, final(made[one], names)) for one, other in sorted(builder.pairs.items())},
    )


def _untold(builder: FunctionBuilder, functions: Iterable[Function]) -> Iterator[Need]:
    """Yield a need for each union whose lists or scalars of one JSON type need different conversions.

    Objects that cannot be distinguished need none: they have the same keys, and the first arm is used.
    """
    for function in functions:
        if not isinstance(function.body, Switch) or function.body.first is not None:
            continue
        plain = [each for each in function.body.cases if each.condition.sort != "object"]
        for one, other in combinations(plain, 2):
            if one.condition == other.condition and replace(one, arm=other.arm) != other:
                problem = (
                    f"{one.arm} and {other.arm} need different conversions, but their values cannot be distinguished"
                )
                yield Need(kind="arms-alike", id=function.target, way=builder.way, pointer="", problem=problem)


def _acts(function: Function) -> bool:
    """Whether *function* itself changes values; the functions that it calls do not count."""
    match function.body:
        case Switch(first=first, cases=cases):
            return first is not None or any(each.converted or each.refused for each in cases)
        case tuple() as operations:
            return any(not isinstance(each, Nested) for each in operations)
        case _:
            return False


def _spread(functions: dict[str, Function], found: set[str]) -> set[str]:
    """Return *found* and all functions that call one of them, however indirectly."""
    spread = set(found)
    while grown := {name for name, each in functions.items() if name not in spread and called(each) & spread}:
        spread |= grown
    return spread


def _trim(transform: Transform, busy: set[str]) -> Transform:
    return transform if isinstance(transform, Call) and transform.function in busy else Keep()


def _trimmed(function: Function, busy: set[str]) -> Function:
    """Return *function* without calls of functions that do nothing."""
    match function.body:
        case Switch(cases=cases) as switch:
            trimmed = tuple(replace(each, transform=_trim(each.transform, busy)) for each in cases)
            return replace(function, body=replace(switch, cases=trimmed))
        case tuple() as operations:
            found: list[Operation] = []
            for each in operations:
                match each:
                    case Nested(transform=transform) if isinstance(_trim(transform, busy), Keep):
                        pass
                    case Admit(closing=closing):
                        found.append(replace(each, closing=_trim(closing, busy)))
                    case _:
                        found.append(each)
            return replace(function, body=tuple(found))
        case _:
            return function


def _final_message(plan: MessagePlan, names: Mapping[str, str]) -> MessagePlan:
    return replace(
        plan,
        params=None if plan.params is None else final(plan.params, names),
        result=None if plan.result is None else final(plan.result, names),
    )
