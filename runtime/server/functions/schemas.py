"""JSON Schemas (2020-12) of what functions take and return, as msgspec writes them, each whole in itself."""

from __future__ import annotations

import math
import typing
from datetime import datetime
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, ValidationError, defstruct, field

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.functions.choices import in_order
from mcpgen.runtime.server.functions.signatures import Annotation, arms, origin_of

if TYPE_CHECKING:
    from mcpgen.runtime.server.functions.signatures import Parameter, Signature

__all__ = ["any_object", "argument_type", "described", "input_schema", "schema_of"]

ANYTHING = "x-mcpgen-anything"
REFERENCES = "#/$defs/{name}"


CONTAINERS = (list, dict, tuple, set, frozenset)


def any_object(annotation: type, value: object) -> object:
    """Decode ``object``, which msgspec knows as Any alone, as whatever it is: a ``dec_hook``."""
    if annotation is object:
        return value
    # Of an author who wrote the schema of a type by hand. No value is of it, then, which is what msgspec makes of this.
    raise TypeError(f"Expected `{annotation.__name__}`, which nothing decodes")


def _any_schema(annotation: type) -> dict[str, Any]:
    """Return the schema of ``object``, marked, since msgspec takes an empty one for none: a ``schema_hook``."""
    if annotation is object:
        return {ANYTHING: True}
    raise NotImplementedError  # so does msgspec want to be told that a hook knows nothing of a type


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {key: _unmarked(each) for key, each in members.items() if key != ANYTHING}
    return list(map(_unmarked, cast("list[object]", value))) if isinstance(value, list) else value


def schema_of(annotation: Annotation, what: str) -> dict[str, Any]:
    """Return the schema of a type; what it refers to is in its ``$defs``.

    Raises:
        UsageError: JSON cannot say this type, or msgspec cannot decode it.
    """
    try:
        (schema,), definitions = msgspec.json.schema_components(
            [annotation], schema_hook=_any_schema, ref_template=REFERENCES
        )
        msgspec.json.Decoder(annotation, dec_hook=any_object)
    except (TypeError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        if "custom types" in reason:
            reason = "msgspec does not know it; pydantic models, for one, are not supported"
        raise UsageError(
            f"{what} has the type {annotation!r}, which has no JSON Schema ({reason}); use a type that msgspec "
            "supports: a Struct, a dataclass, a TypedDict, an Enum, a Literal or a built-in one, and tag Structs that "
            "stand in one union (`class A(Struct, tag=True)`)"
        ) from error
    return in_order(cast("dict[str, Any]", _unmarked(_whole(schema, definitions))), annotation)


def _whole(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that is not only a reference, with the definitions that it needs."""
    if schema.keys() == {"$ref"}:
        name = schema["$ref"].rpartition("/")[2]
        schema = dict(definitions[name])
        others = {key: value for key, value in definitions.items() if key != name}
        if _refers([schema, others], f"#/$defs/{name}"):
            others = definitions
        definitions = others
    return {**schema, "$defs": definitions} if definitions else schema


def _refers(value: object, reference: str) -> bool:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return members.get("$ref") == reference or any(_refers(each, reference) for each in members.values())
    return isinstance(value, list) and any(_refers(each, reference) for each in cast("list[object]", value))


def argument_type(signature: Signature) -> type[Struct]:
    """Return the Struct that a request's arguments are decoded to; it refuses arguments that it does not know.

    Raises:
        UsageError: A parameter has a type that cannot be decoded, or a default that is not of its type.
    """
    fields: list[tuple[str, Any, Any]] = []
    for each in signature.parameters:
        what = f"parameter {each.name!r} of {signature.label}"
        schema_of(each.annotation, what)
        if msgspec.Raw in arms(each.annotation):
            raise UsageError(f"{what} is Raw, but arguments arrive decoded; annotate it with `object`")
        _check_default(each, what)
        fields.append((each.name, described(each.annotation), _default_field(each.default)))
    # gc=False: it lives for one call, and its values come from JSON, which has no cycles.
    return defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True, gc=False)


def input_schema(signature: Signature, arguments: type[Struct]) -> dict[str, Any]:
    """Return the schema of a function's arguments: an object that allows no others."""
    schema = schema_of(arguments, f"the parameters of {signature.label}")
    properties = schema.get("properties", {})
    for each in signature.parameters:
        # From the annotation itself: typing takes Literals in another order for equal, and hands out the first it saw.
        described = properties[each.name] = in_order(properties[each.name], each.annotation)
        if each.description:
            described.setdefault("description", each.description)
        described.pop("default", None)
        default = _default_json(each.default)
        if default is not UNSET:
            described["default"] = default
    dropped = ("title", "description") if schema.get("required") else ("title", "description", "required")
    kept = {key: value for key, value in schema.items() if key not in dropped}
    return {"type": "object", **({"properties": {}} | kept)}


def described(annotation: Annotation) -> Annotation:
    """Return a type that says more in its schema than msgspec does.

    Datetimes say that they are such; msgspec says it only of those that need a time zone. Choices say that they are
    text.
    """
    if annotation is datetime:
        return Annotated[datetime, Meta(extra_json_schema={"format": "date-time"})]
    origin = origin_of(annotation)
    inner = typing.get_args(annotation)
    if origin is typing.Literal and all(isinstance(each, str) for each in inner):
        return Annotated[annotation, Meta(extra_json_schema={"type": "string"})]
    if origin is Annotated:
        return Annotated[(described(inner[0]), *inner[1:])]
    if origin in (typing.Union, UnionType):
        return typing.Union[tuple(described(arm) for arm in inner)]  # noqa: UP007 (of a tuple)
    if origin in CONTAINERS:
        return GenericAlias(origin, tuple(described(each) for each in inner))
    return annotation


def _default_field(default: object) -> object:
    """Return what msgspec fills in for an argument that is missing: as in Python, the very object, not a copy of it."""
    return default if default is NODEFAULT else field(default_factory=lambda: default)


def _check_default(parameter: Parameter, what: str) -> None:
    """Refuse a default that a request could not give, such as None for an int.

    A default that JSON cannot say, a sentinel, stays between the function and Python.
    """
    if parameter.default is NODEFAULT or parameter.default is UNSET:
        return
    try:
        value = msgspec.to_builtins(parameter.default, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return
    try:
        msgspec.convert(value, parameter.annotation, str_keys=True, dec_hook=any_object)
    except ValidationError as error:
        way_out = " | None" if value is None else ""
        raise UsageError(
            f"the default of {what} is not of its type ({error}); "
            + (f"write `{parameter.name}: …{way_out} = None`" if way_out else "change one of them")
        ) from error


def _default_json(default: object) -> object | UnsetType:
    """Return a default as JSON; UNSET if there is none or JSON cannot say it."""
    if default is NODEFAULT or default is UNSET or (isinstance(default, float) and not math.isfinite(default)):
        return UNSET
    try:
        return cast("object", msgspec.json.decode(msgspec.json.encode(default, order="deterministic")))
    except (TypeError, ValueError, RecursionError):
        return UNSET
