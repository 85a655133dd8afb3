"""The two sides of ``mcpgen diff``: vendored revisions, or documents in files."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcpgen.codegen.build import foreign_source, pinned_source
from mcpgen.codegen.canonical import reduce
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.diff import Edition, compare, edition
from mcpgen.codegen.document import read_document
from mcpgen.codegen.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from mcpgen.codegen.diff.model import Diff
    from mcpgen.codegen.pinned import SchemaRoom

__all__ = ["compared"]


def compared(room: SchemaRoom, old: str, new: str) -> tuple[Diff, list[Edition]]:
    """Return the diff of *old* and *new*, with rules if both are vendored, and the editions of both.

    An overlay belongs to one document. If only one side had an overlay, each of its corrections would appear as a
    difference. So without two vendored revisions, no overlay of a revision is used.
    """
    match _named(room, old), _named(room, new):
        case str() as one, str() as other:
            # Only this case needs the rules, and importing the adapter compiler takes time.
            from mcpgen.codegen.adapters.rule_coverage import compare_vendored  # noqa: PLC0415

            vendored = _vendored(room, [one, other])
            found = compare_vendored(one, other, vendored)
            return replace(found, old=old, new=new), [each for each in vendored if each.label in {one, other}]
        case named:
            editions = [_edition(room, *each) for each in zip((old, new), named, strict=True)]
            found = compare(*editions)
            if any(isinstance(each, str) for each in named):
                found = replace(found, uncompared=(*found.uncompared, "overlay"))
            return found, editions


def _named(room: SchemaRoom, name: str) -> str | dict[str, Any]:
    """Return the revision that *name* means, or the document in the file *name* if it is not a vendored one."""
    if name in room.revisions:
        return name
    if not _is_path(name):
        hint = (
            f"Give one of {', '.join(room.revisions)}, or the path of a schema document. The label of a registered "
            "draft does not work: give the path of its document."
        )
        message = f"{name!a} is neither a revision nor a file"
        raise Refused([Diagnostic(code="MG303", message=message, hint=hint)])
    with _named_in_refusals(name):
        document = read_document(Path(name))
    reduced = reduce(document)
    return next((each for each in room.revisions if reduced == room.document(each)), document)


def _vendored(room: SchemaRoom, revisions: Sequence[str]) -> list[Edition]:
    """Return the editions from the oldest revision to the newest of *revisions*."""
    last = max(map(room.revisions.index, revisions))
    return [edition(pinned_source(room, each), vendored=True) for each in room.revisions[: last + 1]]


def _edition(room: SchemaRoom, name: str, named: str | dict[str, Any]) -> Edition:
    """Return the edition of a document without the overlay of its revision; the shared overlay is applied."""
    with _named_in_refusals(name):
        if isinstance(named, str):
            source = replace(pinned_source(room, named), revision=name, overlay=Overlay())
        else:
            source = foreign_source(room, named, name)
        return edition(source, vendored=False)


@contextmanager
def _named_in_refusals(name: str) -> Generator[None]:
    """Begin the message of each diagnostic of a document with its *name*, since there are two documents."""
    try:
        yield
    except Refused as refused:
        own = (
            each if name in each.message else replace(each, message=f"{name}: {each.message}")
            for each in refused.diagnostics
        )
        raise Refused(own) from None


def _is_path(name: str) -> bool:
    """Whether *name* is meant as a path: the file exists, or the name looks like a path."""
    path = Path(name)
    return path.is_file() or path.suffix == ".json" or path.name != name
