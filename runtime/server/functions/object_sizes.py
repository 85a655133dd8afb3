"""What an object in the arguments of a tool takes in memory, which can be far more than a dict takes.

Theory of operation. ``{}`` has two bytes in JSON. As a dataclass, it is an object with all its fields; where the author
has written `field(default_factory=list)`, also with a new list.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import inspect

from mcpgen.runtime.protocol.message_size import OBJECT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["object_bytes"]

# Measured in CPython 3.11, as resident memory of many.
_STRUCT_BYTES: Final = 40
_STRUCT_FIELD_BYTES: Final = 8
_DATACLASS_BYTES: Final = 120
_DATACLASS_FIELD_BYTES: Final = 40
_EMPTY_BYTES: Final[dict[type, int]] = {list: 64, dict: 64, set: 224}

# Of a default that only its author's function knows.
_UNKNOWN_BYTES: Final = 224


def object_bytes(arguments: type[msgspec.Struct]) -> int:
    """Return about how many bytes the largest object in *arguments* takes, without what JSON gives its fields.

    It is 0 if that is not more than a dict takes.
    """
    seen: set[type] = set()
    fields = inspect.type_info(arguments)
    if not isinstance(fields, inspect.StructType):  # unreachable: it is a Struct
        return 0
    largest = max((_size(each) for field in fields.fields for each in _types(field.type, seen)), default=0)
    # If no class takes more than a dict, small requests need not be searched for objects.
    return largest if largest > OBJECT_BYTES else 0


def _types(kind: Any, seen: set[type]) -> Iterator[inspect.Type]:
    """Yield *kind* and all types in it, each class once."""
    if isinstance(kind, inspect.StructType | inspect.DataclassType | inspect.TypedDictType | inspect.NamedTupleType):
        if kind.cls in seen:
            return
        seen.add(kind.cls)
    yield kind
    inner: list[Any] = [getattr(kind, name, None) for name in ("item_type", "key_type", "value_type", "type")]
    inner += [*getattr(kind, "item_types", ()), *getattr(kind, "types", ())]
    inner += [each.type for each in getattr(kind, "fields", ())]
    for each in inner:
        if isinstance(each, inspect.Type):
            yield from _types(each, seen)


def _size(kind: inspect.Type) -> int:
    if isinstance(kind, inspect.CustomType):
        found: int = getattr(kind.cls, "object_bytes", 0)  # of pydantic
        return found
    return _class_bytes(kind.cls) if isinstance(kind, inspect.StructType | inspect.DataclassType) else 0


def _class_bytes(kind: type) -> int:
    """Return what an object of a dataclass or Struct takes, with the defaults that are made for it."""
    if dataclasses.is_dataclass(kind):
        declared = dataclasses.fields(kind)
        factories: list[Any] = [each.default_factory for each in declared]
        size = _DATACLASS_BYTES + _DATACLASS_FIELD_BYTES * len(declared)
    elif issubclass(kind, msgspec.Struct):
        factories = [each.default_factory for each in msgspec.structs.fields(kind)]
        size = _STRUCT_BYTES + _STRUCT_FIELD_BYTES * len(factories)
    else:
        return _UNKNOWN_BYTES
    made = (each for each in factories if each is not dataclasses.MISSING and each is not msgspec.NODEFAULT)
    return size + sum(_default_bytes(each) for each in made)


def _default_bytes(factory: object) -> int:
    """Return what a default takes that *factory* makes."""
    if not isinstance(factory, type):
        return _UNKNOWN_BYTES
    return _EMPTY_BYTES.get(factory) or _class_bytes(factory)
