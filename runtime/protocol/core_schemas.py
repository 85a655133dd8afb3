"""The schemas in a core schema, from which pydantic makes a validator.

A core schema is a tree of dicts. A class that occurs twice in it is a reference to a definition.
"""

from __future__ import annotations

from enum import STRICT, Flag
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "WITH_FIELDS",
    "calls_library",
    "direct_schemas",
    "flag_of",
    "imports_modules",
    "inner_schemas",
    "many_flags",
    "reads_patterns",
    "replace_direct",
]

_INNER: Final = frozenset(
    {
        "arguments_schema",
        "choices",
        "definitions",
        "extras_schema",
        "fields",
        "items_schema",
        "json_schema",
        "keys_schema",
        "lax_schema",
        "python_schema",
        "schema",
        "steps",
        "strict_schema",
        "values_schema",
    }
)
"""The members of a schema that hold other schemas. Values in other members, such as defaults, may look like schemas."""

_MAPS: Final = frozenset({"choices", "fields"})
"""These hold schemas by name, where they are objects."""

WITH_FIELDS: Final = frozenset({"dataclass-args", "model-fields", "typed-dict"})
"""The types of the schemas of objects."""

# The names of the functions with which pydantic makes a `re.Pattern` of a text.
_PATTERN_READERS: Final = frozenset({"pattern_bytes_validator", "pattern_either_validator", "pattern_str_validator"})

# The name of the function with which pydantic imports what a text names.
_MODULE_IMPORTER: Final = "import_string"

# A class with ten flags has 1,024 combinations, which take 420 kB.
_FEW_FLAGS: Final = 10

_FUNCTIONS: Final = frozenset({"function-after", "function-plain"})
_LIBRARIES: Final = frozenset({"ipaddress", "pydantic"})  # what other functions take is up to their authors


def inner_schemas(core_schema: object) -> Iterator[Mapping[str, Any]]:
    """Yield *core_schema* and all schemas in it."""
    rest = [core_schema]
    while rest:
        each = rest.pop()
        if isinstance(each, (list, tuple)):  # a member of a union may be a pair with its label
            rest.extend(cast("list[object]", each))
        elif isinstance(each, dict):
            schema = cast("dict[str, Any]", each)
            yield schema
            rest.extend(direct_schemas(schema))


def direct_schemas(schema: Mapping[str, Any]) -> Iterator[object]:
    """Yield the schemas that *schema* holds itself, and lists of them."""
    for key in _INNER & schema.keys():
        inner = schema[key]
        if key in _MAPS and isinstance(inner, dict):
            yield from cast("dict[str, object]", inner).values()
        else:
            yield inner


def replace_direct(schema: dict[str, Any], change: Callable[[object], object]) -> None:
    """Replace in *schema* the schemas that it holds itself, and lists of them, by what *change* makes of each."""
    for key in _INNER & schema.keys():
        inner = schema[key]
        if key in _MAPS and isinstance(inner, dict):
            members = cast("dict[object, object]", inner)
            schema[key] = {name: change(each) for name, each in members.items()}
        else:
            schema[key] = change(inner)


def reads_patterns(core_schema: object) -> bool:
    """Return whether a schema has a field of the type `re.Pattern`."""
    return not _PATTERN_READERS.isdisjoint(_called(core_schema))


def imports_modules(core_schema: object) -> bool:
    """Return whether a schema has a field of pydantic's type `ImportString`."""
    return _MODULE_IMPORTER in _called(core_schema)


def _called(core_schema: object) -> set[str]:
    """Return the names of the functions of pydantic that a schema calls; an author's own may have the same names."""
    functions = (each.get("function") for each in inner_schemas(core_schema))
    called = (cast("dict[str, object]", each).get("function") for each in functions if isinstance(each, dict))
    return {getattr(each, "__name__", "") for each in called if _library_of(each) == "pydantic"}


def flag_of(schema: Mapping[str, object]) -> type[Flag] | None:
    """Return the class of flags that *schema* itself is, if it has many combinations; None otherwise."""
    return many_flags(schema.get("cls") if schema.get("type") == "enum" else None)


def many_flags(kind: object) -> type[Flag] | None:
    """Return *kind* if it is a class of flags that has more than 1,024 combinations, or takes every integer."""
    if not isinstance(kind, type) or not issubclass(kind, Flag):
        return None
    boundary: object = getattr(kind, "_boundary_", None)
    mask: int = getattr(kind, "_flag_mask_", 0)
    return None if boundary is STRICT and mask.bit_count() <= _FEW_FLAGS else kind


def calls_library(schema: Mapping[str, object]) -> bool:
    """Return whether *schema* calls a function that its author has not written."""
    function = schema.get("function")
    if schema.get("type") not in _FUNCTIONS or not isinstance(function, dict):
        return False
    called = cast("Mapping[str, object]", function).get("function")
    return _library_of(called) in _LIBRARIES


def _library_of(function: object) -> str:
    return str(getattr(function, "__module__", "")).partition(".")[0]
