"""Group the changes of a diff into the rows of a report.

An equal change in many definitions (``jsonrpc`` became part of every request) is one row that lists them. The arms that
a union gained also share a row. Changes share a row only if the same rule covers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from mcpgen.codegen.diff.model import DEPRECATIONS, Change, Diff, Kind, Site, Subject, subject

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

__all__ = ["Column", "Mark", "Row", "Section", "sections"]

Mark: TypeAlias = Literal["+", "-", "~"]
Column: TypeAlias = Literal["group", "label", "notes", "detail"]

# An equal change in at least this many definitions becomes one row.
_LEAST_SHARED = 3

_ASPECTS: dict[Kind, str] = {
    "direction-changed": "sender",
    "carrier-changed": "travels as",
    "params-changed": "params",
    "params-requiredness-changed": "params",
    "result-changed": "result",
    "task-result-changed": "task result",
    "capability-changed": "capability",
}
_CARRIERS = {"request": "a request", "input": "an input request", "notification": "a notification"}
_MEMBERS: dict[Kind, str] = {
    "arm-added": "arm",
    "arm-removed": "arm",
    "value-added": "value",
    "value-removed": "value",
}
# For these kinds the report shows the effect. For the others, the old and new text or the mark shows it already.
_SHOWN_EFFECTS: frozenset[Kind] = frozenset(
    {"params-changed", "result-changed", "definition-kind-changed", "type-changed", "bounds-changed"}
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a report.

    Attributes:
        group: The subheading of the row, if its section has any.
        label: The place of the change.
        notes: Related names: senders, definitions.
        detail: The change.
        rule: The rule that covers the change, as in `Change`.
    """

    mark: Mark
    group: str = ""
    label: str
    notes: tuple[str, ...] = ()
    detail: str = ""
    rule: str = ""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under a heading, with the titles of their columns. Other cells of a row are empty."""

    title: str
    columns: dict[Column, str]
    rows: list[Row]


def sections(diff: Diff) -> list[Section]:
    """Return the sections of a report that have rows, in order."""
    of: dict[Subject, list[Change]] = {}
    for each in diff.changes:
        of.setdefault(subject(each), []).append(each)
    definitions, content = of.get("definition", []), of.get("content", [])
    deprecations, wholes = _split(definitions, lambda each: each.kind in DEPRECATIONS)
    restated, left = _split(content, lambda each: each.kind == "type-changed" and each.effect == "same")
    shared = _grouped([each for each in left if _site(each).key], _alike)
    repeated = [changes for changes in shared if len(changes) >= _LEAST_SHARED]
    grouped = {(each.kind, each.id) for changes in repeated for each in changes}
    own = [each for each in left if (each.kind, each.id) not in grouped]
    messages: dict[Column, str] = {"label": "method", "notes": "sender", "detail": "change"}
    found = [
        Section(title="Era", columns={"detail": "change"}, rows=[_era(each) for each in of.get("era", [])]),
        Section(title="Requests", columns=messages, rows=_messages(of.get("request", []))),
        Section(title="Notifications", columns=messages, rows=_messages(of.get("notification", []))),
        Section(
            title="Error codes",
            columns={"label": "code", "detail": "name"},
            rows=[_error(each) for each in of.get("error", [])],
        ),
        Section(
            title="Definitions",
            columns={"label": "definition", "detail": "content"},
            rows=[_definition(each) for each in wholes],
        ),
        Section(title="Deprecated", columns={"notes": "definitions"}, rows=_deprecated(deprecations)),
        Section(
            title="In several definitions",
            columns={"label": "place", "detail": "change", "notes": "definitions"},
            rows=[_content(changes[:1], notes=[_site(each).name for each in changes]) for changes in repeated],
        ),
        Section(
            title="In one definition",
            columns={"group": "definition", "label": "place", "detail": "change"},
            rows=[_content(changes) for changes in _grouped(own, _together)],
        ),
        Section(
            title="Same values, written differently",
            columns={"label": "type", "notes": "places"},
            rows=[_restated(changes) for changes in _grouped(restated, lambda each: (_shapes(each), each.rule))],
        ),
    ]
    return [section for section in found if section.rows]


# Rows


def _era(each: Change) -> Row:
    return Row(mark="~", label="", detail=_turn(*_shapes(each)), rule=each.rule)


def _messages(changes: list[Change]) -> list[Row]:
    """Return a row for each change, once for both senders where it is the same for both."""
    rows: list[Row] = []
    for same in _grouped(changes, lambda each: (_site(each).name, each.kind, _aspect(each), each.rule)):
        each = same[0]
        senders = tuple(dict.fromkeys(_site(other).sender for other in same))
        row = Row(mark=_mark(each), label=_site(each).name, notes=senders, detail=_aspect(each), rule=each.rule)
        rows.append(row)
    return sorted(rows, key=lambda row: row.label)


def _aspect(each: Change) -> str:
    """Return what changed in a message."""
    if each.old is None or each.new is None:
        return _site(each).shape
    match each.kind:
        case "direction-changed":
            words: tuple[str, ...] = (each.old.sender, each.new.sender)
        case "carrier-changed":
            words = (_CARRIERS[each.old.shape], _CARRIERS[each.new.shape])
        case "params-requiredness-changed":
            words = (_needed(each.old), _needed(each.new))
        case _:
            words = _shapes(each)
    return f"{_ASPECTS[each.kind]}: {_turn(*words)}{_effect(each)}"


def _error(each: Change) -> Row:
    site = _site(each)
    if each.kind == "error-code-changed" and each.old is not None:
        return Row(mark="~", label=site.name, detail=f"{site.shape}, was {each.old.name}", rule=each.rule)
    detail = site.shape if each.old is None or each.new is None else _turn(*_shapes(each))
    return Row(mark=_mark(each), label=site.name, detail=detail, rule=each.rule)


def _definition(each: Change) -> Row:
    site = _site(each)
    if each.kind == "definition-renamed" and each.old is not None:
        return Row(mark="~", label=site.name, detail=f"renamed from {each.old.name}", rule=each.rule)
    detail = site.shape if each.old is None or each.new is None else _turn(*_shapes(each)) + _effect(each)
    return Row(mark=_mark(each), label=site.name, detail=detail, rule=each.rule)


def _deprecated(changes: list[Change]) -> list[Row]:
    rows: list[Row] = []
    for same in _grouped(sorted(changes, key=lambda each: each.kind), lambda each: (each.kind, each.rule)):
        mark: Mark = "+" if same[0].kind == "definition-deprecated" else "-"
        rows.append(Row(mark=mark, label="", notes=tuple(_site(each).name for each in same), rule=same[0].rule))
    return rows


def _content(changes: list[Change], notes: Iterable[str] = ()) -> Row:
    """Return the row of *changes*: one change, or several members of one union or enumeration."""
    each, site = changes[0], _site(changes[0])
    notes = tuple(notes)
    if noun := _MEMBERS.get(each.kind):
        label, detail = _holder(each), ", ".join(_site(other).shape for other in changes)
        if label:
            detail = f"{noun}{'s' if len(changes) > 1 else ''} {detail}"
        label = label or noun
    elif each.kind == "requiredness-changed" and each.old and each.new:
        label, detail = site.key, _turn(_needed(each.old), _needed(each.new))
    elif each.old and each.new:
        label, detail = site.key + site.part or _OWN_LABELS[each.kind], _turn(*_shapes(each)) + _effect(each)
    else:
        label, detail = site.key + ("" if site.required else "?"), site.shape
    group = "" if notes else site.name
    return Row(mark=_mark(each), group=group, label=label, notes=notes, detail=detail, rule=each.rule)


_OWN_LABELS: dict[Kind, str] = {
    "type-changed": "type",
    "bounds-changed": "bounds",
    "unknown-keys-changed": "unknown keys",
}


def _restated(changes: list[Change]) -> Row:
    each = changes[0]
    return Row(mark="~", label=_turn(*_shapes(each)), notes=tuple(other.id for other in changes), rule=each.rule)


# Parts of rows


def _mark(each: Change) -> Mark:
    return "+" if each.old is None else "-" if each.new is None else "~"


def _site(each: Change) -> Site:
    return each.new or each.old or Site(name=each.id)


def _shapes(each: Change) -> tuple[str, str]:
    return each.old.shape if each.old else "", each.new.shape if each.new else ""


def _turn(before: str, after: str) -> str:
    return f"{before or 'none'} -> {after or 'none'}"


def _needed(site: Site) -> str:
    return "required" if site.required else "optional"


def _effect(each: Change) -> str:
    return f"  ({each.effect})" if each.kind in _SHOWN_EFFECTS and each.effect not in {None, "changed"} else ""


def _holder(each: Change) -> str:
    """Return the place of the union or enumeration whose member was added or removed."""
    site = _site(each)
    return site.key + site.part.removesuffix(f"[{site.shape}]")


# Changes that share a row


def _split(changes: Iterable[Change], wanted: Callable[[Change], bool]) -> tuple[list[Change], list[Change]]:
    """Return the *changes* that are *wanted*, and the others."""
    found: tuple[list[Change], list[Change]] = ([], [])
    for each in changes:
        found[0 if wanted(each) else 1].append(each)
    return found


def _grouped(changes: Iterable[Change], key: Callable[[Change], Hashable]) -> list[list[Change]]:
    """Return *changes* grouped by *key*, in the order of the first change of each group."""
    groups: dict[Hashable, list[Change]] = {}
    for each in changes:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def _alike(each: Change) -> Hashable:
    """Return a key that is equal for equal changes in different definitions."""
    site = _site(each)
    needed = each.old and each.old.required, each.new and each.new.required
    return each.kind, site.key, site.part, _shapes(each), needed, _effect(each), each.rule


def _together(each: Change) -> Hashable:
    """Return a key that is equal for members added to, or removed from, one union. Other changes are not grouped."""
    return (each.kind, _site(each).name, _holder(each), each.rule) if each.kind in _MEMBERS else (each.kind, each.id)
