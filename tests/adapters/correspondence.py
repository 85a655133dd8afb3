"""Which objects of two revisions are the same one, read from the schema documents and from nothing else.

Theory of operation. Two definitions of one name correspond, and so does what stands at the same place inside them:
property by property, item by item, value by value of a map. References are followed on both sides, so that an inline
``params`` meets the ``CallToolRequestParams`` of a later revision; what is learnt so is true of that place alone, not
of every place that refers to the same definition. Arms of unions correspond if they are definitions of one name, or if
both are inline and of one kind. A rename says that two names are one; a moved object that two places are. This is
deliberately not how the generator of the adapters pairs them: it judges the adapters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tests.oracle import subjects
from tests.oracle.subjects import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.oracle.shapes import Schema

Pointer = tuple[str | int, ...]

# Definitions that go by another name in older revisions, as the newest revision calls them.
_SINCE_MARCH = {"ResourceReference": "ResourceTemplateReference"}
_UNTIL_JUNE = {"JSONRPCError": "JSONRPCErrorResponse", "JSONRPCResponse": "JSONRPCResultResponse"}
RENAMES: Mapping[str, Mapping[str, str]] = {
    "2024-11-05": _SINCE_MARCH | _UNTIL_JUNE,
    "2025-03-26": _SINCE_MARCH | _UNTIL_JUNE,
    # The name went on to a union of five schemas, of which this one is the legacy.
    "2025-06-18": {"EnumSchema": "LegacyTitledEnumSchema"} | _UNTIL_JUNE,
}
# Objects that became one arm of a union: (definition, keys on the way), and the name of the arm since.
MOVED: Mapping[str, Mapping[tuple[str, ...], str]] = {
    "2025-06-18": {("ElicitRequest", "params"): "ElicitRequestFormParams"},
}
# The values of these keys are JSON Schemas, whose keywords belong to no revision. The dialect of a tool's schema is one
# of them: without it, the schema has another meaning. A form has a fixed set of keywords, and older forms no dialect.
KEYWORDS = frozenset({"properties", "required", "type"})
JSON_SCHEMAS = {
    "inputSchema": KEYWORDS | {"$schema"},
    "outputSchema": KEYWORDS | {"$schema"},
    "requestedSchema": KEYWORDS,
}
# What any message may be: their params are anything in one revision and spelled out in the next.
ENVELOPES = frozenset({"JSONRPCNotification", "JSONRPCRequest", "Notification", "Request"})


def canonical(revision: str, name: str) -> str:
    """Return the name that the newest revision to have the definition *name* of *revision* gives it."""
    return RENAMES.get(revision, {}).get(name, name)


def local(revision: str, name: str) -> str | None:
    """Return what *revision* calls the definition with the canonical *name*, None if it has none."""
    found = (each for each in Document(revision).names if canonical(revision, each) == name)
    return next(found, None)


@dataclass(frozen=True, slots=True)
class Place:
    """A schema inside a document.

    Attributes:
        pointer: Where it is, references followed.
        site: Where the first of these references is.
        name: The definition that it is the body of, by its canonical name, or nothing.
    """

    pointer: Pointer
    site: Pointer
    name: str = ""


def inline(pointer: Pointer) -> Place:
    """Return the place at *pointer*, references not followed."""
    return Place(pointer, pointer)


@dataclass(frozen=True)
class Document:
    """The patched document of one revision, to be walked."""

    revision: str

    @property
    def section(self) -> str:
        """Where its definitions are."""
        return "$defs" if "$defs" in subjects.patched(self.revision) else "definitions"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its definitions."""
        return tuple(subjects.patched(self.revision)[self.section])

    def definition(self, name: str) -> Place:
        """Return the place of the definition *name*, or of the one that it is another name of."""
        pointer = (self.section, name)
        return self.resolved(Place(pointer, pointer, canonical(self.revision, name)))

    def schema(self, place: Place) -> Schema:
        """Return the schema at *place*."""
        found: Schema = at(subjects.patched(self.revision), place.pointer)
        return found

    def resolved(self, place: Place) -> Place:
        """Follow references until something else comes."""
        while "$ref" in (schema := self.schema(place)):
            name = schema["$ref"].rpartition("/")[2]
            place = Place((self.section, name), place.site, canonical(self.revision, name))
        return place

    def arms(self, place: Place) -> Iterator[Place]:
        """Yield the arms of the union at *place*, unions inside unions opened; anything else is one arm."""
        place = self.resolved(place)
        arms = self.schema(place).get("anyOf")
        if arms is None:
            yield place
        for index in range(len(arms or ())):
            yield from self.arms(inline((*place.pointer, "anyOf", index)))

    def properties(self, place: Place) -> dict[str, Place]:
        """Return the places of the values of the object at *place*, by key; all parts of a conjunction count."""
        place = self.resolved(place)
        schema = self.schema(place)
        found = {key: inline((*place.pointer, "properties", key)) for key in schema.get("properties", {})}
        for index in range(len(schema.get("allOf", ()))):
            found = self.properties(inline((*place.pointer, "allOf", index))) | found
        return found

    def kind(self, place: Place) -> str:
        """Return whether *place* holds an object, an array or something else."""
        schema = self.schema(place)
        if schema.get("type") == "object" or schema.keys() & {"properties", "allOf"}:
            return "object"
        return "array" if schema.get("type") == "array" else "value"

    def children(self, place: Place) -> dict[str, Place]:
        """Return the places inside the array or map at *place*, by the keyword that says what they hold."""
        schema = self.schema(place)
        keywords = ("items", "additionalProperties")
        return {each: inline((*place.pointer, each)) for each in keywords if isinstance(schema.get(each), dict)}


def at(document: Any, pointer: Pointer) -> Any:
    """Return what *document* has at *pointer*."""
    for key in pointer:
        document = document[key]
    return document


@dataclass(slots=True)
class Pairing:
    """The pairs of objects that correspond in two documents."""

    one: Document
    other: Document
    pairs: set[tuple[Place, Place]] = field(default_factory=set)
    _entered: set[tuple[Place, Place]] = field(default_factory=set)

    def run(self) -> set[tuple[Place, Place]]:
        """Return the pairs of places that hold one object."""
        for name in self.one.names:
            other = local(self.other.revision, canonical(self.one.revision, name))
            if other is not None and name not in ENVELOPES:
                self._align(self.one.definition(name), self.other.definition(other))
        for (holder, *keys), name in MOVED.get(self.one.revision, {}).items():
            if name in self.other.names:
                place = self.one.definition(holder)
                for key in keys:
                    place = self.one.properties(place)[key]
                self._align(place, self.other.definition(name))
        return self.pairs

    def _align(self, one: Place, other: Place) -> None:
        if (one, other) in self._entered:
            return
        self._entered.add((one, other))
        arms, others = list(self.one.arms(one)), list(self.other.arms(other))
        alone = len(arms) == len(others) == 1
        for arm in arms:
            for rival in others:
                defined = arm.name == rival.name != "" and {len(arm.site), len(rival.site)} != {2}
                if self.one.kind(arm) == self.other.kind(rival) and (alone or arm.name == rival.name) and not defined:
                    self._pair(arm, rival)

    def _pair(self, one: Place, other: Place) -> None:
        if self.one.kind(one) == "object":
            self.pairs.add((one, other))
            mine, theirs = self.one.properties(one), self.other.properties(other)
            for key in mine.keys() & theirs.keys():
                self._align(mine[key], theirs[key])
        inside, rivals = self.one.children(one), self.other.children(other)
        for keyword in inside.keys() & rivals.keys():
            self._align(inside[keyword], rivals[keyword])


Foreign = dict[str, list[tuple[str, Pointer]]]
"""By foreign key, where other revisions define it: the revision and the place of its value."""


def foreign_keys() -> dict[str, dict[Pointer, Foreign]]:
    """Return the foreign keys of each object, by revision and the pointer of the object; none where there are none."""
    found: dict[str, dict[Pointer, Foreign]] = {revision: {} for revision in REVISIONS}
    for older, newer in combinations([Document(revision) for revision in REVISIONS], 2):
        for one, other in sorted(Pairing(older, newer).run(), key=repr):
            _collect(found[older.revision], (older, one), (newer, other))
            _collect(found[newer.revision], (newer, other), (older, one))
    return found


def _collect(found: dict[Pointer, Foreign], mine: tuple[Document, Place], theirs: tuple[Document, Place]) -> None:
    document, place = mine
    rival, other = theirs
    known = set(document.properties(place))
    known |= JSON_SCHEMAS.get(str(place.site[-1]), frozenset())
    for key, value in rival.properties(other).items():
        if key not in known:
            where = found.setdefault(place.site, {}).setdefault(key, [])
            where.append((rival.revision, value.pointer))
