"""A validator of pydantic that ends with the first wrong item of an array or object.

pydantic makes an error for each field that is missing, in each member of a union, of each item. So a message of 100 kB
could make millions of errors, which take seconds and gigabytes. pydantic has a setting for that, `fail_fast`, of each
array or object in the schema from which it makes a validator.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import SchemaError, SchemaValidator, core_schema

from mcpgen.runtime.protocol.core_schemas import INNER, MAPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import TypeAdapter

__all__ = ["failing_fast"]


def failing_fast(adapter: TypeAdapter[object]) -> Callable[[bytes], object]:
    """Return `validate_json` of such a validator of a type; that of *adapter* if this version of pydantic has none."""
    make: Any = SchemaValidator
    try:
        schema = _changed(adapter.core_schema)
        try:
            validator: SchemaValidator = make(schema, _use_prebuilt=False)  # else it would use those of the models
        except TypeError:
            validator = make(schema)  # pydantic 2.11 and earlier
    except SchemaError:
        return adapter.validate_json
    return validator.validate_json


def _changed(schema: object) -> object:
    if isinstance(schema, (list, tuple)):  # a member of a union may be a pair with its label
        inside = map(_changed, cast("Iterable[object]", schema))
        return list(inside) if isinstance(schema, list) else tuple(inside)
    if not isinstance(schema, dict):
        return schema
    found = dict(cast("Mapping[str, object]", schema))
    for key in INNER & found.keys():
        inner = found[key]
        if key in MAPS and isinstance(inner, dict):
            found[key] = {name: _changed(each) for name, each in cast("dict[object, object]", inner).items()}
        else:
            found[key] = _changed(inner)
    if _can_fail_fast(str(found.get("type"))):
        found["fail_fast"] = True
    return found


@cache
def _can_fail_fast(kind: str) -> bool:
    make = getattr(core_schema, f"{kind.replace('-', '_')}_schema", None)
    return make is not None and "fail_fast" in inspect.signature(make).parameters
