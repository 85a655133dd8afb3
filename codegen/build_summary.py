"""What ``build`` reports: the files, the differences from the base, the assumptions, and the import to write."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from mcpgen.codegen.build import Package, Source, pinned_source
from mcpgen.codegen.console import echo_encoded, printable
from mcpgen.codegen.diff import compare, edition
from mcpgen.codegen.diff.model import Diff
from mcpgen.codegen.diff.report import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcpgen.codegen.output import Content
    from mcpgen.codegen.pinned import SchemaRoom

__all__ = ["Built", "differences_from_base", "echo_built", "import_line", "unchanged_files"]

# A summary with more rows hides the files above it. `mcpgen diff` would print others: it applies no overlay.
_MOST_CHANGES = 40


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """One package that a build wrote.

    Attributes:
        revision: Its label.
        path: Its folder.
        types: How many types it defines.
        files: Its files.
        unchanged: How many of them already had the same content.
        imported: The statement that imports it.
        base: The revision that it is based on, or nothing.
        assumptions: What was assumed about a draft.
        differences: The differences from the base; None without a base.
    """

    revision: str
    path: str
    types: int
    files: list[str]
    unchanged: int
    imported: str = msgspec.field(name="import")
    base: str = ""
    assumptions: tuple[str, ...] = ()
    differences: Diff | None = None


def differences_from_base(room: SchemaRoom, source: Source) -> Diff | None:
    """Return the differences of the draft *source* from its base; None if it has no base."""
    if not source.base:
        return None
    return compare(edition(pinned_source(room, source.base), vendored=True), edition(source, vendored=True))


def unchanged_files(outputs: Mapping[Path, Content]) -> Iterator[Path]:
    """Yield the files of *outputs* that have this content already."""
    for target, content in outputs.items():
        files = (
            {target: content} if isinstance(content, str) else {target / name: each for name, each in content.items()}
        )
        for path, expected in files.items():
            try:
                # A pipe, and a link to a device, may have no end.
                if path.is_file() and path.read_bytes() == expected.encode():
                    yield path
            except OSError:
                continue


def import_line(package: Package, root: Path, *, in_checkout: bool) -> str:
    """Return the statement that imports *package* from the folder *root*."""
    if in_checkout:
        return f"from mcpgen.generated import {package.folder}"
    try:
        parts = root.resolve().relative_to(Path.cwd().resolve()).parts
    except (OSError, RuntimeError, ValueError):  # outside the working directory, or a loop of links
        return f"import {package.folder}  # with {root} on sys.path"
    # In the usual layout of a project, src/ is on sys.path and not a package.
    parts = parts[1:] if parts[:1] == ("src",) else parts
    if not all(part.isidentifier() for part in parts):
        return f"import {package.folder}  # with {root} on sys.path"
    return f"from {'.'.join(parts)} import {package.folder}" if parts else f"import {package.folder}"


def echo_built(built: Built) -> None:
    """Write the summary of *built* to standard output."""
    based = f", based on {built.base}" if built.base else ""
    click.echo(f"{built.revision}: {built.types} types{based}")
    written = len(built.files) - built.unchanged
    click.echo(f"  {built.path}: {written} files written, {built.unchanged} unchanged")
    if built.assumptions:
        click.echo("  assumptions:")
        for each in built.assumptions:
            echo_encoded(f"    * {printable(each)}")
    if built.differences is not None:
        _echo_differences(built.differences)
    click.echo(f"  import: {built.imported}")


def _echo_differences(diff: Diff) -> None:
    count = len(diff.changes)
    click.echo(f"  differences from {diff.old}: {count or 'none'}")
    if count <= _MOST_CHANGES:
        lines = text(diff).splitlines()[3:]  # without the heading and the number of differences
    else:
        kinds = Counter(each.kind for each in diff.changes)
        lines = [f"  {number} {kind}" for kind, number in kinds.most_common()]
        lines.append("  --json lists them all.")
    for line in lines:
        echo_encoded(f"  {line}" if line else "")
