"""The values of JSON, level by level: a walk whose loops are functions of the interpreter.

A loop in Python that takes one value after the other needs 2 µs for each, which is 0.1 s for 50,000 small objects.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["arrays_of", "levels", "objects_of"]


def levels(roots: list[object]) -> Iterator[list[object]]:
    """Yield *roots*, the members of the arrays and objects in them, the members of those, and so on."""
    level = roots
    while level:
        yield level
        members = chain.from_iterable(map(dict[str, object].values, objects_of(level)))
        level = [*chain.from_iterable(arrays_of(level)), *members]


def arrays_of(values: Iterable[object]) -> list[list[object]]:
    """Return those of *values* that are arrays."""
    return [each for each in values if isinstance(each, list)]


def objects_of(values: Iterable[object]) -> list[dict[str, object]]:
    """Return those of *values* that are objects."""
    return [each for each in values if isinstance(each, dict)]
