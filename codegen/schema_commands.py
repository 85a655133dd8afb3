"""The command ``schema``: list the vendored documents, add one, or compare a file with one."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from mcpgen.codegen.checkout import find_checkout
from mcpgen.codegen.console import echo_diagnostics, echo_json, refusals_reported
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.pinned import Pin, SchemaRoom
from mcpgen.codegen.vendoring import candidate, differences, extension_candidate, vendor

if TYPE_CHECKING:
    import datetime as dt

    from mcpgen.codegen.json_pointers import Json

__all__ = ["schema"]

_as_json = click.option("--json", "as_json", is_flag=True, help="Write the report as JSON to standard output.")
_file = click.argument("file", type=click.Path(path_type=Path))


@click.group()
def schema() -> None:
    """List, add and verify the schema documents of official revisions and extensions.

    schema/ has a copy of each official document, without descriptions. schema/PINNED.toml records its hash.
    """


@schema.command("list")
@_as_json
def list_documents(*, as_json: bool) -> None:
    """List the schema documents: revisions, oldest first, and extensions.

    Also verifies their recorded hashes.
    """
    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        counted = [(pin, _count(room.document(pin.revision))) for pin in room.pins.document]
        extensions = [(pin, _count(room.extension_document(pin.name))) for pin in room.pins.extension]
    if as_json:
        echo_json([{**to_builtins(pin), "definitions": count} for pin, count in (*counted, *extensions)])
        return
    table: list[tuple[str, ...]] = [("REVISION", "DEFINITIONS", "COMMIT", "DATE", "SHA256")]
    table += [
        (pin.revision, str(count), pin.commit[:12] or "-", str(pin.date or "-"), pin.sha256[:12])
        for pin, count in counted
    ]
    _echo_table(table)
    if extensions:
        click.echo()
        rows = [(pin.name, str(count), pin.base, pin.source, pin.sha256[:12]) for pin, count in extensions]
        _echo_table([("EXTENSION", "DEFINITIONS", "BASE", "SOURCE", "SHA256"), *rows])


def _echo_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


@schema.command()
@click.argument("revision")
@_file
@click.option(
    "--upstream-path", default="", metavar="PATH", help="The path of FILE in the repository of the specification."
)
@click.option("--commit", default="", metavar="SHA", help="The commit of that repository that last changed FILE.")
@click.option("--date", type=click.DateTime(["%Y-%m-%d"]), help="The date of that commit.")
@_as_json
def add(  # noqa: PLR0913 - one parameter for each option
    revision: str, file: Path, *, upstream_path: str, commit: str, date: dt.datetime | None, as_json: bool
) -> None:
    """Add the schema document FILE to schema/ as REVISION.

    Removes the descriptions, and records the hashes of FILE and of the result in schema/PINNED.toml. If the document
    has errors, nothing is changed.
    """
    if commit and not re.fullmatch("[0-9a-f]{40}", commit):
        raise click.BadParameter("`--commit` must have 40 hexadecimal digits", param_hint="--commit")
    if not upstream_path.isprintable():
        raise click.BadParameter(
            "`--upstream-path` must not contain characters that cannot be printed", param_hint="--upstream-path"
        )
    checkout = find_checkout()
    if checkout is None:
        raise click.UsageError("The working directory is not inside a checkout of mcpgen. Run the command inside one.")
    with refusals_reported(as_json=as_json):
        room = SchemaRoom(checkout / "schema")
        found = candidate(file)
        pin = Pin(
            revision=revision,
            path=upstream_path,
            commit=commit,
            date=date.date() if date else None,
            official_sha256=found.official_sha256,
            sha256=sha256(found.content).hexdigest(),
        )
        added = vendor(room, checkout / "schema", pin, found.content)
    if as_json:
        echo_json(
            {"revision": revision, "added": added, "sha256": pin.sha256, "diagnostics": to_builtins(found.warnings)}
        )
        return
    echo_diagnostics(found.warnings, as_json=False)
    if added:
        click.echo(f"Added schema/{revision}/schema.json, and its hashes to schema/PINNED.toml.")
    else:
        click.echo(f"Revision {revision} is already in schema/ with the same content. Nothing was changed.")


@schema.command()
@click.argument("revision")
@_file
@_as_json
def verify(revision: str, file: Path, *, as_json: bool) -> None:
    """Check that FILE equals the document of REVISION, apart from descriptions.

    REVISION can also be the name of an extension.
    """
    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        is_extension = revision in room.extensions
        pinned = (room.extension_pin(revision) if is_extension else room.pin(revision)).official_sha256
        ours = room.extension_document(revision) if is_extension else room.document(revision)
        found = extension_candidate(file) if is_extension else candidate(file)
        if findings := list(differences(ours, found.document)):
            raise Refused(findings)
    official = found.official_sha256.startswith(pinned)
    if as_json:
        echo_json(
            {"revision": revision, "equal": True, "official": official, "diagnostics": to_builtins(found.warnings)}
        )
        return
    click.echo(f"{file} equals {'extension' if is_extension else 'revision'} {revision}, apart from descriptions.")
    if official:
        click.echo("The file is the official file, byte for byte.")
    else:
        click.echo("The file is not the official file byte for byte: descriptions or formatting differ.")


def _count(document: dict[str, Json]) -> int:
    definitions = document.get("$defs", document.get("definitions"))
    return len(definitions) if isinstance(definitions, dict) else 0
