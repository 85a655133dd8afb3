"""What a generated adapter does, as data: functions over JSON values, and the operations inside them.

`walk` writes these nodes, `emit` lays them out as Python, `losses` as the table for people.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, assert_never

import msgspec

__all__ = [
    "Absent",
    "Admit",
    "Call",
    "Case",
    "Condition",
    "Converted",
    "Defaulted",
    "Dropped",
    "Foreign",
    "Function",
    "Keep",
    "Moved",
    "Nested",
    "Operation",
    "Refused",
    "Relabelled",
    "Switch",
    "Transform",
    "called",
    "is_idle",
]


class Keep(msgspec.Struct, frozen=True):
    """The value stays."""


class Call(msgspec.Struct, frozen=True):
    """The value, each item of the list or each member of the map goes through *function*."""

    function: str
    over: Literal["value", "items", "members"] = "value"


Transform: TypeAlias = Keep | Call


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """Keys go that only other revisions know, or, going down, only the target."""

    keys: tuple[str, ...]


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """A declared function rewrites the value of *key*, or of the whole object; the source spelt the key *spelled*."""

    key: str | None
    spelled: str | None = None
    function: str
    reason: str


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """*key* gets the name *to*."""

    key: str
    to: str


class Admit(msgspec.Struct, frozen=True, kw_only=True):
    """A key that only the target defines stays if it is valid there."""

    definition: str
    key: str
    closing: Transform


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """*key* goes, without a loss if its value is *unless*."""

    key: str
    reason: str
    unless: tuple[Any, ...] = ()


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """*key*, or the object as a whole, cannot be expressed."""

    key: str | None
    reason: str
    service: str | None


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """Without *key* the object cannot be expressed."""

    key: str
    reason: str
    service: str | None


class Defaulted(msgspec.Struct, frozen=True, kw_only=True):
    """*key* is filled in where it is absent, with *value* or what *function* makes."""

    key: str
    value: Any
    function: str | None
    reason: str | None  # None: not a loss


class Relabelled(msgspec.Struct, frozen=True, kw_only=True):
    """*key* names the revision of the message."""

    key: str


class Nested(msgspec.Struct, frozen=True, kw_only=True):
    """What *key* holds is adapted; the source spelt the key *spelled*."""

    key: str
    spelled: str
    required: bool
    transform: Transform


Operation: TypeAlias = (
    Foreign | Converted | Moved | Admit | Dropped | Refused | Absent | Defaulted | Relabelled | Nested
)


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """How a value is told to be of one arm of a union.

    Attributes:
        sort: Its JSON type.
        constants: The values that a key may have, by key.
        keys: Keys that must be there.
        some_of: Optional keys, one of which must be there, that no arm tried later has.
    """

    sort: Literal["object", "array", "string", "number", "boolean", "null"]
    constants: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    keys: tuple[str, ...] = ()
    some_of: tuple[str, ...] = ()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the values of one arm.

    Attributes:
        arm: In words.
        definition: Its name, if it is an object.
        condition: How it is told.
        transform: What is done to its values; or
        converted: how they become values of another arm; or
        refused: why they cannot be expressed.
    """

    arm: str
    condition: Condition
    definition: str = ""
    transform: Transform = Keep()
    converted: Converted | None = None
    refused: Refused | None = None


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """The arms of a union, in the order in which they are tried; *first* rewrites a value before."""

    first: Converted | None
    cases: tuple[Case, ...]


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """One function of an adapter.

    Attributes:
        name: ``up_tool``.
        source: What it takes, in words.
        target: What it returns.
        also: What else it takes that needs the same.
        is_closing: It only takes foreign keys out of a value that the target defines.
        body: For an object its operations, for a union its arms, for a list or map what happens to what it holds.
    """

    name: str
    source: str
    target: str
    also: tuple[str, ...] = ()
    is_closing: bool = False
    body: tuple[Operation, ...] | Switch | Transform = ()


def called(function: Function) -> set[str]:
    """Return the functions that *function* calls."""
    return {each.function for each in _transforms(function) if isinstance(each, Call)}


def is_idle(function: Function) -> bool:
    """Whether *function*, those that it calls aside, leaves alone what holds no foreign keys."""
    match function.body:
        case Switch(first=first, cases=cases):
            return first is None and not any(each.converted or each.refused for each in cases)
        case tuple() as operations:
            return all(isinstance(each, (Foreign, Admit, Nested)) for each in operations)
        case _:
            return True


def _transforms(function: Function) -> list[Transform]:
    match function.body:
        case Switch(cases=cases):
            return [each.transform for each in cases]
        case tuple() as operations:
            return [
                each.closing if isinstance(each, Admit) else each.transform
                for each in operations
                if isinstance(each, (Admit, Nested))
            ]
        case Keep() | Call() as transform:
            return [transform]
        case _:
            assert_never(function.body)
