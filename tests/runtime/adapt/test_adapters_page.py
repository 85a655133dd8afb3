"""docs/adapters.md keeps up with the code; tests/house/test_docs.py executes its examples."""

from __future__ import annotations

import re
import typing
from pathlib import Path

from mcpgen.codegen.changes.vocabulary import Service
from mcpgen.generated.adapters import Severity
from mcpgen.runtime import errors
from mcpgen.runtime.adapt import payloads, routes, stash, steps
from mcpgen.runtime.adapt.stash import MAX_STASH_BYTES

PAGE = (Path(__file__).parents[3] / "docs" / "adapters.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    """Return the first column of the table whose first heading is *heading*."""
    table = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` ", table, re.MULTILINE)


def test_the_page_explains_every_service() -> None:
    assert list(typing.get_args(Service)) == first_column("service")


def test_the_page_explains_every_severity() -> None:
    assert list(typing.get_args(Severity)) == first_column("severity")


def test_the_page_names_the_errors_that_adapters_raise_and_no_others() -> None:
    known = {name for name, each in vars(errors).items() if isinstance(each, type) and name in errors.__all__}
    raised = {name for name in known for module in (routes, payloads, steps, stash) if name in vars(module)}

    assert {"AdaptationError", "InvalidPayload", "UnknownMethod"} <= raised
    assert raised | {"McpgenError"} == {name for name in known if f"`{name}`" in PAGE}


def test_the_page_says_how_large_a_stash_may_be() -> None:
    assert f"{MAX_STASH_BYTES // 1024} KiB" in PAGE
