"""The table ``[tool.mcpgen]`` of the nearest ``pyproject.toml``: the options of ``build`` and ``check``."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec

from mcpgen.codegen.build_options import BuildOptions
from mcpgen.codegen.diagnostics import Diagnostic, Refused

__all__ = ["options_of_project"]

_FILE = "pyproject.toml"
_PLACE = re.compile(r" - at `\$\[(\d+)\](?:\.([^`]*))?`")


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One table; its keys are the options of the command line."""

    revision: str | list[str] = []
    all: bool = False
    schema: str = ""
    based_on: str = ""
    overlay: str = ""
    templates: str = ""
    adapters: bool = False
    changes: str = ""
    out: Annotated[str, msgspec.Meta(min_length=1)]
    extension: str = ""
    id: str = ""
    base: str = ""
    copy_base: bool = False

    def __post_init__(self) -> None:
        paths = (self.schema, self.overlay, self.templates, self.changes, self.out, self.extension)
        if any("\0" in each for each in paths):
            raise ValueError("a path contains a null character")


def options_of_project() -> list[BuildOptions]:
    """Return the options in ``[tool.mcpgen]``, or in each of the tables ``[[tool.mcpgen]]``; none if there are none.

    Paths are relative to the folder of ``pyproject.toml``.

    Raises:
        Refused: MG319, the table is not valid.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / _FILE).is_file():
            return [_options(table, folder) for table in _tables(folder / _FILE)]
    return []


def _tables(file: Path) -> list[_Table]:
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        text = f"cannot read {file}: {error.strerror}"
        raise Refused([Diagnostic(code="MG319", message=text, hint="Check that you may read the file.")]) from error
    except UnicodeDecodeError as error:
        text = f"{file} is not UTF-8, at byte {error.start}"
        raise Refused([Diagnostic(code="MG319", message=text, hint="Save the file as UTF-8.")]) from error
    # ValueError: not TOML, or an integer with more digits than Python converts.
    except (ValueError, RecursionError) as error:
        text = f"{file} is not valid TOML: {error}"
        raise Refused([Diagnostic(code="MG319", message=text, hint="Correct the file.")]) from error
    try:
        found: Any = msgspec.convert(project.get("tool", {}), dict[str, Any]).get("mcpgen", [])
        return msgspec.convert(found if isinstance(found, list) else [found], list[_Table])
    except msgspec.ValidationError as error:
        finding = Diagnostic(
            code="MG319",
            message=f"[tool.mcpgen] in {file} is not valid: {_reason(error)}",
            hint="Its keys are the options of `mcpgen build`, without the hyphens in front; `out` is required.",
        )
        raise Refused([finding]) from error


def _reason(error: Exception) -> str:
    """Return what is wrong, in the words of TOML: `$[0]` is the first of the tables."""
    text = str(error).replace("Object contains unknown field", "unknown key").replace("Object missing required", "no")
    return _PLACE.sub(lambda found: f" (table {int(found[1]) + 1}{', key ' + found[2] if found[2] else ''})", text)


def _options(table: _Table, folder: Path) -> BuildOptions:
    def path(text: str) -> Path | None:
        return Path(os.path.relpath(folder / text)) if text else None

    return BuildOptions(
        revisions=(table.revision,) if isinstance(table.revision, str) else tuple(table.revision),
        build_all=table.all,
        schema=path(table.schema),
        based_on=table.based_on,
        overlay=path(table.overlay),
        templates=path(table.templates),
        adapters=table.adapters,
        changes=path(table.changes),
        out=path(table.out),
        extension=path(table.extension),
        identifier=table.id,
        base=table.base,
        copy_base=table.copy_base,
    )
