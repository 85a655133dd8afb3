"""The to-do list of a step: what nothing covers, each with the words that would cover it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcpgen.codegen import names
from mcpgen.codegen.adapters.declared import module_name
from mcpgen.codegen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgen.codegen.adapters.rules import Need
    from mcpgen.codegen.changes.vocabulary import Step
    from mcpgen.codegen.diff.model import Diff

__all__ = ["to_do"]

# What can be done about a need, the likeliest first.
_ACTIONS = {
    "key-added": "Default(value=...)",
    "key-removed": "Drop()",
    "requiredness-changed": "Default(value=...)",
    "type-changed": "Convert(...)",
    "bounds-changed": "Convert(...)",
    "arm-added": "Convert(...)",
    "arm-removed": "Convert(...)",
    "request-added": "Refuse()",
    "request-removed": "Refuse()",
    "notification-added": "Refuse()",
    "notification-removed": "Refuse()",
    "carrier-changed": 'Refuse("input")',
    "error-added": "Recode(-32603)",
    "error-removed": "Recode(-32603)",
}


def to_do(step: Step, diff: Diff, needs: Iterable[Need]) -> Iterator[Diagnostic]:
    """Yield a finding for each of *needs*, with a change to paste into the module of *step*."""
    merged: dict[tuple[str, str], list[Need]] = {}
    for need in needs:
        merged.setdefault((need.kind, need.id), []).append(need)
    pointers: dict[tuple[str, str], str] = {
        (each.kind, each.id): site.pointer
        for each in diff.changes
        if (site := each.new or each.old) is not None and site.pointer
    }
    where = f"codegen/changes/{module_name(step.old, step.new)}.py"
    for (kind, id_), group in sorted(merged.items()):
        problems = "; ".join(f"going {need.way}, {need.problem}" for need in group)
        pointer = pointers.get((kind, id_)) or next((need.pointer for need in group if need.pointer), "")
        renamed = next((need.renamed for need in group if need.renamed), "")
        hint = f"Add to {'renames' if renamed else 'changes'} of STEP in {where}:\n"
        hint += _rename(renamed, id_) if renamed else _stub(kind, id_, group, diff)
        if kind == "misplaced":
            hint = f"Declare another action in {where}."
        if kind == "arms-alike":
            hint = f"Add a change to {where} that converts the union as a whole: at=({json.dumps(id_)},)."
        yield Diagnostic(
            code="MG501",
            pointer=pointer,
            message=f"{step.old} to {step.new}: no change covers {kind} {id_}: {problems}",
            hint=hint,
        )


def _rename(old: str, new: str) -> str:
    covered = json.dumps(f"definition-added {new}")
    return f"{_renamed(old, new)}\n# or, if they are two things: a Change that covers {covered} and converts both ways"


def _renamed(old: str, new: str) -> str:
    return f"{json.dumps(old)}: {json.dumps(new)},"


def _stub(kind: str, id_: str, needs: Iterable[Need], diff: Diff) -> str:
    # A name has to begin with a letter, and an error's id is a number.
    name = names.snake(f"{id_} {kind}" if id_[0].isalpha() else f"{kind} {id_}").replace("_", "-")
    action = _ACTIONS.get(kind, "Convert(...)")
    ways = [f"    {way}={action}," for way in sorted({need.way for need in needs}, reverse=True)]
    return "\n".join(
        [
            "Change(",
            f"    name={json.dumps(name)},",
            '    says="...",  # one sentence, for people who read losses',
            '    spec="...",  # revision, path#anchor',
            f"    covers=({json.dumps(f'{kind} {id_}')},),",
            *ways,
            *(f"    # {line}" for line in _other_ways(kind, id_, diff)),
            "),",
        ]
    )


def _other_ways(kind: str, id_: str, diff: Diff) -> Iterator[str]:
    """Yield what else may be meant: what went and what came in one place can be the same, by another name."""
    ours = next((each.old or each.new for each in diff.changes if (each.kind, each.id) == (kind, id_)), None)
    opposite = {"arm-added": "arm-removed", "arm-removed": "arm-added", "key-removed": "key-added"}.get(kind)
    if ours is None or opposite is None:
        return
    for each in diff.changes:
        theirs = each.old or each.new
        if each.kind != opposite or theirs is None or (theirs.name, bool(theirs.key)) != (ours.name, bool(ours.key)):
            continue
        if kind == "key-removed" and theirs.shape == ours.shape:
            yield f"or, if it is {theirs.key} now: cover {json.dumps(f'{each.kind} {each.id}')} too, with"
            yield f"up=Rename({json.dumps(theirs.key)}), down=Rename({json.dumps(ours.key)}),"
        elif kind != "key-removed" and theirs.key == ours.key:
            old, new = (theirs, ours) if kind == "arm-added" else (ours, theirs)
            yield f"or, if they are one, add to renames of STEP: {_renamed(old.part.strip('[]'), new.part.strip('[]'))}"
