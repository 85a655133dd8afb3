"""How deeply the definitions of a document hold one another, references followed.

A *level* is one schema inside another. A definition that leads back to itself has no depth of its own, because values
end where they like; but the types of such a circle are built one inside the other before the circle closes, so it
counts as deep as all its definitions together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen.diagnostics import Diagnostic, pointer_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

__all__ = ["MAX_NESTING", "Nesting"]

# msgspec builds a decoder recursively, and settling recurses over values; both share the interpreter's 1,000 frames
# with their caller. Measured a hundred frames deep on CPython 3.11, which counts calls into C as well: open objects in
# each other can be decoded to 177 levels, structural unions to 250; decoders of lists and dicts can be built to 880.
# With 100, a caller may be 400 frames deep. Upstream's deepest definition, of any revision or draft, has 22 levels.
MAX_NESTING = 100


class Nesting:
    """What the definitions *names* of a document hold, collected schema by schema."""

    def __init__(self, names: Iterable[str]) -> None:
        self._levels = dict.fromkeys(names, 1)
        self._held: dict[str, dict[str, int]] = {name: {} for name in self._levels}

    def add_schema(self, owner: str, level: int) -> None:
        """Note a schema, not a reference, *level* levels deep in the definition *owner*, which is itself the first."""
        self._levels[owner] = max(self._levels[owner], level)

    def add_reference(self, owner: str, level: int, target: str) -> None:
        """Note that the schema *level* levels deep in *owner* is a reference to *target*."""
        held = self._held[owner]
        # The target stands in place of the reference; a definition that is another name for it still counts.
        held[target] = max(held.get(target, 0), level - 1, 1)

    def faults(self, *, home: str) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each definition in *home* with which a chain becomes too deep, not for its holders."""
        depths: dict[str, int] = {}
        for circle in _circles(self._held):
            held = {target: depths[target] for name in circle for target in self._held[name] if target in depths}
            depth = self._depth(circle, held)
            depths |= dict.fromkeys(circle, depth)
            if depth > MAX_NESTING >= max(held.values(), default=0):
                yield _too_deep(circle[0], home)

    def _depth(self, circle: list[str], held: Mapping[str, int]) -> int:
        """Return the depth of the definitions in *circle*, given the depths of those that they hold outside it."""
        name, *others = circle
        if others or name in self._held[name]:
            return sum(self._levels[each] for each in circle) + max(held.values(), default=0)
        return max([self._levels[name], *(self._held[name][target] + depth for target, depth in held.items())])


def _circles(held: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Yield all names in groups that lead to one another, mostly of one, each after the groups that it leads to.

    Tarjan's algorithm, in linear time and with a stack of its own.
    """
    reached: dict[str, int] = {}  # in which order
    earliest: dict[str, int] = {}  # the first name that an unfinished one leads back to, as its place in that order
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
    """Take the circle that was reached through *name* off *unfinished*, and return it."""
    circle: list[str] = []
    while not circle or circle[-1] != name:
        circle.append(unfinished.pop())
        del earliest[circle[-1]]
    return circle[::-1]


def _too_deep(name: str, home: str) -> Diagnostic:
    return Diagnostic(
        code="MG006",
        pointer=pointer_to(home, name),
        message=f"the definition holds others more than {MAX_NESTING} levels deep",
        hint="Break up the longest chain of definitions, each of which holds the next.",
    )
