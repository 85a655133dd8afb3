"""The shapes of a schema document: what an instance generator has to know, and no more.

A document says the same thing in many spellings (``$ref``, ``allOf``, lists of types, ``const`` beside ``type``).
This module reduces them to a handful of nodes, so that every generator is one short ``match``. References stay
references (``Named``): the documents are recursive. A keyword it does not know is an error, never a guess, because
an ignored keyword would turn into instances that are only believed to be valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Json: TypeAlias = Any  # JSON as the json module has it; spelled recursively it would make every index a cast
Schema: TypeAlias = "dict[str, Any]"

ANNOTATIONS = frozenset({"$comment", "default", "deprecated", "description", "examples", "title"})
OF_OBJECTS = frozenset({"additionalProperties", "properties", "required"})
OF_ARRAYS = frozenset({"items", "maxItems", "minItems"})
OF_SCALARS = frozenset({"format", "maximum", "minimum"})
ASSERTIONS = OF_OBJECTS | OF_ARRAYS | OF_SCALARS | {"$ref", "allOf", "anyOf", "const", "enum", "type"}


class UnsupportedSchema(Exception):  # noqa: N818  (it says what the schema is, as jsonschema's exceptions do)
    """The document uses something that the generator does not understand, or contradicts itself."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string; the format is a hint for readable samples, nothing asserts it."""

    format: str | None


@dataclass(frozen=True, slots=True)
class Number:
    """An integer, or any number."""

    whole: bool
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few values: a constant, an enumeration, a boolean or null."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """An object.

    ``extra`` is the shape of keys that are not listed, or None where the object is closed. ``absent`` has the keys that
    must be absent, because their schema is false or another part of an ``allOf`` forbids them.
    """

    properties: dict[str, Shape]
    required: tuple[str, ...]
    extra: Shape | None
    absent: tuple[str, ...] = ()

    @property
    def optional(self) -> tuple[str, ...]:
        """The listed keys that may be left out, in the document's order."""
        return tuple(key for key in self.properties if key not in self.required)


@dataclass(frozen=True, slots=True)
class Sequence:
    """An array."""

    items: Shape
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Union:
    """One of several shapes, which may overlap."""

    arms: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A definition of the document."""

    name: str


Shape = Anything | Text | Number | Choice | Record | Sequence | Union | Named


class Shapes:
    """The definitions of one schema document as shapes."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Read *document*, draft-07 with ``definitions`` or 2020-12 with ``$defs``."""
        self._section = "$defs" if "$defs" in document else "definitions"
        self._definitions: dict[str, Schema] = document[self._section]
        self._cache: dict[str, Shape] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the definitions, sorted."""
        return tuple(sorted(self._definitions))

    def named(self, name: str) -> Shape:
        """Return the shape of the definition *name*.

        Raises:
            UnsupportedSchema: The definition says something this module does not know.
        """
        if name not in self._cache:
            try:
                self._cache[name] = self.shape(self._definitions[name])
            except UnsupportedSchema as error:
                error.add_note(f"in the definition {name}")
                raise
        return self._cache[name]

    def resolved(self, shape: Shape) -> Shape:
        """Follow names until something else comes."""
        while isinstance(shape, Named):
            shape = self.named(shape.name)
        return shape

    def shape(self, schema: Schema | bool) -> Shape:  # noqa: FBT001  (true and false are schemas)
        """Return the shape of any subschema."""
        if isinstance(schema, bool):
            if not schema:
                raise UnsupportedSchema("the schema false")
            return Anything()
        schema = self._asserted(schema)
        if set(schema) == {"$ref"}:
            return Named(self._target(schema["$ref"]))
        schema = self._flat(schema)
        if "anyOf" in schema:
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            arms = schema["anyOf"]
            return _union([self.shape({"allOf": [rest, arm]} if rest else arm) for arm in arms])
        if "const" in schema:
            return Choice((schema["const"],))
        if "enum" in schema:
            return Choice(tuple(schema["enum"]))
        return self._typed(schema)

    def _typed(self, schema: Schema) -> Shape:  # noqa: C901  (one case per type)
        match schema.get("type"):
            case list() as types:
                return _union([self._typed(schema | {"type": one}) for one in types])
            case "object":
                return self._record(schema)
            case "array":
                return Sequence(self.shape(schema.get("items", {})), schema.get("minItems", 0), schema.get("maxItems"))
            case "string":
                return Text(schema.get("format"))
            case "integer" | "number" as kind:
                return Number(kind == "integer", schema.get("minimum"), schema.get("maximum"))
            case "boolean":
                return Choice((False, True))
            case "null":
                return Choice((None,))
            case None if not schema:
                return Anything()
            # Without a type, `properties` also lets everything pass that is no object. An object is what the author had
            # in mind, and generated instances only have to be valid; mutants find the rest.
            case None if schema.keys() <= OF_OBJECTS:
                return self._record(schema)
            case None if schema.keys() <= OF_ARRAYS:
                return self._typed(schema | {"type": "array"})
        raise UnsupportedSchema(f"type {schema.get('type')!r} with {sorted(schema)}")

    def _record(self, schema: Schema) -> Record:
        # An object that lists no keys at all is a map of anything: it would be of no use as a closed one.
        extra = schema.get("additionalProperties", "properties" not in schema)
        listed = schema.get("properties", {})
        properties = {key: self.shape(value) for key, value in listed.items() if value is not False}
        absent = tuple(key for key, value in listed.items() if value is False)
        required = tuple(schema.get("required", ()))
        if set(required) & set(absent):
            raise UnsupportedSchema(f"required keys that must be absent: {sorted(set(required) & set(absent))}")
        unlisted = Anything() if extra is False else self.shape(extra)
        properties |= {key: unlisted for key in required if key not in properties}
        return Record(properties, required, None if extra is False else unlisted, absent)

    def _asserted(self, schema: Schema) -> Schema:
        schema = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        if unknown := schema.keys() - ASSERTIONS:
            raise UnsupportedSchema(f"keywords {sorted(unknown)}")
        if "$ref" in schema and self._section == "definitions":
            return {"$ref": schema["$ref"]}  # draft-07: siblings of a reference are ignored
        return schema

    def _target(self, reference: str) -> str:
        prefix = f"#/{self._section}/"
        name = reference.removeprefix(prefix)
        if not reference.startswith(prefix) or name not in self._definitions:
            raise UnsupportedSchema(f"reference {reference!r}")
        return name

    def _flat(self, schema: Schema) -> Schema:
        """Merge ``$ref`` and ``allOf`` into one schema that has neither."""
        schema = self._asserted(schema)
        parts: list[Schema] = [{key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}]
        if "$ref" in schema:
            parts.append(self._flat(self._definitions[self._target(schema["$ref"])]))
        parts += [self._flat(part) for part in schema.get("allOf", ())]
        return reduce(_both, [part for part in parts if part], {})


def _union(arms: list[Shape]) -> Shape:
    return arms[0] if len(arms) == 1 else Union(tuple(arms))


def _both(one: Schema, other: Schema) -> Schema:
    """Return the flat schema whose instances satisfy both flat schemas."""
    if not one:
        return other
    both = one | other
    for keyword in one.keys() & other.keys():
        if one[keyword] != other[keyword]:
            both[keyword] = _conjunction(keyword, one[keyword], other[keyword])
    if "properties" in both:
        both["properties"] = _properties(one, other)
    if "const" in both:
        both.pop("enum", None)
    return both


def _conjunction(keyword: str, one: Json, other: Json) -> Json:  # noqa: C901  (one case per keyword)
    match keyword:
        case "required":
            return list(dict.fromkeys([*one, *other]))
        case "minimum" | "minItems":
            return max(one, other)
        case "maximum" | "maxItems":
            return min(one, other)
        case "items":
            return {"allOf": [one, other]}
        case "anyOf":
            return [{"allOf": [left, right]} for left in one for right in other]
        case "enum":
            common = [value for value in one if value in other]
        case "type":
            common = _common_types(one, other)
        case "additionalProperties":
            return _further(one, other)
        case "properties":
            return {}  # merged by _properties, which needs both whole schemas
        case _:
            common = []
    if not common:
        raise UnsupportedSchema(f"{keyword} {one!r} together with {other!r}")
    return common


def _further(one: Schema | bool, other: Schema | bool) -> Schema | bool:  # noqa: FBT001  (true and false are schemas)
    if isinstance(one, bool) or isinstance(other, bool):
        return False if False in (one, other) else other if one is True else one
    return {"allOf": [one, other]}


def _common_types(one: Json, other: Json) -> list[str]:
    left, right = ([types] if isinstance(types, str) else types for types in (one, other))
    if "number" in left:
        left = [*left, "integer"]
    if "number" in right:
        right = [*right, "integer"]
    common = [name for name in left if name in right]
    return [name for name in common if not (name == "integer" and "number" in common)]


def _properties(one: Schema, other: Schema) -> dict[str, Schema | bool]:
    """Merge two sets of properties; a key that only one lists obeys the other's ``additionalProperties`` too.

    The schema of a key that must be absent is false.
    """
    merged: dict[str, Schema | bool] = {}
    for key in dict.fromkeys([*one.get("properties", {}), *other.get("properties", {})]):
        wanted: list[Schema | bool] = []
        for part in (one, other):
            schema = part.get("properties", {}).get(key, part.get("additionalProperties", True))
            if schema not in (True, {}) and schema not in wanted:
                wanted.append(schema)
        if False in wanted:
            merged[key] = False
            continue
        merged[key] = wanted[0] if len(wanted) == 1 else {"allOf": wanted} if wanted else {}
    return merged
