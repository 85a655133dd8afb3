"""From the document of an extension to the files of its bindings, which import the types of its base revision."""

from __future__ import annotations

import json
import keyword
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from mcpgen.codegen import ir, names
from mcpgen.codegen.build import GENERATING_VERSION, SUPPORT, Package, header, pinned_source, template_place
from mcpgen.codegen.canonical import reduce
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.docs import Docs, load_docs
from mcpgen.codegen.document import check_document
from mcpgen.codegen.emit import Emitter
from mcpgen.codegen.envelopes import envelopes
from mcpgen.codegen.equivalents import simplified
from mcpgen.codegen.extension_document import Base, completed, linked
from mcpgen.codegen.layout import filled
from mcpgen.codegen.methods import INPUT_UNION, Method, Methods
from mcpgen.codegen.overlay import Overlay, SharedOverlay, load_overlay, load_shared
from mcpgen.codegen.overlay_checks import overlay_findings
from mcpgen.codegen.parse import parse
from mcpgen.codegen.render import DEFAULT, Templates
from mcpgen.codegen.shared_types import Shared, share
from mcpgen.codegen.stubs import Stubs
from mcpgen.codegen.texts import Texts
from mcpgen.codegen.unions import widen_json_value

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from mcpgen.codegen.pinned import SchemaRoom

__all__ = [
    "FOLDER",
    "Extension",
    "Location",
    "OwnExtension",
    "extension_package",
    "foreign_extension",
    "generate_extension",
    "generate_extensions_door",
    "patched_extension",
    "vendored_extension",
]

FOLDER = "extensions"  # in schema/ and in generated/
_MODELS = "the types that the extension adds to those of its base."
_MESSAGES = "requests, notifications and the unions of these."


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bindings of the base are, as the modules of the extension import them.

    Attributes:
        base: The package of the base.
        support: The support package of the base.
    """

    base: str
    support: str

    @classmethod
    def in_generated(cls, base: str) -> Location:
        """Return the location as seen from ``generated/extensions/NAME``."""
        return cls(base=f"...{names.package(base)}", support=f"...{SUPPORT}")

    @classmethod
    def installed(cls, base: str) -> Location:
        """Return the location in the installed mcpgen."""
        return cls(base=f"mcpgen.generated.{names.package(base)}", support=f"mcpgen.generated.{SUPPORT}")

    @classmethod
    def copied(cls, base: str) -> Location:
        """Return the location beside the package of the extension."""
        return cls(base=f"..{names.package(base)}", support=f"..{names.package(base)}.{SUPPORT}")


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """The document of an extension and all that is known about it beside what it says.

    Attributes:
        identifier: The name under which peers declare it.
        folder: The name of its package.
        base: The vendored revision that it extends.
        docs: Our texts about its own definitions.
        origin: For the header: where the document is.
        command: For the header: the command that wrote the file.
        sources: For the header: the files to change for another result, apart from the template.
    """

    identifier: str
    folder: str
    base: str
    document: dict[str, Any]
    overlay: Overlay
    docs: Docs
    origin: str
    command: str
    sources: str


def extension_package(identifier: str) -> str:
    """Return the folder of the bindings of the extension *identifier*: its name without the prefix, in snake_case."""
    name = names.snake(identifier.rpartition("/")[2])
    return f"x_{name}" if name[0].isdigit() else f"{name}_" if keyword.iskeyword(name) else name


def vendored_extension(room: SchemaRoom, name: str, *, command: str = "") -> Extension:
    """Return the vendored extension *name*; *command* is what copies its bindings into another project.

    Raises:
        Refused: Its file does not have the recorded hash, or its overlay cannot be read.
    """
    pin = room.extension_pin(name)
    folder = room.root / FOLDER / name
    place = f"schema/{FOLDER}/{name}"
    return Extension(
        identifier=pin.id,
        folder=name,
        base=pin.base,
        document=room.extension_document(name),
        overlay=load_overlay(folder / "overlay.toml"),
        docs=load_docs(docs) if (docs := folder / "docs.toml").is_file() else Docs(),
        origin=f"{'the document in mcpgen' if command else f'{place}/schema.json'} ({pin.source})",
        command=command or "mcpgen build --all",
        sources=GENERATING_VERSION if command else f"{place}/, codegen/",
    )


class OwnExtension(msgspec.Struct, frozen=True, kw_only=True):
    """What a user says about an extension.

    Attributes:
        identifier: The identifier of the extension.
        base: The vendored revision that it extends.
        overlay: The overlay of the user.
        name: The name of the document's file, for headers.
        overlay_name: The name of the overlay's file, for headers.
        copies_base: Whether the bindings of the base are copied, for headers.
    """

    identifier: str
    base: str
    overlay: Overlay = Overlay()
    name: str = "extension.json"
    overlay_name: str = ""
    copies_base: bool = False

    @property
    def command(self) -> str:
        """The command that builds it, without folders: the same input has the same header anywhere."""
        overlay = f" --overlay {self.overlay_name}" if self.overlay_name else ""
        copied = " --copy-base" if self.copies_base else ""
        return f"mcpgen build --extension {self.name} --id {self.identifier} --base {self.base}{overlay}{copied}"


def foreign_extension(room: SchemaRoom, document: dict[str, Any], own: OwnExtension) -> Extension:
    """Return the extension that *document* and *own* describe.

    If *document* is that of a vendored extension, apart from prose and its ``$id``, all that is known about that one
    applies, unless the user has an overlay.

    Raises:
        Refused: MG303, the base is not vendored.
    """
    room.pin(own.base)
    for pin in room.pins.extension:
        is_vendored = (pin.id, pin.base, own.overlay) == (own.identifier, own.base, Overlay())
        if is_vendored and _content(document) == _content(room.extension_document(pin.name)):
            return vendored_extension(room, pin.name, command=own.command)
    digest = sha256(json.dumps(document, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:12]
    return Extension(
        identifier=own.identifier,
        folder=extension_package(own.identifier),
        base=own.base,
        document=document,
        overlay=own.overlay,
        docs=Docs(),
        origin=f"{own.name} with sha256 {digest} (keys sorted)",
        command=own.command,
        sources=f"{own.name}, {own.overlay_name or 'its overlay (--overlay)'}",
    )


def _content(document: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in reduce(document).items() if name != "$id"}


def patched_extension(room: SchemaRoom, extension: Extension) -> dict[str, Any]:
    """Return the document of *extension* with the definitions of its base that it needs, and its overlay applied.

    Raises:
        Refused: The overlay does not fit.
    """
    shared = load_shared(room.root / "overlay.toml")
    return completed(extension.document, Base.of(room, extension.base), extension.overlay, shared)


def generate_extension(
    room: SchemaRoom, extension: Extension, where: Location, *, templates: Templates = DEFAULT
) -> Package:
    """Return the bindings of *extension*, which import the bindings of its base from *where*.

    Raises:
        Refused: The document has a construct that the bindings cannot express exactly.
    """
    document = linked(simplified(patched_extension(room, extension)))
    noticed = check_document(document)
    if any(each.severity == "error" for each in noticed):
        raise Refused(noticed)
    source = pinned_source(room, extension.base)
    base = widen_json_value(parse(simplified(source.patched())))
    base_messages = envelopes(base, Methods(base, source.overlay, source.shared).read())
    shared = share(widen_json_value(parse(document)), base)
    schema, imported = shared.schema, shared.imported
    own = _own_names(document, extension.document)
    inherited_names = imported | (base.definitions.keys() - own)
    reader = Methods(schema, extension.overlay, SharedOverlay(), imported=inherited_names, general=(INPUT_UNION,))
    methods = reader.read()
    if not extension.overlay.models_only:
        reader.check_declared(own)
    found = envelopes(schema, methods)
    docs = source.docs.for_extension(extension.docs, base.definitions.keys())
    texts = Texts(schema, revision=extension.base, docs=docs, overlay=extension.overlay, label=extension.identifier)
    emitter = Emitter(
        schema,
        texts,
        support=where.support,
        imported={name: f"{where.base}.{'messages' if name in base_messages else 'models'}" for name in imported},
    )
    # An envelope of the base that only contains a changed type says nothing new: the tables of methods have that type.
    inherited = imported | (found & base_messages - own)
    hidden = inherited - _mentioned(shared, methods, inherited) - own
    stubs = Stubs(schema, methods, emitter, imported=imported)
    views: dict[str, tuple[str, dict[str, object]]] = {
        "models.py": (
            "models.py.jinja",
            {"models": emitter.models((found if methods else frozenset[str]()) | hidden), "doc": _MODELS},
        )
    }
    shown: tuple[str, ...] = ()
    if methods:
        tables = stubs.methods(extension.identifier, extension.overlay, SharedOverlay())
        shown = tables.shown
        views["messages.py"] = ("models.py.jinja", {"models": emitter.messages(found - hidden), "doc": _MESSAGES})
        views["methods.py"] = ("methods.py.jinja", {"methods": tables})
        views["server.py"] = ("side.py.jinja", {"side": stubs.side("server")})
        views["client.py"] = ("side.py.jinja", {"side": stubs.side("client")})
    views["__init__.py"] = ("extension.py.jinja", {"door": _door(extension, where, shown)})
    claims = overlay_findings(schema, methods, extension.overlay, SharedOverlay())
    findings = (*noticed, *reader.diagnostics, *claims, *emitter.diagnostics, *stubs.diagnostics)
    if any(each.severity == "error" for each in findings):
        raise Refused(findings)
    alone = where != Location.in_generated(extension.base)
    rendered = {
        name: templates.render(template, module=_module(extension, template, alone=alone), **view)
        for name, (template, view) in views.items()
    }
    return Package(
        revision=extension.identifier,
        folder=extension.folder,
        files=rendered,
        types=len(schema.definitions.keys() - inherited),
        findings=findings,
    )


def generate_extensions_door() -> str:
    """Return ``generated/extensions/__init__.py``."""
    provenance = "Generated by ``mcpgen build --all`` from schema/PINNED.toml; do not edit."
    return DEFAULT.render("extensions.py.jinja", provenance=provenance)


def _mentioned(shared: Shared, methods: Iterable[Method], inherited: AbstractSet[str]) -> set[str]:
    """Return the definitions that *methods*, and definitions that are not *inherited*, mention."""
    found = {name for each in methods for ref in (each.params, each.result) if ref for name in ir.names(ref)}
    for name, definition in shared.schema.definitions.items():
        if name in inherited:
            continue
        types = [definition.type] if isinstance(definition, ir.Alias) else [each.type for each in definition.properties]
        found |= {mentioned for each in types for mentioned in ir.names(each)}
    return found


def _own_names(completed_document: dict[str, Any], document: dict[str, Any]) -> set[str]:
    """Return the names of the definitions in *document*: a program that knows the document looks for all of them."""
    definitions = completed_document.get("$defs", completed_document.get("definitions", {}))
    own = document.get("$defs", document.get("definitions", {}))
    return {names.definition(name) for name in own if name in definitions}


def _door(extension: Extension, where: Location, shown: tuple[str, ...]) -> dict[str, object]:
    modules = ("client", "methods", "models", "server") if shown else ("models",)
    return {
        "modules": tuple(f"{each} as {each}" for each in modules),
        "imports": filled(f"{name} as {name}," for name in shown),
        "typing_imports": ("TYPE_CHECKING", "Final"),
        "identifier": ascii(extension.identifier),
        "base": ascii(extension.base),
        "messages": bool(shown),
        "support": where.support,
    }


def _module(extension: Extension, template: str, *, alone: bool) -> dict[str, str]:
    return header(
        title=f"MCP extension {extension.identifier}",
        command=extension.command,
        origin=extension.origin,
        sources=f"{extension.sources} or {template_place(template, alone=alone)}",
    )
