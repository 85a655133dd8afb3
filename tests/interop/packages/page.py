"""The part of ``docs/interop.md`` that says which packages of others were run as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.interop.packages.runs import DIRECTIONS, packages

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["lines"]

HEAD = """\

## Packages as they come

These programs run as their users run them, without network. Our client lists the tools of each server and calls one, in
the newest revision of the server and in 2024-11-05; each client lists our tools and calls `add`, and so does our client
through each bridge. `tests/interop/packages/packages.toml` says what must come back. Any other value fails the session.

| program | package | how | run by |
|---|---|---|---|
"""


def lines() -> Iterator[str]:
    """Yield the text, a part at a time."""
    yield HEAD
    for each in packages():
        session = "`nox -s interop`" if each.always else "`nox -s endurance`"
        for direction in each.directions:
            how = DIRECTIONS[direction] + (", and reads the first page of tools alone" if each.reads_first_page else "")
            yield f"| {each.name} | `{each.package}` | {how} | {session} |\n"
