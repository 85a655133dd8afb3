"""A schema with which pydantic finds the errors of a long value without copying it.

Each error about JSON has a copy of the value that it is about. A model with ten fields that are missing beside 4 MB
took 200 MB, and nested unions in 84 kB took 1.7 GB and 7 s. An error about a value of Python only refers to the value.
So a long value is validated as one of Python first. Only if that finds no error, pydantic reads the JSON.

In Python, pydantic does not accept the same as in JSON. So this schema accepts more than the type does: it is not
strict, and it calls no functions of the author, except those that may change a value before it is validated.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Final, cast

from pydantic_core import core_schema

from mcpgen.runtime.protocol.core_schemas import replace_direct

__all__ = ["can_fail_fast", "lax_schema"]

_ANY: Final = {"type": "any"}

# What they accept depends on functions, or on what was read before. The items of a generator are read later.
_UNKNOWN: Final = frozenset(
    {"callable", "fraction", "function-plain", "function-wrap", "generator", "is-instance", "is-subclass", "json"}
)
_TEXTS: Final = frozenset({"multi-host-url", "url"})
_DROPPED: Final = frozenset(
    {"default_factory", "metadata", "pattern", "post_init", "serialization", "strict", "validate_default"}
)


def lax_schema(schema: object) -> Any:  # noqa: ANN401 (a schema of pydantic, or a part of one)
    """Return a schema for values of Python that accepts at least what *schema* accepts in JSON."""
    if isinstance(schema, (list, tuple)):  # a member of a union may be a pair with its label
        inside = list(map(lax_schema, cast("list[object]", schema)))
        return inside if isinstance(schema, list) else tuple(inside)
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    only = _only(given)
    if only is not None:  # another schema may refer to the outer one
        named = {"ref": given["ref"]} if "ref" in given else {}
        return {"type": "lax-or-strict", "lax_schema": lax_schema(only), "strict_schema": _ANY, **named}
    found = {key: each for key, each in given.items() if key not in _DROPPED}
    replace_direct(found, lax_schema)
    if found.get("type") == "default":
        found["default"] = None  # another one may be copied each time
    if can_fail_fast(str(found.get("type"))):
        found["fail_fast"] = True
    if isinstance(found.get("config"), dict):
        found["config"] = {key: each for key, each in found["config"].items() if key not in ("strict", "regex_engine")}
    return found


def _only(schema: dict[str, Any]) -> Any:  # noqa: ANN401 (a schema of pydantic)
    """Return the schema that accepts at least what *schema* accepts in JSON; None for *schema* itself."""
    match schema.get("type"):
        case "function-after":
            return schema["schema"]
        case "function-before" if schema["function"]["type"] == "with-info":  # which may ask whether it reads JSON
            return _ANY
        case "json-or-python":
            return schema["json_schema"]
        case "lax-or-strict":
            return schema["lax_schema"]
        case "chain":
            return schema["steps"][0]
        case kind if kind in _TEXTS:
            return {"type": "str"}
        case kind if kind in _UNKNOWN:
            return _ANY
        case _:
            return None


@cache
def can_fail_fast(kind: str) -> bool:
    """Return whether pydantic can end with the first wrong item of a schema of the type *kind*."""
    make = getattr(core_schema, f"{kind.replace('-', '_')}_schema", None)
    return make is not None and "fail_fast" in inspect.signature(make).parameters
