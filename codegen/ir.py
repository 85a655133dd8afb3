"""The intermediate representation: what a revision defines, decided before anything is laid out.

Theory of operation. ``parse`` turns a patched schema document into a `Schema`: every definition, and every inline
object or union hoisted out of one, under its final class name, as a closed set of frozen nodes. Everything later
(names, unions, methods, emission, diff) reads these nodes and nothing else; templates see only what ``emit`` made
of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

Constant: TypeAlias = str | int | bool | None
"""A value that a schema may fix with ``const`` or list in ``enum``."""

ScalarKind: TypeAlias = Literal["string", "integer", "number", "boolean", "null"]


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all nodes."""


class Anything(Node, frozen=True):
    """Any JSON value: ``{}``."""


class Nothing(Node, frozen=True):
    """No JSON value: ``false``. A key of this type must be absent."""


class Scalar(Node, frozen=True, kw_only=True):
    """One primitive type with the bounds a schema puts on it.

    ``bounds`` holds (msgspec.Meta keyword, value) pairs in the order in which they are printed.
    """

    kind: ScalarKind
    bounds: tuple[tuple[str, str | int | float], ...] = ()


class Fixed(Node, frozen=True, kw_only=True):
    """One of a fixed set of values; a constant is a set of one."""

    values: tuple[Constant, ...]


class Array(Node, frozen=True, kw_only=True):
    """A list of *item*, at least and at most so long."""

    item: TypeRef
    bounds: tuple[tuple[str, int], ...] = ()


class Mapping(Node, frozen=True, kw_only=True):
    """An object whose keys are data: every value has the same type."""

    value: TypeRef


class Named(Node, frozen=True, kw_only=True):
    """A reference to a definition of the same schema."""

    name: str


class Union(Node, frozen=True, kw_only=True):
    """One of several types, in the schema's order; arms are never unions themselves and never repeat."""

    arms: tuple[TypeRef, ...]


TypeRef: TypeAlias = Anything | Nothing | Scalar | Fixed | Array | Mapping | Named | Union


class Property(Node, frozen=True, kw_only=True):
    """One known key of an object.

    Attributes:
        preset: What a required key is filled in with on construction, or None.
    """

    wire: str
    pointer: str
    type: TypeRef
    required: bool
    preset: Constant = None
    description: str = ""

    @property
    def constant(self) -> Fixed | None:
        """The single value that a required key must have, if the schema fixes one."""
        if self.required and isinstance(self.type, Fixed) and len(self.type.values) == 1:
            return self.type
        return None


class Object(Node, frozen=True, kw_only=True):
    """An object with known keys.

    Attributes:
        unknown: What becomes of keys that are not known: ``kept`` (the object is *open* and is held as a dict),
            ``dropped`` (the usual MCP object) or ``refused`` (``additionalProperties: false``).
        anonymous: Hoisted out of the definition that its name starts with.
    """

    name: str
    pointer: str
    properties: tuple[Property, ...]
    unknown: Literal["kept", "dropped", "refused"]
    anonymous: bool = False
    description: str = ""


class Alias(Node, frozen=True, kw_only=True):
    """A name for any other type."""

    name: str
    pointer: str
    type: TypeRef
    anonymous: bool = False
    description: str = ""


Definition: TypeAlias = Object | Alias


class Schema(Node, frozen=True, kw_only=True):
    """All definitions of one revision, sorted by name."""

    definitions: dict[str, Definition]

    def resolve(self, ref: TypeRef) -> TypeRef | Object:
        """Follow names and aliases until an object or a type of its own is reached."""
        while isinstance(ref, Named):
            target = self.definitions[ref.name]
            if isinstance(target, Object):
                return target
            ref = target.type
        return ref

    def member(self, name: str, path: tuple[str, ...]) -> TypeRef | Object | None:
        """Return what the definition *name* has at the *path* of keys, resolved; None if it does not go so far."""
        found: TypeRef | Object | None = self.resolve(Named(name=name)) if name in self.definitions else None
        for key in path:
            known = {each.wire: each.type for each in found.properties} if isinstance(found, Object) else {}
            found = self.resolve(known[key]) if key in known else None
        return found

    def objects(self) -> Iterator[Object]:
        """Yield the objects, sorted by name."""
        return (each for each in self.definitions.values() if isinstance(each, Object))

    def aliases(self) -> Iterator[Alias]:
        """Yield the aliases, sorted by name."""
        return (each for each in self.definitions.values() if isinstance(each, Alias))


def children(ref: TypeRef) -> tuple[TypeRef, ...]:
    """Return the types directly inside *ref*; a name is not followed."""
    match ref:
        case Anything() | Nothing() | Scalar() | Fixed() | Named():
            return ()
        case Array(item=item):
            return (item,)
        case Mapping(value=value):
            return (value,)
        case Union(arms=arms):
            return arms
        case _:
            assert_never(ref)


def names(ref: TypeRef) -> Iterator[str]:
    """Yield the names that *ref* mentions, depth first."""
    if isinstance(ref, Named):
        yield ref.name
    for child in children(ref):
        yield from names(child)
