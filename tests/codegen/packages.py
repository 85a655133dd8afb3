"""Documents of the tests' own, built into packages, and the packages used."""

from __future__ import annotations

import importlib.util
import itertools
import json
import shutil
import sys
import types
import typing
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mcpgen.codegen.build import Package, foreign_source, generate
from mcpgen.codegen.document import parse_document
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

CHECKOUT = Path(__file__).parents[2]
SCHEMA = Path(str(files("mcpgen"))) / "schema"
SUPPORT = Path(str(files("mcpgen"))) / "generated" / "_support"

# What a package consists of, sorted.
FILES = [
    "__init__.py",
    "_support/__init__.py",
    "_support/lazy.py",
    "_support/methods.py",
    "_support/structs.py",
    "_support/unions.py",
    "_support/validation.py",
    "client.py",
    "messages.py",
    "methods.py",
    "models.py",
    "server.py",
]

_numbers = itertools.count()


def build(document: Mapping[str, Any], *, label: str = "test", alone: bool = True) -> Package:
    """Return the package of *document*, which is read as if it came from a file; *alone*, it has all that it needs."""
    content = json.dumps(document).encode()
    return generate(foreign_source(SchemaRoom(), parse_document(content, name="schema.json"), label), alone=alone)


def write_files(folder: Path, written: Mapping[str, str]) -> None:
    """Write the files of a package into *folder*."""
    for name, content in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def names_below(folder: Path) -> list[str]:
    """Return the files in *folder* and the folders in it, sorted."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))


def load(package: Package, folder: Path) -> ModuleType:
    """Write *package* into *folder* and import it, under a name that nothing else has; return its door."""
    name = f"built_{next(_numbers)}_for_{folder.name}".replace("-", "_")
    target = folder / name
    write_files(target, package.files)
    return load_folder(target, name)


def load_folder(folder: Path, name: str) -> ModuleType:
    """Import the package in *folder* as *name*."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    door = importlib.util.module_from_spec(spec)
    sys.modules[name] = door
    spec.loader.exec_module(door)
    return door


def types_of(door: Any) -> Iterator[tuple[str, Any]]:
    """Yield the types that the package *door* exports, with their names."""
    names = sorted({*door.models.__all__, *door.messages.__all__} - {"decode", "decoder"})
    return ((name, getattr(door, name)) for name in names)


def build_decoders(door: Any) -> None:
    """Build every decoder that the package *door* can ever need: msgspec finds fault with a type only then."""
    for _, each in types_of(door):
        door.decoder(each)
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            msgspec.json.Decoder(each)
            for hint in typing.get_type_hints(each, localns={}, include_extras=True).values():
                door.decoder(without_unset(hint))
        for union in getattr(each, "__metadata__", ()):
            for arm in union._declare() if hasattr(union, "_declare") else ():
                door.decoder(arm)


def without_unset(hint: Any) -> Any:
    """Return the type of a key that is there; UNSET only says that it may be absent."""
    if typing.get_origin(hint) not in {typing.Union, types.UnionType}:
        return hint
    return typing.Union[tuple(arm for arm in typing.get_args(hint) if arm is not msgspec.UnsetType)]  # noqa: UP007 made


def canonical(value: object) -> str:
    """Return *value* as text that is equal for equal JSON alone: 1 and 1.0 differ, the order of keys does not count."""
    return json.dumps(value, sort_keys=True)


def small_checkout(root: Path, revision: str) -> None:
    """Make *root* a checkout that has no more than the schema room, with *revision* alone, and an empty generated/."""
    (root / ".package" / "mcpgen").mkdir(parents=True)
    (root / ".package" / "mcpgen" / "__init__.py").touch()
    (root / "generated").mkdir()
    (root / "schema" / revision).mkdir(parents=True)
    for name in ("docs.toml", "overlay.toml", f"{revision}/schema.json", f"{revision}/overlay.toml"):
        shutil.copy(SCHEMA / name, root / "schema" / name)
    head, *pins = (SCHEMA / "PINNED.toml").read_text(encoding="utf-8").split("[[document]]")
    (pin,) = [pin for pin in pins if f'revision = "{revision}"' in pin]
    (root / "schema" / "PINNED.toml").write_text(
        f"{head}[[document]]{pin.partition('[[extension]]')[0]}", encoding="utf-8"
    )
