"""Rewrite schemas to equal ones that the generator supports.

Generators of JSON Schema say some things in unusual ways. Zod writes an object whose keys are all required as
``propertyNames`` with constants, and "no further keys" as ``additionalProperties: {"not": {}}``. A copied definition
brings its own ``$schema``. An ``allOf`` extends a union. Each of these has an equal
form, and the later stages know only that one.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import MAX_POINTER_CHARS
from mcpgen.codegen.json_pointers import objects
from mcpgen.codegen.keywords import ANNOTATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgen.codegen.json_pointers import Json

__all__ = ["simplified"]

_NAMED = ("$defs", "definitions", "properties")
_LISTED = ("allOf", "anyOf")
_SINGLE = ("additionalItems", "additionalProperties", "items")

# The members of an `allOf` are repeated for each arm of a union in it, and the type of all keys for each of these. What
# is repeated may contain the same again, so a document of a kilobyte could repeat schemas without end. The official
# documents repeat nothing.
MAX_REPEATED = 20_000


def simplified(document: dict[str, Any]) -> dict[str, Any]:
    """Return *document*, of limited depth, with the same meaning in fewer keywords; parts of both may be shared.

    Raises:
        Refused: MG012, the result would be too large.
    """
    rewriting = _Rewriting(document.get("$schema"))
    return {name: rewriting.member(name, value) for name, value in document.items()}


class _Rewriting:
    """The rewriting of one document, whose JSON Schema is *dialect*."""

    def __init__(self, dialect: Json) -> None:
        self._dialect = dialect
        self._repeated = 0

    def member(self, name: str, value: Any) -> Any:  # noqa: ANN401 - the value of any keyword
        """Return the *value* of the keyword *name* with its schemas rewritten."""
        if name in _NAMED and isinstance(value, dict):
            return {key: self._schema(each) for key, each in cast("dict[str, Any]", value).items()}
        if name in _LISTED and _is_array(value):
            return [self._schema(each) for each in value]
        return self._schema(value) if name in _SINGLE else value

    def _schema(self, schema: Any) -> Any:  # noqa: ANN401 - whatever stands in the place of a schema
        if not isinstance(schema, dict):
            return schema
        found = {name: self.member(name, value) for name, value in cast("dict[str, Any]", schema).items()}
        if "$schema" in found and found["$schema"] == self._dialect:
            del found["$schema"]
        for home in ("$defs", "definitions"):
            found.pop(home, None)  # a `$ref` names a definition of the document, so these are never used
        refused = found.get("not")
        if (refused is True or refused == {}) and not found.keys() - {"not"} - ANNOTATIONS:
            return False
        return self._distributed(self._with_properties(found))

    def _with_properties(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return *schema* with ``properties`` instead of ``propertyNames``, if these are constants and say the same."""
        keys = list(_constants(schema.get("propertyNames")))
        if not keys or None in keys or schema.get("type") != "object" or "properties" in schema:
            return schema
        further = schema.get("additionalProperties", {})
        if further is False or any(len(key or "") > MAX_POINTER_CHARS for key in keys):
            return schema
        self._count([further], len(keys) - 1)
        kept = {name: value for name, value in schema.items() if name != "propertyNames"}
        properties = {cast("str", key): further for key in keys}
        return {**kept, "properties": properties, "additionalProperties": False}

    def _distributed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return *schema* as a union of `allOf`, if it is an `allOf` of which one member is a union."""
        members: list[Any] = schema["allOf"] if isinstance(schema.get("allOf"), list) else []
        places = [index for index, each in enumerate(members) if _is_union(each)]
        if len(places) != 1 or schema.keys() - {"allOf"} - ANNOTATIONS:
            return schema
        (place,) = places
        before, after, given = members[:place], members[place + 1 :], members[place]["anyOf"]
        self._count([*before, *after], len(given) - 1)
        kept = {name: value for name, value in schema.items() if name != "allOf"}
        return {**kept, "anyOf": [{"allOf": [*before, arm, *after]} for arm in given]}

    def _count(self, members: list[Any], times: int) -> None:
        """Count *members*, which are repeated so many *times*, with all objects in them."""
        if times <= 0:
            return
        self._repeated += times * (len(members) + sum(1 for _ in islice(objects(members), MAX_REPEATED)))
        if self._repeated > MAX_REPEATED:
            finding = Diagnostic(
                code="MG012",
                message=(
                    f"the generator would copy more than {MAX_REPEATED} schemas: it copies the other members of an "
                    "`allOf` for each member of an `anyOf` in it, and the `additionalProperties` of an object for each "
                    "constant in its `propertyNames`"
                ),
                hint="Move the schemas that it would copy to definitions, and refer to these with `$ref`.",
            )
            raise Refused([finding])


def _is_array(value: object) -> bool:
    return isinstance(value, list)


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
