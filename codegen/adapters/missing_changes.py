"""Report the differences of a step that have no rule, each with a declared change to paste."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from mcpgen.codegen import names
from mcpgen.codegen.console import printable
from mcpgen.codegen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgen.codegen.adapters.declared import Declared
    from mcpgen.codegen.adapters.rules import Need
    from mcpgen.codegen.diff.model import Diff

__all__ = ["missing_changes", "to_do_list"]

# The most likely action for each kind of difference.
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


def missing_changes(declared: Declared, diff: Diff, needs: Iterable[Need]) -> Iterator[Diagnostic]:
    """Yield a finding for each of *needs*, with a `Change` to paste into the file of *declared*."""
    step, where = declared.step, declared.where
    merged: dict[tuple[str, str], list[Need]] = {}
    for need in needs:
        merged.setdefault((need.kind, need.id), []).append(need)
    pointers: dict[tuple[str, str], str] = {
        (each.kind, each.id): site.pointer
        for each in diff.changes
        if (site := each.new or each.old) is not None and site.pointer
    }
    for (kind, id_), group in sorted(merged.items()):
        problems = "; ".join(f"going {need.way}, {need.problem}" for need in group)
        pointer = pointers.get((kind, id_)) or next((need.pointer for need in group if need.pointer), "")
        renamed = next((need.renamed for need in group if need.renamed), "")
        hint = f"Add this to `{'renames' if renamed else 'changes'}` of STEP in {where}:\n"
        hint += _rename(renamed, id_) if renamed else _stub(kind, id_, group, diff)
        fault = f"no declared change covers `{kind} {id_}`"
        if kind in {"arms-alike", "misplaced"}:
            fault = f"`{id_}` cannot be adapted"
        if kind == "misplaced":
            hint = f"Use another action in {where}."
        if kind == "arms-alike":
            hint = f"Add a `Change` to {where} that converts the whole union, with at=({json.dumps(id_)},)."
        yield Diagnostic(
            code="MG501",
            pointer=pointer,
            message=f"{step.old} to {step.new}: {fault}: {problems}",
            hint=hint,
        )


_TO_DO = '''"""The changes from {old} to {new}: a to-do list. Replace each `...`, then build again."""

from __future__ import annotations

from typing import Any

from mcpgen.codegen.changes.vocabulary import (
    At, Change, Convert, Default, Drop, Keep, Losses, Read, Recode, Refuse, Rename, Step,
)

STEP = Step(
    old={old!r},
    new={new!r},
    renames={{
{renames}
    }},
    changes=(
{changes}
    ),
)
'''


def to_do_list(old: str, new: str, missing: Iterable[Diagnostic]) -> str:
    """Return a module that declares each of the *missing* changes as far as the generator can."""
    stubs: dict[str, list[str]] = {"renames": [], "changes": []}
    for each in missing:
        head, found, stub = each.hint.partition(":\n")
        table = "renames" if "`renames`" in head else "changes"
        # A name from the document must not end the comment: the next build runs the file.
        stubs[table].append(stub if found else printable(f"# {each.message}. {each.hint}"))
    texts = {table: textwrap.indent("\n".join(found), " " * 8) for table, found in stubs.items()}
    return _TO_DO.format(old=old, new=new, **texts)


def _rename(old: str, new: str) -> str:
    covered = json.dumps(f"definition-added {new}")
    return f"{_renamed(old, new)}\n# Or, if these are two definitions: a Change that covers {covered}."


def _renamed(old: str, new: str) -> str:
    return f"{json.dumps(old)}: {json.dumps(new)},"


def _stub(kind: str, id_: str, needs: Iterable[Need], diff: Diff) -> str:
    # The name of a change starts with a letter, but the id of an error is a number.
    name = names.snake(f"{id_} {kind}" if id_[0].isalpha() else f"{kind} {id_}").replace("_", "-")
    ways = [f"    {way}={_action(kind, way)}," for way in sorted({need.way for need in needs}, reverse=True)]
    return "\n".join(
        [
            "Change(",
            f"    name={json.dumps(name)},",
            '    says="...",  # the reason of its losses, one sentence: "2025-03-26 has no `title`."',
            '    spec="...",  # its place in the specification: "2025-06-18, server/tools#structured-content"',
            f"    covers=({json.dumps(f'{kind} {id_}')},),",
            *ways,
            *(printable(f"    # {line}") for line in _other_ways(kind, id_, diff)),
            "),",
        ]
    )


def _action(kind: str, way: str) -> str:
    if (kind, way) == ("key-removed", "down"):
        kind = "key-added"  # going down, the key is added again
    return _ACTIONS.get(kind, "Convert(...)")


def _other_ways(kind: str, id_: str, diff: Diff) -> Iterator[str]:
    """Yield alternatives: a key or arm that was removed may be one that was added under another name."""
    ours = next((each.old or each.new for each in diff.changes if (each.kind, each.id) == (kind, id_)), None)
    opposite = {"arm-added": "arm-removed", "arm-removed": "arm-added", "key-removed": "key-added"}.get(kind)
    if ours is None or opposite is None:
        return
    differences = {(each.kind, each.id) for each in diff.changes}
    for each in diff.changes:
        theirs = each.old or each.new
        if each.kind != opposite or theirs is None or (theirs.name, bool(theirs.key)) != (ours.name, bool(ours.key)):
            continue
        if kind == "key-removed" and theirs.shape == ours.shape:
            yield f"Or, if {theirs.key} replaces it: also cover {json.dumps(f'{each.kind} {each.id}')}, and use"
            yield f"up=Rename({json.dumps(theirs.key)}), down=Rename({json.dumps(ours.key)}),"
        elif kind != "key-removed" and theirs.key == ours.key:
            old, new = (theirs, ours) if kind == "arm-added" else (ours, theirs)
            if {("definition-removed", old.shape), ("definition-added", new.shape)} <= differences:
                rename = _renamed(old.shape, new.shape)
                yield f"Or, if one replaces the other, add to `renames` of STEP: {rename}"
