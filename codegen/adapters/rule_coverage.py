"""Find the rule that covers each difference between two vendored revisions.

Theory of operation. Rules belong to steps. The step of two neighbours was planned with the same diff, so each
difference either has a declared change, or is converted mechanically, or has a `Need`, which means that nothing covers
it. Distant revisions have no rules of their own: a value passes every step between them. A difference then gets the
rules that these steps have for the same place, whatever its name there. Only the steps up to the newer revision are
planned. Later steps cannot change the result, and the last one may be unfinished.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcpgen.codegen import ir
from mcpgen.codegen.adapters.declared import declared_steps
from mcpgen.codegen.adapters.plan import survey_steps
from mcpgen.codegen.diff import compare
from mcpgen.codegen.diff.model import DEPRECATIONS, MECHANICAL, UNCOVERED, mirrored
from mcpgen.codegen.diff.renames import find_renames
from mcpgen.codegen.diff.schema_pair import SchemaPair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcpgen.codegen.adapters.declared import Declared
    from mcpgen.codegen.adapters.plan import StepPlan
    from mcpgen.codegen.adapters.rules import Need
    from mcpgen.codegen.diff import Edition
    from mcpgen.codegen.diff.model import Change, Diff, Site

__all__ = ["compare_vendored"]


def compare_vendored(
    old: str, new: str, editions: Sequence[Edition], declared: Sequence[Declared] | None = None
) -> Diff:
    """Return the differences from revision *old* to *new*, in either order, each with the rule that covers it.

    Definitions count as the same if a step between the revisions declares the rename.

    Args:
        old: The label of one of *editions*.
        new: The label of another one.
        editions: The vendored revisions, oldest first, at least up to the newer of the two.
        declared: The declarations of the steps; None means those of the package.

    Raises:
        Refused: MG503, the declarations are not valid.
    """
    labels = [each.label for each in editions]
    first, last = sorted((labels.index(old), labels.index(new)))
    known = editions[: last + 1]
    plans = survey_steps(known, (declared_steps(labels) if declared is None else declared)[:last])
    steps = [_Step(plan, *sides) for plan, sides in zip(plans, pairwise(known), strict=True)][first:]
    found = _near(steps[0]) if len(steps) == 1 else _far(steps, known[first], known[last])
    return found if labels.index(old) == first else mirrored(found)


class _Step:
    """One step, with its differences by place."""

    def __init__(self, plan: StepPlan, old: Edition, new: Edition) -> None:
        self.label = f"{old.label} to {new.label}"
        self.old = old
        self.new = new
        self.diff = plan.diff
        self.renames = plan.declared.step.renames
        self.schemas = SchemaPair(old.schema, new.schema, find_renames(old.schema, new.schema, self.renames))
        self._plan = plan
        self._at: dict[str, list[Change]] = {}
        self._by_alias: dict[str, list[Change]] = {}
        for each in plan.diff.changes:
            for place in dict.fromkeys(self._spellings(each)):
                self._at.setdefault(place, []).append(each)
            names = [site.name for site in (each.old or each.new, each.new or each.old) if site is not None]
            for schema, name in zip((old.schema, new.schema), names, strict=True):
                for place in _by_alias(each, schema, name):
                    self._by_alias.setdefault(place, []).append(each)
        self._uncovered = {(each.kind, each.id) for need in plan.needs for each in self._asked(need)}

    def rule(self, each: Change) -> str:
        """Return the name of the change that covers a difference of this step."""
        if (each.kind, each.id) in self._uncovered:
            return UNCOVERED
        found = (self._plan.rules.cover(each.kind, place) for place in self._spellings(each))
        return next((change.name for change in found if change is not None), MECHANICAL)

    def at(self, place: str) -> list[Change]:
        """Return the differences of this step at *place*."""
        return self._at.get(place, [])

    def _spellings(self, each: Change) -> Iterator[str]:
        """Yield the names of the place of a difference: its id, then the names in both revisions and in the plan."""
        yield each.id
        for site, partners in ((each.old, self.schemas.old.partners), (each.new, self.schemas.new.partners)):
            if site is None:
                continue
            yield site.place
            yield _called(site, partners.get(site.name, site.name))
            match each.kind:  # the plan names the parts of a message
                case "params-changed":
                    yield f"{site.name} params"
                case "result-changed":
                    yield f"{site.name} result"
                case "task-result-changed":
                    yield f"{site.name} result[{site.shape}]"
                case _:
                    pass

    def _asked(self, need: Need) -> list[Change]:
        """Return the differences that *need* belongs to: the same one, otherwise the nearest enclosing one."""
        for found in (self._at, self._by_alias):
            if same := [each for each in found.get(need.id, ()) if each.kind == need.kind]:
                return same
        around = [place for place in self._at if re.match(rf"{re.escape(place)}($|[.\[{{])", need.id)]
        if around:
            nearest = self._at[max(around, key=len)]
        else:  # the params or the result of a message became another definition
            carried = {
                ref.name: None
                for method in (*self.old.methods, *self.new.methods)
                for part, ref in (("params", method.params), ("result", method.result))
                if need.id.startswith(f"{method.name} {part}") and isinstance(ref, ir.Named)
            }
            nearest = [each for name in carried for each in self.at(name)]
        return [each for each in nearest if each.kind not in DEPRECATIONS]


def _near(step: _Step) -> Diff:
    return replace(step.diff, changes=tuple(replace(each, rule=step.rule(each)) for each in step.diff.changes))


def _far(steps: Sequence[_Step], old: Edition, new: Edition) -> Diff:
    found = compare(old, new, renames=_renames(steps, old))
    return replace(found, changes=tuple(replace(each, rule=_along(steps, each)) for each in found.changes))


def _renames(steps: Sequence[_Step], old: Edition) -> dict[str, str]:
    """Return new name by old name, for the definitions of *old* whose rename one of *steps* declares.

    Renames that a step found without a declaration are searched for again: between distant revisions they are less
    certain.
    """
    names, declared = {name: name for name in old.schema.definitions}, set[str]()
    for step in steps:
        partners = step.schemas.old.partners
        declared |= {first for first, name in names.items() if name in step.renames}
        names = {first: partners[name] for first, name in names.items() if name in partners}
    return {first: last for first, last in names.items() if first in declared and first != last}


def _along(steps: Sequence[_Step], far: Change) -> str:
    """Return the rules that *steps* have at the place of *far*, or an empty string if they have none."""
    site = far.new or far.old
    if site is None:
        return ""
    passed = list(zip(steps, pairwise(_names(steps, far)), strict=True))
    here = [
        (step, each)
        for step, names in passed
        for place in dict.fromkeys(_called(site, name) for name in names)
        for each in step.at(place)
    ]
    if far.kind in DEPRECATIONS or all(_stays(each) for each in (far, *(each for _, each in here))):
        # The place exists in all revisions. A change of its type and of its requiredness are different differences.
        here = [(step, each) for step, each in here if each.kind == far.kind] or here
    if not here:  # the union is inline here, but has a name in the steps
        here = [
            (step, each)
            for step, names in passed
            for edition, name in zip((step.old, step.new), names, strict=True)
            for place in _by_alias(far, edition.schema, name)
            for each in step.at(place)
            if each.kind == far.kind
        ]
    if not here:  # the whole definition was another one in between
        here = [(step, each) for step, names in passed for name in dict.fromkeys(names) for each in step.at(name)]
    return _joined(here)


def _stays(each: Change) -> bool:
    """Whether the place of *each* exists before and after."""
    return (each.old is not None and each.new is not None) or each.kind in DEPRECATIONS


def _joined(found: Sequence[tuple[_Step, Change]]) -> str:
    """Return the rules of several steps as one line."""
    rules: dict[str, dict[str, None]] = {}
    for step, each in found:
        rules.setdefault(step.label, {})[step.rule(each)] = None
    if any(UNCOVERED in names for names in rules.values()):
        return UNCOVERED
    declared = {label: [name for name in names if name != MECHANICAL] for label, names in rules.items()}
    parts = [f"{label}: {', '.join(names)}" for label, names in declared.items() if names]
    return "; ".join(parts) or (MECHANICAL if found else "")


def _names(steps: Sequence[_Step], far: Change) -> list[str]:
    """Return the name of the definition of *far* in each revision, oldest first."""
    if far.new is not None:
        names = [far.new.name]
        for step in reversed(steps):
            names.append(step.schemas.new.partners.get(names[-1], names[-1]))
        return names[::-1]
    names = [far.old.name if far.old is not None else ""]
    for step in steps:
        names.append(step.schemas.old.partners.get(names[-1], names[-1]))
    return names


def _called(site: Site, name: str) -> str:
    return replace(site, name=name).place


def _by_alias(each: Change, schema: ir.Schema, name: str) -> Iterator[str]:
    """Yield the places of an arm or a value in the aliases that *schema* uses at the place of *each*."""
    site, definition = each.new or each.old, schema.definitions.get(name)
    if site is None or not site.part.endswith(f"[{site.shape}]"):
        return
    match definition:
        case ir.Object(properties=properties):
            refs = [key.type for key in properties if key.wire == site.key]
        case ir.Alias(type=ref):
            refs = [ref]
        case _:
            refs = []
    for alias in _aliases(schema, refs):
        yield f"{alias}[{site.shape}]"


def _aliases(schema: ir.Schema, refs: list[ir.TypeRef]) -> dict[str, None]:
    """Return the aliases that *refs* refer to, including those inside lists and maps."""
    found: dict[str, None] = {}
    while refs:
        match refs.pop():
            case ir.Named(name=name) if name not in found and isinstance(alias := schema.definitions[name], ir.Alias):
                found[name] = None
                refs.append(alias.type)
            case ir.Array(item=inner) | ir.Mapping(value=inner):
                refs.append(inner)
            case ir.Union(arms=arms):
                refs += arms
            case _:
                pass
    return found
