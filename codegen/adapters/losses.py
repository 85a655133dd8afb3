"""List the losses between any two revisions.

A row is a place where a step can lose something. Its sources are the revisions before the step in which the value can
occur, and its targets are all revisions after the step. The loss can occur between each of these sources and each of
these targets.
"""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mcpgen.codegen.adapters.ops import (
    Absent,
    Admit,
    Call,
    Case,
    Converted,
    Defaulted,
    Dropped,
    Function,
    Operation,
    Refused,
    Switch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mcpgen.codegen.adapters.plan import DirectionPlan, StepPlan

__all__ = ["LossRow", "loss_rows"]


class LossRow(msgspec.Struct, frozen=True, kw_only=True):
    """One loss.

    Attributes:
        sources: The revisions that have the value, oldest first.
        targets: The revisions that lose it, oldest first.
        place: The type with its key or arm, the message, or the error.
        outcome: The severity of the loss; if it depends on the value, all severities.
        reason: The reason, as a sentence.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    place: str
    outcome: str
    reason: str


def loss_rows(plans: Sequence[StepPlan], revisions: Sequence[str]) -> list[LossRow]:
    """Return the losses between all *revisions*: down before up, the newest step first, then by place."""
    down = [_Rows(plan, plan.down, tuple(revisions)).rows() for plan in reversed(plans)]
    up = [_Rows(plan, plan.up, tuple(revisions)).rows() for plan in plans]
    return list(chain.from_iterable(sorted(_merged(rows), key=_order) for rows in (*down, *up)))


_OUTCOMES = ("degraded", "dropped", "defaulted", "refused")


class _Rows:
    """The rows of one direction of one step."""

    def __init__(self, plan: StepPlan, direction: DirectionPlan, revisions: tuple[str, ...]) -> None:
        self._plan = plan
        self._direction = direction
        source, target = revisions.index(direction.source), revisions.index(direction.target)
        # Ordered from the step outwards.
        self._before = revisions[source:] if source > target else revisions[source::-1]
        self._behind = revisions[target::-1] if source > target else revisions[target:]
        self._order = revisions
        self._severities = _severities(plan.declared.source)
        self._words = _words(plan.declared.source)
        self._whole = {
            function.name: each.function
            for function in direction.apart
            if isinstance(function.body, tuple)
            for each in function.body
            if isinstance(each, Converted) and each.key is None
        }
        # Several functions can have one source. Those whose target is a place without a definition are named after it.
        self._defined = {function.source for function in direction.apart if "." not in function.target}

    def rows(self) -> Iterator[LossRow]:
        for function in self._direction.apart:
            match function.body:
                case Switch() as switch:
                    yield from self._switch(function, switch)
                case tuple() as operations:
                    for each in operations:
                        if not self._is_dead(each, operations):
                            yield from self._operation(function, each, operations)
                case _:
                    pass
        yield from self._messages()
        yield from self._errors()
        for (place, way), found in self._plan.rules.envelopes.items():
            if (way == "up") == (self._direction is self._plan.up):
                service = getattr(found.action, "service", None)
                yield self._row(place, _refused(service), found.reason, lambda revision: revision == self._before[0])

    def _is_dead(self, operation: Operation, operations: tuple[Operation, ...]) -> bool:
        """Whether a declared function that runs before leaves nothing to drop."""
        if not isinstance(operation, Dropped):
            return False
        for each in operations:
            if isinstance(each, Converted) and each.key is None and operation.key in self._words.get(each.function, ()):
                return True
            if isinstance(each, Converted) and each.key == operation.key and operation.unless:
                return True  # the function leaves the default, which is dropped without a loss
        return False

    def _switch(self, function: Function, switch: Switch) -> Iterator[LossRow]:
        if switch.first is not None and not all(self._repeats(each, switch.first) for each in switch.cases):
            yield from self._converted(function.source, switch.first, _always)
        for case in switch.cases:
            place = f"{function.source}[{case.arm}]"
            has = self._holder(case.arm)
            if case.refused is not None:
                yield self._row(place, _refused(case.refused.service), case.refused.reason, has)
            elif case.converted is not None:
                yield from self._converted(place, case.converted, has)

    def _repeats(self, case: Case, converted: Converted) -> bool:
        """Whether the function of *case* converts the value in the same way as *converted*."""
        call = case.transform
        return isinstance(call, Call) and self._whole.get(call.function) == converted.function

    def _operation(
        self, function: Function, operation: Operation, operations: tuple[Operation, ...]
    ) -> Iterator[LossRow]:
        source = function.source
        name = function.target if "." in function.target and source in self._defined else source
        match operation:
            case Dropped(key=key, reason=reason, unless=unless):
                yield self._row(f"{name}.{key}", _unless("dropped", unless), reason, self._key(source, key))
            case Refused(key=key, reason=reason, service=service):
                has = _always if key is None else self._key(source, key)
                yield self._row(f"{name}.{key}" if key else name, _refused(service), reason, has)
            case Absent(key=key, reason=reason, service=service):
                yield self._row(f"{name}.{key} (absent)", _refused(service), reason, self._lacks(source, key))
            case Defaulted(key=key, reason=str() as reason):
                yield self._row(f"{name}.{key} (absent)", "defaulted", reason, self._lacks(source, key))
            case Converted(key=str() as key):
                lossless = [each.unless for each in operations if isinstance(each, Dropped) and each.key == key]
                yield from self._converted(f"{name}.{key}", operation, self._key(source, key), *lossless)
            case Converted():
                keys = {each.key for each in operations if isinstance(each, Admit)}
                unknown = sorted(keys & self._words.get(operation.function, set()))
                for key in unknown:  # older sources do not have the key either, but lose it in an earlier step
                    lossless = [(each.value,) for each in operations if isinstance(each, Defaulted) and each.key == key]
                    yield from self._converted(
                        f"{name}.{key}", operation, lambda revision: revision == self._before[0], *lossless
                    )
                if not unknown:
                    yield from self._converted(name, operation, _always)
            case _:
                pass

    def _converted(
        self, place: str, converted: Converted, has: Callable[[str], bool], unless: tuple[Any, ...] = ()
    ) -> Iterator[LossRow]:
        severities = self._severities.get(converted.function, set())
        if severities:
            yield self._row(place, _unless(_alternatives(severities), unless), converted.reason, has)

    def _messages(self) -> Iterator[LossRow]:
        for message in self._direction.messages:
            for sender, gone in sorted(message.gone.items()):
                has = self._sends(sender, message.name)
                yield self._row(f"{message.name} from the {sender}", _refused(gone.service), gone.reason, has)
            if message.own_error is not None:
                yield from self._converted(f"{message.name} error", message.own_error, self._has(message.name))
            if message.no_error is not None:
                place = f"{message.name} error"
                service, reason = message.no_error.service, message.no_error.reason
                yield self._row(place, _refused(service), reason, self._has(message.name))

    def _errors(self) -> Iterator[LossRow]:
        for error in self._direction.errors:
            if error.last is not None:
                place = f"application errors {error.code} … {error.last}"
                yield self._row(place, f"degraded to {error.to}", error.reason, _always)
                continue
            if error.code not in self._plan.codes[self._before[0]]:
                continue  # a foreign code, which the text above the table describes
            outcome = _refused(error.service) if error.to is None else f"degraded to {error.to}"
            place = f"error {error.code}"
            yield self._row(place, outcome, error.reason, self._errs(error.code))

    def _row(self, place: str, outcome: str, reason: str, has: Callable[[str], bool]) -> LossRow:
        """Return the row for *place*; its sources are the revisions that have it, from the step outwards."""
        sources: list[str] = []
        for revision in self._before:
            if sources and not has(revision):
                break
            sources.append(revision)
        return LossRow(
            sources=tuple(each for each in self._order if each in sources),
            targets=tuple(each for each in self._order if each in self._behind),
            place=place,
            outcome=outcome,
            reason=reason,
        )

    def _key(self, name: str, key: str) -> Callable[[str], bool]:
        node = (self._direction.source, name)
        return lambda revision: self._plan.lineages.has(revision, node, key)

    def _lacks(self, name: str, key: str) -> Callable[[str], bool]:
        node = (self._direction.source, name)
        return lambda revision: not self._plan.lineages.requires(revision, node, key)

    def _holder(self, arm: str) -> Callable[[str], bool]:
        """Return a test whether a revision has the definition *arm*; every revision has an arm without a name."""
        return lambda revision: not arm.isidentifier() or arm in self._plan.definitions.get(revision, frozenset())

    def _errs(self, code: int) -> Callable[[str], bool]:
        return lambda revision: code in self._plan.codes[revision]

    def _has(self, method: str) -> Callable[[str], bool]:
        return lambda revision: any(method == name for _, name in self._plan.senders.get(revision, frozenset()))

    def _sends(self, sender: str, method: str) -> Callable[[str], bool]:
        return lambda revision: (sender, method) in self._plan.senders.get(revision, frozenset())


def _always(revision: str) -> bool:
    del revision
    return True


def _refused(service: str | None) -> str:
    return f"refused ({service})" if service else "refused"


def _merged(rows: Iterable[LossRow]) -> list[LossRow]:
    """Return *rows*, with those that differ only in their outcome as one."""
    found: dict[LossRow, set[str]] = {}
    for row in rows:
        found.setdefault(replace(row, outcome=""), set()).add(row.outcome)
    return [replace(row, outcome=_alternatives(outcomes)) for row, outcomes in found.items()]


def _alternatives(outcomes: Iterable[str]) -> str:
    return " or ".join(sorted(outcomes, key=lambda each: (_OUTCOMES.index(each.split(" ")[0].strip(",")), each)))


def _unless(outcome: str, unless: tuple[Any, ...]) -> str:
    """Return *outcome* with the value that is not a loss, if there is one."""
    return f"{outcome}, unless `{msgspec.json.encode(unless[0]).decode()}`" if unless else outcome


def _severities(source: str) -> dict[str, set[str]]:
    """Return the severities that each function in *source* reports, directly or through functions that it calls."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    found: dict[str, set[str]] = {}
    calls: dict[str, set[str]] = {}
    for node in functions:
        found[node.name], calls[node.name] = set(), set()
        for each in ast.walk(node):
            match each:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="losses"), attr="refuse"),
                    args=[_, _, ast.Constant(value=str() as service)],
                ):
                    found[node.name].add(_refused(service))
                case ast.Call(func=ast.Attribute(value=ast.Name(id="losses"), attr=attribute)):
                    found[node.name].add("refused" if attribute == "refuse" else attribute)
                case ast.Name(id=name):
                    calls[node.name].add(name)
                case _:
                    pass
    for _ in functions:
        for name, called in calls.items():
            found[name].update(*(found[each] for each in called if each in found))
    return found


def _words(source: str) -> dict[str, set[str]]:
    """Return the string constants of each function in *source*, among them the keys that it handles."""
    return {
        node.name: {
            each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }


def _order(row: LossRow) -> tuple[Any, ...]:
    return row.place, row.outcome, row.reason
