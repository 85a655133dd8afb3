"""Apply the knowledge about a vendored revision, the *base*, to another document: a draft.

The overlay of a revision is exact about its own document, and an entry that does not fit stops a build. A draft differs
from its base on purpose. So each entry of the base's overlay is tried alone: if it fits, it is applied; otherwise it is
left out with a warning (MG317) that says why. The user's own overlay is applied after that, and has to fit.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from mcpgen.codegen import ir
from mcpgen.codegen.canonical import reduce
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import check_document
from mcpgen.codegen.document_facts import (
    because,
    defined_errors,
    definitions,
    era_of,
    error_definitions,
    error_pointer,
    required_property,
)
from mcpgen.codegen.equivalents import simplified
from mcpgen.codegen.methods import Method, Methods
from mcpgen.codegen.overlay import Capabilities, Era, ErrorCode, Overlay, OverlayApplication, apply_overlay, read_toml
from mcpgen.codegen.overlay_checks import has_member
from mcpgen.codegen.parse import parse
from mcpgen.codegen.unions import widen_json_value

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mcpgen.codegen.overlay import Deprecation, Extract, MethodFacts, Open, Patch, SharedOverlay
    from mcpgen.codegen.pinned import SchemaRoom

__all__ = [
    "Base",
    "Knowledge",
    "OwnOverlay",
    "known_from_base",
    "known_without_base",
    "load_own_overlay",
    "nearest_revision",
]

_Entry = TypeVar("_Entry", "Patch", "Open", "Extract")


# A pointer to the default of a key; neither name is escaped.
_DEFAULT = re.compile(r"/(?:\$defs|definitions)/(?P<name>\w+)/properties/(?P<key>\w+)/default")


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a draft that its document does not state.

    Attributes:
        overlay: The overlay to apply.
        assumptions: The facts that were taken from the base or derived from the document, one sentence each.
        unfit: A warning for each entry of the base's overlay that does not fit the document.
    """

    overlay: Overlay
    assumptions: tuple[str, ...] = ()
    unfit: tuple[Diagnostic, ...] = ()


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A vendored revision that a draft is based on."""

    revision: str
    document: dict[str, Any]
    overlay: Overlay


class OwnOverlay(msgspec.Struct, frozen=True, kw_only=True):
    """The overlay of a user, and the keys that its file contains: a default must not replace a fact of the base."""

    overlay: Overlay = Overlay()
    keys: frozenset[str] = frozenset()


def load_own_overlay(path: Path) -> OwnOverlay:
    """Read the overlay in the file at *path*.

    Raises:
        Refused: MG312, it cannot be read or is not valid.
    """
    hint = 'The page "Drafts" in the guide of mcpgen describes the tables of an overlay.'
    overlay = read_toml(path, Overlay, code="MG312", hint=hint)
    return OwnOverlay(overlay=overlay, keys=frozenset(read_toml(path, dict[str, Any], code="MG312", hint=hint)))


def nearest_revision(document: dict[str, Any], room: SchemaRoom) -> tuple[str, int, int]:
    """Return the vendored revision that shares most with *document*.

    Also returns how many definitions are equal in both, apart from descriptions, and how many there are in either.
    """
    ours = definitions(reduce(document))
    found: list[tuple[float, str, int, int]] = []
    for revision in room.revisions:
        theirs = definitions(room.document(revision))
        equal = sum(name in theirs and theirs[name] == schema for name, schema in ours.items())
        either = len(ours.keys() | theirs.keys())
        found.append((equal / either, revision, equal, either))
    _, revision, equal, either = max(found)
    return revision, equal, either


def known_without_base(document: dict[str, Any], own: OwnOverlay) -> Knowledge:
    """Return what *document* itself and *own* say."""
    era = own.overlay.era if "era" in own.keys else era_of(document) or own.overlay.era
    assumptions = [f"The era is {era}{'' if 'era' in own.keys else because(document)}."]
    errors, found = defined_errors(document, own.overlay.errors)
    return Knowledge(
        overlay=replace(own.overlay, era=era, errors=[*own.overlay.errors, *errors]),
        assumptions=(*assumptions, *found),
    )


def known_from_base(document: dict[str, Any], own: OwnOverlay, shared: SharedOverlay, base: Base) -> Knowledge:
    """Return what is known about *base* and fits *document*, with *own* above it.

    Raises:
        Refused: The document, or *own*, has a fault.
    """
    fit = _Fit(document, base.revision)
    corrected = replace(
        Overlay(),
        patch=[fit.extended(each, base.document) for each in fit.entries(base.overlay.patch, "patch")],
        open=fit.opened(base.overlay.open, shared.open_properties),
        extract=fit.entries(base.overlay.extract, "extract"),
    )
    ours = own.overlay
    corrected = replace(
        corrected,
        patch=[*corrected.patch, *ours.patch],
        open=[*corrected.open, *ours.open],
        extract=[*corrected.extract, *ours.extract],
    )
    schema = _parsed(document, corrected, shared)
    errors = fit.errors(base.overlay.errors, base.document, ours.errors)
    own_facts = replace(ours, errors=[*errors, *ours.errors])
    overlay = replace(
        corrected,
        era=fit.era(base.overlay.era, own),
        reserved_errors=ours.reserved_errors if "reserved_errors" in own.keys else base.overlay.reserved_errors,
        methods={
            **fit.methods(base.overlay.methods, schema, Methods(schema, own_facts, shared).read()),
            **ours.methods,
        },
        capabilities=_joined(base.overlay.capabilities, ours.capabilities),
        errors=own_facts.errors,
        deprecated=[*fit.deprecated(base.overlay.deprecated, schema), *ours.deprecated],
        meta_keys={**base.overlay.meta_keys, **ours.meta_keys},
    )
    methods = Methods(schema, overlay, shared).read()
    theirs = _parsed(base.document, base.overlay, shared)
    fit.capabilities(methods, Methods(theirs, base.overlay, shared).read(), overlay)
    fit.assumptions.insert(1, f"{fit.applied} corrections of {base.revision} also apply to this document.")
    return Knowledge(overlay=overlay, assumptions=tuple(fit.assumptions), unfit=tuple(fit.unfit))


class _Fit:
    """The entries of a base's overlay, tried on one document."""

    def __init__(self, document: dict[str, Any], base: str) -> None:
        self.base = base
        self.assumptions: list[str] = []
        self.unfit: list[Diagnostic] = []
        self.applied = 0
        self._document = document
        self._application = OverlayApplication(copy.deepcopy(document))

    def entries(self, entries: list[_Entry], table: str) -> list[_Entry]:
        """Return *entries* of the *table* with those pointers at which they fit."""
        return [each for each in (self._entry(entry, table) for entry in entries) if each.pointers]

    def extended(self, patch: Patch, base_document: dict[str, Any]) -> Patch:
        """Return *patch*, which gives a key its default, with the new definitions that have the same key.

        Each result of 2026-07-28 has a patch for ``resultType``. A result that only the draft has needs it as well.
        """
        theirs, ours = definitions(base_document), definitions(self._document)
        home = "$defs" if "$defs" in self._document else "definitions"
        shapes = [match for match in map(_DEFAULT.fullmatch, patch.pointers) if match]
        if patch.old is not msgspec.UNSET or len(shapes) < len(patch.pointers) or not shapes:
            return patch
        key = shapes[0]["key"]
        expected = [required_property(theirs.get(match["name"]), key) for match in shapes]
        added: list[str] = []
        for name, schema in ours.items():
            found = required_property(schema, key)
            if name not in theirs and found in expected and found is not None:
                added.append(f"/{home}/{name}/properties/{key}/default")
                self.assumptions.append(f"{name}.{key} has the default {patch.new!r}, as in {self.base}.")
        return replace(patch, pointers=[*patch.pointers, *added])

    def opened(self, entries: list[Open], open_properties: list[str]) -> list[Open]:
        """Return the *entries* that fit after the objects under *open_properties* are open, as in a build."""
        self._application.open_by_name(open_properties)
        return self.entries(entries, "open")

    def _entry(self, entry: _Entry, table: str) -> _Entry:
        fitting: list[str] = []
        for pointer in entry.pointers:
            before = len(self._application.diagnostics)
            getattr(self._application, table)(replace(entry, pointers=[pointer]))
            faults = self._application.diagnostics[before:]
            if faults:
                self._leave_out(f"[[{table}]] of {self.base}: {faults[0].message}", pointer)
            else:
                fitting.append(pointer)
        self.applied += len(fitting)
        return replace(entry, pointers=fitting)

    def era(self, era: Era, own: OwnOverlay) -> Era:
        """Return the era: that of *own*, or of the base unless the document contradicts it."""
        stated = era_of(self._document)
        if "era" in own.keys:
            self.assumptions.insert(0, f"The era is {own.overlay.era}, from the overlay.")
            return own.overlay.era
        if stated is not None and stated != era:
            own_era = f"the era of the document is {stated}{because(self._document)}"
            self._leave_out(f"the era of {self.base}, which is {era}: {own_era}")
            self.assumptions.insert(0, f"The era is {stated}{because(self._document)}.")
            return stated
        self.assumptions.insert(0, f"The era is {era}, as in {self.base}.")
        return era

    def methods(
        self, facts: dict[str, MethodFacts], schema: ir.Schema, methods: Iterable[Method]
    ) -> dict[str, MethodFacts]:
        """Return the *facts* about methods that the document has, if their results exist."""
        known = {each.name for each in methods}
        fitting: dict[str, MethodFacts] = {}
        for method, each in facts.items():
            absent = [name for name in (each.result, each.task_result) if name and name not in schema.definitions]
            if method not in known:
                self._leave_out(f'[methods."{method}"] of {self.base}: no request or notification has this method')
            elif absent:
                self._leave_out(f'[methods."{method}"] of {self.base}: there is no definition {absent[0]}')
            else:
                fitting[method] = each
        return fitting

    def errors(self, errors: list[ErrorCode], base_document: dict[str, Any], own: list[ErrorCode]) -> list[ErrorCode]:
        """Return the error codes of the base, with the codes that the document gives their definitions."""
        theirs, ours = error_definitions(base_document), error_definitions(self._document)
        defined = {code: name for name, code in theirs.items()}
        replaced = {each.name for each in own}
        codes = {each.code for each in own}
        fitting: list[ErrorCode] = []
        for each in errors:
            name = defined.get(each.code, "")
            if each.name in replaced or each.code in codes:
                continue
            if name and name not in ours:
                self._leave_out(
                    f"[[errors]] of {self.base}: the document has no {name}, which has the code {each.code}"
                )
            elif name and ours[name] != each.code:
                said = f"the document gives {name} the code {ours[name]}, which is used instead of {each.code}"
                hint = "If this code is wrong, correct it in the document."
                self._note(f"[[errors]] of {self.base}: {said}", error_pointer(self._document, name), hint)
                fitting.append(replace(each, code=ours[name]))
            else:
                fitting.append(each)
        if kept := ", ".join(f"{each.name} {each.code}" for each in fitting):
            self.assumptions.append(f"The error codes of {self.base} apply: {kept}.")
        added, found = defined_errors(self._document, [*fitting, *own])
        self.assumptions += found
        return [*fitting, *added]

    def deprecated(self, tables: list[Deprecation], schema: ir.Schema) -> list[Deprecation]:
        """Return *tables* with the names that exist."""
        fitting: list[Deprecation] = []
        for each in tables:
            for name in each.names:
                if not has_member(schema, name):
                    self._leave_out(f"[[deprecated]] of {self.base}: there is no {name}")
            if names_left := [name for name in each.names if has_member(schema, name)]:
                fitting.append(replace(each, names=names_left))
        return fitting

    def capabilities(self, methods: list[Method], base: list[Method], overlay: Overlay) -> None:
        """Note the capabilities of the base's methods that the document lacks, and the methods that are new."""
        theirs = {(each.sender, each.name): each for each in base}
        for each in methods:
            other = theirs.get((each.sender, each.name))
            if other is None:
                kind = "input request" if each.kind == "input" else each.kind
                answer = "" if each.result is None else f", and its result is {_shown(each.result)}"
                receiver = "server" if each.sender == "client" else "client"
                capability = f"the capability {'.'.join(each.capability)}" if each.capability else "no capability"
                said = f"The {kind} {each.name} is new: a {each.sender} sends it{answer}."
                said += f" A {receiver} that handles it declares {capability} for it."
                self.assumptions.append(said)
            elif other.capability and not each.capability:
                side = overlay.capabilities.server if each.sender == "client" else overlay.capabilities.client
                wanted = side.get(each.name, other.capability)
                origin = self.base if tuple(wanted) == other.capability else "the overlay"
                path = ".".join(wanted)
                self._leave_out(f"the capability {path} for {each.name} of {origin}: the document has no such key")

    def _leave_out(self, message: str, pointer: str = "") -> None:
        hint = "If the document needs such an entry, write one that fits it into your overlay (`--overlay FILE`)."
        self._note(f"left out: {message}", pointer, hint)

    def _note(self, message: str, pointer: str, hint: str) -> None:
        self.unfit.append(Diagnostic(code="MG317", severity="warning", pointer=pointer, message=message, hint=hint))


def _parsed(document: dict[str, Any], overlay: Overlay, shared: SharedOverlay) -> ir.Schema:
    patched = simplified(apply_overlay(document, overlay, shared))
    noticed = check_document(patched)
    if any(each.severity == "error" for each in noticed):
        raise Refused(noticed)
    return widen_json_value(parse(patched))


def _joined(base: Capabilities, own: Capabilities) -> Capabilities:
    return Capabilities(server={**base.server, **own.server}, client={**base.client, **own.client})


def _shown(ref: ir.TypeRef) -> str:
    return ref.name if isinstance(ref, ir.Named) else "an inline type"
