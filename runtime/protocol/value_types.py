"""The types that a caller or an author chooses for values of JSON: those of msgspec, and pydantic models.

pydantic is never a dependency. A model of it has been imported by the module that defines it, so this module imports
pydantic only when it meets one.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from contextlib import suppress
from functools import lru_cache, partial
from operator import is_not
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from mcpgen.runtime.errors import UsageError, quoted
from mcpgen.runtime.protocol.core_schemas import imports_modules, reads_patterns
from mcpgen.runtime.protocol.json_costs import JsonCosts, pydantic_costs
from mcpgen.runtime.protocol.nested_unions import nesting_check

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

__all__ = [
    "PydanticType",
    "TooManyErrors",
    "any_object",
    "any_schema",
    "dump_value",
    "pydantic_type",
    "unmarked",
    "uses_pydantic",
    "whole_numbers",
]

# A type as annotations write it: a class, a union, or a generic of either. Python has no type for all of them.
Annotation: TypeAlias = Any

# pydantic sets it in models and in its own dataclasses.
_VALIDATOR = "__pydantic_validator__"
_MAX_PROBLEMS = 10

# pydantic lists all of its errors, or none. It makes one for each field that is missing, in each member of a union, and
# to list 100,000 of them takes 0.5 s.
_MAX_LISTED = 1000

# All errors in a shorter value are listed; in a longer one, only those in the first wrong item of an array or object.
# 24,000 empty objects for a union of three models with eight fields each made 576,000 errors, which took 300 MB.
_FEW_BYTES = 1024

# In the schema of ``object``, because msgspec rejects an empty one.
_ANYTHING = "x-mcpgen-anything"

# Doubles represent all integers up to here exactly (IEEE 754), so 5.0 can be read as 5.
_MAX_EXACT_INTEGER = 2**53

# Values that are nothing else in JSON, and that no one looks into.
_PLAIN: frozenset[type] = frozenset({bool, int, str, type(None)})


class TooManyErrors(ValueError):  # noqa: N818 (never leaves the runtime: msgspec makes a ValidationError of it)
    """pydantic has found so many errors that to read the value in another way would only take as long again."""


class _AnyInstance(type):
    """The class of `PydanticType`: each value that pydantic has validated is an instance, as msgspec checks."""

    annotation: Annotation

    def __instancecheck__(cls, instance: object) -> bool:
        return True

    def __repr__(cls) -> str:
        return repr(cls.annotation)


class PydanticType(metaclass=_AnyInstance):
    """A type that pydantic validates, in the form of a class, for which msgspec calls a hook.

    Attributes:
        annotation: The type.
        adapter: The ``pydantic.TypeAdapter`` of the type.
        read_fast: Reads JSON up to the first wrong item of an array or object.
        check_json: Reads JSON of the author's own values, with limits for the texts that Python's matcher gets only.
        check_python: Does the same with values of Python.
        check_nesting: Refuses a value that pydantic would read too often; None if there is none.
        json_costs: What the largest values of the type take.
    """

    annotation: Annotation
    adapter: Any
    read_fast: Callable[[bytes], object]
    check_json: Callable[..., object]
    check_python: Callable[..., object]
    check_nesting: Callable[[object], None] | None
    json_costs: JsonCosts

    @classmethod
    def read(cls, value: object) -> object:
        """Return a value of JSON as a value of the type.

        Raises:
            ValueError: It is not one. The message names each field; msgspec adds the place of the value.
        """
        if cls.check_nesting is not None:
            cls.check_nesting(value)
        data = msgspec.json.encode(value)
        return cls._validated(cls.adapter.validate_json if len(data) <= _FEW_BYTES else cls.read_fast, data)

    @classmethod
    def check(cls, value: object) -> object:
        """Return a value of Python as a value of the type.

        Raises:
            ValueError: It is not one.
        """
        return cls._validated(cls.check_python, value)

    @classmethod
    def dump(cls, value: object) -> bytes:
        """Return a value of the type as JSON.

        pydantic checks no model that exists, but `model_copy(update=…)`, `model_construct` and assignments can give its
        fields any value. So the JSON is read again as the type. A serializer may write what the model does not read, or
        leave a field out. Then the values of the fields themselves are checked.

        Raises:
            ValueError: A field was set to a value of another type, or to one that its constraints do not allow.
        """
        from pydantic_core import PydanticSerializationError  # noqa: PLC0415 (a model is here, so pydantic is)

        try:
            data = cast("bytes", cls.adapter.dump_json(value, by_alias=True, warnings="error"))
        except PydanticSerializationError as error:
            raise ValueError(quoted(str(error))) from error
        try:
            cls._validated(cls.check_json, data)
        except ValueError:
            if _reads_names():
                by_name = partial(cls.check_python, strict=False, by_alias=False, by_name=True)
                cls._validated(by_name, _field_values(value))
        return data

    @classmethod
    def schema(cls, mode: str) -> dict[str, Any]:
        """Return the JSON Schema of the type, for ``validation`` or ``serialization``."""
        return cast("dict[str, Any]", cls.adapter.json_schema(mode=mode))

    @classmethod
    def _validated(cls, validate: Callable[[Any], object], value: object) -> object:
        from pydantic import ValidationError as Refused  # noqa: PLC0415 (a model is here, so pydantic is)

        try:
            return validate(value)
        except Refused as error:
            count = error.error_count()
            if count > _MAX_LISTED:
                raise TooManyErrors(f"it has {count} errors") from None
            raise ValueError(_problems(error.errors(include_url=False, include_input=False))) from None


def _problems(errors: Iterable[Any]) -> str:
    """Return what pydantic found, each with the name of its field, and without the values."""
    found = [f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}" if each["loc"] else each["msg"] for each in errors]
    more = [f"and {len(found) - _MAX_PROBLEMS} more"] if len(found) > _MAX_PROBLEMS else []
    return "; ".join([*found[:_MAX_PROBLEMS], *more])


def _reads_names() -> bool:
    """Whether pydantic can read fields by their names when they have aliases: 2.11 and later."""
    from pydantic import VERSION  # noqa: PLC0415 (a model is here, so pydantic is)

    return tuple(map(int, VERSION.split(".")[:2])) >= (2, 11)


def _field_values(value: object) -> object:
    """Return a value with each model in it as a dict of its fields by name, whose values no serializer has changed.

    Raises:
        ValueError: A number is not finite: pydantic writes null or a text for it.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number of JSON")
    form, names = _form(cast("Hashable", type(value)))
    if form == "root":
        return _field_values(getattr(value, "root", None))
    if form == "dataclass":
        return _values({each: getattr(value, each) for each in names if hasattr(value, each)})
    if form == "model":
        found: dict[object, object] = {name: each for name, each in vars(value).items() if name in names}
        extra: dict[object, object] | None = getattr(value, "__pydantic_extra__", None)
        return _values(found | extra if extra else found)
    if isinstance(value, dict):
        return _values(cast("dict[object, object]", value))
    if isinstance(value, list | tuple | set | frozenset):
        return [each if type(each) in _PLAIN else _field_values(each) for each in cast("Iterable[object]", value)]
    return value


def _values(members: Mapping[Any, object]) -> dict[Any, object]:
    return {key: each if type(each) in _PLAIN else _field_values(each) for key, each in members.items()}


@lru_cache(maxsize=1024)  # a missing attribute of a model takes as long to find as ten fields to read
def _form(kind: Any) -> tuple[str, dict[str, None]]:  # noqa: ANN401 (a class, which may be of any metaclass)
    """Return whether a class is a model (or one with a root) or a dataclass, and the names of its fields in order."""
    if getattr(kind, "__pydantic_root_model__", False):
        return "root", {}
    if dataclasses.is_dataclass(kind):
        return "dataclass", dict.fromkeys(each.name for each in dataclasses.fields(kind))
    if hasattr(kind, _VALIDATOR):
        fields: Any = getattr(kind, "__pydantic_fields__", {})  # `vars` has cached properties, too
        return "model", dict.fromkeys(fields)
    return "", {}


def uses_pydantic(annotation: Annotation) -> bool:
    """Whether a type is a pydantic model, or has one among its type arguments or fields."""
    return _uses_pydantic(annotation, set())


def _uses_pydantic(annotation: Annotation, seen: set[int]) -> bool:
    if id(annotation) in seen:
        return False
    seen.add(id(annotation))
    origin: Any = typing.get_origin(annotation)
    plain: Any = origin or annotation
    if isinstance(plain, type) and hasattr(plain, _VALIDATOR):
        return True
    inner: list[Any] = [*typing.get_args(annotation)]
    # The second condition finds TypedDict, that of typing_extensions included.
    if dataclasses.is_dataclass(cast("object", plain)) or hasattr(plain, "__required_keys__"):
        inner += _hints(plain)
    return any(_uses_pydantic(each, seen) for each in inner)


def _hints(kind: Annotation) -> list[Annotation]:
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):  # the type is refused where its schema is made
        return []


def pydantic_type(annotation: Annotation, what: str) -> type[PydanticType]:
    """Return a type that pydantic validates, as a class.

    Args:
        annotation: The type.
        what: Its place, for the error message.

    Raises:
        UsageError: pydantic does not support a part of it, or a value of it could name a pattern or a module.
    """
    from pydantic import TypeAdapter  # noqa: PLC0415 (a model is here, so pydantic is)
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        adapter: Any = TypeAdapter(annotation)
        adapter.json_schema()
    except (PydanticUserError, NameError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"{what} has the type {annotation!r}, which pydantic cannot validate ({reason}); beside pydantic models, "
            "use dataclasses, TypedDicts and built-in types"
        ) from error
    if imports_modules(adapter.core_schema):
        raise UsageError(
            f"{what} has the type {annotation!r} with an `ImportString`, and a peer could choose which modules are "
            "imported; write `str`"
        )
    if reads_patterns(adapter.core_schema):
        raise UsageError(
            f"{what} has the type {annotation!r} with a `re.Pattern`, and a peer could choose a pattern that takes "
            "hours to match; write `str`"
        )
    from mcpgen.runtime.protocol.failing_fast import (  # noqa: PLC0415 (it imports pydantic)
        failing_fast,
        limiting_patterns,
    )

    check_json, check_python = limiting_patterns(adapter)
    members: dict[str, Any] = {
        "annotation": annotation,
        "adapter": adapter,
        "read_fast": failing_fast(adapter),
        "check_json": staticmethod(check_json),
        "check_python": staticmethod(check_python),
        "check_nesting": nesting_check(adapter.core_schema),
        "json_costs": pydantic_costs(adapter.core_schema),
    }
    return cast("type[PydanticType]", _AnyInstance("PydanticType", (PydanticType,), members))


def any_object(annotation: type, value: object) -> object:
    """Decode what msgspec does not know: ``object``, and types that pydantic validates. A ``dec_hook``."""
    if annotation is object:
        return value
    if issubclass(annotation, PydanticType):
        return annotation.read(value)
    # A custom type whose author wrote its schema by hand; msgspec makes a ValidationError of this.
    raise TypeError(f"A value of the type `{annotation.__name__}` cannot be read from JSON")


def whole_numbers(value: object) -> object:
    """Return JSON with 5 in place of 5.0: both are integers in JSON Schema, but only the first in msgspec.

    It is *value* itself if there is no such number in it.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _MAX_EXACT_INTEGER else value
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        changed = {key: whole_numbers(each) for key, each in members.items()}
        return changed if any(map(is_not, changed.values(), members.values())) else members
    if isinstance(value, list):
        items = cast("list[object]", value)
        whole = list(map(whole_numbers, items))
        return whole if any(map(is_not, whole, items)) else items
    return value


def any_schema(annotation: type) -> dict[str, Any]:
    """Return the schema of what msgspec does not know: a ``schema_hook``. `unmarked` removes the marks in it."""
    if annotation is object:
        return {_ANYTHING: True}
    if issubclass(annotation, PydanticType):
        return annotation.schema("validation")
    raise NotImplementedError  # msgspec's way to say that a hook does not handle a type


def unknown_class(annotation: Annotation) -> type | None:
    """Return the class in *annotation* for which msgspec has no schema; None if there is none."""
    found: list[type] = []

    def schema(kind: type) -> dict[str, Any]:
        found.append(kind)
        known = any_schema(kind)
        found.pop()
        return known

    with suppress(TypeError, RecursionError):
        msgspec.json.schema_components([annotation], schema_hook=schema)
    return found[-1] if found else None


def unknown_class_text(annotation: Annotation) -> tuple[str, str]:
    """Return what msgspec does not know in *annotation*, and what to do about it, which may be empty."""
    found = unknown_class(annotation)
    if found is None or found is annotation:
        return "msgspec does not know this class", ""
    reason = f"msgspec does not know the class {found.__module__}.{found.__qualname__} in it"
    if not uses_pydantic(found):
        return reason, ""
    return reason, "put the pydantic model into a dataclass, a TypedDict or another pydantic model instead"


def unmarked(value: object) -> object:
    """Return a schema without the marks of `any_schema`."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {key: unmarked(each) for key, each in members.items() if key != _ANYTHING}
    return list(map(unmarked, cast("list[object]", value))) if isinstance(value, list) else value


def dump_value(value: object) -> object:
    """Encode what msgspec does not know: pydantic models. An ``enc_hook``."""
    serializer = getattr(type(value), "__pydantic_serializer__", None)
    if serializer is None:
        kind = type(value)
        raise TypeError(f"msgspec cannot encode the type {kind.__module__}.{kind.__qualname__}")
    return cast("object", serializer.to_python(value, mode="json", by_alias=True))
