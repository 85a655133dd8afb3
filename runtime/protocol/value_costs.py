"""What values of a type take in memory, such as the arguments of a tool.

Theory of operation. ``{}`` has two bytes in JSON. As a dataclass, it is an object with all its fields; where the author
has written `field(default_factory=list)`, also with a new list. In the same way, ``[]`` can stand for a named tuple
with all its defaults, or for a Struct that is written as an array.
"""

from __future__ import annotations

import dataclasses
import typing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import ValidationError, inspect

from mcpgen.runtime.limits import MAX_VALUES
from mcpgen.runtime.protocol.core_schemas import many_flags
from mcpgen.runtime.protocol.json_costs import (
    BYTES_OF_FLAG,
    BYTES_OF_SET,
    PLAIN_COSTS,
    JsonCosts,
    default_bytes,
    named_tuple_bytes,
)
from mcpgen.runtime.protocol.json_levels import arrays_of, levels, objects_of
from mcpgen.runtime.protocol.json_texts import json_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["MAX_MADE_BYTES", "argument_costs", "largest_costs", "memory_check", "type_costs", "types_in"]

# Measured in CPython 3.11, as resident memory of many.
_STRUCT_BYTES: Final = 40
_STRUCT_FIELD_BYTES: Final = 8
_DATACLASS_BYTES: Final = 120
_DATACLASS_FIELD_BYTES: Final = 40
_DECIMAL_BYTES: Final = 110

MAX_MADE_BYTES: Final = 16 * 1024 * 1024
"""Of the defaults that are made for the objects of a message. 24,000 objects with 20 lists take 30 MB, and 0.7 s."""

# A program can raise `max_values`. Then messages may have more defaults: an empty list for each value takes less.
_MADE_BYTES_OF_VALUE: Final = 100


def type_costs(kind: object) -> JsonCosts:
    """Return what the largest values in a value of *kind* take."""
    return largest_costs(map(_costs, types_in(inspect.type_info(kind), set())))


def memory_check(costs: JsonCosts) -> Callable[[object], None] | None:
    """Return a check for values of a type with *costs*, which are JSON; None if it makes no defaults.

    It raises `ValidationError` if these defaults could take over 16 MiB: `{}` stands for all defaults of a class, and
    so does `[]` for those of a Struct that is written as an array, or of a named tuple that pydantic reads.
    """
    return partial(_check_memory, costs) if costs.made_bytes or costs.made_in_array_bytes else None


def _check_memory(costs: JsonCosts, value: object) -> None:
    most_made = max(costs.made_bytes, costs.made_in_array_bytes)
    if len(msgspec.json.encode(value)) * most_made <= MAX_MADE_BYTES:  # quicker, and enough for most values
        return
    objects = arrays = values = 0
    roots = [value, *json_values(value, MAX_VALUES)] if costs.has_texts else [value]
    for level in levels(roots):
        objects += len(objects_of(level))
        arrays += len(arrays_of(level))
        values += len(level)
    made = objects * costs.made_bytes + arrays * costs.made_in_array_bytes
    most = max(MAX_MADE_BYTES, values * _MADE_BYTES_OF_VALUE)
    if made > most:
        reason = f"the defaults of their fields could take {made >> 20} MiB of memory"
        raise ValidationError(f"Expected fewer objects: {reason}, and at most {most >> 20} MiB is allowed")


def argument_costs(arguments: type[msgspec.Struct]) -> JsonCosts:
    """Return what the largest values in *arguments* take, without what JSON gives the fields of their objects."""
    seen: set[type] = set()
    fields = inspect.type_info(arguments)
    if not isinstance(fields, inspect.StructType):  # unreachable: it is a Struct
        return PLAIN_COSTS
    return largest_costs(_costs(each) for field in fields.fields for each in types_in(field.type, seen))


def largest_costs(costs: Iterable[JsonCosts]) -> JsonCosts:
    """Return the largest of each kind of *costs*; `PLAIN_COSTS` itself, if no type takes more."""
    largest = JsonCosts(*map(max, zip(PLAIN_COSTS, *costs, strict=True)))
    return PLAIN_COSTS if largest == PLAIN_COSTS else largest


def types_in(kind: inspect.Type, seen: set[type]) -> Iterator[inspect.Type]:
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
            yield from types_in(each, seen)


def _costs(kind: inspect.Type) -> JsonCosts:
    match kind:
        case inspect.CustomType():
            found: JsonCosts = getattr(kind.cls, "json_costs", PLAIN_COSTS)  # of pydantic
            return found
        case inspect.StructType(array_like=True):
            size, made = _class_bytes(kind.cls)
            return PLAIN_COSTS._replace(array_bytes=size + made, made_in_array_bytes=made)
        case inspect.NamedTupleType():
            return PLAIN_COSTS._replace(array_bytes=named_tuple_bytes(len(kind.fields)))
        case inspect.StructType() | inspect.DataclassType():
            size, made = _class_bytes(kind.cls)
            return PLAIN_COSTS._replace(object_bytes=size + made, made_bytes=made)
        case inspect.SetType() | inspect.FrozenSetType():
            return PLAIN_COSTS._replace(array_bytes=BYTES_OF_SET)
        case inspect.DecimalType():
            return PLAIN_COSTS._replace(member_bytes=_DECIMAL_BYTES)
        case inspect.EnumType() if many_flags(kind.cls):
            return PLAIN_COSTS._replace(member_bytes=BYTES_OF_FLAG)
        case _:
            return PLAIN_COSTS


def _class_bytes(declared_class: type) -> tuple[int, int]:
    """Return the bytes of an object of a dataclass, Struct or class of attrs, and those of the defaults made for it."""
    kind: Any = typing.get_origin(declared_class) or declared_class  # msgspec reports `Page[int]` of a generic class
    factories: list[Any]
    if dataclasses.is_dataclass(kind):
        declared = dataclasses.fields(kind)
        factories = [each.default_factory for each in declared]
        size = _DATACLASS_BYTES + _DATACLASS_FIELD_BYTES * len(declared)
    elif issubclass(kind, msgspec.Struct):
        factories = [each.default_factory for each in msgspec.structs.fields(kind)]
        size = _STRUCT_BYTES + _STRUCT_FIELD_BYTES * len(factories)
    else:  # msgspec also takes classes of attrs as dataclasses
        attributes: Any = getattr(kind, "__attrs_attrs__", ())
        factories = [getattr(each.default, "factory", dataclasses.MISSING) for each in attributes]
        size = _DATACLASS_BYTES + _DATACLASS_FIELD_BYTES * len(factories)
    made = (each for each in factories if each is not dataclasses.MISSING and each is not msgspec.NODEFAULT)
    return size, sum(_default_bytes(each) for each in made)


def _default_bytes(factory: object) -> int:
    """Return what a default takes that *factory* makes."""
    if isinstance(factory, type):
        kind: Any = factory
        if dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct) or hasattr(kind, "__attrs_attrs__"):
            return sum(_class_bytes(factory))
    return default_bytes(factory)
