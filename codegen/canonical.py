"""The form in which documents are vendored: their facts, without the prose, always in the same bytes.

Prose is the ``description`` annotation: official texts are upstream's to publish, ours are in ``docs.toml``. A property
that is called "description" is a fact and stays, and so does whatever stands inside ``const``, ``enum``, ``default``,
``examples`` and ``required``, which hold values rather than schemas. Nothing else is removed.

Canonical form is what ``json.dumps(document, indent=2)`` gives, in ASCII, the keys in the document's own order, and a
newline at the end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpgen.codegen.json_pointers import Json

__all__ = ["canonical_bytes", "reduce"]

# Where JSON Schema has schemas, in draft-07 and in 2020-12. The table is wider than what can be generated from, so that
# a document of tomorrow is reduced by the same rule before anybody can generate from it.
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
    """Return *document* without its prose; *document*, as ``read_document`` bounds it, is left alone."""
    return {name: _reduced(name, value) for name, value in document.items() if name != "description"}


def canonical_bytes(document: dict[str, Json]) -> bytes:
    """Return the one way in which *document* is written."""
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
