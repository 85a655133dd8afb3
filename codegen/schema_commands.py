"""The command ``schema``: list the vendored documents, add one, or compare a file with one."""

from __future__ import annotations

import datetime as dt
import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, to_builtins

from mcpgen.codegen import names
from mcpgen.codegen.checkout import find_checkout
from mcpgen.codegen.console import echo_diagnostics, echo_encoded, echo_json, printable, refusals_reported
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.extension_document import is_identifier
from mcpgen.codegen.pinned import ExtensionPin, Pin, SchemaRoom
from mcpgen.codegen.vendoring import candidate, differences, extension_candidate, vendor, vendor_extension

if TYPE_CHECKING:
    from mcpgen.codegen.json_pointers import Json
    from mcpgen.codegen.vendoring import Candidate

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
    """List the documents of revisions and extensions.

    Revisions come first, the oldest at the top. Also verifies their recorded hashes.
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
        echo_encoded(printable("  ".join(map(str.ljust, cells, widths)).rstrip()))  # the file of a checkout says them


@schema.command(short_help="Add a schema document to schema/.")
@click.argument("name", metavar="REVISION|EXTENSION")
@_file
@click.option(
    "--upstream-path",
    default="",
    metavar="PATH",
    help="For a revision: the path of FILE in the repository of the specification.",
)
@click.option(
    "--commit",
    default="",
    metavar="SHA",
    help="For a revision: the commit of that repository that last changed FILE.",
)
@click.option(
    "--date",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="For a revision: the date of that commit.",
)
@click.option("--id", "identifier", default="", metavar="ID", help="The identifier of an extension.")
@click.option("--base", default="", metavar="REVISION", help="The revision that the extension extends.")
@click.option("--source", default="", metavar="TEXT", help="For an extension: where FILE comes from, and its version.")
@click.option("--replace", is_flag=True, help="For an extension: replace the document of another version.")
@_as_json
def add(name: str, file: Path, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - the values of click
    """Add the schema document FILE to schema/, as that of a revision or of an extension.

    Removes the descriptions, and records the hashes of FILE and of the result in schema/PINNED.toml. If the document
    has errors, nothing is changed.

    A new extension needs --id, --base and --source. EXTENSION is a short name; it names the folders
    schema/extensions/EXTENSION and generated/extensions/EXTENSION. A new version of an extension needs --source and
    --replace.
    """
    origin = _Origin(**options)
    checkout = find_checkout()
    if checkout is None:
        raise click.UsageError("The working directory is not inside a checkout of mcpgen. Run the command inside one.")
    with refusals_reported(as_json=as_json):
        room = SchemaRoom(checkout / "schema")
        is_extension = bool(origin.identifier) or name in room.extensions
        origin.check(is_extension=is_extension)
        adding = _add_extension if is_extension else _add_revision
        added, path, found = adding(room, checkout / "schema", name, file, origin)
    if as_json:
        key = "extension" if is_extension else "revision"
        digest = sha256(found.content).hexdigest()
        echo_json({key: name, "added": added, "sha256": digest, "diagnostics": to_builtins(found.warnings)})
        return
    echo_diagnostics(found.warnings, as_json=False)
    if added:
        kind = "extension" if is_extension else "revision"
        click.echo(f"Added the {kind} {name}: {path}, and its hashes to schema/PINNED.toml.")
    elif is_extension:
        click.echo(f"Extension {name} is already in schema/ with the same content. Nothing was changed.")
    else:
        click.echo(f"Revision {name} is already in schema/ with the same content. Nothing was changed.")


class _Origin(Struct, frozen=True, kw_only=True):
    """What the options of `add` say about the origin of a document."""

    upstream_path: str
    commit: str
    date: dt.datetime | None
    identifier: str
    base: str
    source: str
    replace: bool

    def check(self, *, is_extension: bool) -> None:
        """Refuse options that are not valid, or that apply to the other kind of document only."""
        of_revisions = {"--upstream-path": self.upstream_path, "--commit": self.commit, "--date": self.date}
        of_extensions = {"--base": self.base, "--source": self.source, "--replace": self.replace}
        for option, value in (of_revisions if is_extension else of_extensions).items():
            if value and is_extension:
                raise click.UsageError(f"`{option}` applies to revisions only. For an extension, use `--source`.")
            if value:
                raise click.UsageError(f"`{option}` applies to extensions only. Add `--id ID`, or remove `{option}`.")
        if self.commit and not re.fullmatch("[0-9a-f]{40}", self.commit):
            raise click.BadParameter("`--commit` must be 40 hexadecimal digits, in lower case", param_hint="--commit")
        for option, text in (("--upstream-path", self.upstream_path), ("--source", self.source)):
            if not text.isprintable():
                message = f"`{option}` must not contain characters that cannot be printed"
                raise click.BadParameter(message, param_hint=option)


def _add_revision(
    room: SchemaRoom, folder: Path, name: str, file: Path, origin: _Origin
) -> tuple[bool, str, Candidate]:
    found = candidate(file)
    pin = Pin(
        revision=name,
        path=origin.upstream_path,
        commit=origin.commit,
        date=origin.date.date() if origin.date else None,
        official_sha256=found.official_sha256,
        sha256=sha256(found.content).hexdigest(),
    )
    return vendor(room, folder, pin, found.content), f"schema/{name}/schema.json", found


def _add_extension(
    room: SchemaRoom, folder: Path, name: str, file: Path, origin: _Origin
) -> tuple[bool, str, Candidate]:
    known = room.extension_pin(name) if name in room.extensions else None
    identifier, base = origin.identifier or (known.id if known else ""), origin.base or (known.base if known else "")
    if not is_identifier(identifier):
        message = (
            f"`--id` is not a valid identifier of an extension: {identifier!a}. Use a reverse domain name, a slash and "
            f"a name, for example `com.example/rooms`, and at most {names.MAX_LABEL_LENGTH} characters."
        )
        raise click.BadParameter(message, param_hint="--id")
    if not base or not origin.source:
        missing = "--source" if base else "--base"
        raise click.UsageError(f"`{missing}` is missing: schema/PINNED.toml records it for each extension.")
    found = extension_candidate(file, room, base)
    pin = ExtensionPin(
        name=name,
        id=identifier,
        base=base,
        source=origin.source,
        official_sha256=found.official_sha256,
        sha256=sha256(found.content).hexdigest(),
    )
    added = vendor_extension(room, folder, pin, found.content, replace=origin.replace)
    return added, f"schema/extensions/{name}/schema.json", found


@schema.command()
@click.argument("revision")
@_file
@_as_json
def verify(revision: str, file: Path, *, as_json: bool) -> None:
    """Compare FILE with the document of REVISION.

    Descriptions may differ. REVISION can also be the name of an extension.
    """
    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        is_extension = revision in room.extensions
        if not is_extension and revision not in room.revisions:
            known = ", ".join((*room.revisions, *room.extensions))
            message = f"there is no revision or extension {revision!a}"
            raise Refused([Diagnostic(code="MG303", message=message, hint=f"Use one of {known}.")])
        pinned = (room.extension_pin(revision) if is_extension else room.pin(revision)).official_sha256
        ours = room.extension_document(revision) if is_extension else room.document(revision)
        found = extension_candidate(file, room, room.extension_pin(revision).base) if is_extension else candidate(file)
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
