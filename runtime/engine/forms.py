"""The form that a user is asked to fill in: made from a type, and what was filled in made into a value of that type.

Spec:
    2025-06-18, client/elicitation, "Requested Schema"; 2025-11-25 and 2026-07-28, the same: flat objects of text,
    numbers, truth values and choices.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct

from mcpgen.runtime.engine.fitting import misfit
from mcpgen.runtime.errors import InvalidPayload, UsageError
from mcpgen.runtime.functions.choices import in_order
from mcpgen.runtime.functions.schemas import described, schema_of
from mcpgen.runtime.newest import models

if TYPE_CHECKING:
    from mcpgen.runtime.peers.capabilities import Peer

__all__ = ["Elicited", "filled_in", "form"]

T = TypeVar("T")


class Elicited(Struct, Generic[T], frozen=True):
    """What a user did with a form.

    Attributes:
        action: Whether it was filled in (accept), refused (decline) or put away (cancel).
        content: What was filled in; None unless it was.
    """

    action: Literal["accept", "decline", "cancel"]
    content: T | None = None


def form(requested: type[Any] | Mapping[str, Any]) -> dict[str, Any]:
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
        schema = in_order({**schema, **schema_of(described(annotation), "a field of a form")}, annotation)
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


def filled_in(result: Any, requested: type[T] | Mapping[str, Any], peer: Peer) -> Elicited[T]:
    """Return what came back, as the type that was asked for; for a schema, as a dict.

    Raises:
        InvalidPayload: It does not fit.
    """
    if result.action != "accept":
        return Elicited(result.action)
    content: Any = {} if result.content is UNSET else result.content
    wrong = misfit(content, form(requested))
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
