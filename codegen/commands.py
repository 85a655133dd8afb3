"""The commands ``build`` and ``check``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.adapters.build import FOLDER, draft_adapter, generate_adapters, plan_draft, planned
from mcpgen.codegen.build import SUPPORT, Package, Source, generate, generate_registry, pinned_source
from mcpgen.codegen.build_options import BuildOptions, check_usage, extension_of, sources_of
from mcpgen.codegen.build_summary import Built, differences_from_base, echo_built, import_line, unchanged_files
from mcpgen.codegen.checkout import find_checkout
from mcpgen.codegen.console import echo_diagnostics, echo_json, refusals_reported
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.extensions import FOLDER as EXTENSIONS
from mcpgen.codegen.extensions import Location, generate_extension, generate_extensions_door, vendored_extension
from mcpgen.codegen.output import Content, drift, recover, strays, write
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.project_table import options_of_project
from mcpgen.codegen.render import DEFAULT, Templates
from mcpgen.codegen.sync_client import generate_sync_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["build", "check"]

_as_json = click.option("--json", "as_json", is_flag=True, help="Write the report as JSON to standard output.")


_options = (
    click.option(
        "--revision",
        "labels",
        multiple=True,
        metavar="R",
        help="A vendored revision (see `mcpgen schema list`). Repeat the option for several.",
    ),
    click.option("--all", "build_all", is_flag=True, help="All vendored revisions."),
    click.option("--schema", type=click.Path(path_type=Path), metavar="FILE", help="This schema document instead."),
    click.option(
        "--based-on",
        metavar="R",
        default="",
        help="With --schema: the vendored revision on which FILE is based. The command uses the overlay and "
        "docstrings of R, without the entries that do not fit FILE. With `none`, it uses no vendored revision.",
    ),
    click.option(
        "--overlay",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --schema: corrections of the document, and facts that it lacks (TOML).",
    ),
    click.option(
        "--templates", type=click.Path(path_type=Path), metavar="DIR", help="Templates of your own. They replace ours."
    ),
    click.option(
        "--adapters",
        is_flag=True,
        help="With --based-on R: also generate adapter.py, the step between R and the draft FILE.",
    ),
    click.option(
        "--changes",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --adapters: the declared changes of the step. If FILE does not exist and the step needs declared "
        "changes, the command writes FILE with a stub for each of them. Complete the stubs.",
    ),
    click.option(
        "--extension",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The schema document of an extension instead. Needs --id, --base and --out.",
    ),
    click.option(
        "--id", "identifier", metavar="ID", default="", help="With --extension: its identifier, com.example/name."
    ),
    click.option("--base", metavar="R", default="", help="With --extension: the vendored revision that it extends."),
    click.option(
        "--copy-base", is_flag=True, help="With --extension: copy the bindings of R too, so that msgspec suffices."
    ),
    click.option("--out", type=click.Path(), metavar="DIR", help="This folder. Default: generated/ of the checkout."),
    _as_json,
)


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that ``build`` and ``check`` share."""
    for option in reversed(_options):
        command = option(command)
    return command


@click.command()
@_with_options
def build(*, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - the options, which click has checked
    """Generate the bindings of revisions, and the adapters between them.

    Without --out, the command writes to generated/ of the checkout and also rebuilds the adapters and the blocking
    client. --all also writes the registry that lists the revisions.

    With --extension FILE, the bindings have only the types that the extension adds to those of its base.

    With --schema FILE, --revision gives the new bindings a label, and --based-on and --out are required. The bindings
    are written to DIR/v<label>/, with an underscore for each dot and hyphen of the label. They need only msgspec.

    Without any of these, the options come from [tool.mcpgen] in pyproject.toml.
    """
    with refusals_reported(as_json=as_json):
        built: list[Built] = []
        findings: list[Diagnostic] = []
        for options in _chosen(given, needed=True):
            check_usage(options)
            done, found = _build(options)
            built += done
            findings += found
    if as_json:
        echo_json({"built": msgspec.to_builtins(built), "diagnostics": msgspec.to_builtins(findings)})
        return
    echo_diagnostics(findings, as_json=False)
    for each in built:
        echo_built(each)


def _chosen(given: dict[str, Any], *, needed: bool) -> list[BuildOptions]:
    """Return the options that were *given*, or those of the project if these do not say what to build.

    Raises:
        click.UsageError: *needed*, and there are none.
    """
    if given["out"] == "":  # as a path it would mean "."
        raise click.UsageError("`--out` is empty. Give a folder.")
    options = BuildOptions(
        revisions=given["labels"],
        build_all=given["build_all"],
        schema=given["schema"],
        based_on=given["based_on"],
        overlay=given["overlay"],
        templates=given["templates"],
        adapters=given["adapters"],
        changes=given["changes"],
        out=None if given["out"] is None else Path(given["out"]),
        extension=given["extension"],
        identifier=given["identifier"],
        base=given["base"],
        copy_base=given["copy_base"],
    )
    drafts = (options.based_on, options.overlay, options.templates, options.adapters, options.changes, options.out)
    extensions = (options.identifier, options.base, options.copy_base)
    if options.names_something or any((*drafts, *extensions)) or (find_checkout() is not None and not needed):
        return [options]
    return options_of_project() or [options]


def _build(options: BuildOptions) -> tuple[list[Built], list[Diagnostic]]:
    room = SchemaRoom()
    if options.extension is not None:
        return _build_extension(room, options, options.extension)
    if options.schema is None:
        for label in options.revisions:
            room.pin(label)  # report an unknown revision before a missing folder
    in_checkout = options.out is None
    root = options.out or _generated_folder()
    recover(root)
    # Any change of a revision can change all adapters, because it can change which keys are foreign. Planning first
    # reports missing changes early.
    found: list[Diagnostic] = []
    plans = planned(room) if in_checkout else None
    sources = sources_of(room, options)
    templates = Templates(options.templates)
    packages = [_package(room, source, options, templates) for source in sources]
    outputs: dict[Path, Content] = {root / package.folder: package.files for package in packages}
    if plans is not None:
        outputs[root / FOLDER] = generate_adapters(plans)
        outputs |= {root / name: content for name, content in generate_registry(room).items()}
        outputs |= {_api(root) / name: content for name, content in generate_sync_client(root.parent).items()}
        outputs[root / EXTENSIONS], found = _vendored_extensions(room)
    unchanged = set(unchanged_files(outputs))
    built = [
        Built(
            revision=package.revision,
            path=str(root / package.folder),
            types=package.types,
            files=sorted(package.files),
            unchanged=sum(root / package.folder / name in unchanged for name in package.files),
            imported=import_line(package, root, in_checkout=in_checkout),
            base=source.base,
            assumptions=source.assumptions,
            differences=differences_from_base(room, source),
        )
        for source, package in zip(sources, packages, strict=True)
    ]
    write(outputs)
    return built, [*(finding for package in packages for finding in package.findings), *found]


def _build_extension(room: SchemaRoom, options: BuildOptions, file: Path) -> tuple[list[Built], list[Diagnostic]]:
    root = options.out or Path()
    recover(root)
    packages = _extension_packages(room, options, file)
    outputs: dict[Path, Content] = {root / package.folder: package.files for package in packages}
    unchanged = set(unchanged_files(outputs))
    built = [
        Built(
            revision=package.revision,
            path=str(root / package.folder),
            types=package.types,
            files=sorted(package.files),
            unchanged=sum(root / package.folder / name in unchanged for name in package.files),
            imported=import_line(package, root, in_checkout=False),
        )
        for package in packages
    ]
    write(outputs)
    return built, [finding for package in packages for finding in package.findings]


def _extension_packages(room: SchemaRoom, options: BuildOptions, file: Path) -> list[Package]:
    """Return the bindings of the extension in *file*, and with --copy-base those of its base."""
    templates = Templates(options.templates)
    extension = extension_of(room, options, file)
    if not options.copy_base:
        return [generate_extension(room, extension, Location.installed(extension.base), templates=templates)]
    base = _generate(pinned_source(room, extension.base, copied=True), alone=True, templates=templates)
    return [generate_extension(room, extension, Location.copied(extension.base), templates=templates), base]


def _vendored_extensions(room: SchemaRoom) -> tuple[dict[str, str], list[Diagnostic]]:
    """Return the files of ``generated/extensions/``, and the findings."""
    files = {"__init__.py": generate_extensions_door()}
    findings: list[Diagnostic] = []
    for name in room.extensions:
        extension = vendored_extension(room, name)
        package = generate_extension(room, extension, Location.in_generated(extension.base))
        files |= {f"{package.folder}/{each}": content for each, content in package.files.items()}
        findings += package.findings
    return files, findings


@click.command()
@_with_options
def check(*, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - the options, which click has checked
    """Check that generated bindings equal a fresh build.

    The command builds in memory and prints the differences. It changes no generated file. The exit status is 1 if
    there are differences.

    In a checkout of mcpgen, the command without --out checks generated/ and the hashes of the vendored documents.
    Outside a checkout, the command without options takes its options from [tool.mcpgen] in pyproject.toml.

    With --out DIR, the command checks the files that `mcpgen build` with the same options writes to DIR. Without
    --revision, --all and --schema, it checks each vendored revision whose bindings are in DIR.
    """
    with refusals_reported(as_json=as_json):
        room = SchemaRoom()
        chosen = _chosen(given, needed=False)
        compared = [each for options in chosen for each in _compared(room, options)]
        differences: dict[Path, str] = {}
        unexpected: list[Path] = []
        for files, folder, beside in compared:
            differences |= drift(files, folder)
            unexpected += _strays(files, folder, beside)
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
        click.echo("The generated files equal a fresh build.")


_Compared: TypeAlias = tuple[dict[str, str], Path, frozenset[str]]
"""The files of a fresh build, their folder, and the names of other folders there."""


def _compared(room: SchemaRoom, options: BuildOptions) -> Iterator[_Compared]:
    """Yield each folder to compare."""
    out = options.out
    if out is None:
        root = _generated_folder()
        packages = [_generate(pinned_source(room, revision)) for revision in room.revisions]
        folders = frozenset({FOLDER, SUPPORT, EXTENSIONS, *(package.folder for package in packages)})
        yield generate_registry(room), root, folders
        yield generate_adapters(planned(room)), root / FOLDER, frozenset()
        yield _vendored_extensions(room)[0], root / EXTENSIONS, frozenset()
        for package in packages:
            yield package.files, root / package.folder, frozenset()
        blocking = generate_sync_client(root.parent)
        if blocking:
            yield blocking, _api(root), frozenset(each.name for each in _api(root).iterdir())
        return
    if not options.names_something:
        options = msgspec.structs.replace(options, revisions=_copies(room, out))
    check_usage(options)
    if options.extension is not None:
        for package in _extension_packages(room, options, options.extension):
            yield package.files, out / package.folder, frozenset()
        return
    templates = Templates(options.templates)
    for source in sources_of(room, options):
        package = _package(room, source, options, templates)
        yield package.files, out / package.folder, frozenset()


def _copies(room: SchemaRoom, out: Path) -> tuple[str, ...]:
    """Return the vendored revisions whose bindings are in *out*.

    Raises:
        Refused: There are none, or there is a package that is none of them.
    """
    folders = sorted(path.name for path in out.iterdir() if (path / "methods.py").is_file()) if out.is_dir() else []
    known = {names.package(each): each for each in room.revisions}
    findings = [
        Diagnostic(
            code="MG404",
            message=f"{out / folder} is not a copy of a vendored revision",
            hint="Give the options with which it was built, or write them to [tool.mcpgen] in pyproject.toml.",
        )
        for folder in folders
        if folder not in known
    ]
    if not folders:
        findings = [
            Diagnostic(code="MG404", message=f"there are no bindings in {out}", hint="Run `mcpgen build` first.")
        ]
    if findings:
        raise Refused(findings)
    return tuple(known[folder] for folder in folders)


def _strays(files: dict[str, str], folder: Path, beside: frozenset[str]) -> list[Path]:
    """Return what *folder*, and the folders of *files* in it, hold beside *files*."""
    held = {name.partition("/")[0] for name in files}
    found = strays(held | beside, folder)
    for name in sorted(held - files.keys()):
        below = {each.partition("/")[2] for each in files if each.startswith(f"{name}/")}
        found += strays(below, folder / name)
    return found


def _package(room: SchemaRoom, source: Source, options: BuildOptions, templates: Templates) -> Package:
    package = _generate(source, alone=options.out is not None, templates=templates)
    if not options.adapters:
        return package
    adapter = draft_adapter(plan_draft(room, source, options.changes), source, templates)
    return msgspec.structs.replace(package, files={**package.files, "adapter.py": adapter})


def _generate(source: Source, *, alone: bool = False, templates: Templates = DEFAULT) -> Package:
    started = time.perf_counter()
    package = generate(source, alone=alone, templates=templates)
    if sys.stderr.isatty():
        click.echo(f"{source.revision}: {package.types} types in {time.perf_counter() - started:.1f} s", err=True)
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


def _api(root: Path) -> Path:
    """Return the folder of the blocking client, which is derived from its neighbour, beside the generated folder."""
    return root.parent / "runtime" / "api"


def _drifted(message: str) -> Diagnostic:
    hint = "Run `mcpgen build --all`, or elsewhere `mcpgen build` with the same options, and commit the result."
    return Diagnostic(code="MG403", message=message, hint=hint)
