"""The content of a generated adapter as data: functions over JSON values, and their operations.

`function_builder` makes these nodes. `emit` writes them as Python, `losses` as the table of losses.
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
    """Keep the value."""


class Call(msgspec.Struct, frozen=True):
    """Apply *function* to the value, to each item of the list, or to each value of the map."""

    function: str
    over: Literal["value", "items", "members"] = "value"


Transform: TypeAlias = Keep | Call


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """Drop the foreign *keys*: only other revisions define them; going down, also those of the target alone."""

    keys: tuple[str, ...]


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the value of *key*, or the whole object, by a declared function; the source spells the key *spelled*."""

    key: str | None
    spelled: str | None = None
    function: str
    reason: str


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Rename *key* to *to*."""

    key: str
    to: str


class Admit(msgspec.Struct, frozen=True, kw_only=True):
    """Keep *key*, which only the target defines, if its value is valid there; otherwise drop it."""

    definition: str
    key: str
    closing: Transform


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """Drop *key*; it is no loss if its value is in *unless*."""

    key: str
    reason: str
    unless: tuple[Any, ...] = ()


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Refuse the message if *key* is present; without a key, refuse each such object."""

    key: str | None
    reason: str
    service: str | None


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """Refuse the message if *key* is absent."""

    key: str
    reason: str
    service: str | None


class Defaulted(msgspec.Struct, frozen=True, kw_only=True):
    """Add *key* if it is absent, with *value* or the result of *function*."""

    key: str
    value: Any
    function: str | None
    reason: str | None  # None: not a loss


class Relabelled(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the revision in *key* by the target."""

    key: str


class Nested(msgspec.Struct, frozen=True, kw_only=True):
    """Adapt the value of *key*; the source spells the key *spelled*."""

    key: str
    spelled: str
    required: bool
    transform: Transform


Operation: TypeAlias = (
    Foreign | Converted | Moved | Admit | Dropped | Refused | Absent | Defaulted | Relabelled | Nested
)


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """The condition by which a value is recognised as one of an arm of a union.

    Attributes:
        sort: The JSON type of the value.
        constants: For each key, the values that it may have.
        keys: Keys that must be present.
        some_of: Optional keys that no later arm has; one of them must be present.
    """

    sort: Literal["object", "array", "string", "number", "boolean", "null"]
    constants: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    keys: tuple[str, ...] = ()
    some_of: tuple[str, ...] = ()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The conversion of the values of one arm of a union.

    Attributes:
        arm: The arm as text.
        definition: The name of its definition, if it has one.
        condition: The condition by which its values are recognised.
        transform: The conversion of its values, unless one of the next two is set.
        converted: A declared conversion to values of another arm.
        refused: The reason why its values cannot be expressed.
    """

    arm: str
    condition: Condition
    definition: str = ""
    transform: Transform = Keep()
    converted: Converted | None = None
    refused: Refused | None = None


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """The arms of a union, in the order in which they are tried; *first* converts a value before that."""

    first: Converted | None
    cases: tuple[Case, ...]


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """One function of an adapter.

    Attributes:
        name: ``up_tool``.
        source: The type or the place in the source, as text.
        target: The type or the place in the target.
        also: Other types of the source that need the same conversion.
        is_closing: Whether it only removes foreign keys from a value that is valid in the target.
        body: The operations for an object, the switch for a union, or the conversion of each item of a list or map.
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
    """Whether *function* itself keeps every value without foreign keys; the functions that it calls do not count."""
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
