"""The commands ``build`` and ``check``: their options, and what they write.

Their ``--help`` needs none of the packages that generate code, so `build_run` is imported when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mcpgen.codegen.console import echo_diagnostics, echo_encoded, echo_json, printable, refusals_reported
from mcpgen.codegen.diagnostics import Diagnostic, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.codegen.build_summary import Built

__all__ = ["build", "check"]

_as_json = click.option("--json", "as_json", is_flag=True, help="Write the report as JSON to standard output.")


_options = (
    click.option(
        "--revision",
        "labels",
        multiple=True,
        metavar="R",
        help="An official revision (see `mcpgen schema list`). Repeat the option for several.",
    ),
    click.option("--all", "build_all", is_flag=True, help="All official revisions."),
    click.option(
        "--schema",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use this schema document instead of an official revision.",
    ),
    click.option(
        "--based-on",
        metavar="R",
        default="",
        help="With --schema: the official revision on which FILE is based. The command uses the overlay and "
        "docstrings of R, without the entries that do not fit FILE. With `none`, it uses no official revision.",
    ),
    click.option(
        "--overlay",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --schema or --extension: corrections of the document, and facts that it lacks (TOML).",
    ),
    click.option(
        "--templates",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="A folder with templates of your own. Each replaces the template of mcpgen with the same name.",
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
        help="With --adapters: the declared changes of the step (a Python file). If FILE does not exist and the step "
        "needs declared changes, `mcpgen build` writes FILE with an incomplete entry for each of them. Complete the "
        "entries.",
    ),
    click.option(
        "--extension",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use this schema document of an extension instead of an official revision. Needs --id, --base and --out.",
    ),
    click.option(
        "--id", "identifier", metavar="ID", default="", help="With --extension: its identifier, com.example/name."
    ),
    click.option("--base", metavar="R", default="", help="With --extension: the official revision that it extends."),
    click.option(
        "--copy-base",
        is_flag=True,
        help="With --extension: copy the bindings of R too, so that the output needs only msgspec.",
    ),
    click.option(
        "--out",
        type=click.Path(),
        metavar="DIR",
        help="The folder of the bindings. Default: generated/ of the checkout.",
    ),
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

    Without --out, the command writes to generated/ of the checkout, and also rebuilds the adapters, the extensions, the
    blocking client, and the registry that lists the revisions.

    With --extension FILE, the bindings have only the types that the extension adds to those of its base.

    With --schema FILE, --revision gives the new bindings a label, and --out is required. --based-on is required too,
    unless the document and --revision are those of an official revision. The bindings are written to DIR/v<label>/,
    with an underscore for each dot and hyphen of the label. They need only msgspec.

    A command without any option takes its options from [tool.mcpgen] in pyproject.toml.
    """
    from mcpgen.codegen.build_run import chosen, run_build  # noqa: PLC0415 (see above)
    from mcpgen.codegen.build_summary import echo_built  # noqa: PLC0415 (likewise)

    with refusals_reported(as_json=as_json):
        built: list[Built] = []
        findings: list[Diagnostic] = []
        for options in chosen(given, needed=True):
            done, found = run_build(options)
            built += done
            findings += found
    if as_json:
        echo_json({"built": msgspec.to_builtins(built), "diagnostics": msgspec.to_builtins(findings)})
        return
    echo_diagnostics(findings, as_json=False)
    for each in built:
        echo_built(each)


@click.command()
@_with_options
def check(*, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - the options, which click has checked
    """Check that generated bindings equal a fresh build.

    The command builds in memory and prints the differences, or one line for each folder without differences. It
    writes no file. The exit status is 1 if there are differences.

    In a checkout of mcpgen, the command without --out checks all of generated/ and the hashes of the documents in
    schema/.
    Outside a checkout, the command without options takes its options from [tool.mcpgen] in pyproject.toml.

    With --out DIR, the command checks the files that `mcpgen build` with the same options writes to DIR. Without
    --revision, --all, --schema and --extension, it checks each official revision whose bindings are in DIR.

    With --schema FILE, --out is required. --based-on is required too, unless the document and --revision are those of
    an official revision.
    """
    from mcpgen.codegen.build_run import compare_with_build  # noqa: PLC0415 (see above)

    with refusals_reported(as_json=as_json):
        found = compare_with_build(given)
        if not as_json:
            for line in (
                each for difference in filter(None, found.changed.values()) for each in difference.split("\n")
            ):
                echo_encoded(printable(line))  # the file on the disk can contain anything
        findings = [_changed(path, found.command) for path in found.changed]
        hint = "If a build with more options wrote it, such as `--adapters`, add them. Otherwise delete the file."
        findings += [_drifted(f"{path} is not in a fresh build", hint) for path in found.unexpected]
        if findings:
            raise Refused(findings)
    if as_json:
        echo_diagnostics((), as_json=True)
        return
    for folder in found.folders:
        click.echo(f"{folder}: equal to a fresh build")


def _changed(path: Path, command: str) -> Diagnostic:
    if path.is_dir():
        return _drifted(f"{path} is a folder", f"Remove it. Then run: {command}")
    said = "differs from a fresh build" if path.exists() else "is missing"
    return _drifted(f"{path} {said}", f"Run: {command}")


def _drifted(message: str, hint: str) -> Diagnostic:
    return Diagnostic(code="MG403", message=message, hint=hint)
