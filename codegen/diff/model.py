"""The result of a comparison of two revisions, as values.

A `Change` is one difference, reported once at the definition that contains it. All facts about the first revision are
in ``old`` and all facts about the second in ``new``, so a diff can be mirrored without the schemas.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

__all__ = [
    "DEPRECATIONS",
    "MECHANICAL",
    "TURNED",
    "UNCOVERED",
    "Change",
    "Diff",
    "Effect",
    "Kind",
    "Site",
    "Subject",
    "change",
    "mirrored",
    "sort_changes",
    "subject",
]

Kind: TypeAlias = Literal[
    "era-changed",
    # Messages, each with its sender.
    "request-added",
    "request-removed",
    "notification-added",
    "notification-removed",
    "direction-changed",  # the sender and the receiver changed roles
    "carrier-changed",  # a separate request, or an input request inside a result
    "params-changed",
    "params-requiredness-changed",
    "result-changed",
    "task-result-changed",
    "capability-changed",
    "error-added",
    "error-removed",
    "error-code-changed",  # the same name with another code
    "error-name-changed",  # the same code with another name
    # Definitions and their content.
    "definition-added",
    "definition-removed",
    "definition-renamed",
    "definition-kind-changed",  # from an object to another type or back
    "definition-deprecated",
    "definition-undeprecated",
    "unknown-keys-changed",  # kept, dropped or refused
    "key-added",
    "key-removed",
    "requiredness-changed",
    "type-changed",
    "arm-added",  # of a union
    "arm-removed",
    "value-added",  # of an enumeration
    "value-removed",
    "bounds-changed",
]

Effect: TypeAlias = Literal["widened", "narrowed", "same", "changed"]
"""How the set of valid values changed. An object that is not open counts as having only its known keys.

``widened``: every old value is still valid. ``narrowed``: every new value was valid before. ``same``: both.
``changed``: neither could be proven.
"""

_ORDER = {kind: index for index, kind in enumerate(get_args(Kind))}

_COMES_AND_GOES: dict[Kind, Kind] = {
    "request-added": "request-removed",
    "notification-added": "notification-removed",
    "error-added": "error-removed",
    "definition-added": "definition-removed",
    "definition-deprecated": "definition-undeprecated",
    "key-added": "key-removed",
    "arm-added": "arm-removed",
    "value-added": "value-removed",
}
_MIRRORED: dict[Kind, Kind] = {**_COMES_AND_GOES, **{after: before for before, after in _COMES_AND_GOES.items()}}
TURNED: dict[Effect, Effect] = {"widened": "narrowed", "narrowed": "widened", "same": "same", "changed": "changed"}
"""Each effect in the opposite direction."""

DEPRECATIONS: frozenset[Kind] = frozenset({"definition-deprecated", "definition-undeprecated"})
"""The kinds that do not change which messages and values are valid."""

MECHANICAL = "mechanical"
"""The rule of a difference that adapters convert without a declared change."""
UNCOVERED = "none"
"""The rule of a difference that needs a declared change and has none."""


class Site(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One side of a change.

    Attributes:
        name: The definition, the method of a message, or the code of an error.
        sender: The sender of the message *name*; otherwise empty.
        carrier: How the message is sent: as a request, as a notification, or as an input request inside a result.
        key: The key of the object *name*, or empty.
        part: A part of the type: ``[AudioContent]`` is an arm or a value, ``[]`` the items, ``{}`` the values of a map.
        pointer: The place in the patched document of the revision.
        shape: The type, value or setting there, as text.
        required: Whether the key, or the params of a message, is required.
    """

    name: str
    sender: Literal["", "client", "server"] = ""
    carrier: Literal["", "request", "notification", "input"] = ""
    key: str = ""
    part: str = ""
    pointer: str = ""
    shape: str = ""
    required: bool | None = None

    @property
    def place(self) -> str:
        """``Tool.execution``, ``ContentBlock[AudioContent]``, ``client tools/call``, ``-32002``."""
        owner = f"{self.sender} {self.name}" if self.sender else self.name
        return f"{owner}.{self.key}{self.part}" if self.key else owner + self.part


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference.

    Attributes:
        kind: The kind of the difference.
        id: The place, with the names of the new side if it exists there. Kind and id identify the change in a diff.
        effect: How the set of valid values changed; None if that does not apply.
        old: The old site; None if the place is new.
        new: The new site; None if the place was removed.
        affects: The messages that contain the place, ``tools/call result``, sorted.
        rule: The declared change that covers the difference, or `MECHANICAL` or `UNCOVERED`. If the revisions are not
            neighbours, each change has its step, ``2024-11-05 to 2025-03-26: audio``, and semicolons separate the
            steps. Empty if one of the revisions is not vendored, because rules belong to steps.
    """

    kind: Kind
    id: str
    effect: Effect | None = None
    old: Site | None = None
    new: Site | None = None
    affects: tuple[str, ...] = ()
    rule: str = ""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """All differences between two revisions, sorted.

    Attributes:
        old: The label of the first revision.
        new: The label of the second revision.
        uncompared: The facts that were not compared, because one revision lacks them: ``era``, ``errors``,
            ``deprecations``, ``overlay``.
        changes: Sorted by subject (era, messages, errors, definitions), then id, then kind.
    """

    old: str
    new: str
    uncompared: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


def change(kind: Kind, *, old: Site | None = None, new: Site | None = None, effect: Effect | None = None) -> Change:
    """Return the change between two sites. At least one of them must be given."""
    site = new or old
    return Change(kind=kind, id=site.place if site else "", effect=effect, old=old, new=new)


def mirrored(diff: Diff) -> Diff:
    """Return *diff* in the opposite direction: added becomes removed, widened becomes narrowed."""
    turned = [
        msgspec.structs.replace(
            change(
                _MIRRORED.get(each.kind, each.kind),
                old=each.new,
                new=each.old,
                effect=TURNED[each.effect] if each.effect else None,
            ),
            affects=each.affects,
            rule=each.rule,
        )
        for each in diff.changes
    ]
    return Diff(old=diff.new, new=diff.old, uncompared=diff.uncompared, changes=sort_changes(turned))


def sort_changes(changes: list[Change]) -> tuple[Change, ...]:
    """Return *changes* sorted as in a `Diff`."""
    return tuple(sorted(changes, key=_sort_key))


def _sort_key(each: Change) -> tuple[int, str, int]:
    return _SUBJECTS.index(subject(each)), each.id, _ORDER[each.kind]


Subject: TypeAlias = Literal["era", "request", "notification", "error", "definition", "content"]
_SUBJECTS: tuple[Subject, ...] = get_args(Subject)
_DEFINITION = frozenset(kind for kind in _ORDER if kind.startswith("definition-"))
_CONTENT = frozenset(kind for kind in _ORDER if _ORDER[kind] >= _ORDER["unknown-keys-changed"])


def subject(each: Change) -> Subject:
    """Return the subject of a change: a message, an error, a whole definition, or the content of one."""
    if each.kind in _DEFINITION:
        return "definition"
    if each.kind in _CONTENT:
        return "content"
    if each.kind == "era-changed":
        return "era"
    if each.kind.startswith("error-"):
        return "error"
    site = each.new or each.old
    return "notification" if site is not None and site.carrier == "notification" else "request"
