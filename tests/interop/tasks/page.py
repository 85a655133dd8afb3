"""The part of ``docs/interop.md`` that says whose tasks were run with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.interop.tasks.expectations import MEANING
from tests.interop.tasks.runs import missing, task_peers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["lines"]

HEAD = """\

## Tasks

Implementations of [tasks](guide/tasks.md) by others, with ours, over stdio and HTTP. Their clients use the server
`tests/interop/tasks/bakery.py`, and our client uses their servers. `tests/interop/tasks/expectations.py` says what must
come back for each feature. Any other value fails the session. `nox -s packages` runs all of them.

| implementation | package | as | kind of tasks | `nox -s interop` runs it over | note |
|---|---|---|---|---|---|
"""


def lines() -> Iterator[str]:
    """Yield the text, a part at a time."""
    yield HEAD
    for each in task_peers():
        role = "client" if each.is_client else "server"
        kinds, always = ", ".join(each.revisions), ", ".join(each.always)
        package = each.package.replace(" ", "`, `")
        yield f"| {each.name} | `{package}` | {role} | {kinds} | {always} | {each.quirks} |\n"
    yield "\n| feature | what happens |\n|---|---|\n"
    yield from (f"| {feature} | {meaning} |\n" for feature, meaning in MEANING.items())
    yield "\nThere is nothing to run for these:\n\n| implementation | as | why |\n|---|---|---|\n"
    yield from (f"| {each.peer} | {each.what} | {each.reason} |\n" for each in missing())
