"""What the keywords of one JSON Schema cost for one value, in the units of `mcpgen.runtime.client.schema_cost`.

Most keywords take 5 to 50 ns, which is one unit. Others take longer for each value; the times here were measured with
jsonschema_rs 0.60.
"""

from __future__ import annotations

from typing import Any, Final

from mcpgen.runtime.adapt.json_pointer import is_array, is_object

__all__ = ["REREADS", "REREAD_UNITS", "keyword_cost", "list_of", "map_of"]

REREADS: Final = ("uniqueItems", "contentMediaType", "contentEncoding")
"""Keywords that read all of a text or an array. Up to draft 7, the library decodes the text."""

REREAD_UNITS: Final = 3
"""What such a keyword costs for each byte: JSON in a text takes 120 ns."""

# The library compares numbers exactly: up to 0.9 µs for a bound, 1.4 µs for a choice, 6 µs for a multiple, and 22 µs
# for a multiple of less than 1e-9.
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_BOUND_UNITS: Final = 20
_NUMBER_UNITS: Final = 30
_MULTIPLE_UNITS: Final = 120
_TINY_MULTIPLE: Final = 1e-9
_TINY_MULTIPLE_UNITS: Final = 440

# What comparing a value within a choice takes: 190 ns.
_INNER_UNITS: Final = 4


def keyword_cost(schema: dict[str, Any]) -> int:
    """Return the units that the keywords of *schema* itself take for one value."""
    # A keyword with many items is checked item by item.
    cost = 1 + sum(len(value) for value in schema.values() if is_array(value) or is_object(value))
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


def list_of(value: object) -> list[Any]:
    """Return *value*, or no items if it is not an array."""
    return value if is_array(value) else []


def map_of(value: object) -> dict[str, Any]:
    """Return *value*, or no members if it is not an object."""
    return value if is_object(value) else {}
