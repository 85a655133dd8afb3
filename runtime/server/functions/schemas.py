"""JSON Schemas (2020-12) of parameters and results, as msgspec generates them, each self-contained.

The values of an Enum or a Literal keep the order of the source, in which forms show them; msgspec would sort them. The
members of a Flag can be combined, so its schema is that of an integer; msgspec and pydantic would list the members.
"""

from __future__ import annotations

import inspect
import math
import re
import typing
from datetime import datetime
from enum import Enum, Flag
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, ValidationError, defstruct, field

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.value_types import any_object, any_schema, dump_value, unknown_class_text, unmarked
from mcpgen.runtime.server.functions.signatures import Annotation, arms, origin_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgen.runtime.server.functions.signatures import Parameter, Signature

__all__ = ["argument_type", "described", "in_declared_order", "input_schema", "schema_of"]

REFERENCES = "#/$defs/{name}"

# How msgspec refuses a union of a dict with a Struct, a dataclass or a TypedDict. A tag does not help. pydantic takes a
# model there, but reads each object that fits the dict as a dict.
_DICT_AND_CLASS: Final = re.compile(r"more than one dict-like type .* - type `.*\b(dict|\w*mapping)\b", re.IGNORECASE)

_ALIKE: Final = re.compile("may not contain more than one (str|int|array)-like")
_EXAMPLES: Final = {"str": "str", "int": "int", "array": "list"}

CONTAINERS = (list, dict, tuple, set, frozenset)


def schema_of(annotation: Annotation, what: str, types: str = "") -> dict[str, Any]:
    """Return the schema of a type, with the definitions that it refers to in its ``$defs``.

    Args:
        annotation: The type.
        what: What has the type, in messages to its author.
        types: The types that the error advises, if *what* cannot have every type with a schema.

    Raises:
        UsageError: The type has no JSON Schema, or msgspec cannot decode it.
    """
    try:
        (schema,), definitions = msgspec.json.schema_components(
            [annotation], schema_hook=any_schema, ref_template=REFERENCES
        )
        msgspec.json.Decoder(annotation, dec_hook=any_object)
    except (TypeError, NotImplementedError, RecursionError) as error:  # the second one for a default of an attrs class
        reason, remedy = str(error).partition("\n")[0], ""
        if "custom types" in reason:
            reason, remedy = unknown_class_text(annotation)
        if types or not remedy:
            remedy = _remedy(reason, annotation, types)
        raise UsageError(
            f"{what} has the type {inspect.formatannotation(annotation)}, which has no JSON Schema ({reason}); {remedy}"
        ) from error
    whole = cast("dict[str, Any]", unmarked(_hoisted(_whole(schema, definitions))))
    return in_declared_order(whole, annotation)


def _remedy(reason: str, annotation: Annotation, types: str) -> str:
    if isinstance(annotation, list) and len(cast("list[object]", annotation)) == 1:
        (item,) = cast("list[object]", annotation)
        return f"write `list[{getattr(item, '__name__', item)}]`"
    if "Can only set" in reason:
        return "remove this constraint, or change the type"
    if "Enums must contain" in reason or "Literal may only contain" in reason:
        return "change the values, or use `str`"
    if "Enum types must have" in reason:
        return "add a value to the Enum"
    if alike := _ALIKE.search(reason):
        return f"use one of them, such as `{_EXAMPLES[alike[1]]}`"
    if types:
        return f"use {types}"
    if "may not contain more than one dict type" in reason or _DICT_AND_CLASS.search(reason) is not None:
        return "use one of them"
    if "may not contain more than one" in reason or "Struct types" in reason:
        return "use Structs with tags (`class A(Struct, tag=True)`), or a pydantic model for each"
    return "use a type that msgspec supports: a Struct, a dataclass, a TypedDict, an Enum, a Literal or a built-in one"


def _hoisted(schema: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* with the definitions of the schemas in it, which pydantic writes beside each, in one place."""
    definitions: dict[str, Any] = dict(schema.get("$defs", {}))

    def hoisted(value: object, names: dict[str, str]) -> object:
        if isinstance(value, list):
            return [hoisted(each, names) for each in cast("list[object]", value)]
        if not isinstance(value, dict):
            return value
        members = dict(cast("dict[str, Any]", value))
        inner = members.pop("$defs", None)
        if inner is not None:
            names = {**names, **{name: _free_name(name, each, definitions) for name, each in inner.items()}}
            definitions.update({names[name]: each for name, each in inner.items()})
            definitions.update({names[name]: hoisted(each, names) for name, each in inner.items()})
        reference = members.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            members["$ref"] = REFERENCES.format(name=names.get(name, name))
        return {key: hoisted(each, names) for key, each in members.items()}

    own = {name: hoisted(each, {}) for name, each in definitions.copy().items()}
    found = cast("dict[str, Any]", hoisted({key: each for key, each in schema.items() if key != "$defs"}, {}))
    definitions |= own
    return {**found, "$defs": definitions} if definitions else found


def _free_name(name: str, definition: object, taken: dict[str, Any]) -> str:
    """Return *name*, or the name with a number if it means something else already."""
    candidate, count = name, 1
    while candidate in taken and taken[candidate] != definition:
        count += 1
        candidate = f"{name}{count}"
    return candidate


def _whole(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that is not just a reference, with the definitions that it needs."""
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


UnknownKeys: TypeAlias = Literal["refuse", "ignore"]
"""What happens to keys that the types of a function's parameters do not have; by default, see `Server`."""


def check_unknown_keys(given: UnknownKeys | None) -> UnknownKeys | None:
    """Return *given*.

    Raises:
        UsageError: It is no such policy.
    """
    if given is not None and given not in get_args(UnknownKeys):
        raise UsageError(f"`unknown_keys` is {given!r}; it must be 'refuse' or 'ignore'")
    return given


def argument_type(signature: Signature, unknown_keys: UnknownKeys | None = None) -> type[Struct]:
    """Return the Struct that a request's arguments are decoded to.

    Raises:
        UsageError: A parameter has a type that cannot be decoded, or a default that is not of its type.
    """
    fields: list[tuple[str, Any, Any]] = []
    for each in signature.parameters:
        what = f"parameter `{each.name}` of {signature.label}"
        schema_of(each.annotation, what)
        if msgspec.Raw in arms(each.annotation):
            raise UsageError(f"{what} has the type Raw, but arguments arrive decoded; annotate it with `object`")
        _check_default(each, what)
        fields.append((each.name, described(each.annotation), _default_field(each.default)))
    # gc=False: it lives for one call, and values from JSON have no cycles.
    forbids = unknown_keys != "ignore"
    return defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=forbids, gc=False)


def input_schema(signature: Signature, arguments: type[Struct]) -> dict[str, Any]:
    """Return the schema of a function's arguments. It allows additional properties if they are ignored."""
    schema = schema_of(arguments, f"the parameters of {signature.label}")
    properties = schema.get("properties", {})
    for each in signature.parameters:
        # From the annotation itself: Literals with another order are equal for typing, which caches the first.
        described = properties[each.name] = in_declared_order(properties[each.name], each.annotation)
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
    """Return a type with a more precise schema than msgspec's.

    A datetime gets the format ``date-time``, which msgspec adds only if a time zone is required. A Literal of strings
    gets the type ``string``.
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
    """Return the default of a field of the arguments: as in Python, the object itself, not a copy of it."""
    return default if default is NODEFAULT else field(default_factory=lambda: default)


def _check_default(parameter: Parameter, what: str) -> None:
    """Refuse a default that is not of the parameter's type, such as None for an int.

    A default that JSON cannot express, such as a sentinel object, is refused: clients could not read it in the schema.
    A lone ``inf`` or ``nan`` is allowed, and missing in the schema.
    """
    if parameter.default is NODEFAULT or parameter.default is UNSET:
        return
    try:
        value = msgspec.to_builtins(parameter.default, str_keys=True, enc_hook=dump_value)
        if not isinstance(value, float) and _has_non_finite(value):
            raise UsageError(f"the default of {what} contains inf or nan, which JSON cannot express; change it")
        if not isinstance(value, float):
            value = msgspec.json.decode(msgspec.json.encode(value))  # where nan becomes null, as in the schema
    except (TypeError, ValueError, RecursionError) as error:
        if getattr(parameter.default, "__name__", "") == "Depends":
            raise UsageError(f"the default of {what} is `Depends` itself; write Depends(function)") from error
        if type(parameter.default).__name__ in ("FieldInfo", "Field"):  # of pydantic, msgspec and dataclasses
            raise UsageError(
                f"the default of {what} is a field, which only classes have; write the default itself, and constraints "
                "as `Annotated[…, msgspec.Meta(…)]`"
            ) from error
        raise UsageError(
            f"the default of {what} cannot be written as JSON ({error}); use another default, such as None with the "
            f"type `… | None`"
        ) from error
    try:
        msgspec.convert(value, parameter.annotation, str_keys=True, dec_hook=any_object)
    except ValidationError as error:
        hint = f"write `{parameter.name}: … | None = None`" if value is None else "change the default or the type"
        raise UsageError(f"the default of {what} is not of its type ({error}); {hint}") from error


def _has_non_finite(value: object) -> bool:
    """Whether *value*, made of built-in types, contains ``inf`` or ``nan``."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_non_finite, cast("dict[str, object]", value).values()))
    return isinstance(value, list) and any(map(_has_non_finite, cast("list[object]", value)))


def _default_json(default: object) -> object | UnsetType:
    """Return a default as JSON; UNSET if there is none, or if it is ``inf`` or ``nan``."""
    if default is NODEFAULT or default is UNSET or (isinstance(default, float) and not math.isfinite(default)):
        return UNSET
    value = msgspec.to_builtins(default, str_keys=True, order="deterministic", enc_hook=dump_value)
    return cast("object", msgspec.json.decode(msgspec.json.encode(value)))


def in_declared_order(schema: dict[str, Any], annotation: Annotation) -> dict[str, Any]:
    """Return *schema*, the schema of *annotation*, with each ``enum`` in the order of the source; a Flag has none."""
    seen: dict[int, Annotation] = {}
    orders = {frozenset(map(repr, each)): each for each in _choices(annotation, seen)}
    flags = {each.__name__: each for each in seen.values() if isinstance(each, type) and issubclass(each, Flag)}
    return cast("dict[str, Any]", _ordered(schema, orders, flags)) if orders else schema


def _ordered(value: object, orders: dict[frozenset[str], list[object]], flags: dict[str, type[Flag]]) -> object:
    if isinstance(value, list):
        return [_ordered(each, orders, flags) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    found = {key: _ordered(each, orders, flags) for key, each in cast("dict[str, object]", value).items()}
    listed = found.get("enum")
    if isinstance(listed, list):
        values = cast("list[object]", listed)
        flag = flags.get(str(found.get("title")))
        if flag is not None and {repr(each.value) for each in flag} == set(map(repr, values)):
            return {key: each for key, each in found.items() if key != "enum"} | {"type": "integer"}
        found["enum"] = orders.get(frozenset(map(repr, values)), values)
    return found


def _choices(annotation: Annotation, seen: dict[int, Annotation]) -> Iterator[list[object]]:
    """Yield the values of each Literal and Enum inside a type, in the order of the source."""
    if id(annotation) in seen:
        return
    seen[id(annotation)] = annotation  # keeps the object alive, so that its id is not reused
    origin: Any = typing.get_origin(annotation)
    if origin is typing.Literal:
        yield list(typing.get_args(annotation))
        return
    for each in typing.get_args(annotation):
        yield from _choices(each, seen)
    plain: Any = origin or annotation
    if not isinstance(plain, type):
        named = getattr(plain, "__supertype__", None) or getattr(plain, "__value__", None)
        yield from () if named is None else _choices(named, seen)  # of a NewType, or of a `type` statement
        return
    if issubclass(plain, Enum):
        yield [each.value for each in plain]
    elif not plain.__module__.startswith("builtins"):
        for each in _field_types(plain):
            yield from _choices(each, seen)


def _field_types(kind: Annotation) -> list[Annotation]:
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):  # a type whose hints cannot be resolved has no choices
        return []
