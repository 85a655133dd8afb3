"""The command ``diff``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from mcpgen.codegen.build import foreign_source, pinned_source
from mcpgen.codegen.diff import Edition, compare, edition
from mcpgen.codegen.diff_report import markdown, text
from mcpgen.codegen.document import read_document
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.reduction import reduce
from mcpgen.codegen.report import echo_diagnostics, echo_json, refusals_reported

__all__ = ["diff"]

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

    A and B are vendored revisions, or paths of schema documents. The exit status does not tell whether they differ.
    """
    with refusals_reported(as_json=output == "json"):
        room = SchemaRoom()
        editions = _edition(room, old), _edition(room, new)
        found = compare(*editions)
    if output == "json":
        echo_json(msgspec.to_builtins(found))
        return
    echo_diagnostics([finding for each in editions for finding in each.findings], as_json=False)
    report = _FORMATS[output](found)
    # Names come from documents; what the terminal cannot show must not end the report.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(report.encode(encoding, "backslashreplace").decode(encoding), nl=False)


def _edition(room: SchemaRoom, name: str) -> Edition:
    """Return the edition that *name* names: a revision, or the file of a document, which may be that of a revision."""
    if name in room.revisions or not _is_path(name):
        return edition(pinned_source(room, name), vendored=True)
    document = read_document(Path(name))
    for revision in room.revisions:
        if reduce(document) == room.document(revision):
            vendored = msgspec.structs.replace(pinned_source(room, revision), revision=name)
            return edition(vendored, vendored=True)
    return edition(foreign_source(room, document, name), vendored=False)


def _is_path(name: str) -> bool:
    """Whether *name* is meant as a path: a file of that name is there, or it looks like one that should be."""
    path = Path(name)
    return path.is_file() or path.suffix == ".json" or path.name != name
