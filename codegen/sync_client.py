"""Derive the blocking clients from the sources of the asynchronous ones: `SyncClient` has each method of `Client`.

Theory of operation. The sources are parsed, not imported. A coroutine function becomes a method that waits for it in
the thread of the client's event loop. A function that returns an async iterator becomes one that returns an iterator,
`listen` becomes a context manager, and a handle of a task one that waits. Signatures and docstrings are kept. ADR 0024
says why this is generated.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen.render import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["SYNC_CLIENT", "generate_sync_client"]

SYNC_CLIENT = "sync_client.py"
"""The name of the file in ``runtime/api/``."""


class _Derived(msgspec.Struct, frozen=True):
    """A class to derive.

    Attributes:
        name: Its name.
        asynchronous: The class that it wraps.
        docstring: What it is.
        sources: The file, relative to the checkout, and the name of each class that it is derived from, base first.
    """

    name: str
    asynchronous: str
    docstring: str
    sources: tuple[tuple[str, str], ...]


_CLASSES = (
    _Derived(
        "SyncClient",
        "Client",
        """A connection to a server, for programs without an event loop. `connect_sync` makes it.

    It has the methods of `Client`. Each waits until the result is there. Types, options and errors are the same.
    """,
        (("runtime/client/base_client.py", "BaseClient"), ("runtime/api/client.py", "Client")),
    ),
    _Derived(
        "SyncGroupMethods",
        "ClientGroup",
        "The part of `SyncClientGroup` that is derived from `ClientGroup`.",
        (("runtime/api/hosts/client_group.py", "ClientGroup"),),
    ),
)

# Written by hand in `BlockingClient` and `SyncClientGroup`; and `methods`, whose class has coroutine functions only.
_NOT_DERIVED = frozenset({"clients", "close", "methods"})

_BLOCKING = {"AsyncIterator": "Iterator", "Changes": "SyncChanges", "TaskHandle": "SyncTaskHandle"}
_WRAPPED = ("Changes", "TaskHandle")
_IMPORTS = {"Iterator": "collections.abc", "Any": "typing"}
_PROSE = (
    ("an ``async with``", "a ``with``"),
    ("async with", "with"),
    ("async for", "for"),
    (" ``ClientMethods(client)`` calls this.", ""),
)


class _Method(msgspec.Struct, frozen=True):
    decorators: list[str]
    signature: str
    docstring: str
    body: str


class _Import(msgspec.Struct, frozen=True):
    module: str
    names: str


class _Class(msgspec.Struct, frozen=True):
    derived: _Derived
    methods: list[_Method]


def generate_sync_client(checkout: Path) -> dict[str, str]:
    """Return the source of the blocking clients by its file name; nothing if *checkout* has no client."""
    paths = [path for each in _CLASSES for path, _ in each.sources]
    if not all((checkout / path).is_file() for path in paths):
        return {}
    trees = {path: ast.parse((checkout / path).read_text(encoding="utf-8")) for path in paths}
    classes: list[_Class] = []
    evaluated: set[str] = set()
    for each in _CLASSES:
        groups = _method_groups(each, trees)
        methods = [_method(node, is_overloaded=len(nodes) > 1) for nodes in groups for node in nodes]
        classes.append(_Class(each, methods))
        evaluated |= {name for nodes in groups for node in nodes for name in _evaluated(node)}
    imported = {name: module for tree in trees.values() for module, name in _imported(tree)} | _IMPORTS
    for path, tree in trees.items():
        # A type variable of the first file is used for all.
        own = dict.fromkeys(_type_variables(tree), f"mcpgen.{path.removesuffix('.py').replace('/', '.')}")
        imported |= {name: module for name, module in own.items() if name not in imported}
    for each in _CLASSES:
        path = each.sources[-1][0]
        imported[each.asynchronous] = f"mcpgen.{path.removesuffix('.py').replace('/', '.')}"
    signatures = [method.signature for each in classes for method in each.methods]
    used = {name for each in signatures for name in re.findall(r"\b[A-Za-z_]\w*\b", each)}
    used |= {each.asynchronous for each in _CLASSES}
    return {
        SYNC_CLIENT: DEFAULT.render(
            "sync_client.py.jinja",
            classes=classes,
            sources=", ".join(paths),
            imports=_imports((used - evaluated) & imported.keys(), imported),
            runtime_imports=_imports(evaluated & imported.keys(), imported),
        )
    }


def _method_groups(
    derived: _Derived, trees: Mapping[str, ast.Module]
) -> list[list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return the methods of a class, each with its overloads."""
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for path, name in derived.sources:
        own: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for each in _functions(trees[path], name):
            own.setdefault(each.name, []).append(each)
        functions |= own  # what the subclass overrides is replaced as a whole, overloads included
    return list(functions.values())


def _imports(names: set[str], modules: dict[str, str]) -> list[_Import]:
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(modules[name], []).append(name)
    return [_Import(module, ", ".join(names)) for module, names in sorted(found.items())]


def _evaluated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the names that Python looks up when it defines a function: those in decorators and defaults."""
    defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
    for value in (*node.decorator_list, *defaults):
        yield from (each.id for each in ast.walk(value) if isinstance(each, ast.Name))


def _functions(tree: ast.Module, name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public methods and properties of the class *name*."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for each in node.body:
                if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) or each.name in _NOT_DERIVED:
                    continue
                if not each.name.startswith("_"):
                    yield each


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "__future__"):
            yield from ((str(node.module), each.asname or each.name) for each in node.names)


def _type_variables(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("TypeVar("):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef, *, is_overloaded: bool) -> _Method:
    decorators = [ast.unparse(each) for each in node.decorator_list]
    returned = "None" if node.returns is None else ast.unparse(node.returns)
    blocking = re.sub(rf"\b({'|'.join(_BLOCKING)})\b", lambda found: _BLOCKING[found[0]], returned)
    signature = f"def {node.name}({ast.unparse(node.args)}) -> {blocking}"
    # Overloads are resolved by the type checker where the blocking method is called, not once more inside of it.
    client = "self._untyped" if is_overloaded else "self._client"
    call = f"{client}.{node.name}({_arguments(node.args)})"
    if "overload" in decorators:
        body = "..."
    elif "property" in decorators:
        body = f"return {client}.{node.name}"
    elif returned.startswith("AsyncIterator"):
        body = f"return self._thread.iterate({call})"
    elif isinstance(node, ast.AsyncFunctionDef):
        waited = f"self._thread.run(lambda: {call})"
        body = f"return {_BLOCKING[returned]}(self._thread, {waited})" if returned in _WRAPPED else f"return {waited}"
    elif returned in _WRAPPED:
        body = f"return {_BLOCKING[returned]}(self._thread, {call})"
    else:
        body = f"return {call}"
    return _Method(decorators, signature, _docstring(node), body)


def _docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = ast.get_docstring(node, clean=False) or ""
    for asynchronous, blocking in _PROSE:
        text = text.replace(asynchronous, blocking)
    return text


def _arguments(given: ast.arguments) -> str:
    """Return the arguments that hand on the parameters of a method."""
    parts = [each.arg for each in (*given.posonlyargs, *given.args) if each.arg != "self"]
    if given.vararg is not None:
        parts.append(f"*{given.vararg.arg}")
    parts += [f"{each.arg}={each.arg}" for each in given.kwonlyargs]
    if given.kwarg is not None:
        parts.append(f"**{given.kwarg.arg}")
    return ", ".join(parts)
