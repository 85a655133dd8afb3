"""Whether what a user filled in fits the form: the part of JSON Schema that forms have.

Spec:
    2025-06-18, client/elicitation, "Requested Schema"; 2025-11-25 and 2026-07-28, the same, and "Security
    Considerations": both sides SHOULD validate the content against the schema.

The form that a user is asked to fill in: made from a type, and what was filled in made into a value of that type.

Spec:
    2025-06-18, client/elicitation, "Requested Schema"; 2025-11-25 and 2026-07-28, the same: flat objects of text,
    numbers, truth values and choices.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct

from mcpgen.runtime.adapt.json_pointer import is_array, is_object, pointer_to
from mcpgen.runtime.errors import InvalidPayload, UsageError
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions.schemas import described, in_declared_order, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.capabilities import Peer

__all__ = ["Elicited", "form_value", "form_schema", "find_mismatch"]


def find_mismatch(content: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the pointer to what does not fit, and why; None if all does. Members that nobody asked for pass."""
    missing = [name for name in schema.get("required", ()) if name not in content]
    if missing:
        return "", f"{missing[0]!r} is missing"
    for name, each in schema.get("properties", {}).items():
        reason = _wrong(content[name], each) if name in content else None
        if reason is not None:
            return pointer_to((name,)), reason
    return None


def _wrong(value: Any, schema: Mapping[str, Any]) -> str | None:
    check = _CHECKS.get(schema.get("type", ""))
    if check is None:
        return None
    fits, rules = check
    if not fits(value):
        return f"it is not {'an' if schema['type'][0] in 'aio' else 'a'} {schema['type']}"
    return rules(value, schema)


def _text(value: Any, schema: Mapping[str, Any]) -> str | None:
    allowed = _choices(schema)
    if allowed is not None and value not in allowed:
        return f"it is none of {', '.join(map(str, allowed))}"
    return _length(len(value), schema, "minLength", "maxLength")


def _number(value: Any, schema: Mapping[str, Any]) -> str | None:
    if value < schema.get("minimum", -math.inf):
        return f"it is less than {schema['minimum']}"
    if value > schema.get("maximum", math.inf):
        return f"it is more than {schema['maximum']}"
    return None


def _several(value: Any, schema: Mapping[str, Any]) -> str | None:
    allowed = _choices(schema.get("items", {}))
    strange = [each for each in value if not isinstance(each, str) or (allowed is not None and each not in allowed)]
    if strange:
        return "one of its items is none of the choices"
    return _length(len(value), schema, "minItems", "maxItems")


def _length(length: int, schema: Mapping[str, Any], least: str, most: str) -> str | None:
    if length < schema.get(least, 0):
        return f"it is shorter than {schema[least]}"
    if length > schema.get(most, math.inf):
        return f"it is longer than {schema[most]}"
    return None


def _choices(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return what may be chosen, in whichever of the ways forms have to say so; None if anything may."""
    titled = schema.get("oneOf", schema.get("anyOf"))
    if is_array(titled):
        return [each.get("const") for each in titled if is_object(each)]
    listed = schema.get("enum")
    return listed if is_array(listed) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_CHECKS: dict[str, tuple[Callable[[Any], bool], Callable[[Any, Mapping[str, Any]], str | None]]] = {
    "string": (lambda value: isinstance(value, str), _text),
    "number": (_is_number, _number),
    "integer": (_is_whole, _number),
    "boolean": (lambda value: isinstance(value, bool), lambda _value, _schema: None),
    "array": (is_array, _several),
}


T = TypeVar("T")


class Elicited(Struct, Generic[T], frozen=True):
    """What a user did with a form.

    Attributes:
        action: Whether it was filled in (accept), refused (decline) or put away (cancel).
        content: What was filled in; None unless it was.
    """

    action: Literal["accept", "decline", "cancel"]
    content: T | None = None


def form_schema(requested: type[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form.

    Args:
        requested: A Struct, dataclass or TypedDict whose fields are text, numbers, truth values, a choice (Literal or
            Enum of text) or a list of one; or the schema itself.

    Raises:
        UsageError: It has fields that no form can have; the message names them.
    """
    schema = dict(requested) if isinstance(requested, Mapping) else _schema(requested)
    for name, each in schema.get("properties", {}).items():
        try:
            models.decode(msgspec.json.encode(each), models.PrimitiveSchemaDefinition)
        except msgspec.ValidationError as error:
            raise UsageError(f"a form cannot ask for {name!r}: {each!r} ({error})") from error
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    return schema


def _schema(requested: type[Any]) -> dict[str, Any]:
    whole = schema_of(requested, "a form")
    if whole.get("type") != "object" or "properties" not in whole:
        raise UsageError(f"a form is a type with fields, not {requested!r}")
    definitions = whole.get("$defs", {})
    types = _types(requested)
    properties = {name: _field(each, types.get(name), definitions) for name, each in whole["properties"].items()}
    required = whole.get("required", [])
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _types(requested: Any) -> dict[str, Any]:
    """Return the types of the fields of *requested*, by the names that they have in JSON."""
    plain: Any = typing.get_origin(requested) or requested
    if Struct in getattr(plain, "__mro__", ()):
        return {each.encode_name: each.type for each in msgspec.structs.fields(requested)}
    found = typing.get_type_hints(plain, include_extras=True)
    # A field of a TypedDict that may be left out says so around its type.
    wrappers = (typing.Required, typing.NotRequired)
    return {
        name: typing.get_args(each)[0] if typing.get_origin(each) in wrappers else each for name, each in found.items()
    }


def _field(schema: dict[str, Any], annotation: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one field, as a form can have it.

    A field that may be None is one that need not be filled in: forms know no null.
    """
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
    """Return *schema* with the choices that it refers to."""
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **rest}
    if "items" in schema:
        schema = {**schema, "items": _inlined(schema["items"], definitions)}
    if "enum" in schema:
        schema = {"type": "string", **{key: value for key, value in schema.items() if key != "title"}}
    return schema


def form_value(result: Any, requested: type[T] | Mapping[str, Any], peer: Peer) -> Elicited[T]:
    """Return what came back, as the type that was asked for; for a schema, as a dict.

    Raises:
        InvalidPayload: It does not fit.
    """
    if result.action != "accept":
        return Elicited(result.action)
    content: Any = {} if result.content is UNSET else result.content
    wrong = find_mismatch(content, form_schema(requested))
    if wrong is not None:
        raise _invalid(peer, "/content" + wrong[0], wrong[1])
    if isinstance(requested, Mapping):
        return Elicited("accept", content)
    try:
        return Elicited("accept", msgspec.convert(content, requested))
    except msgspec.ValidationError as error:
        raise _invalid(peer, "/content", str(error)) from None


def _invalid(peer: Peer, pointer: str, reason: str) -> InvalidPayload:
    return InvalidPayload(revision=peer.revision, pointer=pointer, what="what a user filled in", reason=reason)
