"""Format Python source: the only module that imports Black.

When it is imported, Black looks for the user's folder for caches, and raises a RuntimeError for a user without a home.
This module formats strings, and Black caches only files. So it names a folder in which there can be no file.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["InvalidInput", "format_source"]

_CACHE_FOLDER = "XDG_CACHE_HOME"


@contextmanager
def _without_cache_folder() -> Generator[None]:
    before = os.environ.get(_CACHE_FOLDER)
    os.environ[_CACHE_FOLDER] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CACHE_FOLDER]
        else:
            os.environ[_CACHE_FOLDER] = before


with _without_cache_folder():
    import black
    from black.mode import TargetVersion
    from black.parsing import InvalidInput

# Explicit, so that no pyproject.toml in the working directory decides what is generated.
_MODE = black.Mode(line_length=120, target_versions={TargetVersion.PY311})


def format_source(text: str) -> str:
    """Return the Python source *text*, formatted.

    Raises:
        InvalidInput: It is not Python.
    """
    return black.format_str(text, mode=_MODE)
