"""The input of a comparison: one revision with its definitions, its messages and the facts from its overlay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import check_document
from mcpgen.codegen.equivalents import simplified
from mcpgen.codegen.methods import Method, Methods
from mcpgen.codegen.overlay import ErrorCode
from mcpgen.codegen.overlay_checks import overlay_findings
from mcpgen.codegen.parse import parse
from mcpgen.codegen.unions import widen_json_value

if TYPE_CHECKING:
    from mcpgen.codegen.build import Source

__all__ = ["Edition", "edition"]


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """One revision, parsed for a comparison.

    Attributes:
        label: The revision, or the name of the file.
        schema: The definitions, from the document with its overlay.
        methods: The messages.
        era: ``handshake`` or ``stateless``. Only an overlay has the era, the error codes and the deprecations; without
            one they are None.
        errors: The error codes, or None.
        reserved_errors: The range of codes that only the specification may define.
        deprecated: The deprecated definitions and keys, or None.
        findings: Warnings about the document.
    """

    label: str
    schema: ir.Schema
    methods: tuple[Method, ...]
    era: str | None = None
    errors: tuple[ErrorCode, ...] | None = None
    reserved_errors: tuple[int, int] | None = None
    deprecated: frozenset[str] | None = None
    findings: tuple[Diagnostic, ...] = ()


def edition(source: Source, *, vendored: bool) -> Edition:
    """Return *source* as an edition. If it is not *vendored*, it has no overlay, so its era and errors are unknown.

    Raises:
        Refused: The document has a construct without an exact type, or the overlay names something that it lacks.
    """
    patched = simplified(source.patched())
    noticed = check_document(patched)
    if any(each.severity == "error" for each in noticed):
        raise Refused(noticed)
    schema = widen_json_value(parse(patched))
    reader = Methods(schema, source.overlay, source.shared)
    methods = tuple(reader.read())
    found = (*noticed, *reader.diagnostics, *overlay_findings(schema, methods, source.overlay, source.shared))
    if any(each.severity == "error" for each in found):
        raise Refused(found)
    known = Edition(
        label=source.revision,
        schema=schema,
        methods=methods,
        findings=found,
    )
    if not vendored:
        return known
    return msgspec.structs.replace(
        known,
        era=source.overlay.era,
        errors=(*source.shared.errors, *source.overlay.errors),
        reserved_errors=source.overlay.reserved_errors,
        deprecated=frozenset(name for each in source.overlay.deprecated for name in each.names),
    )
