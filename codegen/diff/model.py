"""What a comparison of two revisions finds, as values.

A `Change` is one difference, at the definition that owns it: what merely mentions that definition is not repeated.
Everything about the older side stands in ``old`` and everything about the newer in ``new``, so that a diff can be
turned round without looking at the schemas again.
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
    "direction-changed",  # all its senders became receivers
    "carrier-changed",  # a request of its own, or asked inside a result
    "params-changed",
    "params-requiredness-changed",
    "result-changed",
    "task-result-changed",
    "capability-changed",
    "error-added",
    "error-removed",
    "error-code-changed",  # the name has another number
    "error-name-changed",  # the number has another name
    # Definitions, and what is inside them.
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
"""What became of the values at that place; an object without openness counts as holding its known keys alone.

``widened``: every old value is still valid. ``narrowed``: every new value was valid before. ``same``: both.
``changed``: neither could be shown.
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
"""What an effect is, seen from the other side."""

DEPRECATIONS: frozenset[Kind] = frozenset({"definition-deprecated", "definition-undeprecated"})
"""The kinds that say nothing about which messages and values there are."""

MECHANICAL = "mechanical"
"""The rule of a difference that adapters take care of without a declared change."""
UNCOVERED = "none"
"""The rule of a difference that has none and needs one."""


class Site(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One side of a change.

    Attributes:
        name: The definition; of a message its method; of an error its code.
        sender: Who sends the message *name*; nothing elsewhere.
        carrier: How the message travels: a request, a notification, or an input request inside a result.
        key: The key of the object *name*, or nothing.
        part: What inside the type: ``[AudioContent]`` an arm or a value, ``[]`` the items, ``{}`` the values of a map.
        pointer: Where in the revision's patched document (the vendored one with its overlay).
        shape: The type, value or setting there, in words.
        required: Whether the key, or the params of a message, must be there.
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
        kind: What changed.
        id: The place, as the new side spells it if it has it. With the kind it names the change, in every diff.
        effect: What became of the values there; None where the question makes no sense.
        old: How it was; None if it was not there.
        new: How it is; None if it is gone.
        affects: The messages that hold the place, ``tools/call result``, sorted.
        rule: The declared change that covers it, or `MECHANICAL` or `UNCOVERED`; between revisions that are no
            neighbours with its step, ``2024-11-05 to 2025-03-26: audio``, several with semicolons. Nothing where no
            step leads from the one to the other, since rules belong to steps between vendored revisions.
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
        old: The label of the one.
        new: The label of the other.
        uncompared: What is not known of one of them and was left out: ``era``, ``errors``, ``deprecations``, and
            ``overlay``.
        changes: Sorted by subject (era, messages, errors, definitions), then id, then kind.
    """

    old: str
    new: str
    uncompared: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


def change(kind: Kind, *, old: Site | None = None, new: Site | None = None, effect: Effect | None = None) -> Change:
    """Return the change between two sites, at least one of which is given."""
    site = new or old
    return Change(kind=kind, id=site.place if site else "", effect=effect, old=old, new=new)


def mirrored(diff: Diff) -> Diff:
    """Return *diff* seen from the other side: what was added is removed, what was widened is narrowed."""
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
    """Return *changes* in the order of a diff."""
    return tuple(sorted(changes, key=_sort_key))


def _sort_key(each: Change) -> tuple[int, str, int]:
    return _SUBJECTS.index(subject(each)), each.id, _ORDER[each.kind]


Subject: TypeAlias = Literal["era", "request", "notification", "error", "definition", "content"]
_SUBJECTS: tuple[Subject, ...] = get_args(Subject)
_DEFINITION = frozenset(kind for kind in _ORDER if kind.startswith("definition-"))
_CONTENT = frozenset(kind for kind in _ORDER if _ORDER[kind] >= _ORDER["unknown-keys-changed"])


def subject(each: Change) -> Subject:
    """Say what a change is about: a message, an error, a definition as a whole, or the content of one."""
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
