"""Valid instances of the definitions of a schema document, systematic and random.

Theory of operation. ``systematic`` varies one thing at a time over the smallest instance, so that a failure points
at its cause and the number of instances grows with the size of a definition, not exponentially. Inside a definition's
own body it varies everything (``_variety``); behind a reference it only visits what a context may break, the smallest
and the largest value and each arm of each union (``_arms``), since the other variations belong to the definition
referred to. Recursive definitions are entered a second time and then cut short.

Objects that accept unknown keys come out as ``OpenObject``, a dict that remembers it: all of *its* keys have to survive
a round trip in their order, while nobody promises an order for the keys of a closed object. The values of a map are
what its schema says, so the order of *their* keys is their own affair (``MapObject``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.oracle import samples
from tests.oracle.samples import MapObject, OpenObject
from tests.oracle.shapes import Anything, Choice, Json, Named, Number, Record, Sequence, Shape, Shapes, Text, Union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random

# How often one definition may appear on the way from the root to a value: itself and once more inside itself.
VISITS = 2
# A list as long as its maximum is only built when that is short; CompleteResult's 100 completions are the largest.
LONGEST_LIST = 100
# Beyond this depth random instances take the smallest value; no definition needs more levels to show its shape.
RANDOM_DEPTH = 7

Path = tuple[str, ...]


class _Endless(Exception):  # noqa: N818  (control flow: this arm of a recursive definition has no end)
    pass


class Instances:
    """A source of valid instances for the definitions of one schema document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Read *document*, which must use the keywords that ``Shapes`` knows."""
        self.shapes = Shapes(document)
        self.names = self.shapes.names

    def systematic(self, name: str) -> Iterator[Json]:
        """Yield distinct instances of the definition *name*, the smallest first, the same ones every time."""
        seen: set[str] = set()
        shape = self.shapes.named(name)
        body = self._variety(shape, (name,))
        largest = self._largest(shape, (name,))
        for value in (self._smallest(shape, (name,)), largest, scrambled(largest), *body):
            if (text := json.dumps(value)) not in seen:
                seen.add(text)
                yield value

    def random(self, name: str, rng: Random) -> Json:
        """Return one instance of the definition *name*, drawn with *rng*."""
        return self._random(Named(name), rng, 0)

    def _smallest(self, shape: Shape, path: Path) -> Json:  # noqa: C901  (one case per kind of shape)
        match shape:
            case Anything():
                return {}
            case Text(format=hint):
                return samples.FORMATS.get(hint, "x")
            case Number():
                return samples.numbers(shape)[0]
            case Choice(values=values):
                return values[0]
            case Record():
                return self._record(shape, {}, path)
            case Sequence(minimum=minimum):
                return [self._smallest(shape.items, path) for _ in range(minimum)]
            case Union(arms=arms):
                for arm in arms:
                    try:
                        return self._smallest(arm, path)
                    except _Endless:
                        continue
                raise _Endless
            case Named(name=name):
                return self._smallest(self.shapes.named(name), self._inside(name, path))

    def _largest(self, shape: Shape, path: Path) -> Json:
        match shape:
            case Anything():
                return samples.NESTED
            case Text(format=None):
                return samples.STRINGS[4]
            case Number():
                return samples.numbers(shape)[-1]
            case Choice(values=values):
                return values[-1]
            case Record(properties=properties, extra=extra):
                shapes = properties if extra is None else properties | {samples.EXTRA_KEYS[0]: extra}
                return self._record(shape, self._each(shapes, path, self._largest), path)
            case Sequence(minimum=minimum, maximum=maximum):
                items = [
                    value
                    for grow in (self._largest, self._smallest)
                    for value in self._each({"": shape.items}, path, grow).values()
                ]
                items += items[-1:] * (minimum - len(items))
                return items[:maximum]
            case Union(arms=arms):
                grown = self._each(dict(enumerate(arms)), path, self._largest)
                return max(grown.values(), key=lambda value: len(json.dumps(value)))
            case Named(name=name):
                inside = self._inside(name, path)
                grow = self._largest if inside.count(name) < VISITS else self._smallest
                return grow(self.shapes.named(name), inside)
        return self._smallest(shape, path)

    def _arms(self, shape: Shape, path: Path) -> Iterator[Json]:  # noqa: C901  (one case per kind of shape)
        """Yield values of *shape* that visit each arm of each union in it, however deep."""
        match shape:
            case Record(properties=properties, extra=extra):
                shapes = properties if extra is None else properties | {samples.EXTRA_KEYS[0]: extra}
                for key, inner in shapes.items():
                    for value in self._arms(inner, path):
                        yield self._record(shape, {key: value}, path)
            case Sequence(items=items, minimum=minimum, maximum=maximum):
                for value in self._arms(items, path):
                    yield [value] * max(1, minimum)
                union = self.shapes.resolved(items)
                if isinstance(union, Union) and (maximum is None or len(union.arms) <= maximum):
                    yield list(self._each(dict(enumerate(union.arms)), path, self._smallest).values())
            case Union(arms=arms):
                for arm in arms:
                    yield from self._each({"": arm}, path, self._smallest).values()
                    yield from self._each({"": arm}, path, self._largest).values()
                    yield from self._arms(arm, path)
            case Named(name=name):
                inside = self._inside(name, path)
                if inside.count(name) <= (VISITS if name == path[0] else 1):
                    yield from self._arms(self.shapes.named(name), inside)

    def _variety(self, shape: Shape, path: Path) -> Iterator[Json]:  # noqa: C901  (one case per kind of shape)
        """Yield values of *shape* that vary one thing at a time; behind a reference, only what ``_arms`` visits."""
        match shape:
            case Anything():
                yield from samples.ANYTHING
            case Text(format=hint):
                yield samples.FORMATS.get(hint, "x")
                yield from samples.STRINGS
            case Number():
                yield from samples.numbers(shape)
            case Choice(values=values):
                yield from values
            case Record():
                yield from self._record_variety(shape, path)
            case Sequence():
                yield from self._sequence_variety(shape, path)
            case Union(arms=arms):
                for arm in arms:
                    yield from self._variety(arm, path)
            case Named(name=name):
                inside = self._inside(name, path)
                if inside.count(name) <= VISITS:
                    target = self.shapes.named(name)
                    yield from self._each({"": shape}, path, self._smallest).values()
                    yield from self._each({"": shape}, path, self._largest).values()
                    yield from self._arms(target, inside) if self._nests(target) else self._variety(target, inside)

    def _record_variety(self, shape: Record, path: Path) -> Iterator[Json]:
        yield self._record(shape, {}, path)
        yield self._largest(shape, path)
        for key, value in self._each(
            {key: shape.properties[key] for key in shape.optional}, path, self._smallest
        ).items():
            yield self._record(shape, {key: value}, path)
        for key, inner in shape.properties.items():
            for value in self._variety(inner, path):
                yield self._record(shape, {key: value}, path)
        if shape.extra is None:
            return
        unknown = [key for key in samples.EXTRA_KEYS if key not in shape.properties]
        for value in self._variety(shape.extra, path):
            yield self._record(shape, {unknown[0]: value}, path)
        for value in self._each({"": shape.extra}, path, self._smallest).values():
            for key in unknown:
                yield self._record(shape, {key: value}, path)
            # Unknown keys before, between and after the known ones.
            largest = self._largest(shape, path)
            known = [(key, largest[key]) for key in shape.properties if key in largest]
            before, after = dict(known[:1]), dict(known[1:])
            mixed = {unknown[0]: value} | before | {unknown[1]: value} | after | dict.fromkeys(unknown, value)
            yield _object(shape, mixed)

    def _sequence_variety(self, shape: Sequence, path: Path) -> Iterator[Json]:
        item = self._smallest(shape.items, path)
        limit = LONGEST_LIST if shape.maximum is None else shape.maximum
        lengths = {0, 1, 2, shape.minimum} | ({shape.maximum} if shape.maximum and limit <= LONGEST_LIST else set())
        for length in sorted(lengths):
            if shape.minimum <= length <= limit:
                yield [item] * length
        for value in self._variety(shape.items, path):
            yield [value] * max(1, shape.minimum)
        yield from self._arms(shape, path)

    def _random(self, shape: Shape, rng: Random, depth: int) -> Json:  # noqa: C901  (one case per kind of shape)
        if depth > RANDOM_DEPTH:
            return self._smallest(shape, ())
        match shape:
            case Anything():
                return rng.choice(samples.ANYTHING)
            case Text(format=hint):
                return samples.FORMATS[hint] if hint in samples.FORMATS else rng.choice(samples.STRINGS)
            case Number():
                return rng.choice(samples.numbers(shape))
            case Choice(values=values):
                return rng.choice(values)
            case Record(properties=properties, extra=extra):
                chance = 0.6 / (1 + depth / 3)
                shapes = {
                    key: inner for key, inner in properties.items() if key in shape.required or rng.random() < chance
                }
                if extra is not None and rng.random() < chance:
                    unknown = [key for key in samples.EXTRA_KEYS if key not in properties]
                    shapes |= dict.fromkeys(rng.sample(unknown, rng.randint(1, 3)), extra)
                keys = rng.sample(list(shapes), len(shapes))
                return _object(shape, {key: self._random(shapes[key], rng, depth + 1) for key in keys})
            case Sequence(minimum=minimum, maximum=maximum):
                length = rng.randint(minimum, max(minimum, min(3, 3 if maximum is None else maximum)))
                return [self._random(shape.items, rng, depth + 1) for _ in range(length)]
            case Union(arms=arms):
                return self._random(rng.choice(arms), rng, depth + 1)
            case Named(name=name):
                return self._random(self.shapes.named(name), rng, depth)

    def _record(self, shape: Record, chosen: Mapping[str, Json], path: Path) -> dict[str, Json]:
        """Return the required keys at their smallest, with *chosen* over and after them."""
        values = {key: self._smallest(shape.properties[key], path) for key in shape.required if key not in chosen}
        listed = {key: (values | dict(chosen))[key] for key in shape.properties if key in values or key in chosen}
        return _object(shape, listed | dict(chosen))

    def _each(self, shapes: Mapping[Any, Shape], path: Path, grow: Callable[[Shape, Path], Json]) -> dict[Any, Json]:
        """Grow a value for each shape, leaving out those that recursion makes endless."""
        grown = {}
        for key, shape in shapes.items():
            try:
                grown[key] = grow(shape, path)
            except _Endless:
                continue
        return grown

    def _inside(self, name: str, path: Path) -> Path:
        if path.count(name) > VISITS:
            raise _Endless
        return (*path, name)

    def _nests(self, shape: Shape) -> bool:
        match self.shapes.resolved(shape):
            case Record() | Sequence():
                return True
            case Union(arms=arms):
                return any(self._nests(arm) for arm in arms)
        return False


def _object(shape: Record, values: dict[str, Json]) -> dict[str, Json]:
    """Return *values* as the kind of object that *shape* describes."""
    if shape.extra is None:
        return values
    return MapObject(values) if not shape.properties and not isinstance(shape.extra, Anything) else OpenObject(values)


def scrambled(value: Json) -> Json:
    """Return *value* with the keys of each object in another order."""
    match value:
        case dict():
            return type(value)({key: scrambled(value[key]) for key in sorted(value, reverse=True)})
        case list():
            return [scrambled(item) for item in value]
    return value
