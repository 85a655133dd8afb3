"""What values of a type take in memory, such as the arguments of a tool.

Theory of operation. ``{}`` has two bytes in JSON. As a dataclass, it is an object with all its fields; where the author
has written `field(default_factory=list)`, also with a new list.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import ValidationError, inspect

from mcpgen.runtime.protocol.json_costs import BYTES_OF_SET, PLAIN_COSTS, JsonCosts, default_bytes
from mcpgen.runtime.protocol.message_size import memory_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["MAX_MORE_BYTES", "argument_costs", "largest_costs", "memory_check", "type_costs"]

# Measured in CPython 3.11, as resident memory of many.
_STRUCT_BYTES: Final = 40
_STRUCT_FIELD_BYTES: Final = 8
_DATACLASS_BYTES: Final = 120
_DATACLASS_FIELD_BYTES: Final = 40
_DECIMAL_BYTES: Final = 110

MAX_MORE_BYTES: Final = 24 * 1024 * 1024
"""Of the values of a type, beyond what JSON takes. 24,000 objects with 20 lists each take twice as much, and 0.7 s."""


def type_costs(kind: object) -> JsonCosts:
    """Return what the largest values in a value of *kind* take."""
    return largest_costs(map(_costs, _types(inspect.type_info(kind), set())))


def memory_check(costs: JsonCosts) -> Callable[[object], None] | None:
    """Return a check for values of a type with *costs*, which are JSON; None if they take no more than JSON.

    It raises `ValidationError` if they would take over 24 MiB more, as many objects with large defaults do.
    """
    return None if costs == PLAIN_COSTS else partial(_check_memory, costs)


def _check_memory(costs: JsonCosts, value: object) -> None:
    data = msgspec.json.encode(value)
    if len(data) * max(costs) <= MAX_MORE_BYTES:
        return
    more = memory_bytes(data, costs) - memory_bytes(data)
    if more > MAX_MORE_BYTES:
        limit = f"and at most {MAX_MORE_BYTES >> 20} MiB is allowed"
        reason = f"as this type, they would take {more >> 20} MiB more memory than as JSON, {limit}"
        raise ValidationError(f"Expected fewer objects or arrays: {reason}")


def argument_costs(arguments: type[msgspec.Struct]) -> JsonCosts:
    """Return what the largest values in *arguments* take, without what JSON gives the fields of their objects."""
    seen: set[type] = set()
    fields = inspect.type_info(arguments)
    if not isinstance(fields, inspect.StructType):  # unreachable: it is a Struct
        return PLAIN_COSTS
    return largest_costs(_costs(each) for field in fields.fields for each in _types(field.type, seen))


def largest_costs(costs: Iterable[JsonCosts]) -> JsonCosts:
    """Return the largest of each kind of *costs*; `PLAIN_COSTS` itself, if no type takes more."""
    largest = JsonCosts(*map(max, zip(PLAIN_COSTS, *costs, strict=True)))
    return PLAIN_COSTS if largest == PLAIN_COSTS else largest


def _types(kind: inspect.Type, seen: set[type]) -> Iterator[inspect.Type]:
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


def _costs(kind: inspect.Type) -> JsonCosts:
    match kind:
        case inspect.CustomType():
            found: JsonCosts = getattr(kind.cls, "json_costs", PLAIN_COSTS)  # of pydantic
            return found
        case inspect.StructType() | inspect.DataclassType():
            return PLAIN_COSTS._replace(object_bytes=_class_bytes(kind.cls))
        case inspect.SetType() | inspect.FrozenSetType():
            return PLAIN_COSTS._replace(array_bytes=BYTES_OF_SET)
        case inspect.DecimalType():
            return PLAIN_COSTS._replace(member_bytes=_DECIMAL_BYTES)
        case _:
            return PLAIN_COSTS


def _class_bytes(kind: type) -> int:
    """Return what an object takes of a dataclass, Struct or class of attrs, with the defaults that are made for it."""
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
    return size + sum(_default_bytes(each) for each in made)


def _default_bytes(factory: object) -> int:
    """Return what a default takes that *factory* makes."""
    if isinstance(factory, type):
        kind: type = factory
        if dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct) or hasattr(kind, "__attrs_attrs__"):
            return _class_bytes(factory)
    return default_bytes(factory)
