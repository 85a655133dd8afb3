"""Functions that do the same become one: the ``_meta`` of every result is one object under many names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcpgen.codegen.adapters.ops import Admit, Call, Function, Keep, Nested, Switch, Transform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.codegen.adapters.ops import Operation

__all__ = ["final", "merged"]


def merged(functions: Mapping[str, Function]) -> tuple[dict[str, Function], dict[str, str]]:
    """Return *functions* without repetitions, and for each name the one that is left.

    Functions that need nothing but the keys that they take, or that call the same, are the same.
    """
    left = dict(functions)
    names = {name: name for name in functions}
    while True:
        first: dict[str, str] = {}
        again: dict[str, str] = {}
        for name, each in left.items():
            key = repr((each.is_closing, each.body))
            if (kept := first.setdefault(key, name)) != name:
                again[name] = kept
                left[kept] = replace(left[kept], also=(*left[kept].also, each.source, *each.also))
        if not again:
            return left, names
        names = {name: again.get(kept, kept) for name, kept in names.items()}
        renamed = {**{name: name for name in left}, **again}
        left = {name: _renamed(each, renamed) for name, each in left.items() if name not in again}


def final(transform: Transform, names: Mapping[str, str]) -> Transform:
    """Return *transform* with the function that is left of the one it calls; nothing to do if there is none."""
    if isinstance(transform, Keep) or transform.function not in names:
        return Keep()
    return replace(transform, function=names[transform.function])


def _renamed(function: Function, names: Mapping[str, str]) -> Function:
    match function.body:
        case Switch(cases=cases) as switch:
            renamed = tuple(replace(each, transform=final(each.transform, names)) for each in cases)
            return replace(function, body=replace(switch, cases=renamed))
        case tuple() as operations:
            return replace(function, body=tuple(_operation(each, names) for each in operations))
        case Keep() | Call() as transform:
            return replace(function, body=final(transform, names))


def _operation(operation: Operation, names: Mapping[str, str]) -> Operation:
    match operation:
        case Nested(transform=transform):
            return replace(operation, transform=final(transform, names))
        case Admit(closing=closing):
            return replace(operation, closing=final(closing, names))
        case _:
            return operation
