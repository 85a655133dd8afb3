"""The commands ``diff`` and ``losses``: what differs between revisions, and what adapters lose.

Their ``--help`` needs none of the packages that read documents, so they import the rest of `mcpgen.codegen` when they
run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from mcpgen.codegen.console import echo_diagnostics, echo_encoded, echo_json, refusals_reported
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.codegen.diff import Edition
    from mcpgen.codegen.diff.model import Diff

__all__ = ["diff", "losses"]


@click.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "md", "json"]),
    default="text",
    show_default=True,
    help="Output format: text for a terminal, md for GitHub, json for programs.",
)
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if there are differences.")
def diff(old: str, new: str, *, output: str, exit_code: bool) -> None:
    """Report the differences from A to B.

    A and B are revisions (`mcpgen schema list` shows them) or paths of schema documents. A may be newer than B. A file
    that equals the document of a revision, apart from descriptions, counts as that revision. mcpgen corrects the
    documents of revisions (overlays); if A or B is another document, the corrections are not applied to either. The
    exit status is 0 even if there are differences, unless --exit-code is given.
    """
    from mcpgen.codegen.diff_sides import compared  # noqa: PLC0415 (see above)

    with refusals_reported(as_json=output == "json", option="--format json"):
        found, editions = compared(SchemaRoom(), old, new)
    if output == "json":
        echo_json(msgspec.to_builtins(found))
    else:
        _echo(found, editions, output)
    if exit_code and found.changes:
        raise SystemExit(1)


def _echo(found: Diff, editions: Sequence[Edition], output: str) -> None:
    from mcpgen.codegen.diff.report import markdown, text  # noqa: PLC0415 (see above)

    # The formats of this command do not list warnings.
    echo_diagnostics([finding for each in editions for finding in each.findings], as_json=False, option="")
    report = text(found) if output == "text" else markdown(found)
    echo_encoded(report.removesuffix("\n"))  # names come from documents


@click.command()
@click.option("--from", "source", metavar="A", help="Show only the losses of messages that come from revision A.")
@click.option("--to", "target", metavar="B", help="Show only the losses of messages that go to revision B.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON to standard output.")
def losses(source: str | None, target: str | None, *, as_json: bool) -> None:
    """List the losses between revisions, with reasons, as Markdown.

    An adapter causes a loss if the target cannot express a message exactly: it drops a value, replaces it by one with
    less information, adds a default, or refuses the whole message.
    """
    from mcpgen.codegen.adapters.build import planned  # noqa: PLC0415 (see above)
    from mcpgen.codegen.adapters.losses import loss_rows  # noqa: PLC0415 (likewise)
    from mcpgen.codegen.adapters.losses_page import losses_markdown  # noqa: PLC0415 (likewise)

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
