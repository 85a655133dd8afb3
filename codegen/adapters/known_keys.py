"""The keys that each revision defines for an object: *known* to it, or *foreign* because only others define them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.unions import Unions

if TYPE_CHECKING:
    from mcpgen.codegen.diff import Edition

__all__ = ["Lineages", "Node", "RevisionTypes", "ObjectKeys"]

Node: TypeAlias = tuple[str, str]
"""A revision, and one of its definitions or the place of an object without a definition."""


class ObjectKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of an object that has a definition, or of an open object at a place.

    Attributes:
        name: The definition, or the place, ``CallToolResult._meta``.
        is_defined: Whether *name* is a definition.
        properties: The properties by key.
    """

    name: str
    is_defined: bool
    properties: dict[str, ir.Property]


class RevisionTypes:
    """The types of one revision, with the unknown keys that a declared change keeps.

    Args:
        edition: The revision.
        kept: The keys that older revisions define, by the name of the definition.
        tolerated: Those that newer revisions define.
    """

    def __init__(
        self,
        edition: Edition,
        kept: frozenset[tuple[str, str]] = frozenset(),
        tolerated: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self.label: str = edition.label
        self.edition: Edition = edition
        self.schema: ir.Schema = edition.schema
        self.unions: Unions = Unions(edition.schema)
        self._kept = kept
        self._tolerated = tolerated

    def object_keys(self, ref: ir.TypeRef, place: str) -> ObjectKeys | None:
        """Return the keys of *ref* at *place*, or None if it is not an object or its keys are data."""
        target = self.schema.resolve(ref)
        if isinstance(target, ir.Object):
            return self._defined(target)
        if isinstance(target, ir.Mapping) and isinstance(target.value, ir.Anything):
            return ObjectKeys(name=place, is_defined=False, properties={})
        return None

    def keeps(self, name: str, key: str) -> bool:
        """Whether a declared change keeps the unknown key *key* of the definition *name*."""
        return (name, key) in self._kept

    def tolerates(self, name: str, key: str) -> bool:
        """Whether a declared change of a newer revision keeps the unknown key *key* of the definition *name*."""
        return (name, key) in self._tolerated

    def _defined(self, target: ir.Object) -> ObjectKeys:
        properties = {each.wire: each for each in target.properties}
        for owner, key in sorted(self._kept):
            if owner == target.name and key not in properties:
                properties[key] = ir.Property(wire=key, pointer=target.pointer, type=ir.Anything(), required=False)
        return ObjectKeys(name=target.name, is_defined=True, properties=properties)


class Lineages:
    """Which objects of different revisions are the same one, which determines their foreign keys."""

    def __init__(self) -> None:
        self._parents: dict[Node, Node] = {}
        self._keys: dict[Node, set[str]] = defaultdict(set)
        self._own: dict[Node, set[str]] = defaultdict(set)
        self._required: dict[Node, set[str]] = defaultdict(set)

    def join(self, one: Node, other: Node) -> None:
        """Record that two objects are the same one."""
        first, second = sorted((self._root(one), self._root(other)))
        if first != second:
            self._parents[second] = first
            self._keys[first] |= self._keys.pop(second, set())

    def define(self, node: Node, properties: dict[str, ir.Property]) -> None:
        """Record that the object *node* defines *properties*."""
        self._keys[self._root(node)] |= properties.keys()
        self._own[node] |= properties.keys()
        self._required[node] |= {key for key, each in properties.items() if each.required}

    def keys(self, node: Node) -> frozenset[str]:
        """Return the keys that any revision defines for the object *node*."""
        return frozenset(self._keys[self._root(node)])

    def has(self, revision: str, node: Node, key: str) -> bool:
        """Whether *revision* defines *key* for the object *node*, which can be an object of another revision."""
        return self._is_in(self._own, revision, node, key)

    def requires(self, revision: str, node: Node, key: str) -> bool:
        """Whether *revision* requires *key* in the object *node*, which can be an object of another revision."""
        return self._is_in(self._required, revision, node, key)

    def _is_in(self, keys: dict[Node, set[str]], revision: str, node: Node, key: str) -> bool:
        root = self._root(node)
        return any(key in found for each, found in keys.items() if each[0] == revision and self._root(each) == root)

    def _root(self, node: Node) -> Node:
        while node in self._parents:
            node = self._parents[node]
        return node
