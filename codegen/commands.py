"""The commands ``build`` and ``check``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.adapters.build import FOLDER, generate_adapters, planned
from mcpgen.codegen.build import SUPPORT, Package, foreign_source, generate, generate_registry, pinned_source
from mcpgen.codegen.checkout import find_checkout
from mcpgen.codegen.console import echo_diagnostics, echo_json, refusals_reported
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import read_document
from mcpgen.codegen.output import Content, drift, recover, strays, write
from mcpgen.codegen.pinned import SchemaRoom

__all__ = ["build", "check"]

_as_json = click.option("--json", "as_json", is_flag=True, help="Write the report as JSON to standard output.")


@click.command()
@click.option(
    "--revision",
    "labels",
    multiple=True,
    metavar="R",
    help="Build this vendored revision (see `mcpgen schema list`). Repeat the option for several.",
)
@click.option(
    "--all",
    "build_all",
    is_flag=True,
    help="Build all vendored revisions, and the registry that lists them (registry.py).",
)
@click.option(
    "--schema", type=click.Path(path_type=Path), metavar="FILE", help="Build from this schema document instead."
)
@click.option(
    "--out", type=click.Path(), metavar="DIR", help="Write to this folder. Default: generated/ of the checkout."
)
@_as_json
def build(labels: tuple[str, ...], *, build_all: bool, schema: Path | None, out: str | None, as_json: bool) -> None:
    """Generate the bindings of revisions, and the adapters between them.

    Without --out, the command writes to generated/ of the checkout and also rebuilds the adapters.

    With --schema FILE, --revision gives the new bindings a label, and --out is required. The bindings are written to
    DIR/v<label>/, with an underscore for each character of the label that is not a letter or a digit. They need only
    msgspec.
    """
    _check_usage(labels, build_all=build_all, schema=schema, out=out)
    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        if schema is None:
            for label in labels:
                room.pin(label)  # report an unknown revision before a missing folder
        root = _generated_folder() if out is None else Path(out)
        recover(root)
        # Any change of a revision can change all adapters, because it can change which keys are foreign. Planning first
        # reports missing changes early.
        plans = planned(room) if out is None else None
        packages = [
            _generate(room, label, schema, alone=out is not None)
            for label in (room.revisions if build_all else dict.fromkeys(labels))
        ]
        adapters = None if plans is None else generate_adapters(plans)
        outputs: dict[Path, Content] = {root / package.folder: package.files for package in packages}
        if adapters is not None:
            outputs[root / FOLDER] = adapters
            outputs |= {root / name: content for name, content in generate_registry(room).items()}
        write(outputs)
    findings = [finding for package in packages for finding in package.findings]
    if as_json:
        built = [
            {
                "revision": each.revision,
                "path": str(root / each.folder),
                "types": each.types,
                "files": sorted(each.files),
            }
            for each in packages
        ]
        echo_json({"built": built, "diagnostics": msgspec.to_builtins(findings)})
        return
    echo_diagnostics(findings, as_json=False)
    if sys.stdout.isatty():
        for package in packages:
            click.echo(f"wrote {root / package.folder}")


@click.command()
@_as_json
def check(*, as_json: bool) -> None:
    """Check that generated/ equals a fresh build.

    Verifies the hashes of vendored documents, rebuilds everything in memory, and prints the differences. The exit
    status is 1 if there are any.
    """
    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        root = _generated_folder()
        beside = generate_registry(room)
        adapters = generate_adapters(planned(room))
        packages = [_generate(room, revision, None) for revision in room.revisions]
        differences = drift(beside, root)
        differences |= drift(adapters, root / FOLDER)
        unexpected = strays({*beside, FOLDER, SUPPORT, *(package.folder for package in packages)}, root)
        unexpected += strays(adapters, root / FOLDER)
        for package in packages:
            differences |= drift(package.files, root / package.folder)
            unexpected += strays(package.files, root / package.folder)
        if not as_json:
            for difference in differences.values():
                click.echo(difference)
        findings = [_drifted(f"{path} differs from a fresh build") for path in differences]
        findings += [_drifted(f"{path} is not a generated file") for path in unexpected]
        if findings:
            raise Refused(findings)
    if as_json:
        echo_diagnostics((), as_json=True)
    elif sys.stdout.isatty():
        click.echo(f"generated/ equals a fresh build of {len(packages)} revisions.")


def _check_usage(labels: tuple[str, ...], *, build_all: bool, schema: Path | None, out: str | None) -> None:
    if out == "":  # as a path it would mean "."
        raise click.UsageError("`--out` is empty. Give a folder.")
    if schema is not None:
        if build_all or len(labels) != 1 or out is None:
            raise click.UsageError(
                "`--schema` needs exactly one `--revision LABEL` and `--out DIR`, and cannot be combined with `--all`."
            )
        if not names.is_nameable(labels[0]):
            raise click.UsageError(
                f"`--revision` is not a valid label. Use at most {names.MAX_LABEL_LENGTH} printable characters, "
                "with at least one ASCII letter or digit."
            )
    elif build_all == bool(labels):
        raise click.UsageError("Give one of: `--all`; `--revision R`; or `--schema FILE --revision LABEL --out DIR`.")


def _generate(room: SchemaRoom, label: str, schema: Path | None, *, alone: bool = False) -> Package:
    started = time.perf_counter()
    source = pinned_source(room, label) if schema is None else foreign_source(room, read_document(schema), label)
    package = generate(source, alone=alone)
    if sys.stderr.isatty():
        click.echo(f"{label}: {package.types} types in {time.perf_counter() - started:.1f} s", err=True)
    return package


def _generated_folder() -> Path:
    """Return ``generated/`` of the checkout around the working directory."""
    checkout = find_checkout()
    if checkout is None:
        hint = "Give `--out DIR`, or run the command inside a checkout of mcpgen."
        raise Refused(
            [
                Diagnostic(
                    code="MG404",
                    message="the working directory is not inside a checkout of mcpgen",
                    hint=hint,
                )
            ]
        )
    return checkout / "generated"


def _drifted(message: str) -> Diagnostic:
    return Diagnostic(code="MG403", message=message, hint="Run `mcpgen build --all` and commit the result.")
