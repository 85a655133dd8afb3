"""Find the declared changes of a step by place, and report those that are not needed."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from mcpgen.codegen.changes.vocabulary import Action, Change, Refuse, Step
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.diff.model import subject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpgen.codegen.diff.model import Diff

__all__ = ["Found", "Need", "Place", "Rules", "Way"]

Way: TypeAlias = Literal["up", "down"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place in both revisions where their types are compared.

    Attributes:
        old: The place in the names of the older revision.
        new: The place in the names of the newer revision.
        also: Other names of the place: aliases whose values occur there.
    """

    old: str
    new: str
    also: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names of the place. The newer revision's comes first, because the ids of a diff use its names."""
        return tuple(dict.fromkeys((self.new, self.old, *self.also)))

    def inside(self, part: str) -> Place:
        """Return the place *part* inside this one: ``.key``, ``[]``, ``{}`` or ``[arm]``."""
        return Place(old=self.old + part, new=self.new + part, also=tuple(each + part for each in self.also))


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that needs a declared change.

    Attributes:
        kind: The kind, as in a diff.
        id: The id, as in a diff.
        way: The direction of the conversion.
        pointer: The place in the document of the side that has it.
        problem: The reason, for the message.
        renamed: The definition of the older side that may have become the definition *id*.
    """

    kind: str
    id: str
    way: Way
    pointer: str
    problem: str
    renamed: str = ""


class Found(msgspec.Struct, frozen=True):
    """An action, and the change that declares it."""

    change: Change
    action: Action

    @property
    def reason(self) -> str:
        """The reason for losses."""
        return self.change.says


class Rules:
    """The changes of one step."""

    def __init__(self, step: Step, diff: Diff) -> None:
        self.step = step
        self.envelopes: dict[tuple[str, Way], Found] = {}
        self._diff = diff
        self._patterns = [(each, pattern, _compiled(pattern)) for each in step.changes for pattern in each.covers]
        self._matched: set[tuple[str, str]] = set()
        self._consumed: set[tuple[str, Way]] = set()
        self._reached: set[tuple[str, str]] = set()
        self._at: dict[str, list[Change]] = defaultdict(list)
        self.covering: dict[tuple[str, str], Change] = {}
        for each in step.changes:
            for place in each.at:
                self._at[place].append(each)
        for difference in diff.changes:
            change = self.cover(difference.kind, difference.id)
            if change is not None:
                self.covering[difference.kind, difference.id] = change
                if not change.at:
                    sites = [site.place for site in (difference.old, difference.new) if site is not None]
                    for place in dict.fromkeys(sites):
                        self._at[place].append(change)

    def cover(self, kind: str, id_: str) -> Change | None:
        """Return the first change that covers that difference."""
        text = f"{kind} {id_}"
        for change, pattern, compiled in self._patterns:
            if compiled.fullmatch(text):
                self._matched.add((change.name, pattern))
                return change
        return None

    def listed(self, kind: str, *spellings: str) -> str:
        """Return the one of *spellings* that is the id of a difference of that kind, else the first."""
        known = {each.id for each in self._diff.changes if each.kind == kind}
        return next((each for each in spellings if each in known), spellings[0])

    def action(self, way: Way, *places: str) -> Found | None:
        """Return the action for values at one of *places* in that direction, and count it as used."""
        for place in places:
            if (found := self._found(way, place)) is not None:
                self._consumed.add((found.change.name, way))
                self._reached.add((found.change.name, place))
                return found
        return None

    def peek(self, way: Way, *places: str) -> Action | None:
        """Return the action for values at one of *places* in that direction, without counting it as used."""
        return next((found.action for place in places if (found := self._found(way, place)) is not None), None)

    def _found(self, way: Way, place: str) -> Found | None:
        for change in self._at.get(place, ()):
            if (action := _going(change, way)) is not None:
                return Found(change, action)
        return None

    def says(self, *places: str) -> str | None:
        """Return the sentence of the first change at one of *places*, with or without an action."""
        for place in places:
            for change in self._at.get(place, ()):
                return change.says
        return None

    def meet(self, need: Need) -> Found | None:
        """Return the action for a *need* that has no entry in the diff, and count it as used."""
        change = self.cover(need.kind, need.id)
        if change is None or (action := _going(change, need.way)) is None:
            return None
        self._consumed.add((change.name, need.way))
        return Found(change, action)

    def settle(self, adapted: Iterable[str]) -> None:
        """Count a refusal in a definition that is not *adapted* as used: the engine writes the JSON-RPC envelope."""
        adapted = frozenset(adapted)
        used = frozenset(self._consumed)
        for each in self._diff.changes:
            change = self.covering.get((each.kind, each.id))
            site = each.new or each.old
            if change is None or site is None or site.name in adapted or subject(each) not in {"content", "definition"}:
                continue
            ways: tuple[tuple[Way, Action | None], ...] = (("up", change.up), ("down", change.down))
            for way, action in ways:
                if isinstance(action, Refuse) and (change.name, way) not in used:
                    self._consumed.add((change.name, way))
                    self.envelopes[site.place, way] = Found(change, action)

    def unused(self) -> list[Diagnostic]:
        """Return a finding for each pattern that matched nothing and each action that was never applied."""
        findings: list[Diagnostic] = []
        for change, pattern, _ in self._patterns:
            if (change.name, pattern) not in self._matched:
                findings.append(self._finding(change, f"covers {pattern!r}, which matches no difference of this step"))
        for change in self.step.changes:
            for way, action in (("up", change.up), ("down", change.down)):
                if action is not None and (change.name, way) not in self._consumed:
                    what = type(action).__name__
                    findings.append(self._finding(change, f"declares {what} going {way}, which is never used"))
            missed = [each for each in change.at if (change.name, each) not in self._reached]
            if len(missed) < len(change.at):  # otherwise the finding about the action is enough
                problem = "names {} in `at`, but no value is adapted at this place"
                findings += [self._finding(change, problem.format(each)) for each in missed]
            if not change.covers and not change.at:
                findings.append(self._finding(change, "has neither `covers` nor `at`"))
        return findings

    def _finding(self, change: Change, problem: str) -> Diagnostic:
        return Diagnostic(
            code="MG502",
            message=f"{self.step.old} to {self.step.new}: the change {change.name!r} {problem}",
            hint="Correct or delete it where it is declared. `mcpgen diff --format json` shows each kind and id; for a "
            "draft, `mcpgen build --json` without `--adapters` shows them.",
        )


def _going(change: Change, way: Way) -> Action | None:
    return change.up if way == "up" else change.down


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return *pattern* compiled: ``*`` matches any characters, and brackets match themselves."""
    return re.compile(".*".join(map(re.escape, pattern.split("*"))))
