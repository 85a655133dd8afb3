"""Literal samples of scalars and of free JSON, chosen to be awkward: what a codec gets wrong, it gets wrong here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.oracle.shapes import Json, Number


class OpenObject(dict[str, Any]):
    """An object that accepts unknown keys, and so keeps all its keys in order."""


class MapObject(OpenObject):
    """An object without listed keys, all of whose values have one shape."""


# Integers beyond a double's 53 bits and beyond 64 bits: JSON Schema knows no limit, so neither may a binding.
INTEGERS: tuple[int, ...] = (0, 1, -1, 7, 50, 2**53 + 1, -(2**53) - 1, 2**63, 10**25)
# 1.0 is a float that looks like an integer, 1e-07 and 1e+22 are written with an exponent.
FLOATS: tuple[float, ...] = (0.5, 1.0, 0.0, -2.25, 1e-3, 1e-7, 1e22, 0.1 + 0.2)
STRINGS: tuple[str, ...] = (
    "",
    "x",
    "null",
    "1",
    "Zoë 日本語 🦜",
    'quote " backslash \\ slash / tab \t newline \n',
    "\u0000\u001f\u007f\u2028\ufeff",
    "  spaces  ",
)
FORMATS: dict[str | None, str] = {
    "byte": "aGVsbG8=",
    "uri": "https://example.com/a?b=c#d",
    "uri-template": "file:///{path}",
}

NESTED = OpenObject({"z": [1, 1.0, {"b": None, "a": [[]]}], "a": {"": {}}, "_meta": "kept", "n": -0.5})
ANYTHING: tuple[Json, ...] = ({}, None, True, False, 0, 2**53 + 1, 1.0, 0.5, "", "x", [], [None, "x", [0.5]], NESTED)

# Keys for open objects. `meta` and `input_schema` are attribute names of known wire keys, the dunder is Python's.
EXTRA_KEYS: tuple[str, ...] = ("x-unknown", "meta", "", "example.com/κλειδί", "__class__", "a/b~c", "input_schema")


def numbers(shape: Number) -> list[int | float]:
    """Return varied numbers of that shape, its limits included."""
    candidates: list[int | float] = [limit for limit in (shape.minimum, shape.maximum) if limit is not None]
    candidates += INTEGERS
    if not shape.whole:
        candidates += FLOATS
        candidates += [float(limit) for limit in (shape.minimum, shape.maximum) if limit is not None]
    return [number for number in candidates if admits(shape, number)]


def admits(shape: Number, number: float) -> bool:
    """Whether *number* lies within the limits of that shape and is written as it wants."""
    return (
        not (shape.whole and isinstance(number, float))
        and (shape.minimum is None or number >= shape.minimum)
        and (shape.maximum is None or number <= shape.maximum)
    )
