"""Find definitions that were only renamed.

A rename is reported if it is unambiguous: both definitions have the same structure, including renamed definitions that
they refer to, and neither has another match. If one name extends the other, keys may also have become required or
optional (``JSONRPCError`` became ``JSONRPCErrorResponse``, whose ``id`` is no longer required).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcpgen.codegen import ir
from mcpgen.codegen.diff.schema_pair import Body, body, typed

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

__all__ = ["find_renames"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")
# Smaller structures (an object of one key, an alias of one scalar) can be equal by chance.
_LEAST_CONTENT = 2
# A document with more definitions with the same keys is hostile, and a match would be ambiguous.
_MOST_ALIKE = 40
# An untrusted document can nest types deeply.
_MOST_DEPTH = 60


def find_renames(old: ir.Schema, new: ir.Schema, declared: Mapping[str, str]) -> dict[str, str]:
    """Return new name by old name, sorted, including all *declared* renames.

    A name that both schemas have is not a candidate, unless it changed from an object to another type or back.
    """
    removed = [name for name in old.definitions if name not in declared and not _stays(name, old, new)]
    added = [name for name in new.definitions if name not in declared.values() and not _stays(name, new, old)]
    likeness = _Likeness(old, new, removed, added, declared)
    found = dict(declared)
    for strict in (True, False):
        left = [name for name in removed if name not in found], [name for name in added if name not in found.values()]
        found |= _unambiguous(likeness, *left, strict=strict)
    return dict(sorted(found.items()))


def _stays(name: str, here: ir.Schema, there: ir.Schema) -> bool:
    one, other = here.definitions[name], there.definitions.get(name)
    return other is not None and isinstance(one, ir.Object) == isinstance(other, ir.Object)


def _unambiguous(likeness: _Likeness, removed: Sequence[str], added: Sequence[str], *, strict: bool) -> dict[str, str]:
    """Return the pairs in which neither definition has another match."""
    groups: dict[Hashable, tuple[list[str], list[str]]] = {}
    for name in removed:
        groups.setdefault(_outline(likeness.old.definitions[name]), ([], []))[0].append(name)
    for name in added:
        groups.setdefault(_outline(likeness.new.definitions[name]), ([], []))[1].append(name)
    pairs = [
        (one, other)
        for before, after in groups.values()
        if max(len(before), len(after)) <= _MOST_ALIKE
        for one in before
        for other in after
        if likeness.matches(one, other, strict=strict)
    ]
    olds, news = [one for one, _ in pairs], [other for _, other in pairs]
    return {one: other for one, other in pairs if olds.count(one) == news.count(other) == 1}


def _outline(definition: ir.Definition) -> Hashable:
    """Return a key that two definitions must share to be candidates."""
    if isinstance(definition, ir.Object):
        return (definition.unknown, *(each.wire for each in definition.properties))
    return type(definition.type).__name__


class _Likeness:
    """Compare the structures of removed definitions with those of added ones."""

    def __init__(
        self, old: ir.Schema, new: ir.Schema, removed: Sequence[str], added: Sequence[str], declared: Mapping[str, str]
    ) -> None:
        self.old = old
        self.new = new
        self._removed = frozenset(removed)
        self._added = frozenset(added)
        self._declared = declared
        self._taken = frozenset(declared.values())
        self._assumed: list[tuple[str, str]] = []
        self._unlike: set[tuple[str, str]] = set()

    def matches(self, old: str, new: str, *, strict: bool) -> bool:
        """Whether the definition *old* may have become *new*; *strict* also requires the same required keys."""
        one, other = body(self.old, old), body(self.new, new)
        related = _extends(old, new) or _extends(new, old)
        if not strict:
            both_objects = isinstance(one, ir.Object) and isinstance(other, ir.Object)
            return related and both_objects and self._bodies(one, other, strict=False)
        # An inline type is named after its place. The same structure in another place is another type.
        inline = self.old.definitions[old].anonymous or self.new.definitions[new].anonymous
        return (related or (not inline and _content(one) >= _LEAST_CONTENT)) and self._names(old, new)

    def _names(self, old: str, new: str) -> bool:
        """Whether the definitions *old* and *new* have the same structure."""
        if old not in self._removed or new not in self._added:
            return self._declared.get(old) == new if old in self._declared else old == new not in self._taken
        if (old, new) in self._assumed:
            return True
        if (old, new) in self._unlike or len(self._assumed) > _MOST_DEPTH:
            return False
        self._assumed.append((old, new))
        found = self._bodies(body(self.old, old), body(self.new, new), strict=True)
        self._assumed.pop()
        if not found:
            self._unlike.add((old, new))  # a match that fails under assumptions also fails without them
        return found

    def _bodies(self, old: Body, new: Body, *, strict: bool) -> bool:
        match old, new:
            case ir.Object(), ir.Object():
                return old.unknown == new.unknown and self._properties(old, new, strict=strict)
            case ir.Named(), ir.Named():
                return self._names(old.name, new.name)
            case ir.Array(), ir.Array():
                return old.bounds == new.bounds and self._bodies(old.item, new.item, strict=True)
            case ir.Mapping(), ir.Mapping():
                return self._bodies(old.value, new.value, strict=True)
            case ir.Fixed(), ir.Fixed():
                return typed(old.values) == typed(new.values)
            case ir.Union(), ir.Union():
                return all(
                    any(self._bodies(arm, other, strict=True) for other in new.arms) for arm in old.arms
                ) and all(any(self._bodies(arm, other, strict=True) for arm in old.arms) for other in new.arms)
            case _:
                return old == new

    def _properties(self, old: ir.Object, new: ir.Object, *, strict: bool) -> bool:
        if len(old.properties) != len(new.properties):
            return False
        return all(
            one.wire == other.wire
            and (one.required == other.required or not strict)
            and self._bodies(one.type, other.type, strict=True)
            for one, other in zip(old.properties, new.properties, strict=True)
        )


def _content(of: Body) -> int:
    """Return a rough size of a structure: a larger one is less likely to exist twice by chance."""
    match of:
        case ir.Object(properties=properties):
            return len(properties) + sum(each.constant is not None for each in properties)
        case ir.Fixed(values=values):
            return len(values)
        case ir.Union(arms=arms):
            return len(arms)
        case _:
            return 0


def _extends(name: str, other: str) -> bool:
    """Whether *other* has the words of *name* in order, as ResourceTemplateReference has those of ResourceReference."""
    rest = iter(_WORD.findall(other))
    return all(word in rest for word in _WORD.findall(name))
