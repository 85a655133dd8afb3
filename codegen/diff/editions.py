"""One revision as `compare` reads it: its definitions, its messages and what its overlay adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import check_document
from mcpgen.codegen.methods import Method, Methods
from mcpgen.codegen.overlay import ErrorCode
from mcpgen.codegen.overlay_checks import unfounded
from mcpgen.codegen.parse import parse
from mcpgen.codegen.unions import widen_json_value

if TYPE_CHECKING:
    from mcpgen.codegen.build import Source

__all__ = ["Edition", "edition"]


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared of one revision.

    Attributes:
        schema: Its definitions, from the document with its overlay.
        methods: Its messages.
        era: None where nothing says it: a document tells neither its era nor its error codes nor what is deprecated.
        errors: The same.
        reserved_errors: The range of codes in which only those of *errors* may be used.
        deprecated: The same.
        findings: Warnings from reading the document.
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
    """Return the edition that *source* is; one that is not *vendored* has no overlay to tell its era and errors.

    Raises:
        Refused: The document has a construct that has no exact type, or the overlay speaks of what it does not have.
    """
    patched = source.patched()
    noticed = check_document(patched)
    if any(each.severity == "error" for each in noticed):
        raise Refused(noticed)
    schema = widen_json_value(parse(patched))
    reader = Methods(schema, source.overlay, source.shared)
    methods = tuple(reader.read())
    found = (*noticed, *reader.diagnostics, *unfounded(schema, methods, source.overlay, source.shared))
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
