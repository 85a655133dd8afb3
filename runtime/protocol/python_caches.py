"""Empty caches of Python that a peer could fill: Python itself never empties them.

Theory of operation. A class of flags keeps an object for each value that it was ever made of, 420 bytes each. `IntFlag`
takes every integer, and of 30 flags there are a billion combinations; a class of few flags is left alone. `ipaddress`
keeps the prefix of each network as it was written, and ``::/0…064`` may have 4,000 zeros. So if a cache has more than
1,000 entries (of flags: and more than twice those in use at the last look), those of earlier values are dropped before
a value is read. Combinations of flags that are in use stay: equal ones have to be the same object.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from msgspec import ValidationError, inspect

from mcpgen.runtime.protocol.core_schemas import flag_of, inner_schemas, many_flags
from mcpgen.runtime.protocol.json_levels import levels, objects_of
from mcpgen.runtime.protocol.value_costs import types_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from enum import Flag

__all__ = ["cache_check"]

# To make a combination of flags takes 7 µs, and it may be made again when the tool returns it.
_MAX_FLAGS: Final = 5000

# The class keeps its values in a dict, and longer integers can be chosen with one hash: 4,900 took 0.3 to 1.4 s.
_LONG: Final = 1 << 64
_LONG_DIGITS: Final = 20
_COST_OF_LONG: Final = 20

_KEPT_FLAGS: Final = 1000
_KEPT_PREFIXES: Final = 1000
_PREFIX_CHARS: Final = len("255.255.255.255")

_room: Final[WeakKeyDictionary[type[Flag], int]] = WeakKeyDictionary()
"""How many values each class may keep until it is looked at again: twice those that were in use the last time."""


def cache_check(kind: type) -> Callable[[object], None] | None:
    """Return a check for values of *kind*, which are JSON; None if reading them fills no such cache.

    It empties these caches, and raises `ValidationError` if more than 5,000 whole numbers are in a value that can have
    flags. If *kind* is a Struct, only the fields that can have flags are counted.
    """
    info = inspect.type_info(kind)
    found = list(types_in(info, set()))
    flags = {flag for each in found for flag in _flags(each)}
    if not flags and not any(isinstance(each, inspect.CustomType) for each in found):
        return None
    names = None
    if isinstance(info, inspect.StructType) and not info.array_like:
        names = [each.encode_name for each in info.fields if any(map(_flags, types_in(each.type, set())))]
    return partial(_check, flags, names)


def _flags(kind: inspect.Type) -> list[type[Flag]]:
    """Return the classes of flags that a type itself has, except those with few combinations."""
    if isinstance(kind, inspect.EnumType):
        found = [many_flags(kind.cls)]
    else:
        adapter: Any = getattr(kind.cls, "adapter", None) if isinstance(kind, inspect.CustomType) else None  # pydantic
        found = [*map(flag_of, inner_schemas(getattr(adapter, "core_schema", None)))]
    return [each for each in found if each is not None]


def _check(flags: Iterable[type[Flag]], names: Iterable[str] | None, value: object) -> None:
    if flags:
        counted = [value]
        if names is not None and isinstance(value, dict):  # else it is invalid
            members = cast("dict[str, object]", value)
            counted = [members[each] for each in names if each in members]
        if sum(map(_numbers, levels(counted))) > _MAX_FLAGS:
            long = f"a number of more than 64 bits counts as {_COST_OF_LONG}"
            raise ValidationError(f"Expected at most {_MAX_FLAGS} whole numbers, because they may be flags; {long}")
    for each in flags:
        _forget_flags(each)
    for network in (IPv4Network, IPv6Network):
        _forget_prefixes(network)


def _numbers(level: list[object]) -> int:
    """Return how many whole numbers are in a level of JSON, such as 5 or 5.0; a key may be one, too."""
    keys = chain.from_iterable(objects_of(level))
    whole = [each for each in level if type(each) is int or (type(each) is float and each.is_integer())]
    long = sum(not -_LONG < each < _LONG for each in whole)
    named = [each for each in keys if each[:1] in "-0123456789"]
    long += sum(len(each) > _LONG_DIGITS for each in named)
    return len(whole) + len(named) + (_COST_OF_LONG - 1) * long


def _forget_flags(flag: type[Flag]) -> None:
    """Drop the combinations of flags that only their class refers to, if they are many."""
    kept: dict[Any, Flag] = getattr(flag, "_value2member_map_", {})
    if len(kept) <= _room.get(flag, _KEPT_FLAGS):
        return
    declared = set(map(id, flag.__members__.values()))
    for value in _unused(kept, _OWN_REFERENCES):
        if id(kept.get(value)) not in declared:
            kept.pop(value, None)
    _room[flag] = max(_KEPT_FLAGS, 2 * len(kept))


def _unused(kept: Mapping[Any, object], own: int) -> Iterator[Any]:
    """Yield each key of *kept* whose value has no other reference; the caller has to drop it at once.

    Otherwise, another thread could begin to use it.

    *own* is how many references this function itself has to a value.
    """
    entries = Counter(map(id, kept.values()))  # a negative number and a positive one may be the same combination
    for key, value in list(kept.items()):
        if sys.getrefcount(value) <= entries[id(value)] + own:
            yield key


# How many references `_unused` itself has to a value. That depends on the version of Python.
_OWN_REFERENCES: Final = next(own for own in count() if [*_unused({1: object()}, own)])


def _forget_prefixes(network: Any) -> None:  # noqa: ANN401 (of two classes, whose cache is private)
    """Drop prefixes that are longer than a netmask, if they are many."""
    kept: dict[object, object] = getattr(network, "_netmask_cache", {})
    if len(kept) > _KEPT_PREFIXES:
        for each in list(kept):
            if isinstance(each, str) and len(each) > _PREFIX_CHARS:
                kept.pop(each, None)
