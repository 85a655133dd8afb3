"""Check that the definitions, methods and error codes in overlays exist and do not contradict each other.

Without this check, an entry whose name has changed in the document, or is misspelt, would have no effect and no error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgen.codegen.methods import Method
    from mcpgen.codegen.overlay import ErrorCode, Overlay, SharedOverlay

__all__ = ["has_member", "overlay_findings"]


def overlay_findings(
    schema: ir.Schema, methods: Iterable[Method], overlay: Overlay, shared: SharedOverlay
) -> Iterator[Diagnostic]:
    """Yield a finding for each entry of *overlay* that contradicts *schema* or its *methods*.

    An entry of the *shared* overlay is for many documents, so one of them may lack what it names.
    """
    for each in overlay.deprecated:
        for name in each.names:
            if not has_member(schema, name):
                yield _absent(f"the overlay deprecates {name}, which does not exist", each.reason)
    known = {each.name for each in methods}
    for method, facts in overlay.methods.items():
        if method not in known:
            yield _absent(f'[methods."{method}"] is for a method that no request or notification has')
        for result in filter(None, (facts.result, facts.task_result)):
            if result not in schema.definitions:
                yield _absent(f'[methods."{method}"] names the result {result}, which does not exist')
    yield from _contradictions([*shared.errors, *overlay.errors])


def has_member(schema: ir.Schema, name: str) -> bool:
    """Whether *schema* has a definition *name*, or a key of one (``Tool.icons``)."""
    definition, dot, key = name.partition(".")
    found = schema.definitions.get(definition)
    if not dot:
        return found is not None
    return isinstance(found, ir.Object) and any(each.wire == key for each in found.properties)


def _contradictions(errors: list[ErrorCode]) -> Iterator[Diagnostic]:
    names: dict[int, str] = {}
    codes: dict[str, int] = {}
    for each in errors:
        if each.code in names:
            yield _twice(f"the error code {each.code} has two names: {names[each.code]} and {each.name}")
        elif each.name in codes:
            yield _twice(f"the error {each.name} has two codes: {codes[each.name]} and {each.code}")
        names.setdefault(each.code, each.name)
        codes.setdefault(each.name, each.code)


def _absent(message: str, reason: str = "") -> Diagnostic:
    hint = "The document may have renamed or removed it. Correct or delete this entry of the overlay."
    return Diagnostic(code="MG315", message=f"{message} ({reason})" if reason else message, hint=hint)


def _twice(message: str) -> Diagnostic:
    hint = "Delete or correct an [[errors]] table. mcpgen itself has those of JSON-RPC, for every document."
    return Diagnostic(code="MG316", message=message, hint=hint)
