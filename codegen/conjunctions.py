"""Merge two schemas of one value, such as those that two members of an ``allOf`` give for one property."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen.frontend import SchemaObject, admits_anything, exact, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.codegen.frontend import SchemaNode

__all__ = ["adds_nothing", "can_extend", "is_open", "merged", "says_object"]

_APART = {"all_of", "any_of", "ref"}  # keywords that cannot be merged with others


def merged(first: SchemaNode, second: SchemaNode) -> tuple[SchemaNode, list[str]]:
    """Return a schema with the keywords of both, and the reasons why it does not accept exactly what both accept."""
    if not isinstance(first, SchemaObject) or not isinstance(second, SchemaObject):
        return False if False in (first, second) else second if first is True else first, []
    own, other = first.decides(), second.decides()
    found = msgspec.structs.replace(first, **other)
    if second.fixed is not None and exact(found.default) not in map(exact, second.fixed):
        found = msgspec.structs.replace(found, default=None)  # it is the default of a wider type
    if not own or not other or exact(own) == exact(other):
        return found, []
    differing = sorted(keyword for keyword in own.keys() & other.keys() if exact(own[keyword]) != exact(other[keyword]))
    faults = [f"two members of `allOf` give different {quoted([keyword])} for one property" for keyword in differing]
    if apart := sorted(({*own, *other} & _APART) - {*differing}):
        faults.append(f"two members of `allOf` describe one property, and {quoted(apart)} cannot be merged")
    # additionalProperties applies to the keys that its own member does not describe.
    restricts = found.additional is not None and not admits_anything(found.additional)
    if restricts and exact(first.properties) != exact(second.properties):
        faults.append(
            "two members of `allOf` describe one property with different `properties`, and `additionalProperties` of "
            "one member also restricts the keys that only the other member describes"
        )
    return found, faults


def says_object(node: SchemaObject) -> bool:
    """Whether *node* accepts every object, and nothing else."""
    further = node.additional is None or admits_anything(node.additional)
    return node.decides().keys() <= {"types", "additional"} and node.types == ("object",) and further


def adds_nothing(loose: SchemaObject, shapes: Sequence[Sequence[SchemaObject]]) -> bool:
    """Whether *loose*, which accepts every object, changes none of *shapes*, the types beside it.

    If *loose* has ``additionalProperties``, it would keep the unknown keys of an object that drops them.
    """
    return bool(shapes) and all(
        _is_object(parts)
        and (loose.additional is None or is_open(parts) or any(part.additional is False for part in parts))
        for parts in shapes
    )


def can_extend(parts: Sequence[SchemaObject]) -> bool:
    """Whether *parts* describe one object, so that an ``allOf`` can have them as a member beside one with keys."""
    further = (part.additional for part in parts)
    return _is_object(parts) and all(each is None or each is False or admits_anything(each) for each in further)


def is_open(parts: Sequence[SchemaObject]) -> bool:
    """Whether the object merged from *parts* keeps unknown keys: one of them is open, or none describes a key."""
    is_closed = all(part.additional is None for part in parts)
    return not is_closed or all(part.properties is None for part in parts)


def _is_object(parts: Sequence[SchemaObject]) -> bool:
    found = {part.types or part.implied_types() for part in parts} - {()}
    return found == {("object",)} and not any(part.any_of or part.fixed is not None for part in parts)
