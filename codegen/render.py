"""Lay out views with the templates, and format what comes out.

A user can replace single templates (``--templates DIR``). Such a template starts with the version of the variables that
it was written for, so that a later mcpgen with other variables refuses it instead of writing something else.
"""

from __future__ import annotations

import re
from importlib.resources import files
from traceback import extract_tb
from typing import TYPE_CHECKING, NoReturn

import jinja2
from jinja2 import meta, nodes
from jinja2.defaults import DEFAULT_NAMESPACE

from mcpgen.codegen.diagnostics import Diagnostic, Refused
from mcpgen.codegen.formatting import InvalidInput, format_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["REPLACEABLE", "VARIABLES_VERSION", "Templates"]

# Raise it when a variable of a template changes its name or its meaning; docs/templates.md documents the variables.
VARIABLES_VERSION = 1

# The templates of a package of bindings. Adapters and the registry depend on the runtime, so their layout is ours.
# Each has these variables.
REPLACEABLE = {
    "extension.py.jinja": {"door", "module"},
    "init.py.jinja": {"door", "module"},
    "methods.py.jinja": {"methods", "module"},
    "models.py.jinja": {"doc", "models", "module"},
    "side.py.jinja": {"module", "side"},
}

_QUOTED = re.compile(r"'([^']*)'")
_OUTPUT_PLACE = re.compile(r": (\d+):\d+[:\s]([^\n]*)")
_HEAD = re.compile(r"\{#-?\s*mcpgen templates (\d+)\s*-?#\}")


class _Loader(jinja2.BaseLoader):
    """Reads the templates from the user's folder, or else from the installed package."""

    def __init__(self, replaced: dict[str, str]) -> None:
        self._replaced = replaced

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, None]:
        del environment
        text = self._replaced.get(template)
        if text is None:
            text = files("mcpgen").joinpath("templates", template).read_text(encoding="utf-8")
        return text, template, None  # the name of the template is the file of its frames in a traceback


class Templates:
    """The templates: those of mcpgen, some of them replaced by those in *folder*.

    Raises:
        Refused: MG320, a file of *folder* replaces no template, does not name the version of the variables, or is not a
            valid template.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._replaced = {} if folder is None else _replaced(folder)
        self._environment = jinja2.Environment(
            loader=_Loader(self._replaced),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,  # noqa: S701 Python source, not HTML; what may stand in it is decided in emit
        )

    def render(self, template: str, **views: object) -> str:
        """Return the source that *template* makes of *views*, formatted.

        Raises:
            Refused: MG320, a template of the user has a fault.
        """
        try:
            return format_source(self._environment.get_template(template).render(views))
        except jinja2.TemplateSyntaxError as error:
            self._refuse(template, error.lineno, str(error.message), error)
        except jinja2.UndefinedError as error:
            # Its text ends with the name: 'dict object' has no attribute 'name'.
            name = _QUOTED.findall(str(error))
            said = f"there is no variable `{name[-1]}` in this place" if name else str(error)
            self._refuse(template, _line(template, error), said, error)
        except jinja2.TemplateError as error:
            self._refuse(template, _line(template, error), f"{error}", error)
        except InvalidInput as error:
            self._refuse(template, None, f"its output is not Python: {_first_line(error)}", error)
        except Exception as error:  # an expression of the user's template may raise anything
            if template not in self._replaced:
                raise
            self._refuse(template, _line(template, error), f"{type(error).__name__}: {error}", error)

    def _refuse(self, template: str, line: int | None, message: str, error: Exception) -> NoReturn:
        if template not in self._replaced:
            raise error
        where = template if line is None else f"{template}, line {line}"
        raise Refused([_fault(f"{where}: {message}")]) from error


def _replaced(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    read = folder
    try:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                read = path
                found[path.name] = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"it is not UTF-8, at byte {error.start}" if isinstance(error, UnicodeDecodeError) else error.strerror
        finding = Diagnostic(
            code="MG320", message=f"cannot read {read}: {reason}", hint="Check the path and the files."
        )
        raise Refused([finding]) from error
    findings: list[Diagnostic] = []
    for name, text in found.items():
        head = _HEAD.match(text)
        if name not in REPLACEABLE:
            findings.append(_fault(f"{name} replaces no template; the templates are {', '.join(REPLACEABLE)}"))
        elif head is None or int(head[1]) != VARIABLES_VERSION:
            said = f"is for version {head[1]} of the variables" if head else "does not name a version of the variables"
            begin = f"begin it with {{# mcpgen templates {VARIABLES_VERSION} #}}"
            findings.append(_fault(f"{name}, line 1: it {said}; {begin}"))
        else:
            findings += _unknown_variables(name, text)
    if findings:
        raise Refused(findings)
    return found


def _unknown_variables(name: str, text: str) -> list[Diagnostic]:
    """Return a fault for each variable in the template *text* that *name* does not have, even where nothing uses it."""
    try:
        tree = jinja2.Environment(autoescape=False).parse(text)  # noqa: S701 (as above)
    except jinja2.TemplateSyntaxError as error:
        return [_fault(f"{name}, line {error.lineno}: {error.message}")]
    unknown = meta.find_undeclared_variables(tree) - REPLACEABLE[name] - DEFAULT_NAMESPACE.keys()
    return [
        _fault(f"{name}, line {node.lineno}: there is no variable `{node.name}`")
        for node in tree.find_all(nodes.Name)
        if node.name in unknown
    ]


def _line(template: str, error: Exception) -> int | None:
    """Return the line of *template* at which *error* was raised: jinja gives its frames the lines of the template."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == template]
    return lines[-1] if lines else None


def _first_line(error: InvalidInput) -> str:
    """Return the place in the output and the text there; Black's message goes on with a drawing of the place."""
    found = _OUTPUT_PLACE.search(str(error))
    return f"line {found[1]} of the output is {found[2].strip()!r}" if found else str(error)


def _fault(message: str) -> Diagnostic:
    hint = "docs/templates.md in the repository of mcpgen lists the templates and their variables."
    return Diagnostic(code="MG320", message=message, hint=hint)


DEFAULT = Templates()
render: Callable[..., str] = DEFAULT.render
