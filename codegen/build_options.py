"""The options of ``build`` and ``check``: from the command line, or from the table ``[tool.mcpgen]``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.base_knowledge import OwnOverlay, load_own_overlay, nearest_revision
from mcpgen.codegen.build import Draft, Source, foreign_source, is_same_document, pinned_source
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import check_document, read_document
from mcpgen.codegen.extension_document import is_identifier
from mcpgen.codegen.extensions import Extension, OwnExtension, foreign_extension
from mcpgen.codegen.overlay import Overlay
from mcpgen.codegen.pinned import is_label

if TYPE_CHECKING:
    from mcpgen.codegen.pinned import SchemaRoom

__all__ = ["BuildOptions", "build_command", "check_usage", "extension_of", "sources_of"]

NO_BASE = "none"


class BuildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to build, and where.

    Attributes:
        revisions: The vendored revisions, or the label of *schema*.
        build_all: Whether to build all vendored revisions.
        schema: A document that is not vendored.
        based_on: The revision that *schema* is based on, ``none``, or nothing if the user has not said.
        overlay: The user's overlay of *schema*.
        templates: The folder of the user's templates.
        adapters: Whether to write the step between *schema* and its base as well.
        changes: The module with the declared changes of that step.
        out: The folder; None is ``generated/`` of the checkout.
        extension: The document of an extension.
        identifier: Its identifier.
        base: The revision that it extends.
        copy_base: Whether to copy the bindings of that revision too.
    """

    revisions: tuple[str, ...] = ()
    build_all: bool = False
    schema: Path | None = None
    based_on: str = ""
    overlay: Path | None = None
    templates: Path | None = None
    adapters: bool = False
    changes: Path | None = None
    out: Path | None = None
    extension: Path | None = None
    identifier: str = ""
    base: str = ""
    copy_base: bool = False

    @property
    def names_something(self) -> bool:
        """Whether the options say what to build."""
        return self.build_all or bool(self.revisions) or self.schema is not None or self.extension is not None


def build_command(options: BuildOptions) -> str:
    """Return the command that builds what *options* name, for a shell."""
    words = ["mcpgen", "build"]
    if options.build_all:
        words.append("--all")
    for revision in options.revisions:
        words += ["--revision", revision]
    flags = {"--adapters": options.adapters, "--copy-base": options.copy_base}
    values = {
        "--schema": options.schema,
        "--based-on": options.based_on,
        "--overlay": options.overlay,
        "--templates": options.templates,
        "--changes": options.changes,
        "--extension": options.extension,
        "--id": options.identifier,
        "--base": options.base,
        "--out": options.out,
    }
    words += [flag for flag, is_set in flags.items() if is_set]
    for option, value in values.items():
        if value:
            words += [option, str(value)]
    return shlex.join(words)


def check_usage(options: BuildOptions) -> None:
    """Check that the options fit each other.

    Raises:
        click.UsageError: They do not.
    """
    if options.templates is not None and options.out is None:
        raise click.UsageError(
            "`--templates` needs `--out DIR`: the files in generated/ come from the templates of mcpgen."
        )
    if options.adapters and options.based_on in ("", NO_BASE):
        raise click.UsageError("`--adapters` needs `--based-on R`: the step leads from R to the draft.")
    if options.changes is not None and not options.adapters:
        raise click.UsageError("`--changes` needs `--adapters`.")
    if options.extension is not None or options.identifier or options.base or options.copy_base:
        _check_extension(options)
        return
    if options.schema is None:
        if options.based_on or options.adapters:
            raise click.UsageError("`--based-on` and `--adapters` need `--schema FILE`.")
        if options.overlay is not None:
            raise click.UsageError("`--overlay` needs `--schema FILE` or `--extension FILE`.")
        _check_revisions(options)
        return
    if options.build_all or len(options.revisions) != 1 or options.out is None:
        raise click.UsageError(
            "`--schema` needs exactly one `--revision LABEL` and `--out DIR`, and cannot be combined with `--all`."
        )
    if not is_label(options.revisions[0]):
        raise click.UsageError(
            f"`--revision` is not a valid label. Use at most {names.MAX_LABEL_LENGTH} ASCII letters and digits, with "
            "single dots or hyphens between them. A label cannot be a path or a name that Windows reserves, such as "
            "CON, and if it looks like a date, it must be one."
        )


def _check_revisions(options: BuildOptions) -> None:
    if options.build_all and options.revisions:
        raise click.UsageError("Give either `--all` or `--revision R`, not both.")
    if not options.names_something:
        raise click.UsageError(
            "Give one of: `--all`; `--revision R`; `--schema FILE --revision LABEL --based-on R --out DIR`; or "
            "`--extension FILE --id ID --base R --out DIR`."
        )


def _check_extension(options: BuildOptions) -> None:
    if options.extension is None:
        raise click.UsageError("`--id`, `--base` and `--copy-base` need `--extension FILE`.")
    others = (options.build_all, options.revisions, options.schema, options.based_on, options.adapters)
    if any(others):
        raise click.UsageError(
            "`--extension` cannot be combined with `--all`, `--revision`, `--schema`, `--based-on` and `--adapters`."
        )
    if not options.identifier or not options.base or options.out is None:
        raise click.UsageError("`--extension FILE` needs `--id ID`, `--base R` and `--out DIR`.")
    if not is_identifier(options.identifier):
        raise click.UsageError(
            "`--id` is not a valid identifier of an extension. Use a reverse domain name, a slash and a name, for "
            f"example `com.example/rooms`, and at most {names.MAX_LABEL_LENGTH} characters."
        )


def extension_of(room: SchemaRoom, options: BuildOptions, file: Path) -> Extension:
    """Return the extension that *options* name; its document is in *file*.

    Raises:
        Refused: MG303, the base is not vendored; or a file has a fault.
    """
    own = OwnExtension(
        identifier=options.identifier,
        base=options.base,
        overlay=Overlay() if options.overlay is None else load_own_overlay(options.overlay).overlay,
        name=file.name,
        overlay_name="" if options.overlay is None else options.overlay.name,
        copies_base=options.copy_base,
    )
    return foreign_extension(room, read_document(file), own)


def sources_of(room: SchemaRoom, options: BuildOptions) -> list[Source]:
    """Return the sources that *options* name.

    Raises:
        Refused: MG303, a revision is not vendored; MG305, the label is taken; MG318, there is no base; or a file has a
            fault.
    """
    if options.schema is None:
        labels = room.revisions if options.build_all else tuple(dict.fromkeys(options.revisions))
        return [pinned_source(room, label, copied=options.out is not None) for label in labels]
    (label,) = options.revisions
    base = "" if options.based_on == NO_BASE else options.based_on
    if base:
        room.pin(base)
    document = read_document(options.schema)
    own = OwnOverlay() if options.overlay is None else load_own_overlay(options.overlay)
    is_known = is_same_document(room, document, label)
    if not is_known or options.overlay is not None:  # with an overlay, a known document is no longer that revision
        _check_label(room, label)
    if not is_known and not options.based_on:
        if findings := [each for each in check_document(document) if each.code == "MG010"]:
            raise Refused(findings)  # no revision is near to a document without definitions
        raise Refused([_no_base(room, document, label)])
    draft = Draft(
        base=base,
        own=own,
        name=options.schema.name,
        overlay_name="" if options.overlay is None else options.overlay.name,
    )
    return [foreign_source(room, document, label, draft)]


def _check_label(room: SchemaRoom, label: str) -> None:
    """Refuse the *label* of a draft if a revision in schema/ has it, or has its folder."""
    for each in room.revisions:
        if names.package(each) == names.package(label):
            finding = Diagnostic(
                code="MG305",
                message=f"the label {label} is taken: mcpgen contains the revision {each}",
                hint=f"Give the document a label of its own, for example `--revision {each}-draft`.",
            )
            raise Refused([finding])


def _no_base(room: SchemaRoom, document: dict[str, Any], label: str) -> Diagnostic:
    nearest, equal, either = nearest_revision(document, room)
    message = f"`--based-on` is missing; the nearest revision is {nearest}: {equal} of {either} definitions are equal"
    if equal == either:
        message = (
            f"`--based-on` is missing. The document has the definitions of {nearest}, but `--revision` gives it the "
            f"label {label}"
        )
    return Diagnostic(
        code="MG318",
        message=message,
        hint=f"Add `--based-on {nearest}` to use the overlay and docstrings of {nearest}, or `--based-on {NO_BASE}` to "
        "use the document alone.",
    )
