"""Empty caches of Python that a peer could fill: it keeps what they hold as long as the process lives.

Theory of operation. A class of flags keeps an object for each value that it was ever made of, 420 bytes each. `IntFlag`
takes every integer, and of 30 flags there are a billion combinations. `ipaddress` keeps the prefix of each network as
it was written, and ``::/0…064`` may have 4,000 zeros. So before a value is read, what was kept of earlier ones is
dropped, unless it is in use: equal combinations of flags have to be the same object.
"""

from __future__ import annotations

import sys
from collections import Counter
from enum import Flag
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from msgspec import ValidationError, inspect

from mcpgen.runtime.protocol.core_schemas import flag_of, inner_schemas
from mcpgen.runtime.protocol.json_levels import levels, objects_of
from mcpgen.runtime.protocol.value_costs import types_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["cache_check"]

# To make a combination of flags takes 7 µs, and a result is checked again.
_MAX_FLAGS: Final = 5000

_KEPT_FLAGS: Final = 1000
_KEPT_PREFIXES: Final = 1000
_PREFIX_CHARS: Final = len("255.255.255.255")

_room: Final[WeakKeyDictionary[type[Flag], int]] = WeakKeyDictionary()
"""How many values each class may keep until it is looked at again: twice those that were in use the last time."""


def cache_check(kind: type) -> Callable[[object], None] | None:
    """Return a check for values of *kind*, which are JSON; None if reading them fills no such cache.

    It empties these caches, and raises `ValidationError` if more than 5,000 numbers are in a value that can have flags.
    If *kind* is a Struct, only the fields that can have flags are counted.
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
    """Return the classes of flags that a type itself has."""
    if isinstance(kind, inspect.EnumType):
        return [kind.cls] if issubclass(kind.cls, Flag) else []
    adapter: Any = getattr(kind.cls, "adapter", None) if isinstance(kind, inspect.CustomType) else None  # of pydantic
    schemas = inner_schemas(getattr(adapter, "core_schema", None))
    return [each for each in map(flag_of, schemas) if each is not None]


def _check(flags: Iterable[type[Flag]], names: Iterable[str] | None, value: object) -> None:
    if flags:
        members = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        counted = [value] if names is None else [members[each] for each in names if each in members]
        if sum(map(_numbers, levels(counted))) > _MAX_FLAGS:
            raise ValidationError(f"Expected at most {_MAX_FLAGS} numbers, because they may be flags")
    for each in flags:
        _forget_flags(each)
    for network in (IPv4Network, IPv6Network):
        _forget_prefixes(network)


def _numbers(level: list[object]) -> int:
    """Return how many numbers are in a level of JSON; a key may be one, too."""
    keys = chain.from_iterable(objects_of(level))
    return sum(type(each) in (int, float) for each in level) + sum(each[:1] in "-0123456789" for each in keys)


def _forget_flags(flag: type[Flag]) -> None:
    """Drop the combinations of flags that only their class refers to, if they are many."""
    kept: dict[Any, Flag] = getattr(flag, "_value2member_map_", {})
    if len(kept) <= _room.get(flag, _KEPT_FLAGS):
        return
    declared = set(map(id, flag.__members__.values()))
    entries = Counter(map(id, kept.values()))  # a negative number and a positive one may be the same combination
    for value, member, references in _references(kept):
        if member not in declared and references <= entries[member] + _OWN_REFERENCES:
            kept.pop(value, None)
    _room[flag] = max(_KEPT_FLAGS, 2 * len(kept))


def _references(kept: Mapping[Any, object]) -> list[tuple[Any, int, int]]:
    """Return the keys of *kept*, with the id of each value and how many references there are to it."""
    return [(key, id(each), sys.getrefcount(each)) for key, each in list(kept.items())]


# Which references of its own `_references` counts depends on the version of Python: here, `object()` has one other.
_OWN_REFERENCES: Final = max(count for _, _, count in _references({1: object(), 2: object()})) - 1


def _forget_prefixes(network: Any) -> None:  # noqa: ANN401 (of two classes, whose cache is private)
    """Drop prefixes that are longer than a netmask, if they are many."""
    kept: dict[object, object] = getattr(network, "_netmask_cache", {})
    if len(kept) > _KEPT_PREFIXES:
        for each in list(kept):
            if isinstance(each, str) and len(each) > _PREFIX_CHARS:
                kept.pop(each, None)
