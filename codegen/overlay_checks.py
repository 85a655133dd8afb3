"""What overlays claim of definitions, methods and error codes, held against what the document has.

A patch says what it expects to find, and so does all else in an overlay: a name that upstream has changed, or that was
misspelt, would otherwise be about nothing, and nobody would hear of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgen.codegen.methods import Method
    from mcpgen.codegen.overlay import ErrorCode, Overlay, SharedOverlay

__all__ = ["unfounded"]


def unfounded(
    schema: ir.Schema, methods: Iterable[Method], overlay: Overlay, shared: SharedOverlay
) -> Iterator[Diagnostic]:
    """Yield what *overlay* says that is not so of *schema* and its *methods*.

    What the *shared* overlay says holds for many documents, so that one of them may lack it.
    """
    for each in overlay.deprecated:
        for name in each.names:
            if not _has(schema, name):
                yield _absent(f"{name} is said to be deprecated, and is not there", each.reason)
    known = {each.name for each in methods}
    for method, facts in overlay.methods.items():
        if method not in known:
            yield _absent(f'[methods."{method}"] is about a method that no request or notification has')
        for result in filter(None, (facts.result, facts.task_result)):
            if result not in schema.definitions:
                yield _absent(f'[methods."{method}"] names the result {result}, which is not there')
    yield from _contradictions([*shared.errors, *overlay.errors])


def _has(schema: ir.Schema, name: str) -> bool:
    """Return whether there is a definition *name*, or a key of one (``Tool.icons``)."""
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
            yield _twice(f"the error code {each.code} is {names[each.code]} and {each.name}")
        elif each.name in codes:
            yield _twice(f"the error {each.name} has the codes {codes[each.name]} and {each.code}")
        names.setdefault(each.code, each.name)
        codes.setdefault(each.name, each.code)


def _absent(message: str, reason: str = "") -> Diagnostic:
    hint = "Upstream may have renamed or removed it: compare, then correct or delete this entry of the overlay."
    return Diagnostic(code="MG315", message=f"{message} ({reason})" if reason else message, hint=hint)


def _twice(message: str) -> Diagnostic:
    return Diagnostic(code="MG316", message=message, hint="Delete one of the [[errors]] tables.")
