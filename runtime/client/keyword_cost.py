"""What the keywords of one JSON Schema cost for one value, in the units of `mcpgen.runtime.client.schema_cost`.

Most keywords take 5 to 20 ns, which is one unit. Others take longer for each value; the times here were measured with
jsonschema_rs 0.60.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from mcpgen.runtime.adapt.json_pointer import is_array, is_object

__all__ = ["REREADS", "REREAD_UNITS", "LongNumbers", "keyword_cost", "list_of", "long_numbers", "map_of"]

REREADS: Final = ("uniqueItems", "contentMediaType", "contentEncoding")
"""Keywords that read all of a text or an array. Up to draft 7, the library decodes the text."""

REREAD_UNITS: Final = 3
"""What such a keyword costs for each byte: JSON in a text takes 120 ns."""

_LISTS_OF_NAMES: Final = ("dependentRequired", "dependencies")

# The library compares numbers exactly: up to 0.9 µs for a bound, 1.4 µs for a choice, 6 µs for a multiple, and 22 µs
# for a multiple of less than 1e-9.
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_BOUND_UNITS: Final = 50
_NUMBER_UNITS: Final = 75
_MULTIPLE_UNITS: Final = 300
_TINY_MULTIPLE: Final = 1e-9
_TINY_MULTIPLE_UNITS: Final = 1100

_FLOAT_BITS: Final = 53
_LONG_DIGITS: Final = 16
_FACTOR_BITS: Final = 450  # 135 digits take as long as one
_PAIR_UNITS: Final = 50  # up to 0.9 µs: 1.75 µs for each of half of the pairs
_has_many_digits: Final = re.compile(rb"\d{%d}" % _LONG_DIGITS).search

# What comparing a value within a choice takes: 190 ns.
_INNER_UNITS: Final = 10


def keyword_cost(schema: dict[str, Any]) -> int:
    """Return the units that the keywords of *schema* itself take for one value."""
    # A keyword with many items is checked item by item.
    cost = 1 + sum(len(value) for value in schema.values() if is_array(value) or is_object(value))
    # Each array in these is a list of names, and the library looks up all of them.
    cost += sum(len(list_of(each)) for keyword in _LISTS_OF_NAMES for each in map_of(schema.get(keyword)).values())
    cost += _BOUND_UNITS * sum(name in schema for name in _BOUNDS)
    multiple = schema.get("multipleOf")
    if isinstance(multiple, int | float):
        cost += _TINY_MULTIPLE_UNITS if multiple < _TINY_MULTIPLE else _MULTIPLE_UNITS
    choices: list[tuple[Any, int]] = [(each, 0) for each in (*list_of(schema.get("enum")), schema.get("const"))]
    while choices:
        value, units = choices.pop()
        cost += _NUMBER_UNITS if isinstance(value, int | float) else units
        choices.extend((each, _INNER_UNITS) for each in (*list_of(value), *map_of(value).values()))
    return cost


class LongNumbers(Struct, frozen=True):
    """The whole numbers in a value that floats cannot express. The library reads the longest ones anew each time.

    Attributes:
        count: How many there are.
        bits: The length of the longest.
    """

    count: int
    bits: int

    @property
    def factor(self) -> int:
        """How many times longer a keyword takes for the longest number: up to 0.8 ms, for 4,300 digits."""
        return 1 + (self.bits // _FACTOR_BITS) ** 2

    def reread_units(self, value: object) -> int:
        """Return what one of `REREADS` takes for *value*. `uniqueItems` compares numbers that are equal as floats."""
        size = len(msgspec.json.encode(value))
        count = min(self.count, size // _LONG_DIGITS)
        equal = min(count, 1 << min(max(self.bits - _FLOAT_BITS, 0), 32))
        return REREAD_UNITS * size + _PAIR_UNITS * count * equal


def long_numbers(value: object, encoded: bytes) -> LongNumbers:
    """Return the long numbers in *value*, which is encoded as *encoded*."""
    count, longest = 0, 0
    values = [value] if _has_many_digits(encoded) else []
    while values:
        each = values.pop()
        if isinstance(each, int) and each.bit_length() > _FLOAT_BITS:
            count, longest = count + 1, max(longest, each.bit_length())
        values.extend((*list_of(each), *map_of(each).values()))
    return LongNumbers(count, longest)


def list_of(value: object) -> list[Any]:
    """Return *value*, or no items if it is not an array."""
    return value if is_array(value) else []


def map_of(value: object) -> dict[str, Any]:
    """Return *value*, or no members if it is not an object."""
    return value if is_object(value) else {}
