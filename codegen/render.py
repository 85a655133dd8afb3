"""Lay out views with the templates, and format what comes out."""

from __future__ import annotations

from importlib.resources import files

import black
import jinja2
from black.mode import TargetVersion

# Explicit, so that no pyproject.toml in the working directory decides what is generated.
_MODE = black.Mode(line_length=120, target_versions={TargetVersion.PY311})


class _Templates(jinja2.BaseLoader):
    """Reads the templates from the installed package."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str | None, None]:
        del environment
        return files("mcpgen").joinpath("templates", template).read_text(encoding="utf-8"), None, None


_environment = jinja2.Environment(
    loader=_Templates(),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701 Python source, not HTML; what may stand in it is decided in emit
)


def render(template: str, **views: object) -> str:
    """Return the source that *template* makes of *views*, formatted."""
    return black.format_str(_environment.get_template(template).render(views), mode=_MODE)
