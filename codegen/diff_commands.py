"""The commands ``diff`` and ``losses``: what differs between revisions, and what adapters lose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace

from mcpgen.codegen.build import foreign_source, pinned_source
from mcpgen.codegen.canonical import reduce
from mcpgen.codegen.console import echo_diagnostics, echo_json, refusals_reported
from mcpgen.codegen.diff import Edition, compare, edition
from mcpgen.codegen.diff.report import markdown, text
from mcpgen.codegen.document import read_document
from mcpgen.codegen.overlay import Overlay
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.codegen.diff.model import Diff

__all__ = ["diff", "losses"]

_FORMATS = {"text": text, "md": markdown}


@click.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option(
    "--format",
    "output",
    type=click.Choice([*_FORMATS, "json"]),
    default="text",
    show_default=True,
    help="For a terminal, for GitHub, or for machines.",
)
def diff(old: str, new: str, *, output: str) -> None:
    """Report what changed from A to B, in either order.

    A and B are vendored revisions, or paths of schema documents. A file that holds a vendored document, with prose or
    without, is that revision. If either is any other file, both are compared as their documents stand: without what
    the overlays of revisions correct and add. The exit status does not tell whether they differ.
    """
    with refusals_reported(as_json=output == "json", option="--format json"):
        room = SchemaRoom()
        found, editions = _compared(room, old, new)
    if output == "json":
        echo_json(msgspec.to_builtins(found))
        return
    # No format lists warnings.
    echo_diagnostics([finding for each in editions for finding in each.findings], as_json=False, option="")
    report = _FORMATS[output](found)
    # Names come from documents; what the terminal cannot show must not end the report.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(report.encode(encoding, "backslashreplace").decode(encoding), nl=False)


@click.command()
@click.option("--from", "source", metavar="A", help="Only from this revision.")
@click.option("--to", "target", metavar="B", help="Only to this revision.")
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
def losses(source: str | None, target: str | None, *, as_json: bool) -> None:
    """Tell what is dropped, degraded, defaulted or refused between revisions, and why, as Markdown."""
    # Commands that need no adapters start faster without their compiler.
    from mcpgen.codegen.adapters.build import planned  # noqa: PLC0415
    from mcpgen.codegen.adapters.losses import loss_rows, losses_markdown  # noqa: PLC0415

    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        for each in (source, target):
            if each is not None:
                room.pin(each)
        rows = [
            row
            for row in loss_rows(planned(room), room.revisions)
            if (source is None or source in row.sources) and (target is None or target in row.targets)
        ]
    if as_json:
        echo_json({"losses": msgspec.to_builtins(rows)})
    else:
        click.echo(losses_markdown(rows, room.revisions), nl=False)


def _compared(room: SchemaRoom, old: str, new: str) -> tuple[Diff, list[Edition]]:
    """Return the diff of what *old* and *new* name, with its rules if both are vendored, and the editions of both.

    The overlay of a revision is about its own document. If only one of the two had one, all that it corrects and adds
    would count as a difference of the other.
    """
    match _named(room, old), _named(room, new):
        case str() as one, str() as other:
            # The compiler of adapters, which knows the rules, is not needed for anything else.
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
    """Return the revision that *name* names, itself or by the file of its document; otherwise the document there."""
    if name in room.revisions or not _is_path(name):
        return room.pin(name).revision
    document = read_document(Path(name))
    reduced = reduce(document)
    return next((each for each in room.revisions if reduced == room.document(each)), document)


def _vendored(room: SchemaRoom, revisions: Sequence[str]) -> list[Edition]:
    """Return the editions from the oldest revision to the newest of *revisions*; what came later is not looked at."""
    last = max(map(room.revisions.index, revisions))
    return [edition(pinned_source(room, each), vendored=True) for each in room.revisions[: last + 1]]


def _edition(room: SchemaRoom, name: str, named: str | dict[str, Any]) -> Edition:
    """Return the edition of a document as it stands; only what is true of every document is applied to it."""
    if isinstance(named, str):
        source = replace(pinned_source(room, named), revision=name, overlay=Overlay())
    else:
        source = foreign_source(room, named, name)
    return edition(source, vendored=False)


def _is_path(name: str) -> bool:
    """Whether *name* is meant as a path: a file of that name is there, or it looks like one that should be."""
    path = Path(name)
    return path.is_file() or path.suffix == ".json" or path.name != name
