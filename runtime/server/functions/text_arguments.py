"""Parameters of prompts and resource templates, whose values arrive as text: their types, and the values."""

from __future__ import annotations

import typing
from collections.abc import Collection
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, ValidationError, inspect
from msgspec.structs import asdict, replace

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.python_caches import cache_check
from mcpgen.runtime.protocol.value_types import any_object
from mcpgen.runtime.server.functions.signatures import arms, origin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.server.functions.signatures import Annotation, Parameter

__all__ = ["check_textual", "check_texts", "converted", "is_list"]

TEXTUAL = (
    inspect.AnyType,
    inspect.NoneType,
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.StrType,
    inspect.DateTimeType,
    inspect.DateType,
    inspect.TimeType,
    inspect.TimeDeltaType,
    inspect.UUIDType,
    inspect.DecimalType,
    inspect.EnumType,
    inspect.LiteralType,
)


def is_list(parameter: Parameter) -> bool:
    """Whether a parameter takes several values."""
    origins = [origin_of(each) or each for each in arms(parameter.annotation)]
    kinds: list[Any] = [each for each in origins if isinstance(each, type) and issubclass(each, Collection)]
    return not all(issubclass(each, (str, bytes, bytearray, dict, Enum)) for each in kinds)


def check_texts(parameter: Parameter, what: str) -> None:
    """Refuse a list whose items cannot be converted from text.

    Raises:
        UsageError: The parameter is such a list.
    """
    for arm in arms(parameter.annotation):
        for item in typing.get_args(arm):
            if item is not Ellipsis:
                check_textual(replace(parameter, annotation=item), f"an item of {what}")


def check_textual(parameter: Parameter, what: str) -> None:
    """Refuse a type that cannot be converted from text.

    Raises:
        UsageError: The parameter has such a type.
    """
    if not all(map(_is_textual, arms(parameter.annotation))):
        raise UsageError(
            f"{what} has the type {parameter.annotation!r}, but its value arrives as text; use str, a number, bool, a "
            "date or time, UUID, Decimal, an Enum or a Literal"
        )


def _is_textual(arm: Annotation) -> bool:
    try:
        return arm is object or isinstance(inspect.type_info(arm), TEXTUAL)
    except (TypeError, NotImplementedError, RecursionError):  # `argument_type` has the reason for an Enum or a Literal
        return origin_of(arm) is Literal or (isinstance(arm, type) and issubclass(arm, Enum))


def converted(texts: Mapping[str, object], arguments: type[Struct]) -> dict[str, Any]:
    """Return *texts* as the arguments of a function.

    Raises:
        ValidationError: They are not of the types of its parameters.
    """
    check = _cache_check(arguments)
    if check is not None:
        check(texts)
    try:
        return asdict(msgspec.convert(texts, arguments, strict=False, dec_hook=any_object))
    except (TypeError, ValueError) as error:  # such as of a date after the year 9999, or of half a surrogate pair
        raise ValidationError(str(error)) from None


@lru_cache(maxsize=1024)
def _cache_check(arguments: type[Struct]) -> Callable[[object], None] | None:
    return cache_check(arguments)
