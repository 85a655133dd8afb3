"""Imports between files: none runs against the declared direction, no circle is large, and no file name is ambiguous.

Imports under ``TYPE_CHECKING`` and inside functions count, because a reader has to follow them too.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = Path(str(files("mcpgen")))
# More files than this cannot be read one at a time.
LARGEST_CIRCLE = 3

RUNTIME = ("adapt", "protocol", "transports", "server", "client", "http", "api", "cli")


def _above(package: str) -> tuple[str, ...]:
    return tuple(f"runtime.{each}" for each in RUNTIME[RUNTIME.index(package) + 1 :])


# For each room or package: the prefixes of the modules that it must not import (docs/adr/0020).
FORBIDDEN: dict[str, tuple[str, ...]] = {
    "codegen": ("generated", "runtime"),
    "runtime": ("codegen",),
    "runtime.adapt": _above("adapt"),
    "runtime.protocol": _above("protocol"),
    "runtime.transports": _above("transports"),
    "runtime.server": ("runtime.client", *_above("client")),
    "runtime.client": ("runtime.server", *_above("client")),
    "runtime.http": _above("http"),
    "runtime.api": _above("api"),
    "runtime.cli": (),
}


def modules(room: str) -> dict[str, Path]:
    """Return the files of *room* by the full name of their module."""
    found: dict[str, Path] = {}
    for path in sorted((PACKAGE / room.replace(".", "/")).rglob("*.py")):
        parts = ("mcpgen", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache  # to parse the runtime takes a second
def imported_by(path: Path) -> frozenset[str]:
    """Return the names that the file at *path* imports."""
    return frozenset(imported(path.read_text(encoding="utf-8")))


def imported(source: str) -> Iterator[str]:
    """Yield each absolute name that *source* imports anywhere; of ``from a import b``, both ``a`` and ``a.b``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(level=0, module=str(origin), names=names):
                yield origin
                yield from (f"{origin}.{each.name}" for each in names)
            case _:
                pass


def imports(room: str) -> dict[str, frozenset[str]]:
    """Return which modules of *room* each of its modules imports."""
    known = modules(room)
    found: dict[str, frozenset[str]] = {}
    for name, path in known.items():
        targets = known.keys() & imported_by(path) - {name}
        # "from mcpgen.codegen import names" imports the submodule: the package is only on the way to it.
        found[name] = frozenset(each for each in targets if not any(other.startswith(f"{each}.") for other in targets))
    return found


def circles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the circles of *graph*, each as the sorted list of all nodes that reach each other."""
    reached = {node: _reachable(graph, node) for node in graph}
    groups = {tuple(sorted(each for each in reached[node] if node in reached[each])) for node in graph}
    return sorted(list(group) for group in groups if len(group) > 1)


def _reachable(graph: Mapping[str, frozenset[str]], start: str) -> set[str]:
    found: set[str] = set()
    pending = [*graph[start]]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += graph[node]
    return found


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": {"b"}, "b": set()}, []),
        ({"a": {"b"}, "b": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}, [["b", "c", "d"]]),
        ({"a": {"b", "c"}, "b": {"a"}, "c": {"d"}, "d": {"a"}}, [["a", "b", "c", "d"]]),
    ],
)
def test_this_test_finds_circles(graph: dict[str, set[str]], expected: list[list[str]]) -> None:
    assert expected == circles({node: frozenset(targets) for node, targets in graph.items()})


def test_this_test_sees_imports_for_type_checkers_and_inside_functions() -> None:
    source = "if TYPE_CHECKING:\n    from a import b\n\ndef f():\n    import c.d\n"

    assert {"a", "a.b", "c.d"} == set(imported(source))


@pytest.mark.parametrize("room", FORBIDDEN)
def test_the_modules_of_a_room_were_found(room: str) -> None:
    graph = imports(room)

    assert len(graph) > 3
    assert any(graph.values())


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_imports_none_that_is_forbidden_to_it(room: str) -> None:
    guilty = [
        f"{name} imports {target}"
        for name, path in modules(room).items()
        for target in sorted(imported_by(path))
        if any(f"{target}.".startswith(f"mcpgen.{each}.") for each in FORBIDDEN[room])
    ]

    assert [] == guilty


@pytest.mark.parametrize("room", ["codegen", "runtime"])
def test_no_circle_has_more_than_three_files(room: str) -> None:
    assert [] == [each for each in circles(imports(room)) if len(each) > LARGEST_CIRCLE]


def test_beside_its_packages_the_runtime_has_errors_and_limits_alone() -> None:
    runtime = PACKAGE / "runtime"

    assert {"errors.py", "limits.py", "__init__.py"} == {path.name for path in runtime.glob("*.py")}
    assert set(RUNTIME) == {path.name for path in runtime.iterdir() if (path / "__init__.py").exists()}


@pytest.mark.parametrize("module", ["errors", "limits"])
def test_errors_and_limits_import_nothing_else_of_the_runtime(module: str) -> None:
    names = imported((PACKAGE / "runtime" / f"{module}.py").read_text(encoding="utf-8"))
    own = ("mcpgen.runtime.errors", "mcpgen.runtime.limits")

    assert [] == [each for each in names if each.startswith("mcpgen.runtime.") and not each.startswith(own)]


# The two sides of HTTP mirror each other.
SIDES = {"runtime.http": ["server", "client"]}


@pytest.mark.parametrize("package", [f"runtime.{each}" for each in RUNTIME])
def test_no_file_name_occurs_twice_in_a_package(package: str) -> None:
    folder = PACKAGE / package.replace(".", "/")
    parts = [folder / side for side in SIDES.get(package, [])] or [folder]
    names = [[path.name for path in part.rglob("*.py") if path.name != "__init__.py"] for part in parts]

    assert [] == [name for found in names for name in set(found) if found.count(name) > 1]
