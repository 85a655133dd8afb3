"""Limit how deeply the definitions of a document are nested, with references followed.

A *level* is one schema inside another. The depth of a recursive definition is not limited by its values. But msgspec
builds the types of such a circle inside each other until the circle closes, so a circle counts as deep as all its
definitions together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen.diagnostics import Diagnostic, pointer_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

__all__ = ["MAX_NESTING", "Nesting"]

# msgspec builds a decoder recursively, and the generated code checks decoded values recursively. Both share the 1,000
# frames of the interpreter with their caller. Measured from a caller that is 100 frames deep on CPython 3.11, which
# also counts calls into C: nested open objects decode to 177 levels, structural unions to 250, and decoders of lists
# and dicts can be built to 880. With 100 levels, a caller may be 400 frames deep. The deepest official
# definition, of any revision or draft, has 22 levels.
MAX_NESTING = 100


class Nesting:
    """The nesting of the definitions *names* of a document, collected schema by schema."""

    def __init__(self, names: Iterable[str]) -> None:
        self._levels = dict.fromkeys(names, 1)
        self._held: dict[str, dict[str, int]] = {name: {} for name in self._levels}

    def add_schema(self, owner: str, level: int) -> None:
        """Record a schema that is not a reference at *level* in the definition *owner*, which itself is level 1."""
        self._levels[owner] = max(self._levels[owner], level)

    def add_reference(self, owner: str, level: int, target: str) -> None:
        """Record a reference to *target* at *level* in *owner*."""
        held = self._held[owner]
        # The target takes the place of the reference, but an alias still counts as one level.
        held[target] = max(held.get(target, 0), level - 1, 1)

    def faults(self, *, home: str) -> Iterator[Diagnostic]:
        """Yield a diagnostic for the innermost definition of each chain that is too deep, not for its holders."""
        depths: dict[str, int] = {}
        for circle in _circles(self._held):
            held = {target: depths[target] for name in circle for target in self._held[name] if target in depths}
            depth = self._depth(circle, held)
            depths |= dict.fromkeys(circle, depth)
            if depth > MAX_NESTING >= max(held.values(), default=0):
                yield _too_deep(circle[0], home)

    def _depth(self, circle: list[str], held: Mapping[str, int]) -> int:
        """Return the depth of the definitions in *circle*, given the depths of the definitions that they hold."""
        name, *others = circle
        if others or name in self._held[name]:
            return sum(self._levels[each] for each in circle) + max(held.values(), default=0)
        return max([self._levels[name], *(self._held[name][target] + depth for target, depth in held.items())])


def _circles(held: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Yield the strongly connected components of *held*, each after the components that it leads to.

    Tarjan's algorithm: linear time, with its own stack. Most components have one name.
    """
    reached: dict[str, int] = {}  # position in the order of discovery
    earliest: dict[str, int] = {}  # the lowest position that an unfinished name leads back to
    unfinished: list[str] = []
    for start in held:
        chain = [] if start in reached else [(start, iter(held[start]))]
        while chain:
            name, targets = chain[-1]
            if name not in reached:
                earliest[name] = reached[name] = len(reached)
                unfinished.append(name)
            target = next((each for each in targets if each in earliest or each not in reached), None)
            if target is None:
                chain.pop()
                first = earliest[name]
                if chain:
                    owner = chain[-1][0]
                    earliest[owner] = min(earliest[owner], first)
                if first == reached[name]:
                    yield _finished(name, unfinished, earliest)
            elif target in earliest:
                earliest[name] = min(earliest[name], reached[target])
            else:
                chain.append((target, iter(held[target])))


def _finished(name: str, unfinished: list[str], earliest: dict[str, int]) -> list[str]:
    """Remove the component that was entered at *name* from *unfinished*, and return it."""
    circle: list[str] = []
    while not circle or circle[-1] != name:
        circle.append(unfinished.pop())
        del earliest[circle[-1]]
    return circle[::-1]


def _too_deep(name: str, home: str) -> Diagnostic:
    return Diagnostic(
        code="MG006",
        pointer=pointer_to(home, name),
        message=f"the definition nests other definitions more than {MAX_NESTING} levels deep",
        hint="Shorten the longest chain of definitions that hold each other.",
    )
