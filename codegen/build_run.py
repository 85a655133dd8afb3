"""What the commands ``build`` and ``check`` do with their options."""

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
from mcpgen.codegen.build_options import BuildOptions, build_command, check_usage, extension_of, sources_of
from mcpgen.codegen.build_summary import Built, differences_from_base, import_line, unchanged_files
from mcpgen.codegen.checkout import find_checkout
from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.extensions import FOLDER as EXTENSIONS
from mcpgen.codegen.extensions import Location, generate_extension, generate_extensions_door, vendored_extension
from mcpgen.codegen.output import Content, drift, recover, strays, write
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.project_table import options_of_project
from mcpgen.codegen.render import DEFAULT, Templates
from mcpgen.codegen.sync_client import generate_sync_client

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BuildOptions", "Comparison", "chosen", "compare_with_build", "run_build"]


class Comparison(msgspec.Struct, kw_only=True):
    """The result of comparing files with a fresh build.

    Attributes:
        changed: The paths of files that differ, each with the difference.
        unexpected: The paths of files that are not generated.
        folders: The names of the folders that were compared.
        command: The command that builds the files again.
    """

    changed: dict[Path, str] = {}
    unexpected: list[Path] = []
    folders: list[str] = []
    command: str = "mcpgen build"


def chosen(given: dict[str, Any], *, needed: bool) -> list[BuildOptions]:
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
    found = options_of_project()
    if needed and any(not each.names_something for each in found):
        raise click.UsageError("A table `[tool.mcpgen]` in pyproject.toml needs `revision`, `all` or `extension`.")
    for number, each in enumerate(found, 1):
        try:
            if each.names_something:
                check_usage(each)
        except click.UsageError as error:
            text = f"{error.message} The options are those of table {number} of `[tool.mcpgen]` in pyproject.toml."
            raise click.UsageError(text) from None
    return found or [options]


def run_build(options: BuildOptions) -> tuple[list[Built], list[Diagnostic]]:
    """Write what *options* describe; return the packages and the findings."""
    check_usage(options)
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


def compare_with_build(given: dict[str, Any]) -> Comparison:
    """Compare files with a fresh build; *given* are the options of the command ``check``.

    Raises:
        click.UsageError: Without a folder, there are options that have no effect.
    """
    room = SchemaRoom()
    options = [_with_copies(room, each) for each in chosen(given, needed=False)]
    if any(each.out is None and each != BuildOptions(build_all=each.build_all) for each in options):
        or_else = ", or leave these options out" if find_checkout() else ""
        raise click.UsageError(f"With these options, `mcpgen check` needs `--out DIR`. Add `--out DIR`{or_else}.")
    found = Comparison()
    if any(each.out is None for each in options):
        found.command = "mcpgen build --all"
    elif any(given.values()):  # otherwise, the options are in [tool.mcpgen]
        found.command = build_command(options[0])
    for files, folder, beside in [each for one in options for each in _compared(room, one)]:
        found.changed |= drift(files, folder)
        found.unexpected += _strays(files, folder, beside)
        found.folders.append(folder.name)
    return found


def _with_copies(room: SchemaRoom, options: BuildOptions) -> BuildOptions:
    """Return *options*; if they name only a folder, with the revisions whose bindings are in it."""
    if options.out is None or options.names_something:
        return options
    return msgspec.structs.replace(options, revisions=_copies(room, options.out))


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
    check_usage(options)
    if options.extension is not None:
        for package in _extension_packages(room, options, options.extension):
            yield package.files, out / package.folder, frozenset()
        return
    templates = Templates(options.templates)
    for source in sources_of(room, options):
        package = _package(room, source, options, templates, writes=False)
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
            message=f"{out / folder} is not a package that mcpgen built from an official revision",
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


def _package(
    room: SchemaRoom, source: Source, options: BuildOptions, templates: Templates, *, writes: bool = True
) -> Package:
    package = _generate(source, alone=options.out is not None, templates=templates)
    if not options.adapters:
        return package
    adapter = draft_adapter(plan_draft(room, source, options.changes, writes=writes), source, templates)
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
