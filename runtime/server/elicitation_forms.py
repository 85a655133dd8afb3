"""Forms of an elicitation: the schema of a type, the check of a filled-in form, and its value as that type.

Spec:
    2025-06-18, client/elicitation, "Requested Schema": flat objects of text, numbers, booleans and choices; 2025-11-25
    and 2026-07-28, the same, and "Security Considerations": both sides SHOULD validate the content against the schema.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct

from mcpgen.runtime.adapt.json_pointer import is_array, is_object, pointer_to
from mcpgen.runtime.adapt.pattern_texts import pattern_check
from mcpgen.runtime.errors import InvalidPayload, UsageError
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.value_types import uses_pydantic, whole_numbers
from mcpgen.runtime.server.functions.schemas import described, in_declared_order, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.capabilities import Peer

__all__ = ["Elicited", "form_value", "form_schema", "find_mismatch"]


def find_mismatch(content: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the pointer to the first value that does not match, and why; None if all match or are not in *schema*."""
    missing = [name for name in schema.get("required", ()) if name not in content]
    if missing:
        return "", f"{missing[0]!r} is missing"
    for name, each in schema.get("properties", {}).items():
        reason = _mismatch(content[name], each) if name in content else None
        if reason is not None:
            return pointer_to((name,)), reason
    return None


def _mismatch(value: Any, schema: Mapping[str, Any]) -> str | None:
    check = _CHECKS.get(schema.get("type", ""))
    if check is None:
        return None
    is_of_type, find = check
    if not is_of_type(value):
        return f"it is not {'an' if schema['type'][0] in 'aio' else 'a'} {schema['type']}"
    return find(value, schema)


def _text_mismatch(value: Any, schema: Mapping[str, Any]) -> str | None:
    allowed = _choices(schema)
    if allowed is not None and value not in allowed:
        return f"it is not one of {', '.join(map(str, allowed))}"
    return _length_mismatch(len(value), schema, "minLength", "maxLength")


def _number_mismatch(value: Any, schema: Mapping[str, Any]) -> str | None:
    if value < schema.get("minimum", -math.inf):
        return f"it is less than {schema['minimum']}"
    if value > schema.get("maximum", math.inf):
        return f"it is more than {schema['maximum']}"
    return None


def _list_mismatch(value: Any, schema: Mapping[str, Any]) -> str | None:
    listed = _choices(schema.get("items", {}))
    # A set, because a client may send 20,000 items, and a form may have hundreds of choices.
    allowed = None if listed is None else {each for each in listed if isinstance(each, str)}
    if any(not isinstance(each, str) or (allowed is not None and each not in allowed) for each in value):
        return "one of its items is not one of the choices"
    return _length_mismatch(len(value), schema, "minItems", "maxItems")


def _length_mismatch(length: int, schema: Mapping[str, Any], least: str, most: str) -> str | None:
    if length < schema.get(least, 0):
        return f"it is shorter than {schema[least]}"
    if length > schema.get(most, math.inf):
        return f"it is longer than {schema[most]}"
    return None


def _choices(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the choices of a field, with or without titles; None if it is not a choice."""
    titled = schema.get("oneOf", schema.get("anyOf"))
    if is_array(titled):
        return [each.get("const") for each in titled if is_object(each)]
    listed = schema.get("enum")
    return listed if is_array(listed) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


# Those of the fields of forms (`PrimitiveSchemaDefinition`).
_FIELD_TYPES = ("string", "number", "integer", "boolean", "array")
_TYPES: Final = "text, numbers, booleans, choices (Literal or Enum of text) or lists of such choices"

_CHECKS: dict[str, tuple[Callable[[Any], bool], Callable[[Any, Mapping[str, Any]], str | None]]] = {
    "string": (lambda value: isinstance(value, str), _text_mismatch),
    "number": (_is_number, _number_mismatch),
    "integer": (_is_integer, _number_mismatch),
    "boolean": (lambda value: isinstance(value, bool), lambda _value, _schema: None),
    "array": (is_array, _list_mismatch),
}


T = TypeVar("T")


class Elicited(Struct, Generic[T], frozen=True):
    """A user's answer to a form.

    Attributes:
        action: The user filled the form in (accept), refused (decline) or closed it (cancel).
        content: The filled-in form; None unless the action is accept.
    """

    action: Literal["accept", "decline", "cancel"]
    content: T | None = None


def form_schema(requested: type[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form.

    Args:
        requested: A Struct, dataclass or TypedDict whose fields are text, numbers, booleans, a choice (Literal or Enum
            of text) or a list of one; the type of one such field alone, as a form with the field ``value``; or the
            schema itself.

    Raises:
        UsageError: A form cannot have one of the fields.
    """
    if isinstance(requested, Mapping):
        return _checked(dict(requested))
    given: Any = requested
    if isinstance(given, (str, int, float, list, tuple, Struct)) or (
        dataclasses.is_dataclass(given) and not isinstance(given, type)
    ):
        raise UsageError(
            f"`requested` must be a type or a JSON Schema, not a value of the type {type(requested).__name__}; pass a "
            "class itself, such as a dataclass, or a type such as bool"
        )
    return dict(_remembered(_schema_of_type, requested))


def _checked(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.setdefault("type", "object") != "object":
        raise UsageError(f"the schema of a form must have the type 'object', not {schema['type']!r}")
    if "properties" not in schema and any(map(is_object, schema.values())):  # the fields themselves
        raise UsageError("the schema of a form has no `properties`; write {'type': 'object', 'properties': {…}}")
    if not is_object(schema.setdefault("properties", {})):
        raise UsageError(f"`properties` of a form must be a dict of schemas, not {schema['properties']!r}")
    for name, each in schema["properties"].items():
        try:
            models.decode(msgspec.json.encode(each), models.PrimitiveSchemaDefinition)
        except msgspec.ValidationError as error:
            # The reason is clear only where the type is one that a form can have.
            reason = f" ({error})" if is_object(each) and each.get("type") in _FIELD_TYPES else ""
            raise UsageError(
                f"a form cannot have the field {name!r} with the schema {each!r}; use {_TYPES}{reason}"
            ) from error
    return schema


class _OneField(Struct, Generic[T]):
    """The form of a type that has no fields, such as bool. The name of the field is that of FastMCP."""

    value: T


class _Cached(Protocol):
    """What `lru_cache` makes of a function."""

    __wrapped__: Callable[..., Any]

    def __call__(self, requested: Any, /) -> Any: ...


def _remembered(make: _Cached, requested: Any) -> Any:
    try:
        hash(requested)
    except TypeError:  # `Annotated` with a list, for another library
        return make.__wrapped__(requested)
    return make(requested)


_pattern_check = lru_cache(maxsize=128)(pattern_check)


# A schema takes milliseconds to make, and hundreds of calls may ask at once. There are as many types as forms, except
# that a type which a function defines is another one in each call.
@lru_cache(maxsize=128)
def _schema_of_type(requested: type[Any]) -> dict[str, Any]:
    return _checked(_schema(requested))


@lru_cache(maxsize=128)
def _one_field(requested: Any) -> Any:
    """Return the form of one field for a type that has no fields; None for a type that has them."""
    return None if schema_of(requested, "a form", _TYPES).get("type") == "object" else _OneField[requested]


def _schema(requested: type[Any]) -> dict[str, Any]:
    if uses_pydantic(requested):
        raise UsageError(
            f"a form cannot be of the type {requested!r}, which is or contains a pydantic type; use a dataclass, a "
            f"TypedDict or a Struct whose fields are {_TYPES}"
        )
    requested = _remembered(_one_field, requested) or requested
    whole = schema_of(requested, "a form", _TYPES)
    if "properties" not in whole:
        raise UsageError(
            f"`requested` must be a type with fields, such as a dataclass, or the type of one field, such as bool, "
            f"not {requested!r}"
        )
    definitions = whole.get("$defs", {})
    types = _types(requested)
    properties = {name: _field(each, types.get(name), definitions) for name, each in whole["properties"].items()}
    required = whole.get("required", [])
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _types(requested: Any) -> dict[str, Any]:
    """Return the types of the fields of *requested*, by their names in JSON."""
    plain: Any = typing.get_origin(requested) or requested
    if Struct in getattr(plain, "__mro__", ()):
        return {each.encode_name: each.type for each in msgspec.structs.fields(requested)}
    found = typing.get_type_hints(plain, include_extras=True)
    # In a TypedDict, `Required` and `NotRequired` wrap the type of a field.
    wrappers = (typing.Required, typing.NotRequired)
    return {
        name: typing.get_args(each)[0] if typing.get_origin(each) in wrappers else each for name, each in found.items()
    }


def _field(schema: dict[str, Any], annotation: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one field as forms have it. They have no null: a field that may be None is optional."""
    if annotation is not None and not isinstance(annotation, TypeVar):
        is_union = typing.get_origin(annotation) in (typing.Union, UnionType)
        inner = typing.get_args(annotation) if is_union else (annotation,)
        others = [arm for arm in inner if arm is not type(None)]
        if len(others) == 1:
            if is_union:
                schema = {
                    key: each for key, each in schema.items() if key != "anyOf" and (key, each) != ("default", None)
                }
            annotation = others[0]
        schema = in_declared_order({**schema, **schema_of(described(annotation), "a field of a form")}, annotation)
    schema = {key: each for key, each in schema.items() if key != "$defs"}
    return _inlined(schema, definitions)


def _inlined(schema: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return *schema* with its references to enums replaced by the enums."""
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **rest}
    if is_object(schema.get("items")):  # false for a tuple, which a form cannot have
        schema = {**schema, "items": _inlined(schema["items"], definitions)}
    if all(isinstance(each, str) for each in schema.get("enum", (None,))):  # a form has no choices of numbers
        schema = {"type": "string", **{key: value for key, value in schema.items() if key != "title"}}
    return schema


def form_value(result: Any, requested: type[T] | Mapping[str, Any], peer: Peer) -> Elicited[T]:
    """Return the filled-in form as a value of the type *requested*; for a schema, as a dict.

    Raises:
        InvalidPayload: It does not match the schema.
    """
    if result.action != "accept":
        return Elicited(result.action)
    content: Any = {} if result.content is UNSET else result.content
    mismatch = find_mismatch(content, form_schema(requested))
    if mismatch is not None:
        raise _invalid(peer, "/content" + mismatch[0], mismatch[1])
    if isinstance(requested, Mapping):
        return Elicited("accept", content)
    one_field = _remembered(_one_field, requested)
    whole = whole_numbers(content)
    check = _remembered(_pattern_check, one_field or requested)
    try:
        if check is not None:
            check(whole)
        if one_field is not None:
            return Elicited("accept", msgspec.convert(whole, one_field).value)
        return Elicited("accept", msgspec.convert(whole, requested))
    except msgspec.ValidationError as error:
        raise _invalid(peer, "/content", str(error)) from None


def _invalid(peer: Peer, pointer: str, reason: str) -> InvalidPayload:
    return InvalidPayload(revision=peer.revision, pointer=pointer, what="the filled-in form", reason=reason)
