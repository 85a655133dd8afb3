"""The form in which documents are vendored: without descriptions, and always with the same bytes.

The official descriptions are not ours to publish; our own are in ``docs.toml``. Only the ``description`` annotation is
removed. A property that is called "description" stays, and so does everything inside ``const``, ``enum``, ``default``,
``examples`` and ``required``, which hold values, not schemas.

The canonical form is the result of ``json.dumps(document, indent=2)`` plus a newline: ASCII, with the keys in the order
of the document.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpgen.codegen.json_pointers import Json

__all__ = ["canonical_bytes", "reduce"]

# The keywords that contain schemas, in draft-07 and 2020-12. The tables include keywords that the generator does not
# support, so that this rule does not change when it supports more.
_HOLDS_A_SCHEMA = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_HOLDS_AN_ARRAY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_HOLDS_NAMES = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


def reduce(document: dict[str, Json]) -> dict[str, Json]:
    """Return a copy of *document* without descriptions. ``read_document`` limits the depth of *document*."""
    return {name: _reduced(name, value) for name, value in document.items() if name != "description"}


def canonical_bytes(document: dict[str, Json]) -> bytes:
    """Return *document* in canonical form."""
    return (json.dumps(document, indent=2) + "\n").encode("ascii")


def _reduced(keyword: str, value: Json) -> Json:
    match value:
        case dict() if keyword in _HOLDS_NAMES:
            return {name: _schema(inner) for name, inner in value.items()}
        case dict() if keyword in _HOLDS_A_SCHEMA:
            return reduce(value)
        case list() if keyword in _HOLDS_AN_ARRAY:
            return [_schema(inner) for inner in value]
        case _:
            return value


def _schema(value: Json) -> Json:
    return reduce(value) if isinstance(value, dict) else value
