"""What the oracle compares of an extension: its document with what it needs of its base, and its bindings."""

from __future__ import annotations

import importlib
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from mcpgen.codegen.equivalents import simplified
from mcpgen.codegen.extensions import patched_extension, vendored_extension
from mcpgen.codegen.overlay import Overlay
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.generated._support.structs import Open
from tests.oracle.oracle import Comparison
from tests.oracle.subjects import Bindings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXTENSIONS = SchemaRoom().extensions

# So many properties of an object with the same union get values of all its arms. More would take minutes.
MOST_ALIKE = 4

# Values for the one pattern of the documents: a time in ISO 8601.
TIMES = ["2026-07-28T12:00:00Z", "2024-02-29T23:59:59.5+01:00"]


@cache
def patched(name: str) -> Mapping[str, Any]:
    """Return the document that the bindings of the extension *name* are exact for."""
    room = SchemaRoom()
    return patched_extension(room, vendored_extension(room, name))


@cache
def official(name: str) -> Mapping[str, Any]:
    """Return the document of the extension *name* with what it needs of its base, without its overlay."""
    room = SchemaRoom()
    return patched_extension(room, msgspec.structs.replace(vendored_extension(room, name), overlay=Overlay()))


def own_names(name: str) -> list[str]:
    """Return the definitions of the extension *name* that are not those of its base."""
    pin = SchemaRoom().extension_pin(name)
    base = importlib.import_module(f"mcpgen.generated.v{pin.base.replace('-', '_')}")
    return [
        each
        for each in patched(name)["$defs"]
        if hasattr(door(name), each) and getattr(base, each, None) is not getattr(door(name), each)
    ]


def bindings(name: str) -> Bindings:
    """Return the generated bindings of the extension *name*."""
    return Bindings(door(name), open_objects=Open)


def door(name: str) -> Any:
    """Return the package of the extension *name*."""
    return importlib.import_module(f"mcpgen.generated.extensions.{name}")


def comparison(name: str) -> Comparison:
    """Return the comparison of the extension *name*; the validators read the document as it is."""
    return Comparison(patched(name), bindings(name), shaped=_shaped(simplified(dict(patched(name)))))


def _shaped(schema: Any) -> Any:
    """Return *schema* in the keywords that the generator of instances knows, for a part of its instances."""
    if isinstance(schema, list):
        return [_shaped(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "pattern" in schema and schema.get("type") == "string":
        return {"enum": TIMES}
    return {
        key: {name: _shaped(each) for name, each in _narrowed(value)} if key == "properties" else _shaped(value)
        for key, value in schema.items()
        if key != "propertyNames"
    }


def _narrowed(properties: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the properties; most of those with the same union, such as 76 variables of a style, with one arm only."""
    alike: Counter[bytes] = Counter()
    for name, schema in properties.items():
        kind = msgspec.json.encode(schema)
        alike[kind] += 1
        is_narrowed = isinstance(schema, dict) and "anyOf" in schema and alike[kind] > MOST_ALIKE
        yield name, schema["anyOf"][0] if is_narrowed else schema
