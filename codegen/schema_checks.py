"""Which JSON Schema documents can become bindings: every construct is looked at, and every fault is reported.

The walk keeps its own stack, so that no document can exhaust the interpreter's.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, NamedTuple

from mcpgen.codegen import names
from mcpgen.codegen.diagnostics import Diagnostic, pointer_to
from mcpgen.codegen.keywords import ANNOTATIONS, CHECKS, HINTS, ROOT_ONLY, Fault, bounds_faults, shown
from mcpgen.codegen.nesting import Nesting
from mcpgen.codegen.references import (
    MAX_ALIAS_CHAIN,
    MOST_SUGGESTIONS,
    alias_faults,
    reference_fault,
    referenced_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgen.codegen.json_pointers import Json

__all__ = ["check_document"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What is read as if `type` stood beside it, and as which: the first of these that is there.
_IMPLIES = {"properties": "object", "additionalProperties": "object", "items": "array"}


class _Place(NamedTuple):
    """A schema that is still to be looked at."""

    schema: Json
    path: tuple[str | int, ...]
    owner: str | None  # the definition that it is in
    level: int  # how deep it is in there
    alias_of: str | None  # the definition that this schema decides for alone, not through a property or an item
    around: tuple[dict[str, Json], ...] = ()  # the schemas around it that speak of the same value


def check_document(document: dict[str, Json]) -> list[Diagnostic]:
    """Return everything that keeps *document* from becoming bindings, in the order of the document.

    An empty list means that every keyword is supported and well-formed and every reference resolves. Only diagnostics
    of severity "error" are reasons to stop. Nothing is ever fetched.
    """
    homes = [home for home in ("$defs", "definitions") if home in document]
    if len(homes) != 1:
        found = "both `$defs` and `definitions`" if homes else "neither `$defs` nor `definitions`"
        return [_no_schema(f"the document has {found}", "Put all definitions into one of them.")]
    (home,) = homes
    definitions = document[home]
    if not isinstance(definitions, dict) or not definitions:
        return [_no_schema(f"`{home}` is not an object with definitions in it", "Give at least one.", home)]
    return list(_Walk(document, home, definitions).findings())


def _no_schema(message: str, hint: str, *path: str) -> Diagnostic:
    return Diagnostic(code="MG010", pointer=pointer_to(*path), message=message, hint=hint)


class _Walk:
    """One walk over one document."""

    def __init__(self, document: dict[str, Json], home: str, definitions: dict[str, Json]) -> None:
        self.document = document
        self.home = home
        self.definitions = definitions
        self.aliases: dict[str, list[str]] = {name: [] for name in definitions}
        self.nesting = Nesting(definitions)
        self.suggestions = MOST_SUGGESTIONS
        self.untyped: list[Diagnostic] = []

    def findings(self) -> Iterator[Diagnostic]:
        """Yield the diagnostics of the whole document."""
        yield from self._root()
        pending = [
            _Place(schema, (self.home, name), name, 1, name) for name, schema in reversed(self.definitions.items())
        ]
        root = {name: value for name, value in self.document.items() if name != self.home}
        pending.append(_Place(root, (), None, 1, None))
        while pending:
            place = pending.pop()
            if place.alias_of is not None and len(place.path) == len((self.home, "name")):
                yield from _name_findings(place.alias_of, place.path)
            yield from self._schema(place, pending)
        chained = list(alias_faults(self.aliases, home=self.home))
        # A chain or circle of aliases is deep as well: it is enough to say what it is.
        yield from chained or self.nesting.faults(home=self.home)
        yield from self.untyped  # after the errors: there may be more of them than anybody is shown

    def _root(self) -> Iterator[Diagnostic]:
        """Warn about a type that has no name: bindings are made of the definitions alone."""
        nameless = [name for name in self.document if name in CHECKS and name not in ANNOTATIONS | ROOT_ONLY | {"$ref"}]
        if nameless:
            yield Diagnostic(
                code="MG116",
                severity="warning",
                message=f"the schema at the top ({', '.join(nameless)}) has no name and becomes no type",
                hint=f"Move it into a definition under {self.home}.",
            )

    def _schema(self, place: _Place, pending: list[_Place]) -> Iterator[Diagnostic]:
        """Yield the faults of one schema, and put the schemas inside it on *pending*."""
        schema, path = place.schema, place.path
        if schema is True:
            return
        if schema is False:
            yield _finding(Fault("MG104", "the schema is false: no value is valid here", "Leave it out."), path)
            return
        if not isinstance(schema, dict):
            fault = Fault("MG102", f"{shown(schema)} stands where a schema is due", "Give an object.")
            yield _finding(fault, path)
            return
        if place.owner is not None and "$ref" not in schema:
            self.nesting.add_schema(place.owner, place.level)
        for name, value in schema.items():
            yield from _keyword_findings(name, value, path)
        for fault in bounds_faults(schema):
            yield _finding(fault, path)
        yield from self._reference(schema, place)
        self._note_type(schema, place)
        yield from self._required(schema, place)
        pending += reversed(list(_inner(schema, place)))

    def _reference(self, schema: dict[str, Json], place: _Place) -> Iterator[Diagnostic]:
        """Yield what is wrong with the reference that *schema* is, if it is one."""
        if "$ref" not in schema:
            return
        reference = schema["$ref"]
        if isinstance(reference, str):
            fault = reference_fault(reference, home=self.home, names=self.definitions, suggestions=self.suggestions)
            target = referenced_name(reference)
            if fault is not None:
                self.suggestions -= fault.code == "MG107"
                yield _finding(fault, (*place.path, "$ref"))
            elif target is not None and place.owner is not None:
                self.nesting.add_reference(place.owner, place.level, target[1])
                if place.alias_of is not None:
                    self.aliases[place.alias_of].append(target[1])
        beside = [name for name in schema if name != "$ref" and name in CHECKS and name not in ANNOTATIONS | ROOT_ONLY]
        for name in beside:
            hint = "Draft-07 ignores what stands beside $ref, 2020-12 does not: use allOf, or a definition of its own."
            yield _finding(Fault("MG108", f"`{name}` stands beside $ref", hint), (*place.path, name))

    def _note_type(self, schema: dict[str, Json], place: _Place) -> None:
        """Warn about keywords that speak of objects or arrays alone, and are read as if nothing else could be there."""
        found = next((name for name in _IMPLIES if name in schema), None)
        # The values of an enum or a const are neither objects nor arrays; at the top, there is no type to be read.
        if found is None or place.owner is None or schema.keys() & {"enum", "const"}:
            return
        if not any("type" in each for each in self._extended(schema, place)):
            kind = _IMPLIES[found]
            finding = Diagnostic(
                code="MG117",
                severity="warning",
                pointer=pointer_to(*place.path),
                message=f"`{found}` stands without `type`, and is read as if `type` were {kind}",
                hint=f'Add "type": "{kind}". Without it, values of other types are valid too, and are refused here.',
            )
            self.untyped.append(finding)

    def _required(self, schema: dict[str, Json], place: _Place) -> Iterator[Diagnostic]:
        """Yield the keys that have to be there, and that nobody describes."""
        required = schema.get("required")
        if not isinstance(required, list) or not required:
            return
        found = [each.get("properties") for each in self._extended(schema, place)]
        described = [properties for properties in found if isinstance(properties, dict)]
        for index, name in enumerate(required):
            if isinstance(name, str) and not any(name in properties for properties in described):
                hint = "Describe it under properties; {} takes any value."
                fault = Fault("MG113", f"no property {shown(name)} is described", hint)
                yield _finding(fault, (*place.path, "required", index))

    def _extended(self, schema: dict[str, Json], place: _Place) -> Iterator[dict[str, Json]]:
        """Yield *schema*, the schemas around it that speak of the same value, and all that these extend."""
        seen: set[str] = set()
        pending: list[tuple[Json, int]] = [(each, 0) for each in (*place.around, schema)]
        while pending:
            current, links = pending.pop()
            if not isinstance(current, dict):
                continue
            yield current
            extended, reference = current.get("allOf"), current.get("$ref")
            pending += ((inner, links) for inner in extended) if isinstance(extended, list) else ()
            target = referenced_name(reference) if isinstance(reference, str) else None
            # Longer chains are refused, and following them from each of their links would take quadratic time.
            if target is not None and target[1] not in seen and links < MAX_ALIAS_CHAIN:
                seen.add(target[1])
                pending.append((self.definitions.get(target[1]), links + 1))


def _inner(schema: dict[str, Json], place: _Place) -> Iterator[_Place]:
    """Yield the schemas directly inside *schema*."""
    inside = _Place(None, (), place.owner, place.level + 1, None)
    for name, value in schema.items():
        match name, value:
            case "properties", dict():
                for key, inner in value.items():
                    yield inside._replace(schema=inner, path=(*place.path, name, key))
            case (("anyOf" | "allOf"), list()):
                for index, inner in enumerate(value):
                    where = (*place.path, name, index)
                    yield inside._replace(
                        schema=inner, path=where, alias_of=place.alias_of, around=(*place.around, schema)
                    )
            case (("items" | "additionalItems" | "additionalProperties"), _) if not isinstance(value, list):
                # `false` only says here that there are no further keys or items.
                if not (name != "items" and value is False):
                    yield inside._replace(schema=value, path=(*place.path, name))
            case _:
                pass  # no schema is inside it


def _keyword_findings(name: str, value: Json, path: tuple[str | int, ...]) -> Iterator[Diagnostic]:
    check = CHECKS.get(name)
    if check is None:
        hint = HINTS.get(name, "Leave it out, or express it with a keyword that docs/diagnostics.md lists.")
        yield _finding(Fault("MG101", f"the keyword {shown(name)} is not supported", hint), (*path, name))
    elif name in ROOT_ONLY and path:
        yield _finding(Fault("MG101", f"`{name}` is only supported at the top", "Move it there."), (*path, name))
    else:
        for fault in check(value):
            yield _finding(fault, (*path, name))


def _name_findings(name: str, path: tuple[str | int, ...]) -> Iterator[Diagnostic]:
    if not _IDENTIFIER.fullmatch(names.definition(name)):
        hint = "Use ASCII letters, digits and underscores, a letter first: the name becomes a Python class."
        yield _finding(Fault("MG201", f"the definition's name {shown(name)} is not an identifier", hint), path)
    elif keyword.iskeyword(name):
        yield _finding(Fault("MG202", f"the definition's name {name} is a Python keyword", "Rename it."), path)
    elif name.startswith("__"):
        hint = "Rename it: Python keeps such names for itself."
        yield _finding(Fault("MG203", f"the definition's name {shown(name)} starts with two underscores", hint), path)


def _finding(fault: Fault, path: tuple[str | int, ...]) -> Diagnostic:
    return Diagnostic(code=fault.code, pointer=pointer_to(*path, *fault.at), message=fault.message, hint=fault.hint)
