"""Find the checkout of this project around the working directory. The tests use it too, without other imports."""

from __future__ import annotations

from pathlib import Path

__all__ = ["find_checkout"]

# Both must exist: commands write to the checkout, so another project with a schema/ folder must not match.
_MARKS = (".package/mcpgen/__init__.py", "schema/PINNED.toml")


def find_checkout(start: Path | None = None) -> Path | None:
    """Return the root of the checkout that contains *start* (default: the working directory), or None."""
    folder = (start or Path.cwd()).resolve()
    for candidate in (folder, *folder.parents):
        if all((candidate / mark).is_file() for mark in _MARKS):
            return candidate
    return None
