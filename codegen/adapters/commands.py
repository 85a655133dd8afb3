"""The command ``losses``."""

from __future__ import annotations

import click
import msgspec

from mcpgen.codegen.adapters.build import planned
from mcpgen.codegen.adapters.losses import loss_rows, losses_markdown
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.report import echo_json, refusals_reported

__all__ = ["losses"]


@click.command()
@click.option("--from", "source", metavar="A", help="Only from this revision.")
@click.option("--to", "target", metavar="B", help="Only to this revision.")
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
def losses(source: str | None, target: str | None, *, as_json: bool) -> None:
    """Tell what is dropped, degraded, defaulted or refused between revisions, and why, as Markdown."""
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
