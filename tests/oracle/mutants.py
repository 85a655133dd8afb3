"""Mutants: instances with exactly one thing changed, most of them no longer valid.

Whether a mutant is still valid is for the validator to say; this module only makes sure that each position of an
instance meets each kind of change. Two changes count as the same if they are of one kind and hit the same place, list
indices aside, in objects that look alike: the same constants on the way and the same keys around the place. So an arm
of a union is mutated as often as it has a face of its own, and a list of fifty equal items only once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.oracle.samples import EXTRA_KEYS
from tests.oracle.shapes import Choice, Number, Record, Sequence, Shape, Shapes, Union

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.oracle.shapes import Json

Position = tuple[str | int, ...]

# One of each JSON type, none of which is a likely constant.
REPLACEMENTS: Mapping[str, Json] = {
    "null": None,
    "string": "mutant",
    "empty string": "",
    "integer": 7,
    "negative integer": -1,
    "big integer": 2**53 + 1,
    "non-integer number": 1.5,
    "negative number": -0.5,
    "integral float": 1.0,
    "true": True,
    "empty list": [],
    "list": ["mutant"],
    "empty object": {},
    "object": {"mutant": None},
}
# What a key of another arm of the union is given: for most arms at least one of them is valid and one is not.
RIVAL_KINDS = ("null", "string", "list", "object")
_DELETED = object()
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Mutant(NamedTuple):
    """A changed instance, and what was changed where."""

    position: Position
    kind: str
    value: Json


class Mutations:
    """The changes that make sense for the instances of one schema document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Collect from *document* what wrong-but-plausible values are made of."""
        self._shapes = Shapes(document)
        self._constants: dict[str, list[Json]] = {}
        self._longest = 0
        self._limits: list[float] = []
        self._rivals: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
        for name in self._shapes.names:
            self._collect(self._shapes.named(name))

    def _collect(self, shape: Shape) -> None:
        match shape:
            case Record(properties=properties, extra=extra):
                self._collect_absent(shape)
                for key, inner in properties.items():
                    self._collect(inner)
                    if isinstance(inner, Choice) and len(inner.values) == 1:
                        known = self._constants.setdefault(key, [])
                        known += [value for value in inner.values if value not in known]
                if extra is not None:
                    self._collect(extra)
            case Sequence(items=items, maximum=maximum):
                self._collect(items)
                self._longest = max(self._longest, maximum or 0)
            case Number(minimum=minimum, maximum=maximum):
                limits = [limit for limit in (minimum, maximum) if limit is not None]
                self._limits += [limit for limit in limits if limit not in self._limits]
            case Union():
                self._collect_rivals([arm for arm in self._flat(shape) if isinstance(arm, Record)])
                for arm in shape.arms:
                    self._collect(arm)

    def _collect_absent(self, record: Record) -> None:
        """Remember the keys that *record* must not have, to give them to its instances."""
        if record.absent:
            foreign = self._rivals.setdefault((frozenset(record.required), frozenset(record.properties)), [])
            foreign += [key for key in record.absent if key not in foreign]

    def _collect_rivals(self, records: list[Record]) -> None:
        """Remember which keys would make an object of one arm look like one of another."""
        for record in records:
            keys = frozenset(record.properties)
            foreign = self._rivals.setdefault((frozenset(record.required), keys), [])
            for other in records:
                foreign += [key for key in other.properties if key not in keys and key not in foreign]

    def _flat(self, shape: Shape) -> Iterator[Shape]:
        shape = self._shapes.resolved(shape)
        if isinstance(shape, Union):
            for arm in shape.arms:
                yield from self._flat(arm)
        else:
            yield shape

    def of(self, instance: Json, seen: set[object]) -> Iterator[Mutant]:
        """Yield the mutants of *instance* that *seen* has not met, and remember them there.

        Args:
            instance: Left as it is; mutants share their unchanged parts with it.
            seen: One set for all instances of a definition.
        """
        yield from self._at(instance, instance, (), (), seen)

    def _at(
        self, root: Json, value: Json, position: Position, face: tuple[object, ...], seen: set[object]
    ) -> Iterator[Mutant]:
        for kind, change in self._changes(value, position):
            if (key := (face, kind)) not in seen and not _same(change, value):
                seen.add(key)
                yield Mutant(position, kind, _replaced(root, position, change))
        match value:
            case dict():
                constants = tuple(
                    (key, value[key])
                    for key in sorted(self._constants.keys() & value.keys())
                    if isinstance(value[key], str | int)
                )
                for key, inner in value.items():
                    inner_face = (*_without_keys(face), constants, key, frozenset(value))
                    yield from self._at(root, inner, (*position, key), inner_face, seen)
            case list():
                for index, inner in enumerate(value):
                    yield from self._at(
                        root, inner, (*position, index), (*_without_keys(face), "[]", frozenset()), seen
                    )

    def _changes(self, value: Json, position: Position) -> Iterator[tuple[str, Json]]:  # noqa: C901  (one case per type)
        if position:
            yield "delete", _DELETED
        yield from REPLACEMENTS.items()
        match value:
            case str():
                yield "altered string", value + "x"
                yield "swapped case", value.swapcase()
                key = position[-1] if position else ""
                for other in self._constants.get(key, ()) if isinstance(key, str) else ():
                    yield f"constant {other}", other
            case bool():
                yield "number for boolean", int(value)
            case int():
                yield "next integer", value + 1
                yield "integer as float", float(value)
                yield "integer as string", str(value)
                yield from self._beyond_limits()
            case float():
                yield from self._beyond_limits()
                yield "huge number", 1e300
            case list():
                for kind, other in REPLACEMENTS.items():
                    yield f"append {kind}", [*value, other]
                if value:
                    yield "too short", value[1:]
                    if self._longest:
                        yield "too long", value[:1] * (self._longest + 1)
                yield "list as object", {str(index): item for index, item in enumerate(value)}
            case dict():
                yield from self._object_changes(value)

    def _beyond_limits(self) -> Iterator[tuple[str, Json]]:
        for limit in self._limits:
            for step in (-1, -0.5, 0.5, 1):
                yield f"{step} from the limit {limit}", limit + step

    def _object_changes(self, value: dict[str, Json]) -> Iterator[tuple[str, Json]]:
        for kind, other in REPLACEMENTS.items():
            yield f"unknown key {kind}", {**value, EXTRA_KEYS[0]: other}
        for (required, keys), rivals in self._rivals.items():
            if value and required <= value.keys() <= keys:
                for key in rivals:
                    for kind in RIVAL_KINDS:
                        yield f"{key} of another arm {kind}", {**value, key: REPLACEMENTS[kind]}
        yield "object in list", [value]
        yield "object as list", list(value.values())
        for key in value:
            # What a binding would accept if it forgot one wire name: the attribute's name instead.
            snake = _SNAKE.sub("_", key).lower().lstrip("_")
            if snake != key:
                yield f"{key} in snake case", {snake if name == key else name: inner for name, inner in value.items()}


def _without_keys(face: tuple[object, ...]) -> tuple[object, ...]:
    """Only the innermost object tells its keys; outer ones are told apart by their constants."""
    return face[:-1]


def _same(one: Json, other: Json) -> bool:
    """Whether both are the same JSON at the top: ``True == 1 == 1.0``, and an open object is a dict."""
    return bool(one == other) and (isinstance(one, dict | list) or type(one) is type(other))


def _replaced(value: Json, position: Position, change: Json) -> Json:
    """Copy *value* along *position* and put *change* there."""
    if not position:
        return change
    key, *rest = position
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if not rest and change is _DELETED:
        del copy[key]
    else:
        copy[key] = _replaced(value[key], tuple(rest), change)
    return copy
