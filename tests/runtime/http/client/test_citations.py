"""That every test of the protocol over HTTP says where the rule is written that it holds us to."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.runtime.protocol.spec import LABELS
from tests.runtime.protocol.test_citations import citations

FOLDER = Path(__file__).parent
# What can be said to us is ours to decide, and so is which connections are kept.
ELSE = (Path(__file__).name, "test_connections.py", "test_target.py")
FILES = sorted(each for each in FOLDER.glob("test_*.py") if each.name not in ELSE)
NODES = [
    (f"{path.stem}.{node.name}", node)
    for path in FILES
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
]


@pytest.mark.parametrize("test", [pytest.param(node, id=name) for name, node in NODES])
def test_every_test_cites_a_heading_of_a_revision_that_there_is(test: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    found = citations(test)

    assert found
    for revision, place in found:
        page, _, heading = place.partition("#")
        assert revision in LABELS
        assert page.split("/")[0] in ("basic", "client", "server", "schema", "changelog")
        assert heading


def test_every_revision_is_cited() -> None:
    assert set(LABELS) == {revision for _, node in NODES for revision, _ in citations(node)}
