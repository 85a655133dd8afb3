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
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.document import read_document
from mcpgen.codegen.output import Content, drift, recover, strays, write
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.report import echo_diagnostics, echo_json, refusals_reported

__all__ = ["build", "check"]

_as_json = click.option("--json", "as_json", is_flag=True, help="Report as JSON on standard output.")


@click.command()
@click.option("--revision", "labels", multiple=True, metavar="R", help="A vendored revision; may be repeated.")
@click.option("--all", "build_all", is_flag=True, help="Every vendored revision, and the registry.")
@click.option("--schema", type=click.Path(path_type=Path), metavar="FILE", help="A schema document of your own.")
@click.option("--out", type=click.Path(), metavar="DIR", help="Where to write; default: generated/ here.")
@_as_json
def build(labels: tuple[str, ...], *, build_all: bool, schema: Path | None, out: str | None, as_json: bool) -> None:
    """Write the bindings of one or more revisions, and the adapters between all of them.

    With --schema, the bindings of that document are written to DIR/v<label>/, where <label> is what --revision says
    with every character that is not a letter or a digit as an underscore. They need msgspec and nothing else.
    """
    _check_usage(labels, build_all=build_all, schema=schema, out=out)
    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        if schema is None:
            for label in labels:
                room.pin(label)  # said before anything about folders: a revision that is not there goes nowhere
        root = _generated_folder() if out is None else Path(out)
        recover(root)
        # Whatever a revision says may change the adapters: which keys are foreign depends on all of them. And what is
        # left to declare is said at once.
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
    """Fail if the bindings differ from a fresh build.

    Verifies the pinned hashes, rebuilds every revision in memory, and prints how generated/ differs.
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
        findings = [_drifted(f"{path} is not what schema/ says") for path in differences]
        findings += [_drifted(f"{path} is not generated") for path in unexpected]
        if findings:
            raise Refused(findings)
    if as_json:
        echo_diagnostics((), as_json=True)
    elif sys.stdout.isatty():
        click.echo(f"generated/ is what schema/ says, for {len(packages)} revisions.")


def _check_usage(labels: tuple[str, ...], *, build_all: bool, schema: Path | None, out: str | None) -> None:
    if out == "":  # not the same as ".", which it would be as a path
        raise click.UsageError("--out DIR must name a folder.")
    if schema is not None:
        if build_all or len(labels) != 1 or out is None:
            raise click.UsageError("--schema FILE takes exactly one --revision LABEL, and --out DIR.")
        if not names.is_nameable(labels[0]):
            raise click.UsageError(
                f"--revision LABEL takes at most {names.MAX_LABEL_LENGTH} printable characters, one of them at least a "
                "letter or a digit."
            )
    elif build_all == bool(labels):
        raise click.UsageError("Give --revision R, or --all, or --schema FILE with --revision LABEL and --out DIR.")


def _generate(room: SchemaRoom, label: str, schema: Path | None, *, alone: bool = False) -> Package:
    started = time.perf_counter()
    source = pinned_source(room, label) if schema is None else foreign_source(room, read_document(schema), label)
    package = generate(source, alone=alone)
    if sys.stderr.isatty():
        click.echo(f"{label}: {package.types} types in {time.perf_counter() - started:.1f} s", err=True)
    return package


def _generated_folder() -> Path:
    """Return ``generated/`` of the checkout that the command runs in."""
    checkout = find_checkout()
    if checkout is None:
        hint = "Give --out DIR, or run the command inside a checkout of mcpgen."
        raise Refused([Diagnostic(code="MG404", message="there is no generated/ folder here to write to", hint=hint)])
    return checkout / "generated"


def _drifted(message: str) -> Diagnostic:
    return Diagnostic(code="MG403", message=message, hint="Run `mcpgen build --all` and commit what it writes.")
