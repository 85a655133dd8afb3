"""Choices in the order in which their author wrote them, which is that in which people see them; msgspec sorts them."""

from __future__ import annotations

import typing
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgen.runtime.server.functions.signatures import Annotation

__all__ = ["in_order"]


def in_order(schema: dict[str, Any], annotation: Annotation) -> dict[str, Any]:
    """Return *schema*, which is that of the type *annotation*, with its choices in order."""
    orders = {frozenset(map(repr, each)): each for each in _choices(annotation, {})}
    return cast("dict[str, Any]", _ordered(schema, orders)) if orders else schema


def _ordered(value: object, orders: dict[frozenset[str], list[object]]) -> object:
    if isinstance(value, list):
        return [_ordered(each, orders) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    found = {key: _ordered(each, orders) for key, each in cast("dict[str, object]", value).items()}
    listed = found.get("enum")
    if isinstance(listed, list):
        found["enum"] = orders.get(frozenset(map(repr, cast("list[object]", listed))), cast("list[object]", listed))
    return found


def _choices(annotation: Annotation, seen: dict[int, Annotation]) -> Iterator[list[object]]:
    """Yield the values of each Literal and Enum that a type is made of, in order."""
    if id(annotation) in seen:
        return
    seen[id(annotation)] = annotation  # kept, so that its id stays its own
    origin: Any = typing.get_origin(annotation)
    if origin is typing.Literal:
        yield list(typing.get_args(annotation))
        return
    for each in typing.get_args(annotation):
        yield from _choices(each, seen)
    plain: Any = origin or annotation
    if not isinstance(plain, type):
        return
    if issubclass(plain, Enum):
        yield [each.value for each in plain]
    elif not plain.__module__.startswith("builtins"):
        for each in _field_types(plain):
            yield from _choices(each, seen)


def _field_types(kind: Annotation) -> list[Annotation]:
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):  # whatever cannot be looked up is no choice
        return []
