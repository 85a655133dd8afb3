"""From a schema document to the files of its bindings; nothing here writes.

``patched → parse → widen → methods → emit → render``: each stage is one module, and a document that a stage refuses
leaves as `Refused` with every finding of that stage.
"""

from __future__ import annotations

import json
from hashlib import sha256
from importlib.resources import files
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

import msgspec

from mcpgen import __version__
from mcpgen.codegen import ir, names
from mcpgen.codegen.base_knowledge import Base, Knowledge, OwnOverlay, known_from_base, known_without_base
from mcpgen.codegen.canonical import reduce
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.docs import Docs, load_docs
from mcpgen.codegen.docstrings import prose
from mcpgen.codegen.document import check_document
from mcpgen.codegen.emit import Emitter
from mcpgen.codegen.envelopes import envelopes
from mcpgen.codegen.equivalents import simplified
from mcpgen.codegen.layout import filled
from mcpgen.codegen.methods import Methods
from mcpgen.codegen.overlay import Overlay, SharedOverlay, apply_overlay, load_overlay, load_shared
from mcpgen.codegen.overlay_checks import overlay_findings
from mcpgen.codegen.parse import parse
from mcpgen.codegen.render import DEFAULT, Templates, render
from mcpgen.codegen.stubs import Stubs
from mcpgen.codegen.texts import Texts
from mcpgen.codegen.unions import widen_json_value

if TYPE_CHECKING:
    from mcpgen.codegen.pinned import SchemaRoom

# Of a hash in a header: enough to tell two documents apart, short enough to read.
_SHOWN_HASH_DIGITS = 12
_MODELS = "params, results, contents and all other types inside messages."
_MESSAGES = "requests, notifications, responses and the unions of these."
GENERATING_VERSION = "the version of mcpgen that generates it"  # for who has no checkout of mcpgen
SUPPORT = "_support"  # the folder of the support package in generated/, and in a package that stands alone
_SUPPORT_MODULES = ("lazy", "methods", "structs", "unions", "validation")


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """The bindings of one revision.

    Attributes:
        files: Content by file name.
        types: How many types they define.
        findings: Warnings; errors refuse the document.
    """

    revision: str
    folder: str
    files: dict[str, str]
    types: int
    findings: tuple[Diagnostic, ...] = ()


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A schema document and all that is known about it beside what it says.

    Attributes:
        origin: For the header: where the document is, and its hash.
        command: For the header: the command that wrote the file.
        sources: For the header: the files to change for another result, apart from the template.
        base: The vendored revision whose knowledge is applied to a draft, or nothing.
        assumptions: What is assumed about a draft, one sentence each.
        findings: Warnings about knowledge of the base that does not fit.
    """

    revision: str
    document: dict[str, Any]
    overlay: Overlay
    shared: SharedOverlay
    docs: Docs
    origin: str
    command: str
    sources: str
    base: str = ""
    assumptions: tuple[str, ...] = ()
    findings: tuple[Diagnostic, ...] = ()

    def patched(self) -> dict[str, Any]:
        """Return the document with its overlays applied."""
        return apply_overlay(self.document, self.overlay, self.shared)


def pinned_source(room: SchemaRoom, revision: str, *, copied: bool = False) -> Source:
    """Return the source of a vendored *revision*.

    Args:
        room: The vendored documents.
        revision: The revision.
        copied: Whether the bindings go into another project, where the sources of mcpgen are not at hand.

    Raises:
        Refused: It is not vendored, its file does not have the recorded hash, or its overlay cannot be read.
    """
    pin = room.pin(revision)
    origin = f"the official file (sha256 {pin.official_sha256[:_SHOWN_HASH_DIGITS]}...) without descriptions"
    return Source(
        revision=revision,
        document=room.document(revision),
        overlay=load_overlay(room.root / revision / "overlay.toml"),
        shared=load_shared(room.root / "overlay.toml"),
        docs=load_docs(room.root / "docs.toml"),
        origin=f"the document of {revision} in mcpgen, {origin}"
        if copied
        else f"schema/{revision}/schema.json, {origin}",
        command=f"mcpgen build --revision {revision}{' --out' if copied else ''}",
        sources=GENERATING_VERSION if copied else f"schema/{revision}/overlay.toml, schema/docs.toml, codegen/",
    )


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a user says about a document that is not vendored.

    Attributes:
        base: The vendored revision on which the document is based; empty for none.
        own: The overlay of the user.
        name: The name of the document's file, for headers.
        overlay_name: The name of the file of *own*, for headers.
    """

    base: str = ""
    own: OwnOverlay = OwnOverlay()
    name: str = ""
    overlay_name: str = ""

    def command(self, label: str) -> str:
        """Return the command that builds the document, without folders: the same input has the same header anywhere."""
        if not self.name:
            return "mcpgen build --schema"
        overlay = f" --overlay {self.overlay_name}" if self.overlay_name else ""
        return f"mcpgen build --schema {self.name} --revision {label} --based-on {self.base or 'none'}{overlay}"


def foreign_source(room: SchemaRoom, document: dict[str, Any], label: str, draft: Draft | None = None) -> Source:
    """Return the source of a *document* that is not vendored, to be called *label*.

    If *document* is that of the vendored revision *label*, prose aside, all that is known about the revision applies.

    Raises:
        Refused: The base is not vendored, or the document or the overlay has a fault.
    """
    draft = draft or Draft()
    base = draft.base
    is_vendored = is_same_document(room, document, label)
    shared = load_shared(room.root / "overlay.toml")
    docs = load_docs(room.root / "docs.toml")
    canonical = json.dumps(document, sort_keys=True, ensure_ascii=True).encode()
    digest = sha256(canonical).hexdigest()[:_SHOWN_HASH_DIGITS]
    if is_vendored:
        knowledge = Knowledge(overlay=load_overlay(room.root / label / "overlay.toml"))
    elif base:
        known = Base(
            revision=base, document=room.document(base), overlay=load_overlay(room.root / base / "overlay.toml")
        )
        knowledge = known_from_base(reduce(document), draft.own, shared, known)  # descriptions decide nothing
    else:
        knowledge = known_without_base(document, draft.own)
    return Source(
        revision=label,
        document=reduce(document) if is_vendored else document,
        overlay=knowledge.overlay,
        shared=shared,
        docs=docs.with_draft(label, base) if base else docs,
        origin=f"{draft.name or 'a schema document'} with sha256 {digest} (keys sorted)",
        command=draft.command(label),
        sources=f"{draft.name or 'the document'}, {draft.overlay_name or 'its overlay (--overlay)'}",
        base=base,
        assumptions=() if is_vendored else knowledge.assumptions,
        findings=knowledge.unfit,
    )


def is_same_document(room: SchemaRoom, document: dict[str, Any], revision: str) -> bool:
    """Whether *document* is that of the vendored *revision*, apart from descriptions."""
    return revision in room.revisions and reduce(document) == room.document(revision)


def generate(source: Source, *, alone: bool = False, templates: Templates = DEFAULT) -> Package:
    """Return the bindings of *source*.

    Args:
        source: The document.
        alone: Include the support package, so that the bindings need no other package than msgspec.
        templates: The templates.

    Raises:
        Refused: The document has a construct that the bindings cannot express exactly.
    """
    try:
        return _generate(source, alone=alone, templates=templates)
    except RecursionError as error:  # the last resort: `check_document` refuses what is known to be too deep
        finding = Diagnostic(
            code="MG006",
            pointer=_worked_on(error),
            message="the definitions are nested too deeply in each other",
            hint="Break up the longest chain of definitions, each of which holds the next.",
        )
        raise Refused([finding]) from None


def _worked_on(error: RecursionError) -> str:
    """Return the pointer of the definition that a stage was working on; nothing if it was on none."""
    for frame, _ in walk_tb(error.__traceback__):
        for each in frame.f_locals.values():
            if isinstance(each, ir.Object | ir.Alias):
                return each.pointer
    return ""


def _generate(source: Source, *, alone: bool, templates: Templates) -> Package:
    support = f".{SUPPORT}" if alone else f"..{SUPPORT}"
    patched = simplified(source.patched())
    noticed = check_document(patched)
    if any(each.severity == "error" for each in noticed):
        raise Refused(noticed)
    schema = widen_json_value(parse(patched))
    reader = Methods(schema, source.overlay, source.shared)
    methods = reader.read()
    reader.check_listed()
    texts = Texts(schema, revision=source.revision, docs=source.docs, overlay=source.overlay)
    emitter = Emitter(schema, texts, support=support)
    found = envelopes(schema, methods)
    stubs = Stubs(schema, methods, emitter)
    tables = stubs.methods(source.revision, source.overlay, source.shared)
    views: dict[str, tuple[str, dict[str, object]]] = {
        "models.py": ("models.py.jinja", {"models": emitter.models(found), "doc": _MODELS}),
        "messages.py": ("models.py.jinja", {"models": emitter.messages(found), "doc": _MESSAGES}),
        "methods.py": ("methods.py.jinja", {"methods": tables}),
        "server.py": ("side.py.jinja", {"side": stubs.side("server")}),
        "client.py": ("side.py.jinja", {"side": stubs.side("client")}),
        "__init__.py": (
            "init.py.jinja",
            {"door": {"imports": filled(f"{name} as {name}," for name in tables.shown), "support": support}},
        ),
    }
    claims = overlay_findings(schema, methods, source.overlay, source.shared)
    findings = (*source.findings, *noticed, *reader.diagnostics, *claims, *emitter.diagnostics, *stubs.diagnostics)
    if any(each.severity == "error" for each in findings):
        raise Refused(findings)
    rendered = {
        name: templates.render(template, module=_module(source, template, alone=alone), **view)
        for name, (template, view) in views.items()
    }
    if alone:
        rendered |= support_files()
    return Package(
        revision=source.revision,
        folder=names.package(source.revision),
        files=rendered,
        types=len(schema.definitions),
        findings=findings,
    )


def generate_registry(room: SchemaRoom) -> dict[str, str]:
    """Return the files of ``generated/`` that stand beside the revisions."""
    provenance = "Generated by ``mcpgen build --all`` from schema/PINNED.toml; do not edit."
    revisions = [
        {
            "label": ascii(revision),
            "era": ascii(load_overlay(room.root / revision / "overlay.toml").era),
            "package": names.package(revision),
        }
        for revision in room.revisions
    ]
    return {
        "registry.py": render("registry.py.jinja", registry={"provenance": provenance, "revisions": revisions}),
        "__init__.py": render("generated.py.jinja", registry={"provenance": provenance}),
    }


def _module(source: Source, template: str, *, alone: bool) -> dict[str, str]:
    made = f" of mcpgen {__version__}" if alone and template == "init.py.jinja" else ""
    return header(
        title=f"MCP {source.revision}",
        command=source.command,
        origin=source.origin,
        sources=f"{source.sources} or {template_place(template, alone=alone)}",
        made=made,
    )


def template_place(template: str, *, alone: bool) -> str:
    """Return the place of *template* that a reader can change; a module that is built *alone* is not in mcpgen."""
    return f"the template {template} (--templates)" if alone else f"templates/{template}"


def header(*, title: str, command: str, origin: str, sources: str, made: str = "") -> dict[str, str]:
    """Return the variables of the header of a module."""
    provenance = (
        f"Generated by ``{prose(command)}``{made}; do not edit.\n"
        f"Source: {prose(origin)}.\n"
        f"To change this file, change {prose(sources)}."
    )
    return {"title": prose(title), "provenance": provenance}


def support_files() -> dict[str, str]:
    """Return the files of the support package, below the folder of a revision; the adapters' part is not among them."""
    folder = files("mcpgen").joinpath("generated", SUPPORT)
    names_there = ["__init__.py", *(f"{module}.py" for module in _SUPPORT_MODULES)]
    return {f"{SUPPORT}/{name}": folder.joinpath(name).read_text(encoding="utf-8") for name in names_there}
