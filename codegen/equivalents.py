"""Rewrite schemas to equal ones that the generator supports.

Generators of JSON Schema say some things in unusual ways. Zod writes an object whose keys are all required as
``propertyNames`` with constants, and "no further keys" as ``additionalProperties: {"not": {}}``. A copied definition
brings its own ``$schema``. An ``allOf`` extends a union. Each of these has an equal
form, and the later stages know only that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcpgen.codegen.keywords import ANNOTATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgen.codegen.json_pointers import Json

__all__ = ["simplified"]

_NAMED = ("$defs", "definitions", "properties")
_LISTED = ("allOf", "anyOf")
_SINGLE = ("additionalItems", "additionalProperties", "items")


def simplified(document: dict[str, Any]) -> dict[str, Any]:
    """Return *document*, of limited depth, with the same meaning in fewer keywords; parts of both may be shared."""
    return {name: _member(name, value, document.get("$schema")) for name, value in document.items()}


def _member(name: str, value: Any, dialect: Json) -> Any:  # noqa: ANN401 - the value of any keyword
    """Return the *value* of the keyword *name* with its schemas rewritten."""
    if name in _NAMED and isinstance(value, dict):
        return {key: _schema(each, dialect) for key, each in cast("dict[str, Any]", value).items()}
    if name in _LISTED and _is_array(value):
        return [_schema(each, dialect) for each in value]
    return _schema(value, dialect) if name in _SINGLE else value


def _is_array(value: object) -> bool:
    return isinstance(value, list)


def _schema(schema: Any, dialect: Json) -> Any:  # noqa: ANN401 - whatever stands in the place of a schema
    if not isinstance(schema, dict):
        return schema
    found = {name: _member(name, value, dialect) for name, value in cast("dict[str, Any]", schema).items()}
    if "$schema" in found and found["$schema"] == dialect:
        del found["$schema"]
    for home in ("$defs", "definitions"):
        found.pop(home, None)  # a `$ref` names a definition of the document, so these are never used
    refused = found.get("not")
    if (refused is True or refused == {}) and not found.keys() - {"not"} - ANNOTATIONS:
        return False
    return _distributed(_with_properties(found))


def _with_properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* with ``properties`` instead of ``propertyNames``, if these are constants and say the same."""
    keys = list(_constants(schema.get("propertyNames")))
    if not keys or None in keys or schema.get("type") != "object" or "properties" in schema:
        return schema
    further = schema.get("additionalProperties", {})
    if further is False:
        return schema
    kept = {name: value for name, value in schema.items() if name != "propertyNames"}
    properties = {cast("str", key): further for key in keys}
    return {**kept, "properties": properties, "additionalProperties": False}


def _distributed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* as a union of `allOf`, if it is an `allOf` of which one member is a union."""
    members: list[Any] = schema["allOf"] if isinstance(schema.get("allOf"), list) else []
    places = [index for index, each in enumerate(members) if _is_union(each)]
    if len(places) != 1 or schema.keys() - {"allOf"} - ANNOTATIONS:
        return schema
    (place,) = places
    kept = {name: value for name, value in schema.items() if name != "allOf"}
    arms = [{"allOf": [*members[:place], arm, *members[place + 1 :]]} for arm in members[place]["anyOf"]]
    return {**kept, "anyOf": arms}


def _is_union(schema: object) -> bool:
    """Whether *schema* is an ``anyOf``, and nothing beside it restricts the value."""
    found = cast("dict[str, object]", schema) if isinstance(schema, dict) else {}
    return isinstance(found.get("anyOf"), list) and not found.keys() - {"anyOf"} - ANNOTATIONS


def _constants(schema: object) -> Iterator[str | None]:
    """Yield the strings that *schema* allows, or None if it allows others."""
    found = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    restricting = found.keys() - {"type"} - ANNOTATIONS
    keyword = next(iter(restricting)) if len(restricting) == 1 else ""
    value: Any = found.get(keyword)
    if keyword == "const" and isinstance(value, str):
        yield value
    elif keyword == "enum" and _is_array(value):
        yield from (each if isinstance(each, str) else None for each in value)
    elif keyword == "anyOf" and _is_array(value):
        for arm in value:
            yield from _constants(arm)
    else:
        yield None
