"""Check that a JSON Schema document can become bindings: look at every construct and report every fault.

The walk uses its own stack, so that a deeply nested document cannot exhaust the stack of the interpreter.
"""

from __future__ import annotations

import difflib
import keyword
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

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

__all__ = ["check_document", "definitions_of"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# An official document has at most 2,000 schemas and 100 constants. A build takes 1 to 2 ms per schema and 0.2 ms per
# constant, so the largest document that these limits allow builds within 30 s.
MAX_SCHEMAS = 10_000
MAX_CONSTANTS = 40_000

# A document of 8 MiB could have a million faults, and the search for a similar keyword takes 0.1 ms for each.
MAX_FINDINGS = 10_000

# The type that each keyword implies if `type` is absent. The first keyword that is present decides.
_IMPLIES = {"properties": "object", "additionalProperties": "object", "required": "object", "items": "array"}


class _Place(NamedTuple):
    """A schema that is not checked yet."""

    schema: Json
    path: tuple[str | int, ...]
    owner: str | None  # the definition that contains it
    level: int  # its nesting level inside that definition
    alias_of: str | None  # the definition that this schema is an alias, a union member or an extension for
    around: tuple[dict[str, Json], ...] = ()  # the enclosing schemas that describe the same value


def check_document(document: dict[str, Json]) -> list[Diagnostic]:
    """Return the faults of *document*, in the order of the document, up to ``MAX_FINDINGS``.

    An empty list means that every keyword is supported and well-formed and that every reference resolves. Only
    diagnostics with the severity "error" stop a build. References to other documents are never fetched.
    """
    home, problem = definitions_of(document)
    if problem is not None:
        return [problem]
    walk = _Walk(document, home, cast("dict[str, Json]", document[home]))
    return list(islice(walk.findings(), MAX_FINDINGS))


def definitions_of(document: dict[str, Json]) -> tuple[str, Diagnostic | None]:
    """Return the keyword under which *document* has its definitions, and what is wrong with that."""
    homes = [home for home in ("$defs", "definitions") if home in document]
    if len(homes) != 1:
        found = "both `$defs` and `definitions`" if homes else "neither `$defs` nor `definitions`"
        return "", _no_schema(f"the document has {found}", "Put all definitions under one of the two.")
    (home,) = homes
    if not isinstance(document[home], dict):
        return home, _no_schema(f"`{home}` is not an object with definitions", "Use an object.", home)
    if not document[home]:  # in the document of an extension, `home` itself can be missing
        return home, _no_schema("the document has no definitions", "Add at least one definition.")
    return home, None


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
        self.warnings: list[Diagnostic] = []
        self.schemas = 0
        self.constants = 0

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
            if (fault := self._counted(place.schema)) is not None:
                yield _finding(fault, ())
                return
            if place.alias_of is not None and len(place.path) == len((self.home, "name")):
                yield from _name_findings(place.alias_of, place.path)
            yield from self._schema(place, pending)
        chained = list(alias_faults(self.aliases, home=self.home))
        # A chain or circle of aliases is also nested too deeply. One report of it is enough.
        yield from chained or self.nesting.faults(home=self.home)
        yield from self.warnings  # after the errors, because the console shows only the first findings

    def _root(self) -> Iterator[Diagnostic]:
        """Warn about a type in the root: it has no name, and only definitions become bindings."""
        nameless = [name for name in self.document if name in CHECKS and name not in ANNOTATIONS | ROOT_ONLY | {"$ref"}]
        if nameless:
            listed = ", ".join(f"`{name}`" for name in nameless)
            yield Diagnostic(
                code="MG116",
                severity="warning",
                message=f"the root of the document describes a type, which is ignored; its keywords: {listed}",
                hint=f"Move it to a definition under `{self.home}`.",
            )

    def _counted(self, schema: Json) -> Fault | None:
        """Count *schema* and its constants, and return a fault if the document has too many.

        A required key that ``properties`` does not describe counts as a schema, because it becomes a property.
        """
        self.schemas += 1 + len(_undescribed(schema))
        values = schema.get("enum") if isinstance(schema, dict) else None
        self.constants += len(values) if isinstance(values, list) else 0
        if self.schemas > MAX_SCHEMAS:
            hint = "Split the document. The limit, `MAX_SCHEMAS`, counts definitions and the schemas inside them."
            return Fault("MG012", f"the document has more than {MAX_SCHEMAS} schemas", hint)
        if self.constants > MAX_CONSTANTS:
            hint = "Use types without `enum`. The limit, `MAX_CONSTANTS`, counts the values of all enums."
            return Fault("MG012", f"the enums of the document have more than {MAX_CONSTANTS} values", hint)
        return None

    def _schema(self, place: _Place, pending: list[_Place]) -> Iterator[Diagnostic]:
        """Yield the faults of one schema, and add the schemas inside it to *pending*."""
        schema, path = place.schema, place.path
        if schema is True:
            return
        if schema is False:
            if path[-2:-1] == ("properties",):
                return  # the key must be absent
            yield _finding(Fault("MG104", "the schema is `false`: it accepts no value", "Remove it."), path)
            return
        if not isinstance(schema, dict):
            fault = Fault("MG102", f"expected a schema, but found {shown(schema)}", "Use an object.")
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
        self._note_forbidden(schema, place)
        pending += reversed(list(_inner(schema, place)))

    def _reference(self, schema: dict[str, Json], place: _Place) -> Iterator[Diagnostic]:
        """Yield the faults of the ``$ref`` of *schema*, if it has one."""
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
            hint = (
                "Draft-07 ignores keywords beside `$ref`, 2020-12 does not. For an object, use `allOf`. For any other "
                "type, copy the definition to this place, and add the keywords to the copy."
            )
            yield _finding(Fault("MG108", f"`{name}` stands beside `$ref`", hint), (*place.path, name))

    def _note_type(self, schema: dict[str, Json], place: _Place) -> None:
        """Warn about a keyword for objects or arrays without ``type``: the generator assumes the type."""
        found = next((name for name in _IMPLIES if name in schema), None)
        # The values of `enum` and `const` are neither objects nor arrays. The root has no type.
        if found is None or place.owner is None or schema.keys() & {"enum", "const"}:
            return
        if not any("type" in each for each in self._extended(schema, place)):
            kind = _IMPLIES[found]
            finding = Diagnostic(
                code="MG117",
                severity="warning",
                pointer=pointer_to(*place.path),
                message=f"`{found}` is used without `type`; the generator assumes `type` {kind}",
                hint=f'Add "type": "{kind}". JSON Schema also accepts other types there, but the bindings do not.',
            )
            self.warnings.append(finding)

    def _note_forbidden(self, schema: dict[str, Json], place: _Place) -> None:
        """Warn about keys that one member of an ``allOf`` describes and another one forbids."""
        if place.owner is None or "allOf" not in schema or any("allOf" in each for each in place.around):
            return
        found = [(each.get("properties"), each.get("additionalProperties")) for each in self._extended(schema, place)]
        described = [(properties if isinstance(properties, dict) else {}, further) for properties, further in found]
        allowed = [properties.keys() for properties, further in described if further is False]
        every = {key: None for properties, _ in described for key in properties}
        if forbidden := ", ".join(shown(key) for key in every if any(key not in keys for keys in allowed)):
            finding = Diagnostic(
                code="MG127",
                severity="warning",
                pointer=pointer_to(*place.path),
                message=f"a member of `allOf` forbids keys that another member describes: {forbidden}",
                hint="The generated type does not have these keys. If they may occur, remove `additionalProperties` "
                "from that member.",
            )
            self.warnings.append(finding)

    def _required(self, schema: dict[str, Json], place: _Place) -> Iterator[Diagnostic]:
        """Yield a fault for each required key that no object can have."""
        required = schema.get("required")
        if not isinstance(required, list) or not required:
            return
        found = [(each.get("properties"), each.get("additionalProperties")) for each in self._extended(schema, place)]
        described = [(properties if isinstance(properties, dict) else {}, further) for properties, further in found]
        for index, name in enumerate(required):
            if not isinstance(name, str):
                continue
            refused = any(further is False and name not in properties for properties, further in described)
            if refused:
                hint = (
                    "Describe it in the `properties` beside this `additionalProperties`. "
                    "The schema {} accepts any value."
                )
                said = f"`additionalProperties` forbids the required property {shown(name)}"
                yield _finding(Fault("MG113", said, hint), (*place.path, "required", index))
            elif any(properties.get(name) is False for properties, _ in described):
                said = f"the required property {shown(name)} has the schema `false`, which accepts no value"
                fault = Fault("MG104", said, "Remove it from `required`, or give it another schema.")
                yield _finding(fault, (*place.path, "required", index))

    def _extended(self, schema: dict[str, Json], place: _Place) -> Iterator[dict[str, Json]]:
        """Yield *schema*, the enclosing schemas that describe the same value, and all that these extend."""
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
            # Longer chains are refused. Following them from each of their links would take quadratic time.
            if target is not None and target[1] not in seen and links < MAX_ALIAS_CHAIN:
                seen.add(target[1])
                pending.append((self.definitions.get(target[1]), links + 1))


def _undescribed(schema: Json) -> set[str]:
    """Return the keys that *schema* requires and its ``properties`` do not describe."""
    if not isinstance(schema, dict) or not isinstance(required := schema.get("required"), list):
        return set()
    properties = schema.get("properties")
    described = properties if isinstance(properties, dict) else {}
    return {key for key in required if isinstance(key, str) and key not in described}


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
                # Here `false` means that there are no further keys or items.
                if not (name != "items" and value is False):
                    yield inside._replace(schema=value, path=(*place.path, name))
            case _:
                pass  # contains no schema


def _keyword_findings(name: str, value: Json, path: tuple[str | int, ...]) -> Iterator[Diagnostic]:
    check = CHECKS.get(name)
    if check is None:
        meant = difflib.get_close_matches(name, CHECKS, 1, 0.85)  # not `minItems` for `uniqueItems`
        rest = "Remove it, or use the keywords that docs/diagnostics.md lists."
        hint = HINTS.get(name, f"Did you mean {meant[0]}?" if meant else rest)
        yield _finding(Fault("MG101", f"the keyword {shown(name)} is not supported", hint), (*path, name))
    elif name in ROOT_ONLY and path:
        yield _finding(
            Fault("MG101", f"`{name}` is only supported in the root of the document", "Move it there, or remove it."),
            (*path, name),
        )
    else:
        for fault in check(value):
            yield _finding(fault, (*path, name))


def _name_findings(name: str, path: tuple[str | int, ...]) -> Iterator[Diagnostic]:
    if not _IDENTIFIER.fullmatch(names.definition(name)):
        hint = "Use ASCII letters, digits and underscores, and start with a letter: the name becomes a Python class."
        yield _finding(Fault("MG201", f"the definition's name {shown(name)} is not a Python identifier", hint), path)
    elif keyword.iskeyword(name):
        yield _finding(
            Fault("MG202", f"the definition's name {name} is a Python keyword", "Rename the definition."), path
        )
    elif name.startswith("__"):
        hint = "Rename the definition: Python treats such names specially."
        yield _finding(Fault("MG203", f"the definition's name {shown(name)} starts with two underscores", hint), path)


def _finding(fault: Fault, path: tuple[str | int, ...]) -> Diagnostic:
    return Diagnostic(code=fault.code, pointer=pointer_to(*path, *fault.at), message=fault.message, hint=fault.hint)
