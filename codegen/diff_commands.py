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
    help="Output format: text for a terminal, md for GitHub, json for programs.",
)
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if there are differences.")
def diff(old: str, new: str, *, output: str, exit_code: bool) -> None:
    """Report the differences from A to B.

    A and B are vendored revisions (see `mcpgen schema list`) or paths of schema documents. A may be newer than B. A
    file that equals a vendored document, apart from descriptions, counts as that revision. The corrections
    that mcpgen makes in vendored documents (overlays) are applied only if A and B both count as vendored revisions. The
    exit status is 0 even if there are differences, unless --exit-code is given.
    """
    with refusals_reported(as_json=output == "json", option="--format json"):
        room = SchemaRoom()
        found, editions = _compared(room, old, new)
    if output == "json":
        echo_json(msgspec.to_builtins(found))
    else:
        _echo(found, editions, output)
    if exit_code and found.changes:
        raise SystemExit(1)


def _echo(found: Diff, editions: Sequence[Edition], output: str) -> None:
    # The formats of this command do not list warnings.
    echo_diagnostics([finding for each in editions for finding in each.findings], as_json=False, option="")
    report = _FORMATS[output](found)
    # Names come from documents. A character that the terminal cannot show must not end the report.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(report.encode(encoding, "backslashreplace").decode(encoding), nl=False)


@click.command()
@click.option("--from", "source", metavar="A", help="Show only the losses of messages that come from revision A.")
@click.option("--to", "target", metavar="B", help="Show only the losses of messages that go to revision B.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON to standard output.")
def losses(source: str | None, target: str | None, *, as_json: bool) -> None:
    """List the losses between revisions, with reasons, as Markdown.

    An adapter causes a loss if the target cannot express a message exactly: it drops a value, replaces it by one with
    less information, adds a default, or refuses the whole message.
    """
    # `diff` starts faster without the adapter compiler.
    from mcpgen.codegen.adapters.build import planned  # noqa: PLC0415
    from mcpgen.codegen.adapters.losses import loss_rows  # noqa: PLC0415
    from mcpgen.codegen.adapters.losses_page import losses_markdown  # noqa: PLC0415

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
    if name in room.revisions or not _is_path(name):
        return room.pin(name).revision
    document = read_document(Path(name))
    reduced = reduce(document)
    return next((each for each in room.revisions if reduced == room.document(each)), document)


def _vendored(room: SchemaRoom, revisions: Sequence[str]) -> list[Edition]:
    """Return the editions from the oldest revision to the newest of *revisions*."""
    last = max(map(room.revisions.index, revisions))
    return [edition(pinned_source(room, each), vendored=True) for each in room.revisions[: last + 1]]


def _edition(room: SchemaRoom, name: str, named: str | dict[str, Any]) -> Edition:
    """Return the edition of a document without the overlay of its revision; the shared overlay is applied."""
    if isinstance(named, str):
        source = replace(pinned_source(room, named), revision=name, overlay=Overlay())
    else:
        source = foreign_source(room, named, name)
    return edition(source, vendored=False)


def _is_path(name: str) -> bool:
    """Whether *name* is meant as a path: the file exists, or the name looks like a path."""
    path = Path(name)
    return path.is_file() or path.suffix == ".json" or path.name != name
