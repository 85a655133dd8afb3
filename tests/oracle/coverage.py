"""What instances of a definition fail to show: the check on the generator's promise to leave nothing out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle.shapes import Anything, Choice, Json, Named, Number, Record, Sequence, Shape, Text, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.shapes import Shapes
    from tests.oracle.validators import Validators

JSON_TYPES = (dict, list, str, int, float, bool, type(None))
Missed = tuple[str, str]  # where, and what


def unseen(shape: Shape, values: list[Json], pointer: str = "") -> Iterator[Missed]:
    """Yield what *shape* offers and none of *values* shows, down to references."""
    match shape:
        case Record():
            yield from _unseen_keys(shape, [value for value in values if isinstance(value, dict)], pointer)
        case Sequence(items=items):
            lists = [value for value in values if isinstance(value, list)]
            yield from _unseen_lengths(shape, {len(value) for value in lists}, pointer)
            yield from unseen(items, [item for value in lists for item in value], f"{pointer}/[]")
        case Union(arms=arms):
            for arm in arms:
                if isinstance(arm, Text | Number | Choice):
                    yield from unseen(arm, values, pointer)
        case Anything() | Choice() | Number() | Text():
            shown = {(type(value), value) for value in values if not isinstance(value, dict | list)}
            missing = [each for each in _wanted(shape) if (type(each), each) not in shown]
            yield from ((pointer, f"never {each!r}") for each in missing)
    if isinstance(shape, Anything):
        for kind in JSON_TYPES:
            if not any(isinstance(value, kind) for value in values):
                yield pointer, f"never {kind}"


def _wanted(shape: Shape) -> tuple[Json, ...]:
    match shape:
        case Choice(values=choices):
            return choices
        case Text():
            return ("", "Zoë 日本語 🦜")
        case Number(whole=True, maximum=None):
            return (2**53 + 1,)
        case Number(whole=False, maximum=None):
            return (1, 1.0, 0.5, 1e-7, 2**53 + 1)
        case Number(whole=False):
            return (0.5,)
    return ()


def _unseen_keys(shape: Record, objects: list[dict[str, Json]], pointer: str) -> Iterator[Missed]:
    for key in shape.optional:
        if all(key in value for value in objects):
            yield pointer, f"never without {key}"
        if not any(value.keys() - shape.required == {key} for value in objects):
            yield pointer, f"never {key} alone"
    if not any(value.keys() >= shape.properties.keys() for value in objects):
        yield pointer, "never all keys"
    if shape.extra is not None and not any(value.keys() - shape.properties.keys() for value in objects):
        yield pointer, "never an unknown key"
    for key, inner in shape.properties.items():
        yield from unseen(inner, [value[key] for value in objects if key in value], f"{pointer}/{key}")


def _unseen_lengths(shape: Sequence, lengths: set[int], pointer: str) -> Iterator[Missed]:
    for length in {0, 1, 2, shape.minimum, shape.maximum} - {None} - lengths:
        if length is not None and shape.minimum <= length and (shape.maximum is None or length <= shape.maximum):
            yield pointer, f"never {length} items"


class Arms:
    """Which arms of which unions the instances of a definition visit, behind references too."""

    def __init__(self, shapes: Shapes, validators: Validators) -> None:
        """Look through *shapes*, and let *validators* say which arm a value fits."""
        self._shapes = shapes
        self._validators = validators

    def unvisited(self, name: str, values: list[Json]) -> Iterator[Missed]:
        """Yield each arm that is a definition and that no value at its place is valid as."""
        entered: set[str] = set()
        pending: list[tuple[Shape, list[Json], str]] = [(Named(name), values, "")]
        while pending:
            shape, found, pointer = pending.pop()
            if isinstance(shape, Union):
                for arm in shape.arms:
                    fitting = self._fitting(arm, found)
                    pending.append((arm, fitting, pointer))
                    if isinstance(arm, Named) and not fitting:
                        yield pointer, arm.name
            elif not isinstance(shape, Named):
                pending += [(inner, held, f"{pointer}/{key}") for key, inner, held in _parts(shape, found)]
            elif shape.name not in entered:
                entered.add(shape.name)
                pending.append((self._shapes.named(shape.name), found, pointer))

    def _fitting(self, arm: Shape, values: list[Json]) -> list[Json]:
        return [value for value in values if not isinstance(arm, Named) or self._validators.accepts(arm.name, value)]


def _parts(shape: Shape, values: list[Json]) -> Iterator[tuple[str, Shape, list[Json]]]:
    """Yield the shapes inside *shape* with what *values* hold there."""
    match shape:
        case Record(properties=properties):
            objects = [value for value in values if isinstance(value, dict)]
            for key, inner in properties.items():
                yield key, inner, [value[key] for value in objects if key in value]
        case Sequence(items=items):
            yield "[]", items, [item for value in values if isinstance(value, list) for item in value]
