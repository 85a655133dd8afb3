"""Adapters that are not: what the judge is tested with.

``identity`` passes everything through. ``naive`` drops foreign keys wherever the target's closed document refuses them,
reports that, and does nothing else. The broken ones do what adapters get wrong.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.adapters.closed import foreign

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.laws import Route
    from tests.adapters.subjects import Subject
    from tests.oracle.shapes import Json


class Refused(Exception):  # noqa: N818  (named as what it stands for)
    """Stands for AdaptationError."""

    def __init__(self, *, step: str = "a step", pointer: str = "", service: str | None = "a service") -> None:
        super().__init__(pointer)
        self.step = step
        self.pointer = pointer
        self.service = service


class Invalid(Exception):  # noqa: N818
    """Stands for InvalidPayload."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Stands for Loss."""

    pointer: str
    severity: str = "dropped"


@dataclass(frozen=True, slots=True)
class Adapted:
    """Stands for Adapted."""

    value: Json
    losses: tuple[Loss, ...] = ()
    kept: bool = False


@dataclass(frozen=True, slots=True)
class FakeRoute:
    """A route that calls a function."""

    function: Callable[[Json], Adapted]
    is_identity: bool = False

    def adapt(self, value: Json, *, keep: bool = False) -> Adapted:
        """Return what the function makes of *value*."""
        assert keep in {True, False}
        return self.function(value)


@dataclass(frozen=True)
class FakeRoutes:
    """Routes that all call what *made* gives for the target revision."""

    made: Callable[[str, str], Callable[[Json], Adapted]]
    refusal: type[Exception] = Refused
    invalid: type[Exception] = Invalid

    def __call__(self, source: str, target: str, subject: Subject) -> Route:
        """Return the route for any *subject*."""
        assert subject.name
        return FakeRoute(self.made(source, target))


def identity(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that passes everything through."""
    return Adapted


def naive(_source: str, target: str) -> Callable[[Json], Adapted]:
    """Return a function that drops every key that is foreign to some object of *target*."""
    keys = frozenset(key for found in foreign(target).values() for key in found) - {"_meta", "title"}

    def adapt(value: Json) -> Adapted:
        losses: list[Loss] = []
        return Adapted(_without(value, keys, "", losses), tuple(losses))

    return adapt


def _without(value: Json, keys: frozenset[str], pointer: str, losses: list[Loss]) -> Json:
    match value:
        case dict():
            inside = {key: f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}" for key in value}
            losses += [Loss(inside[key]) for key in value if key in keys]
            return {key: _without(value[key], keys, inside[key], losses) for key in value if key not in keys}
        case list():
            return [_without(item, keys, f"{pointer}/{index}", losses) for index, item in enumerate(value)]
    return value


def silent(source: str, target: str) -> Callable[[Json], Adapted]:
    """Return a function that drops what the naive one drops and says nothing."""
    adapt = naive(source, target)
    return lambda value: Adapted(adapt(value).value)


def greedy(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that drops what no revision defines."""

    def adapt(value: Json) -> Adapted:
        return Adapted({key: inner for key, inner in value.items() if key != "x-unknown"})

    return adapt


def sorting(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that changes the order of keys."""
    return lambda value: Adapted({key: value[key] for key in sorted(value, reverse=True)})


def meddling(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that changes its input."""

    def adapt(value: Json) -> Adapted:
        before = copy.deepcopy(value)
        value.clear()
        return Adapted(before)

    return adapt


def growing(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that adds to what it added before, and reports it."""

    def adapt(value: Json) -> Adapted:
        return Adapted({**value, "x-added": [*value.get("x-added", []), 1]}, (Loss("/x-added", "defaulted"),))

    return adapt


def crashing(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that raises what it should not."""

    def adapt(value: Json) -> Adapted:
        raise KeyError(*value)

    return adapt


def undeclared(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that refuses everything and does not say what would help."""

    def adapt(value: Json) -> Adapted:
        raise Refused(service=None) from KeyError(*value)

    return adapt


def refusing(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that refuses everything as it should be refused."""

    def adapt(value: Json) -> Adapted:
        raise Refused from KeyError(*value)

    return adapt


def dropping(source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that drops all keys that are foreign to the source, though the target may know them."""
    return naive(source, source)


def complaining(_source: str, _target: str) -> Callable[[Json], Adapted]:
    """Return a function that reports what it did not do."""
    return lambda value: Adapted(value, (Loss("/x-unknown"),))
