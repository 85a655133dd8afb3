"""A validator of pydantic for long values, in which a few things are limited.

It ends with the first wrong item of an array or object: pydantic makes an error for each field that is missing, in each
member of a union, of each item. So a message of 100 kB could make millions of errors, which take seconds and gigabytes.
pydantic has a setting for that, `fail_fast`, of each array or object in the schema from which it makes a validator.

It also limits the texts that must match a pattern, if Python's matcher is used: see `pattern_texts`. pydantic has a
matcher of its own, whose time grows with the length only. It uses that of Python for a pattern that is compiled, or
with the setting ``regex_engine="python-re"``.
"""

from __future__ import annotations

import inspect
import re
import threading
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_core import PydanticCustomError, SchemaError, SchemaValidator, core_schema

from mcpgen.runtime.protocol.core_schemas import INNER, MAPS
from mcpgen.runtime.protocol.pattern_texts import MAX_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import TypeAdapter

__all__ = ["failing_fast"]


_PYTHON: Final = "python-re"


class _Squares(threading.local):
    """Of the value that a thread reads: the sum of the squares of the texts that Python has matched."""

    total: int = 0


def failing_fast(adapter: TypeAdapter[object]) -> Callable[[bytes], object]:
    """Return `validate_json` of such a validator of a type; that of *adapter* if this version of pydantic has none."""
    make: Any = SchemaValidator
    squares = _Squares()
    try:
        schema = _changed(adapter.core_schema, squares, is_python=False)
        try:
            validator: SchemaValidator = make(schema, _use_prebuilt=False)  # else it would use those of the models
        except TypeError:
            validator = make(schema)  # pydantic 2.11 and earlier
    except SchemaError:
        return adapter.validate_json
    return partial(_validate, validator, squares)


def _validate(validator: SchemaValidator, squares: _Squares, data: bytes) -> object:
    squares.total = 0
    return validator.validate_json(data)


def _changed(schema: object, squares: _Squares, *, is_python: bool) -> object:
    """Return *schema* with limits; *is_python* says whether Python matches its patterns."""
    if isinstance(schema, (list, tuple)):  # a member of a union may be a pair with its label
        inside = [_changed(each, squares, is_python=is_python) for each in cast("Iterable[object]", schema)]
        return inside if isinstance(schema, list) else tuple(inside)
    if not isinstance(schema, dict):
        return schema
    found = dict(cast("Mapping[str, object]", schema))
    config = found.get("config")
    if isinstance(config, dict):  # of a model
        is_python = is_python or cast("Mapping[str, object]", config).get("regex_engine") == _PYTHON
    for key in INNER & found.keys():
        inner = found[key]
        if key in MAPS and isinstance(inner, dict):
            members = cast("dict[object, object]", inner)
            found[key] = {name: _changed(each, squares, is_python=is_python) for name, each in members.items()}
        else:
            found[key] = _changed(inner, squares, is_python=is_python)
    if _can_fail_fast(str(found.get("type"))):
        found["fail_fast"] = True
    if found.get("type") == "str" and _is_of_python(found, is_python=is_python):
        max_length = found.get("max_length")
        check = partial(_count, squares, max_length if isinstance(max_length, int) else None)
        return core_schema.no_info_before_validator_function(check, cast("Any", found))
    return found


def _is_of_python(text: Mapping[str, object], *, is_python: bool) -> bool:
    """Return whether Python matches the pattern of the schema *text*."""
    pattern = text.get("pattern")
    engine = text.get("regex_engine", _PYTHON if is_python else None)
    return isinstance(pattern, re.Pattern) or (pattern is not None and engine == _PYTHON)


def _count(squares: _Squares, max_length: int | None, value: object) -> object:
    """Count a text that Python matches; pydantic refuses one that is longer than *max_length* without that."""
    if isinstance(value, str) and (max_length is None or len(value) <= max_length):
        squares.total += len(value) ** 2
        if squares.total > max(max_length or 0, MAX_CHARS) ** 2:
            what = f"Expected at most {MAX_CHARS} characters in a text that must match a pattern"
            raise PydanticCustomError("pattern_text", "{what}, fewer if there are several such texts", {"what": what})
    return value


@cache
def _can_fail_fast(kind: str) -> bool:
    make = getattr(core_schema, f"{kind.replace('-', '_')}_schema", None)
    return make is not None and "fail_fast" in inspect.signature(make).parameters
