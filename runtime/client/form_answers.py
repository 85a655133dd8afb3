"""Whether the answer to a form fits the form.

Spec:
    2025-11-25 and 2026-07-28, client/elicitation, "Requested Schema" and "Form Mode Security".
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.adapt.json_pointer import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["find_mismatch", "get_choices"]


def _is_number(value: object) -> bool:
    is_finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return is_finite and not isinstance(value, bool)


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == math.floor(value),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
}

_BOUNDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "maximum": lambda value, bound: value <= bound,
    "maxItems": lambda value, bound: len(value) <= bound,
    "maxLength": lambda value, bound: len(value) <= bound,
    "minimum": lambda value, bound: value >= bound,
    "minItems": lambda value, bound: len(value) >= bound,
    "minLength": lambda value, bound: len(value) >= bound,
}
_BOUNDS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "array": ("minItems", "maxItems"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "string": ("minLength", "maxLength"),
}

_MAX_LISTED: Final = 20  # of the choices of a field, in an error

# RFC 3986, section 3.1. `urlsplit` would normalise the host, which takes a time that grows with the square of its
# combining marks; and the value may be a default of the server.
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")


def _check_scheme(text: str) -> None:
    if not _SCHEME.match(text):
        raise ValueError


# Only what is certainly wrong is refused: a user should not have to argue about the form of an address.
_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "email": lambda text: text.index("@"),
    "uri": _check_scheme,
}


def find_mismatch(content: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """Return why *content* does not fit the form *schema*, in words; None if it does."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required") or ():
        if name not in content:
            return f"the field {name!r} is required"
    for name, value in content.items():
        reason = _field_mismatch(value, fields[name]) if name in fields else None
        if reason is not None:
            return f"the field {name!r} {reason}"
    return None


def _field_mismatch(value: Any, field: Mapping[str, Any]) -> str | None:
    kind = str(field.get("type"))
    if kind in _TYPES and not _TYPES[kind](value):
        return f"must be of the type {kind}"
    for name in _BOUNDS_OF.get(kind, ()):
        if name in field and not _BOUNDS[name](value, field[name]):
            return f"must satisfy `{name}` ({field[name]})"
    # A mapping, since a server can offer thousands of choices, and as many values as a default.
    choices = dict(get_choices(field))
    if choices and any(
        not isinstance(each, str) or each not in choices for each in (value if kind == "array" else [value])
    ):
        more = ", …" if len(choices) > _MAX_LISTED else ""
        problem = "may contain only" if kind == "array" else "must be one of"
        return f"{problem} {', '.join(map(repr, islice(choices, _MAX_LISTED)))}{more}"
    if kind == "string" and not _has_format(value, field.get("format")):
        return f"must have the format {field['format']}"
    return None


def get_choices(field: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the values that *field*, or an item of it, may have, each with its title; none if it is no selection.

    A field that is no selection may have anything else under these keys.
    """
    items = field.get("items")
    if field.get("type") == "array" and is_object(items):
        field = items
    for key in ("oneOf", "anyOf"):
        arms = field.get(key)
        if arms and is_array(arms) and all(is_object(arm) and isinstance(arm.get("const"), str) for arm in arms):
            return [(arm["const"], str(arm.get("title", arm["const"]))) for arm in arms]
    values, names = field.get("enum"), field.get("enumNames")
    if not (is_array(values) and all(isinstance(each, str) for each in values)):
        return []
    titles = names if is_array(names) and len(names) == len(values) else values
    return [(value, str(title)) for value, title in zip(values, titles, strict=True)]


def _has_format(text: str, name: object) -> bool:
    check = _FORMATS.get(str(name))
    if check is None:
        return True
    try:
        check(text)
    except (ValueError, IndexError):
        return False
    return True
