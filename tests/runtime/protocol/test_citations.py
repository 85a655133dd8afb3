"""That every test of the protocol says where the rule is written that it holds us to."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.runtime.protocol.spec import LABELS

FOLDER = Path(__file__).parent
FILES = sorted(each for each in FOLDER.glob("test_*.py") if each.name != Path(__file__).name)
NODES = [
    (f"{path.stem}.{node.name}", node)
    for path in FILES
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
]
TESTS = [pytest.param(node, id=name) for name, node in NODES]


def citations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str, ...]]:
    """Return the arguments of each ``@spec(...)``."""
    return [
        tuple(ast.literal_eval(each) for each in decorator.args)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "spec"
    ]


@pytest.mark.parametrize("test", TESTS)
def test_every_test_cites_a_heading_of_a_revision_that_there_is(test: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    found = citations(test)

    assert found
    for revision, place in found:
        page, mark, heading = place.partition("#")
        assert revision in LABELS
        assert page.split("/")[0] in ("basic", "client", "server", "schema", "changelog")
        assert (mark, bool(heading)) in (("#", True), ("", False))


def test_every_revision_is_cited() -> None:
    cited = {revision for node in NODES for revision, _ in citations(node[1])}

    assert set(LABELS) == cited
