"""Editions of small schemas, and their differences in brief."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpgen.codegen.build import foreign_source
from mcpgen.codegen.diff import Edition, compare, edition, mirrored
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.codegen.diff.model import Change

ROOM = SchemaRoom()
STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}


def read(**definitions: Any) -> Edition:
    """Return the edition of a document with these definitions."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}
    return edition(foreign_source(ROOM, document, "draft"), vendored=False)


def obj(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def any_of(*arms: Any) -> dict[str, Any]:
    return {"anyOf": list(arms)}


def request(method: str, *, params: Any = None) -> dict[str, Any]:
    properties = {"method": {"const": method, "type": "string"}, **({"params": params} if params else {})}
    return obj("method", *(["params"] if params else []), **properties)


def brief(change: Change) -> tuple[Any, ...]:
    """Return the kind, the id, what it was, what it is, and what that means for values."""
    old, new = (site.shape if site else None for site in (change.old, change.new))
    return change.kind, change.id, old, new, change.effect


def changes(old: Edition, new: Edition, renames: Mapping[str, str] | None = None) -> list[tuple[Any, ...]]:
    diff = compare(old, new, renames=renames)
    declared = {after: before for before, after in (renames or {}).items()}
    assert mirrored(diff) == compare(new, old, renames=declared)
    assert mirrored(mirrored(diff)) == diff

    return [brief(each) for each in diff.changes]


def type_changes(old: Any, new: Any, **others: Any) -> list[tuple[Any, ...]]:
    """Return the changes of a key ``A.x`` from one type to another."""
    return changes(read(A=obj(x=old), **others), read(A=obj(x=new), **others))
