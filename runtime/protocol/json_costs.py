"""What the values of a tool's arguments take in memory, where that is far more than dicts, lists and texts take.

Theory of operation. A message is charged for its ``{``, ``[`` and commas, before it is decoded. As a model with inner
models, a ``{}`` takes ten times as much as a dict, and as a `Decimal`, a number takes twice as much as a text. So the
types of a tool say what their values take.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from mcpgen.runtime.protocol.core_schemas import WITH_FIELDS, calls_library, flag_of, inner_schemas

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = [
    "BYTES_OF_FLAG",
    "BYTES_OF_SET",
    "PLAIN_COSTS",
    "JsonCosts",
    "default_bytes",
    "named_tuple_bytes",
    "pydantic_costs",
]


class JsonCosts(NamedTuple):
    """Bytes of memory, measured in CPython 3.11 to 3.13.

    Attributes:
        object_bytes: Of an object with one to eight keys.
        array_bytes: Of an array.
        member_bytes: Of each further member of an object or array.
        made_bytes: Of the defaults that are made for an object, such as empty lists. They are in `object_bytes`, too.
        made_in_array_bytes: Of those that are made for an array. They are in `array_bytes`, too.
        has_texts: Whether pydantic decodes JSON in texts. The objects and arrays in them cost as much.
    """

    object_bytes: int = 150
    array_bytes: int = 70
    member_bytes: int = 50
    made_bytes: int = 0
    made_in_array_bytes: int = 0
    has_texts: bool = False


PLAIN_COSTS: Final = JsonCosts()
"""What dicts, lists, and texts or numbers in them take."""

# All below is measured in CPython 3.11, as resident memory of many.
BYTES_OF_SET: Final = 220
BYTES_OF_FLAG: Final = 420  # of a combination of flags, which Python keeps with its name
_EMPTY_BYTES: Final[dict[type, int]] = {list: 64, dict: 64, set: BYTES_OF_SET}

_TUPLE_BYTES: Final = 60
_PLACE_BYTES: Final = 8

# Of a default that only its author's function knows.
_UNKNOWN_BYTES: Final = 220

# pydantic 2.12: a model of 12 fields takes 650 bytes, one of 40 fields 2 kB, also if JSON has none of the fields.
_MODEL_BYTES: Final = 500
_FIELD_BYTES: Final = 40

_ARRAYS_OF_PYDANTIC: Final = {"deque": 750, "frozenset": BYTES_OF_SET, "generator": 530, "set": BYTES_OF_SET}
_NAMED_TUPLES: Final = {"arguments": "arguments_schema", "named-tuple": "fields"}  # before and since pydantic 2.14
_VALUES_OF_PYDANTIC: Final = {"decimal": 110, "multi-host-url": 290, "url": 260}
_LIBRARY_BYTES: Final = 650  # an IPv4 interface; a path takes 180


def pydantic_costs(core_schema: object) -> JsonCosts:
    """Return what the largest values of a type take, of which pydantic has made *core_schema*."""
    objects, arrays, members, made, made_in_array, has_texts = PLAIN_COSTS
    for each in inner_schemas(core_schema):
        kind = str(each.get("type"))
        has_texts = has_texts or kind == "json"
        if kind in WITH_FIELDS:
            fields = _declared(each["fields"])
            own = sum(_made_bytes(field["schema"]) for field in fields)
            made = max(made, own)
            objects = max(objects, _MODEL_BYTES + _FIELD_BYTES * len(fields) + own)
        if kind in _NAMED_TUPLES:  # JSON has an array or an object
            places = _declared(each[_NAMED_TUPLES[kind]])
            own = sum(_made_bytes(place["schema"]) for place in places)
            made, made_in_array = max(made, own), max(made_in_array, own)
            objects = max(objects, named_tuple_bytes(len(places)) + own)
            arrays = max(arrays, named_tuple_bytes(len(places)) + own)
        arrays = max(arrays, _ARRAYS_OF_PYDANTIC.get(kind, 0))
        members = max(members, _LIBRARY_BYTES if calls_library(each) else _VALUES_OF_PYDANTIC.get(kind, 0))
        members = max(members, BYTES_OF_FLAG if flag_of(each) else 0)
    return JsonCosts(objects, arrays, members, made, made_in_array, has_texts)


def named_tuple_bytes(fields: int) -> int:
    """Return what a named tuple with a number of *fields* takes, without what is in them."""
    return _TUPLE_BYTES + _PLACE_BYTES * fields


def _declared(fields: object) -> Collection[Mapping[str, Any]]:
    """Return the *fields* of a model; those of a dataclass are a list."""
    named = cast("dict[str, Any]", fields).values() if isinstance(fields, dict) else fields
    return cast("Collection[Mapping[str, Any]]", named)


def _made_bytes(field: Mapping[str, Any]) -> int:
    if field.get("type") != "default":
        return 0
    factory: object = field.get("default_factory")
    default: Any = field.get("default")
    if factory is not None:
        return default_bytes(factory)
    if _has_hash(default):
        return 0
    kind = cast("object", type(default))
    return max(default_bytes(kind), _copied_bytes(default))  # it copies a default that is not hashable


def _has_hash(value: object) -> bool:
    """Return whether *value* has a hash; a tuple has none if a list is in it."""
    try:
        hash(value)
    except Exception:  # noqa: BLE001 (pydantic copies it then, whatever the error is)
        return False
    return True


def _copied_bytes(default: object) -> int:
    """Return what the arrays and objects of a copied *default* take."""
    if isinstance(default, dict):
        inside: Iterable[object] = cast("dict[object, object]", default).values()
    elif isinstance(default, list | set | tuple):
        inside = cast("Iterable[object]", default)
    else:
        return 0
    return sys.getsizeof(cast("object", default)) + sum(map(_copied_bytes, inside))


def default_bytes(factory: object) -> int:
    """Return what a default takes that *factory* makes."""
    if not isinstance(factory, type):
        return _UNKNOWN_BYTES
    schema: object = getattr(factory, "__pydantic_core_schema__", None)
    if schema is not None:
        return pydantic_costs(schema).object_bytes
    return _EMPTY_BYTES.get(factory, _UNKNOWN_BYTES)
