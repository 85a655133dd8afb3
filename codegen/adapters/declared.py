"""Load the declared changes of each step, with the source of the functions that they use."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.changes.vocabulary import Step
from mcpgen.codegen.diagnostics import Diagnostic, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["Declared", "declared_in_file", "declared_steps", "module_name", "read_declared"]

# Names in the module of a step that are not copied into the adapter. Functions and other constants are.
_NOT_COPIED = frozenset({"STEP", "__all__"})
_CHANGES = "mcpgen.codegen.changes"
# A name of a change becomes the name of a constant of the adapter.
_NAME = re.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """The declarations of one step.

    Attributes:
        step: The changes.
        imports: The standard library imports of the adapter, one statement per line.
        source: The source of the functions and constants, copied verbatim.
        file: The file with the declarations of a draft; empty for a step between vendored revisions.
    """

    step: Step
    imports: str = "from typing import Any, Final"
    source: str = ""
    file: str = ""

    @property
    def where(self) -> str:
        """The file to change."""
        return self.file or f"codegen/changes/{module_name(self.step.old, self.step.new)}.py"


def module_name(old: str, new: str) -> str:
    """Return the module name of a step, which its changes and its adapter share."""
    return f"{names.package(old)}_to_{names.package(new)}"


def declared_steps(revisions: Sequence[str]) -> list[Declared]:
    """Return the declarations of each step between neighbouring *revisions*; a step without a module is empty.

    Raises:
        Refused: MG503, a module is not valid.
    """
    found: list[Declared] = []
    for old, new in pairwise(revisions):
        name = f"{_CHANGES}.{module_name(old, new)}"
        if find_spec(name) is None:
            found.append(Declared(step=Step(old=old, new=new)))
            continue
        found.append(_declared(name, old, new))
    return found


def _problems(step: Step, module: str) -> Iterator[Diagnostic]:
    """Yield a problem for each change in *step* with placeholders, and for each name that is not valid."""
    taken: set[str] = set()
    for each in step.changes:
        if not _NAME.fullmatch(each.name) or each.name in taken:
            yield _unusable(f"{module}: the name {each.name!r} of a change is not kebab-case, or occurs twice")
        taken.add(each.name)
        blank = [name for name in ("says", "spec") if getattr(each, name) in {"", "..."}]
        for way, action in (("up", each.up), ("down", each.down)):
            values = (getattr(action, name, None) for name in ("function", "value", "make", "name", "key"))
            blank += [way] if ... in values else []
        if blank:
            fields = ", ".join(f"`{field}`" for field in blank)
            yield Diagnostic(
                code="MG503",
                message=f"{module}: the change {each.name!r} is incomplete: {fields}",
                hint=f"Replace each `...` and each empty text in {module}, then build again.",
            )


def _declared(name: str, old: str, new: str) -> Declared:
    """Return the declarations in the module *name* for the step from *old* to *new*."""
    try:
        module = import_module(name)
    except SyntaxError as error:
        raise Refused([_unusable(f"{name}, line {error.lineno}: {error.msg}")]) from None
    step: object = getattr(module, "STEP", None)
    return read_declared(_checked(step, name, old, new), inspect.getsource(module), f"{module_name(old, new)}.py")


def declared_in_file(file: Path | None, old: str, new: str) -> Declared:
    """Return the declarations in *file*, a Python module of a user; nothing is declared if there is no file.

    Raises:
        Refused: MG503, the module is not valid.
    """
    if file is None or not file.exists():
        return Declared(step=Step(old=old, new=new), file=str(file or "the file of `--changes`"))
    content: dict[str, object] = {"__name__": file.stem, "__file__": str(file)}
    try:
        source = file.read_text(encoding="utf-8")
    except OSError as error:
        hint = "Give `--changes` a Python file that you may read."
        raise Refused([_unusable(f"cannot read {file}: {error.strerror}", hint)]) from error
    except UnicodeDecodeError as error:
        raise Refused([_unusable(f"{file} is not UTF-8, at byte {error.start}", "Save the file as UTF-8.")]) from error
    try:
        exec(compile(source, file, "exec"), content)  # noqa: S102 - the user's own module, named on the command line
    except SyntaxError as error:
        raise Refused([_unusable(f"{file}, line {error.lineno}: {error.msg}")]) from None
    except (Exception, SystemExit) as error:  # the user's module runs, and may raise anything
        raise Refused([_unusable(f"{file}: {type(error).__name__}: {error}")]) from error
    step = _checked(content.get("STEP"), file.name, old, new)
    return msgspec.structs.replace(read_declared(step, source, file.name), file=str(file))


def _checked(step: object, name: str, old: str, new: str) -> Step:
    """Return *step* if it is complete, and leads from *old* to *new*."""
    if not isinstance(step, Step):
        raise Refused([_unusable(f"{name} does not define `STEP`")])
    if (step.old, step.new) != (old, new):
        raise Refused([_unusable(f"`STEP` in {name} is from {step.old} to {step.new}, not from {old} to {new}")])
    if problems := list(_problems(step, name)):
        raise Refused(problems)
    return step


def read_declared(step: Step, source: str, name: str) -> Declared:
    """Return *step* with the functions in *source*, the text of the module *name*.

    Raises:
        Refused: MG503, the module imports something outside the standard library.
    """
    imports: list[str] = []
    typing = {"Any", "Final"}  # every adapter uses these
    kept: list[str] = []
    lines = source.split("\n")  # `splitlines` would also break lines at form feeds, where Python does not
    for node in ast.parse(source).body:
        match node:
            case ast.Import(names=aliases):
                _check_imports(name, [each.name for each in aliases])
                imports.append(_text(source, node))
            case ast.ImportFrom(module="typing", names=aliases):
                typing |= {each.name for each in aliases}
            case ast.ImportFrom(module=module) if not _is_ours(module or "."):
                _check_imports(name, [module or "."])
                imports.append(_text(source, node))
            case ast.FunctionDef(lineno=line) | ast.ClassDef(lineno=line):
                first = min([line, *(each.lineno for each in node.decorator_list)])
                kept.append("\n".join(lines[first - 1 : node.end_lineno]))
            case ast.Assign(targets=[ast.Name(id=target)]) if target not in _NOT_COPIED:
                kept.append(_text(source, node))
            case ast.AnnAssign(target=ast.Name(id=target)) if target not in _NOT_COPIED:
                kept.append(_text(source, node))
            case _:
                pass
    imports.append(f"from typing import {', '.join(sorted(typing - {'TYPE_CHECKING'}))}")
    return Declared(step=step, imports="\n".join(sorted(imports)), source="\n\n\n".join(kept))


def _text(source: str, statement: ast.stmt) -> str:
    return ast.get_source_segment(source, statement) or ""


def _is_ours(module: str) -> bool:
    """Whether the adapter gets the names of *module* in another way."""
    return module in {"__future__", "typing", "mcpgen.codegen.changes.vocabulary"}


def _check_imports(name: str, modules: Sequence[str]) -> None:
    for each in modules:
        if each.partition(".")[0] not in sys.stdlib_module_names:
            hint = "Remove the import: functions of the module are copied into an adapter that needs only msgspec."
            raise Refused([_unusable(f"{name} imports {each}, which is not in the standard library", hint)])


def _unusable(problem: str, hint: str = "Correct the module.") -> Diagnostic:
    return Diagnostic(code="MG503", message=problem, hint=hint)
