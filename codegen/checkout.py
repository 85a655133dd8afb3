"""Where this project is checked out, if the work happens inside a checkout."""

from __future__ import annotations

from pathlib import Path

__all__ = ["find_checkout"]

# Both must exist: a folder that merely has a schema/ room of its own must not be taken for this project and written to.
_MARKS = (".package/mcpgen/__init__.py", "schema/PINNED.toml")


def find_checkout(start: Path | None = None) -> Path | None:
    """Return the root of the checkout that holds *start* (default: the working directory), or None."""
    folder = (start or Path.cwd()).resolve()
    for candidate in (folder, *folder.parents):
        if all((candidate / mark).is_file() for mark in _MARKS):
            return candidate
    return None
