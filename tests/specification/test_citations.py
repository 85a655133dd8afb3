"""That every test of the protocol says where the rule is written that it holds us to."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from tests.specification.citation import LABELS

# Regressions, tests of a recorder, and what is our own decision need not be a rule of the specification.
NOT_CITING: Final = {
    "client": ("test_regressions.py",),
    "http_client": ("test_connections.py", "test_target.py"),
    "http_server": ("test_http_recorder.py",),
    "server": (),
}


def citing(room: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the tests of *room* that have to cite, by name."""
    files = [each for each in Path(__file__).parent.glob(f"{room}/test_*.py") if each.name not in NOT_CITING[room]]
    return {
        f"{room}/{path.stem}.{node.name}": node
        for path in sorted(files)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


TESTS: Final = {room: citing(room) for room in NOT_CITING}


def citations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str, ...]]:
    """Return the arguments of each ``@spec(...)``."""
    return [
        tuple(ast.literal_eval(each) for each in decorator.args)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "spec"
    ]


def test_every_test_of_the_protocol_cites_a_rule() -> None:
    tests = {name: citations(node) for found in TESTS.values() for name, node in found.items()}

    assert len(tests) > 500  # or the folders have moved
    assert [] == [name for name, cited in tests.items() if not cited]


@pytest.mark.parametrize("room", TESTS)
def test_every_revision_is_cited(room: str) -> None:
    assert set(LABELS) == {revision for node in TESTS[room].values() for revision, *_ in citations(node)}
