"""From parsed schema objects to the intermediate representation.

Inline objects, and inline unions that need a decoder of their own, are hoisted into definitions named after their path
(``ClientCapabilitiesElicitation``): a name says where the type came from and does not change when a sibling appears.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from mcpgen.codegen import ir, names
from mcpgen.codegen.arms import fixed_type, json_type, json_types_differ, ref_name, simplified, suffixes
from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.frontend import SchemaNode, SchemaObject, schema_objects

__all__ = ["parse"]

_STRING_BOUNDS = (("min_length", "minLength"), ("max_length", "maxLength"), ("pattern", "pattern"))
_NUMBER_BOUNDS = (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"))
_ARRAY_BOUNDS = (("min_length", "minItems"), ("max_length", "maxItems"))

_HINTS = {
    "MG110": "List strings, integers, booleans or null.",
    "MG121": "Give additionalProperties as {} or leave it out, or patch it so in the overlay.",
    "MG122": "Repeat the property in both arms with the same keywords, or patch one arm in the overlay.",
    "MG123": "Write the schema without allOf, or patch it in the overlay.",
    "MG124": "Move the other keywords into each arm, or patch the schema in the overlay.",
    "MG125": "List a value of that type, or drop the type.",
    "MG210": "Give the inline type a definition of its own, with an [[extract]] in the overlay.",
}

_Part: TypeAlias = tuple[SchemaObject, str]
"""One of the object schemas whose conjunction an object is, with its pointer."""


def parse(document: dict[str, Any]) -> ir.Schema:
    """Parse a checked and patched *document*.

    Raises:
        Refused: With a diagnostic for every construct that has no exact Python type.
    """
    parser = _Parser(document)
    schema = parser.schema()
    if parser.diagnostics:
        raise Refused(parser.diagnostics)
    return schema


class _Parser:
    """Parses one document; collects definitions and diagnostics."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._keyword = "$defs" if "$defs" in document else "definitions"
        self._objects = schema_objects(document)
        self._definitions: dict[str, ir.Definition] = {}
        self.diagnostics: list[Diagnostic] = []

    def schema(self) -> ir.Schema:
        for name, node in sorted(self._objects.items()):
            self._define(name, node, f"/{self._keyword}/{name}", anonymous=False)
        return ir.Schema(definitions=dict(sorted(self._definitions.items())))

    # Definitions

    def _define(self, name: str, node: SchemaObject, pointer: str, *, anonymous: bool) -> ir.Named:
        """Add *node* under *name*, as an object where it has known keys and as an alias where it has none."""
        if anonymous:
            self._check_free(name, pointer)
        self._definitions[name] = self._object(name, node, pointer, anonymous=anonymous) or ir.Alias(
            name=name,
            pointer=pointer,
            type=self._type(node, pointer, name, hoist=False),
            anonymous=anonymous,
            description=node.description,
        )
        return ir.Named(name=name)

    def _check_free(self, name: str, pointer: str) -> None:
        if name in self._objects:
            self._report("MG210", pointer, f"the inline type here would be named {name}, which is a definition")
        elif name in self._definitions:
            where = self._definitions[name].pointer
            self._report("MG210", pointer, f"the inline type here would be named {name}, like the one at {where}")

    def _object(self, name: str, node: SchemaObject, pointer: str, *, anonymous: bool) -> ir.Object | None:
        """Return *node* as an object with known keys, its ``allOf`` merged, or None if it has none."""
        if not {*node.types} <= {"object"}:
            return None
        parts = self._parts(node, pointer)
        keys = sorted({key for part, _ in parts for key in part.properties or {}})
        refuses = any(part.additional is False for part, _ in parts)
        if not keys and not refuses:
            return None
        self._check_parts([(node, pointer), *(part for part in parts if part[0] is not node)], set(keys))
        required = frozenset[str]().union(*(part.required for part, _ in parts))
        return ir.Object(
            name=name,
            pointer=pointer,
            properties=tuple(self._property(key, parts, name, required=key in required) for key in keys),
            unknown="refused" if refuses else self._unknown(parts),
            anonymous=anonymous,
            description=node.description,
        )

    def _check_parts(self, parts: list[_Part], keys: set[str]) -> None:
        """Report what a merged object would not say."""
        for part, where in parts:
            if part.any_of:
                self._report("MG124", where, "anyOf stands beside properties or allOf, which also decide")
            if part.fixed is not None:
                self._report("MG125", where, "no listed value is an object with these properties")
            if part.additional is False and keys - (part.properties or {}).keys():
                self._report("MG121", where, "additionalProperties refuses keys that another arm of allOf describes")

    def _unknown(self, parts: list[_Part]) -> Literal["kept", "dropped"]:
        """Say what becomes of unknown keys; one part that is open opens the whole, which then holds all keys."""
        marked = [(part.additional, pointer) for part, pointer in parts if part.additional is not None]
        for extra, pointer in marked:
            if not _admits_anything(extra):
                self._report("MG121", pointer, "additionalProperties restricts the keys beside known properties")
        return "kept" if marked else "dropped"

    def _property(self, key: str, parts: list[_Part], owner: str, *, required: bool) -> ir.Property:
        """Return the property *key* of *owner*, from the parts of its ``allOf`` that mention it."""
        (node, pointer), *others = [
            (part.properties[key], f"{pointer}/properties{pointer_to(key)}")
            for part, pointer in parts
            if part.properties and key in part.properties
        ]
        for other, other_pointer in others:
            node, pointer = self._narrow(node, other, other_pointer), other_pointer
        return ir.Property(
            wire=key,
            pointer=pointer,
            type=self._type(node, pointer, owner + (names.pascal(key) or "Field")),
            required=required,
            preset=_preset(node) if required else None,
            description=node.description if isinstance(node, SchemaObject) else "",
        )

    def _narrow(self, first: SchemaNode, second: SchemaNode, pointer: str) -> SchemaNode:
        """Return a schema that admits what both admit, where one only adds keywords to the other."""
        if not isinstance(first, SchemaObject) or not isinstance(second, SchemaObject):
            return second if first is True else first
        own, other = first.decides(), second.decides()
        for keyword in sorted(own.keys() & other.keys()):
            if own[keyword] != other[keyword]:
                self._report("MG122", pointer, f"two arms of allOf give different {keyword} for one property")
        return msgspec.structs.replace(first, **other)

    def _parts(self, node: SchemaObject, pointer: str, seen: tuple[str, ...] = ()) -> list[_Part]:
        """Return the object schemas whose conjunction *node* is, references followed."""
        decides = node.decides().keys()
        parts = [(node, pointer)] if decides & {"properties", "required", "additional"} else []
        for index, arm in enumerate(node.all_of):
            where = f"{pointer}/allOf/{index}"
            if isinstance(arm, bool):
                continue
            if arm.ref and (name := ref_name(arm.ref)) not in seen:
                found = self._parts(self._objects[name], f"/{self._keyword}/{name}", (*seen, name))
            else:
                found = self._parts(arm, where, seen)
            if not found and arm.decides() not in ({}, {"types": ("object",)}):
                self._report("MG123", where, "allOf can only be merged where every arm is an object with properties")
            parts += found
        return parts

    # Types

    def _type(self, node: SchemaNode, pointer: str, name: str, *, hoist: bool = True) -> ir.TypeRef:
        """Return the type of *node*; *name* is what it is called if it must be hoisted."""
        if isinstance(node, bool):
            return ir.Anything()
        if node.ref:
            return ir.Named(name=ref_name(node.ref))
        if node.any_of:
            return self._union(node, pointer, name, hoist=hoist)
        if node.all_of:
            return self._conjunction(node, pointer, name)
        if node.fixed is not None:
            return self._fixed(node, pointer)
        arms = [self._kind(kind, node, pointer, name, hoist=hoist) for kind in node.types or _implied_types(node)]
        return simplified(arms) if arms else ir.Anything()

    def _kind(self, kind: str, node: SchemaObject, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return the type of *node* where its JSON type is *kind*, one of those that `check_document` lets pass."""
        match kind:
            case "object":
                return self._mapping(node, pointer, name, hoist=hoist)
            case "array":
                item = self._type(True if node.items is None else node.items, f"{pointer}/items", f"{name}Item")
                return ir.Array(item=item, bounds=_bounds(node, _ARRAY_BOUNDS))
            case "string":
                return ir.Scalar(kind="string", bounds=_bounds(node, _STRING_BOUNDS))
            case "integer":
                return ir.Scalar(kind="integer", bounds=_bounds(node, _NUMBER_BOUNDS))
            case "number":
                return ir.Scalar(kind="number", bounds=_bounds(node, _NUMBER_BOUNDS))
            case "boolean":
                return ir.Scalar(kind="boolean")
            case _:
                return ir.Scalar(kind="null")

    def _mapping(self, node: SchemaObject, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return an inline object: hoisted where it has known keys, otherwise a mapping."""
        if node.properties or node.additional is False:
            node = msgspec.structs.replace(node, types=("object",))
            return self._define(name if hoist else f"{name}Object", node, pointer, anonymous=True)
        extra = node.additional
        if extra is None or _admits_anything(extra):
            return ir.Mapping(value=ir.Anything())
        return ir.Mapping(value=self._type(extra, f"{pointer}/additionalProperties", f"{name}Value"))

    def _conjunction(self, node: SchemaObject, pointer: str, name: str) -> ir.TypeRef:
        """Return the type of an ``allOf``: one arm stands for itself, several are merged into an object."""
        if len(node.all_of) == 1 and node.decides().keys() == {"all_of"}:
            return self._type(node.all_of[0], f"{pointer}/allOf/0", name)
        if any(part.properties for part, _ in self._parts(node, pointer)):
            return self._define(name, node, pointer, anonymous=True)
        self._report("MG123", pointer, "allOf can only be merged where an arm is an object with properties")
        return ir.Anything()

    def _union(self, node: SchemaObject, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return the type of an ``anyOf``, hoisted where it takes more than JSON types to tell its arms apart."""
        if beside := sorted(node.decides().keys() - {"any_of"}):
            self._report("MG124", pointer, f"anyOf stands beside {', '.join(beside)}, which also decides")
        named = zip(node.any_of, suffixes(node.any_of), strict=True)
        arms = [self._type(arm, f"{pointer}/anyOf/{index}", name + suffix) for index, (arm, suffix) in enumerate(named)]
        union = simplified(arms)
        mentions_names = any(True for _ in ir.names(union))
        if not hoist or not isinstance(union, ir.Union) or (json_types_differ(union.arms) and not mentions_names):
            return union
        self._check_free(name, pointer)
        self._definitions[name] = ir.Alias(name=name, pointer=pointer, type=union, anonymous=True)
        return ir.Named(name=name)

    def _fixed(self, node: SchemaObject, pointer: str) -> ir.TypeRef:
        """Return the values of a ``const`` or ``enum`` that the ``type`` beside it also admits."""
        admitted: list[ir.Constant] = []
        for value in node.fixed or ():
            if isinstance(value, float):
                self._report("MG110", pointer, f"{value!r} cannot be told apart as a constant")
            elif not node.types or json_type(value) in node.types or _is_number_of(value, node.types):
                admitted.append(value)
        if not admitted:
            self._report("MG125", pointer, "no listed value has the type given beside it")
            return ir.Anything()
        return fixed_type(admitted)

    def _report(self, code: str, pointer: str, message: str) -> None:
        self.diagnostics.append(Diagnostic(code=code, pointer=pointer, message=message, hint=_HINTS[code]))


def _admits_anything(node: SchemaNode) -> bool:
    """Whether *node* is ``true`` or ``{}``, annotations aside."""
    return node is True or (isinstance(node, SchemaObject) and not node.decides())


def _implied_types(node: SchemaObject) -> tuple[str, ...]:
    """Return the JSON type that a schema without ``type`` plainly means."""
    if node.properties is not None or node.additional is not None:
        return ("object",)
    return ("array",) if node.items is not None else ()


def _preset(node: SchemaNode) -> ir.Constant:
    """Return the ``default`` of *node*: on a key that must be there it can only be meant for who writes the message."""
    if not isinstance(node, SchemaObject) or isinstance(node.default, float):
        return None
    return node.default


def _is_number_of(value: ir.Constant, types: tuple[str, ...]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and "number" in types


def _bounds(node: SchemaObject, keywords: tuple[tuple[str, str], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((meta, node.bounds[keyword]) for meta, keyword in keywords if keyword in node.bounds)
