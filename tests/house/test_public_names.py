"""Each public package's ``__init__.py`` is a door: what it lets through is what ``__all__`` says, in order."""

from __future__ import annotations

import ast
import importlib
from importlib.resources import files
from pathlib import Path

import pytest

PACKAGE = Path(str(files("mcpgen")))


def is_public(path: Path) -> bool:
    return not any(part.startswith("_") for part in path.parent.relative_to(PACKAGE).parts)


DOORS = sorted(path for path in PACKAGE.rglob("__init__.py") if is_public(path))


def name_of(door: Path) -> str:
    return ".".join(("mcpgen", *door.parent.relative_to(PACKAGE).parts))


def bindings(body: list[ast.stmt], package: str) -> set[str]:
    """Return the names that the statements of a *package*'s top level bind, those for type checkers included."""
    names: set[str] = set()
    for node in body:
        match node:
            case ast.ImportFrom(level=1, module=str(module), names=[ast.alias(name="*")]):
                names |= set(importlib.import_module(f"{package}.{module}").__all__)
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.If(body=then, orelse=otherwise):
                names |= bindings(then, package) | bindings(otherwise, package)
    return names


# What a door may need for itself without offering it to anybody.
OWN_USE = {"Final", "TYPE_CHECKING"}


@pytest.mark.parametrize("door", DOORS, ids=name_of)
def test_a_door_lets_through_exactly_what_it_names(door: Path) -> None:
    bound = bindings(ast.parse(door.read_text(encoding="utf-8")).body, name_of(door))
    public = {name for name in bound if not name.startswith("_")} - OWN_USE
    module = importlib.import_module(name_of(door))
    promised = getattr(module, "__all__", [])

    assert public == set(promised) - {"__version__"}
    assert [] == [name for name in promised if not hasattr(module, name)]


@pytest.mark.parametrize("door", DOORS, ids=name_of)
def test_a_door_names_in_plain_order_and_once(door: Path) -> None:
    promised = getattr(importlib.import_module(name_of(door)), "__all__", [])

    assert sorted(set(promised)) == list(promised)


@pytest.mark.parametrize("door", DOORS, ids=name_of)
def test_a_door_says_what_is_behind_it(door: Path) -> None:
    assert ast.get_docstring(ast.parse(door.read_text(encoding="utf-8")))


def test_the_front_door_lists_what_it_loads_lazily() -> None:
    """`dir` and completion in an editor would not see names that are loaded when they are first used."""
    front = importlib.import_module("mcpgen")

    assert list(front.__all__) == dir(front)
