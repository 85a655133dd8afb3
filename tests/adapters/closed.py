"""The documents *closed*: as permissive as the patched ones, but no object takes keys that are foreign to it.

JSON Schema by itself validates almost any message of one revision as one of another, because MCP's objects are open. A
closed document refuses the keys that the same object has in another revision and not in its own. Keys that no revision
has still pass: whoever sends them knows what they mean. The codes of errors are treated as keys are: one that only
other revisions define is refused.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from mcpgen.codegen.build import pinned_source
from mcpgen.codegen.pinned import SchemaRoom
from tests.adapters.correspondence import Document, Foreign, Pointer, at, foreign_keys
from tests.oracle import subjects
from tests.oracle.subjects import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.oracle.shapes import Schema


@cache
def foreign(revision: str) -> Mapping[Pointer, Foreign]:
    """Return the foreign keys of the objects of *revision*, by the pointer of the object."""
    return _all()[revision]


@cache
def _all() -> Mapping[str, Mapping[Pointer, Foreign]]:
    return foreign_keys()


@cache
def closed(revision: str) -> Mapping[str, Any]:
    """Return the patched document of *revision*, closed against foreign keys."""
    document = copy.deepcopy(dict(subjects.patched(revision)))
    for pointer, keys in foreign(revision).items():
        schema: Schema = at(document, pointer)
        if "propertyNames" in schema:
            raise ValueError(f"{revision}: {pointer} has names of its own")
        if "$ref" in schema:  # draft-07 ignores what stands beside a reference
            schema["allOf"] = [{"$ref": schema.pop("$ref")}]
        schema["propertyNames"] = {"not": {"enum": sorted(keys)}}
    error = at(document, (Document(revision).section, "Error"))
    error["properties"]["code"]["not"] = {"enum": sorted(foreign_codes(revision))}
    return document


def foreign_codes(revision: str) -> frozenset[int]:
    """Return the error codes that other revisions define and *revision* does not."""
    known = frozenset[int]().union(*(codes(each) for each in REVISIONS))
    # JSON-RPC 2.0, section 5.1, reserves this range; a code outside of it is the application's.
    return frozenset(code for code in known - codes(revision) if -32768 <= code <= -32000)


@cache
def codes(revision: str) -> frozenset[int]:
    """Return the error codes that *revision* defines, JSON-RPC's included."""
    source = pinned_source(SchemaRoom(), revision)
    return frozenset(each.code for each in (*source.shared.errors, *source.overlay.errors))
