"""A validator of pydantic for long values, in which a few things are limited.

It ends with the first wrong item of an array or object: pydantic makes an error for each field that is missing, in each
member of a union, of each item. So a message of 100 kB could make millions of errors, which take seconds and gigabytes.
pydantic has a setting for that, `fail_fast`, of each array or object in the schema from which it makes a validator.

It also limits the texts that must match a pattern, if Python's matcher is used: see `pattern_texts`. pydantic has a
matcher of its own, whose time grows with the length only. It uses that of Python for a pattern that is compiled, or
with the setting ``regex_engine="python-re"``. Some types of pydantic are read by functions in Python, such as IP
addresses and paths, which takes ten times as long as to read a text; so the number of these calls is limited, too. The
time to encode a host that is not ASCII grows with the square of the length of its labels, as that to match a pattern.
"""

from __future__ import annotations

import re
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from mcpgen.runtime.adapt.pattern_texts import MAX_CHARS
from mcpgen.runtime.protocol.core_schemas import calls_library, replace_direct
from mcpgen.runtime.protocol.lax_schemas import can_fail_fast, lax_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import TypeAdapter

    Validators = tuple[Callable[..., object], Callable[..., object]]  # of JSON, and of values of Python

__all__ = ["failing_fast", "limiting_patterns"]


_PYTHON: Final = "python-re"

# To read an IPv6 interface takes 17 µs.
_MAX_CALLS: Final = 5000

# `1e4299` is a number of 4,300 digits, and takes 45 µs to read, and 500 µs to write.
_CALLS_OF_FRACTION: Final = 20

# To read a path takes 1 µs for each of its segments, because Python interns their names.
_SEGMENTS_OF_CALL: Final = 16

_COPIED: Final[frozenset[type]] = frozenset({dict, list, set})
_PLAIN: Final[frozenset[type]] = frozenset({bool, float, int, str, type(None)})

# Of a URL, as leniently as pydantic reads it: what may be its host.
_AUTHORITY: Final = re.compile(r"[^:]*:[\s/\\]*([^/\\?#]*)")
_URLS: Final = frozenset({"multi-host-url", "url"})


class _LimitExceeded(Exception):  # noqa: N818 (only a function that reads an `Iterable` itself gets it)
    """A value exceeds a limit. It is no `ValueError`, after which pydantic would go on with other types and items."""


class _Spent:
    """What the value that is read has cost.

    Attributes:
        squares: The sum of the squares of the lengths of the texts that Python has matched, and of labels of hosts.
        calls: The calls of functions of a library, segments of long paths, and further hosts of a URL.
        problem: The limit that it exceeds; empty if it exceeds none.
    """

    squares: int = 0
    calls: int = 0
    problem: str = ""


_SPENT: Final[ContextVar[_Spent]] = ContextVar("_SPENT")  # clients may read in several threads


def failing_fast(adapter: TypeAdapter[object]) -> Callable[[bytes], object]:
    """Return `validate_json` of such a validator of a type; that of *adapter* if this version of pydantic has none.

    It raises a plain `ValueError` at a limit.
    """
    schema = _changed(adapter.core_schema, is_python=False)
    try:
        return partial(
            _read, _validator(lax_schema(adapter.core_schema)).validate_python, _validator(schema).validate_json
        )
    except SchemaError:
        return adapter.validate_json


def _read(check: Callable[..., object], read: Callable[..., object], data: bytes) -> object:
    """Read JSON; first *check* it as a value of Python, because an error about that has no copy of it."""
    check(msgspec.json.decode(data))
    return _validate(read, data)


def limiting_patterns(adapter: TypeAdapter[object]) -> Validators:
    """Return validators of a type that limit the texts for patterns only; those of *adapter* if no pattern needs that.

    They raise a plain `ValueError` at the limit. That of JSON ends with the first wrong item of an array or object.
    """
    limited = _changed(adapter.core_schema, is_python=False, only_patterns=True)
    check_json, check_python = adapter.validate_json, adapter.validate_python
    if limited != adapter.core_schema:
        validator = _validator(limited)
        check_json, check_python = (
            partial(_validate, validator.validate_json),
            partial(_validate, validator.validate_python),
        )
    fast = _changed(adapter.core_schema, is_python=False, only_patterns=True, fails_fast=True)
    if fast != limited:
        with suppress(SchemaError):
            check_json = partial(_validate, _validator(fast).validate_json)
    return check_json, check_python


def _validator(schema: object) -> SchemaValidator:
    make: Any = SchemaValidator
    try:
        return cast("SchemaValidator", make(schema, _use_prebuilt=False))  # else it would use those of the models
    except TypeError:
        return cast("SchemaValidator", make(schema))  # pydantic 2.11 and earlier


def _validate(validate: Callable[..., object], value: object, **options: bool) -> object:
    spent = _Spent()
    _SPENT.set(spent)
    valid: object = None
    try:
        valid = validate(value, **options)
    except _LimitExceeded:
        pass
    except ValidationError:
        if not spent.problem:
            raise
    if spent.problem:  # also if a default has replaced the value
        raise ValueError(spent.problem)
    return valid


def _changed(schema: object, *, is_python: bool, only_patterns: bool = False, fails_fast: bool = False) -> object:
    """Return *schema* with limits; *is_python* says whether Python matches its patterns."""
    change = partial(_changed, is_python=is_python, only_patterns=only_patterns, fails_fast=fails_fast)
    if isinstance(schema, (list, tuple)):  # a member of a union may be a pair with its label
        inside = list(map(change, cast("Iterable[object]", schema)))
        return inside if isinstance(schema, list) else tuple(inside)
    if not isinstance(schema, dict):
        return schema
    found = dict(cast("Mapping[str, Any]", schema))
    config = found.get("config")
    if isinstance(config, dict):  # of a model
        is_python = is_python or cast("Mapping[str, object]", config).get("regex_engine") == _PYTHON
        change = partial(change, is_python=is_python)
    replace_direct(found, change)
    if (fails_fast or not only_patterns) and can_fail_fast(str(found.get("type"))):
        found["fail_fast"] = True
    if not only_patterns and (make := _maker(found.get("default"))) is not None:
        del found["default"]
        found["default_factory"] = make
    check = _pattern_check(found, is_python=is_python) or (None if only_patterns else _check_of(found))
    if check is None:
        return found
    reference = cast("str | None", found.pop("ref", None))  # other schemas refer to the outer one
    return core_schema.no_info_before_validator_function(check, cast("Any", found), ref=reference)


def _maker(default: object) -> Callable[[], object] | None:
    """Return what copies *default* faster than pydantic, which takes 0.3 µs for each item; None if there is none.

    None is also for what pydantic does not copy.
    """
    if type(default) not in _COPIED:
        return None
    found = cast("dict[object, object] | list[object] | set[object]", default)
    if all(type(each) in _PLAIN for each in (found.values() if isinstance(found, dict) else found)):
        return found.copy
    try:
        return partial(msgspec.json.decode, msgspec.json.encode(found)) if _is_json(found) else None
    except (ValueError, OverflowError):  # such as a number of more than 64 bits
        return None


def _is_json(value: object) -> bool:
    if type(value) is dict:
        members = cast("dict[object, object]", value)
        return all(type(each) is str for each in members) and all(map(_is_json, members.values()))
    return all(map(_is_json, cast("list[object]", value))) if type(value) is list else type(value) in _PLAIN - {float}


def _pattern_check(schema: Mapping[str, object], *, is_python: bool) -> Callable[[object], object] | None:
    """Return what counts a text before *schema* reads it, if Python matches its pattern."""
    if schema.get("type") != "str" or not _is_of_python(schema, is_python=is_python):
        return None
    max_length = schema.get("max_length")
    return partial(_count, max_length if isinstance(max_length, int) else None)


def _check_of(schema: Mapping[str, object]) -> Callable[[object], object] | None:
    """Return what counts a value before *schema* reads it, if that takes long for another reason."""
    kind = schema.get("type")
    if kind in _URLS:
        return _count_hosts
    if kind == "fraction":
        return _count_fraction
    if kind == "generator":
        return _refuse_text
    return _count_read if calls_library(schema) else None


def _count_hosts(value: object) -> object:
    """Count the hosts of a URL, and the labels in them that pydantic encodes; some are percent-encoded."""
    authority = _AUTHORITY.match(value) if isinstance(value, str) else None
    if authority is not None:
        labels, spent = authority[1].split("."), _SPENT.get()
        spent.squares += sum(len(each) ** 2 for each in labels if "%" in each or not each.isascii())
        if spent.squares > MAX_CHARS**2:
            what = f"at most {MAX_CHARS} characters in a host that is not ASCII or has percent escapes"
            spent.problem = f"Expected {what}, fewer if there are several such hosts"
            raise _LimitExceeded(spent.problem)
        _count_calls(authority[1].count(","), value)
    return value


def _refuse_text(value: object) -> object:
    """Refuse a text in place of an array: pydantic would make a list of its characters, and then accept it."""
    if isinstance(value, str):
        raise ValueError("Expected an array, not a string")  # noqa: TRY004 (pydantic does not catch a TypeError)
    return value


def _count_fraction(value: object) -> object:
    """Count a fraction, which Python reads, and refuse a text that is too long for one."""
    if isinstance(value, str) and len(value) > MAX_CHARS:
        raise ValueError(f"Expected at most {MAX_CHARS} characters in a fraction")
    return _count_calls(_CALLS_OF_FRACTION, value)


def _count_read(value: object) -> object:
    """Count a value that a library reads, and the segments of a path."""
    separators = value.count("/") + value.count("\\") if isinstance(value, str) else 0
    return _count_calls(1 + separators // _SEGMENTS_OF_CALL, value)


def _count_calls(calls: int, value: object) -> object:
    spent = _SPENT.get()
    spent.calls += calls
    if spent.calls > _MAX_CALLS:
        slow = "values of types that are slow to read, such as IP addresses and paths"
        hosts = "in a URL, each host after the first one counts, too"
        fraction = f"a fraction such as 1/3 counts as {_CALLS_OF_FRACTION}"
        path = f"every {_SEGMENTS_OF_CALL} segments of a path count as one more"
        spent.problem = f"Expected at most {_MAX_CALLS} {slow}; {hosts}; {fraction}; {path}"
        raise _LimitExceeded(spent.problem)
    return value


def _is_of_python(text: Mapping[str, object], *, is_python: bool) -> bool:
    """Return whether Python matches the pattern of the schema *text*."""
    pattern = text.get("pattern")
    engine = text.get("regex_engine", _PYTHON if is_python else None)
    return isinstance(pattern, re.Pattern) or (pattern is not None and engine == _PYTHON)


def _count(max_length: int | None, value: object) -> object:
    """Count a text that Python matches; pydantic refuses one that is longer than *max_length* without that."""
    if isinstance(value, str) and (max_length is None or len(value) <= max_length):
        spent = _SPENT.get()
        spent.squares += len(value) ** 2
        most = max(max_length or 0, MAX_CHARS)
        if spent.squares > most**2:
            what = f"at most {most} characters in a text that must match a pattern"
            spent.problem = f"Expected {what}, fewer if there are several such texts"
            raise _LimitExceeded(spent.problem)
    return value
