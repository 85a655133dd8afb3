"""The rules of `mcpgen.runtime.protocol.normalization` for values: null, numbers, texts, lists, maps and schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from types import NoneType
from typing import Any, Final, TypeAlias, TypeGuard

from mcpgen.runtime.protocol.malformed import integer

__all__ = [
    "At",
    "Changes",
    "Fit",
    "Rule",
    "SCALARS",
    "Unfit",
    "choice",
    "fit_list",
    "fit_map",
    "fit_property_schemas",
    "fit_time_to_live",
    "is_array",
    "is_object",
    "keep",
]


class Rule(Enum):
    """A deviation that is read, and how; the value is the text for the log."""

    NULL = "null is read as absent"
    BOOLEAN = "a text or a number is read as true or false"
    INTEGRAL = "JSON Schema accepts 5.0 as an integer, but the decoder does not"
    NUMBER = "a text is read as a number"
    NEGATIVE = "a negative time to live is read as 0"
    MISSING = "a required member is missing, and is read as its only possible value or as an empty value"
    SCHEMA = "the schema of a property is not an object, and is read as one"
    ITEM = "an invalid item of the list is left out"


At: TypeAlias = tuple[Any, ...]
"""The place of a value, as in the adapters: () is the payload, (holder, key) is a place in *holder*."""


class Changes(list[tuple[Rule, At, str]]):
    """The changes of one payload: the rule, the place, and for an item that is left out what is wrong with it."""

    def note(self, rule: Rule, at: At, detail: str = "") -> None:
        """Add a change."""
        self.append((rule, at, detail))


Fit: TypeAlias = Callable[[Any, At, Changes], Any]
"""Takes a value and its place; returns one that fits, and notes the changes. Raises `Unfit` if no rule fits."""


class Unfit(Exception):  # noqa: N818 (an outcome, not a fault)
    """No rule makes a value fit."""


# Numbers of this form are exact as floats.
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
_SCHEMA_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return type(value) is dict


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is an array."""
    return type(value) is list


def keep(value: Any, _at: At, _changes: Changes) -> Any:
    """Fit a place that may hold any value."""
    return value


def _null(value: Any, _at: At, _changes: Changes) -> Any:
    if value is not None:
        raise Unfit
    return value


def _text(value: Any, _at: At, _changes: Changes) -> Any:
    if type(value) is not str:
        raise Unfit
    return value


def _boolean(value: Any, at: At, changes: Changes) -> Any:
    if type(value) is bool:
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        found = value.lower() == "true"
    elif isinstance(value, int | float) and value in (0, 1):
        found = bool(value)
    else:
        raise Unfit
    changes.note(Rule.BOOLEAN, at)
    return found


def _integer(value: Any, at: At, changes: Changes) -> Any:
    if type(value) is int:
        return value
    number = integer(_float(value))
    if number is None:
        raise Unfit
    changes.note(Rule.INTEGRAL if type(value) is float else Rule.NUMBER, at)
    return number


def fit_time_to_live(value: Any, at: At, changes: Changes) -> Any:
    """Fit ``ttlMs``.

    Spec:
        2026-07-28, server/utilities/caching, "Time-to-Live (TTL) Field": a client treats a negative one as 0.
    """
    number = _integer(value, at, changes)
    if number >= 0:
        return number
    changes.note(Rule.NEGATIVE, at)
    return 0


def _number(value: Any, at: At, changes: Changes) -> Any:
    number = value if type(value) is int else _float(value)
    if number is not value:
        changes.note(Rule.NUMBER, at)
    return number


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is str and _NUMBER.fullmatch(value):
        return float(value)
    raise Unfit


SCALARS: Final[dict[Any, Fit]] = {
    str: _text,
    bool: _boolean,
    int: _integer,
    float: _number,
    NoneType: _null,
    None: _null,
}


def choice(options: tuple[Any, ...]) -> Fit:
    """Return a function for a place that holds one of *options*."""

    def fit(value: Any, _at: At, _changes: Changes) -> Any:
        if not any(type(each) is type(value) and each == value for each in options):
            raise Unfit
        return value

    return fit


def fit_list(item: Fit) -> Fit:
    """Return a function for a list."""

    def fit(value: Any, at: At, changes: Changes) -> Any:
        if not is_array(value):
            raise Unfit
        return [item(each, (at, index), changes) for index, each in enumerate(value)]

    return fit


def fit_map(member: Fit) -> Fit:
    """Return a function for an object with any keys; a member that is null is left out."""
    is_nullable = member in (keep, _null)

    def fit(value: Any, at: At, changes: Changes) -> Any:
        if not is_object(value):
            raise Unfit
        made: dict[str, Any] = {}
        for key, each in value.items():
            if each is None and not is_nullable:
                changes.note(Rule.NULL, (at, key))
            else:
                made[key] = member(each, (at, key), changes)
        return made

    return fit


def fit_property_schemas(value: Any, at: At, changes: Changes) -> Any:
    """Fit the properties of a tool's schema. JSON Schema has ``true`` and ``false``, which the revisions do not."""
    if not is_object(value):
        raise Unfit
    made: dict[str, Any] = {}
    for key, each in value.items():
        if is_object(each):
            made[key] = each
            continue
        if each is False:
            made[key] = {"not": {}}
        elif each is True or each is None or isinstance(each, str):
            made[key] = {"type": each} if each in _SCHEMA_TYPES else {}
        else:
            raise Unfit
        changes.note(Rule.SCHEMA, (at, key))
    return made
