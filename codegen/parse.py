"""From parsed schema objects to the intermediate representation.

Inline objects, and inline unions that need a decoder of their own, are hoisted into definitions named after their path
(``ClientCapabilitiesElicitation``): a name says where the type came from and does not change when a sibling appears.
"""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from mcpgen.codegen import ir, names
from mcpgen.codegen.constants import json_type, keeps, preset_findings
from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.frontend import SchemaNode, SchemaObject, admits_anything, exact, schema_objects
from mcpgen.codegen.union_arms import fixed_type, json_types_differ, ref_name, simplified, suffixes

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

__all__ = ["parse"]

_STRING_BOUNDS = (("min_length", "minLength"), ("max_length", "maxLength"), ("pattern", "pattern"))
_NUMBER_BOUNDS = (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"))
_ARRAY_BOUNDS = (("min_length", "minItems"), ("max_length", "maxItems"))

# What cannot be merged with other keywords, as SchemaObject and as the document call it.
_APART = {"ref": "$ref", "any_of": "anyOf", "all_of": "allOf"}

# What an allOf inherits (definitions, their properties, the inline types in those) is looked at again for each heir: a
# document of a few kilobytes can ask for more of that than there is time. Upstream's largest, of any draft, needs 304.
MAX_INHERITED = 10_000

# Laying out more takes minutes. Upstream's longest enum has 8 values.
MAX_VALUES = 10_000

_HINTS = {
    "MG006": "Let definitions hold one another with $ref instead of extending one another with allOf.",
    "MG110": "List strings, integers, booleans or null.",
    "MG118": "Give the type; beside enum and const, leave out the pattern and the values that do not match it.",
    "MG121": "Give additionalProperties as {} or leave it out, or patch it so in the overlay.",
    "MG122": "Repeat the property in both arms with the same keywords, or patch one arm in the overlay.",
    "MG123": "Write the schema without allOf, or patch it in the overlay.",
    "MG124": "Move the other keywords into each arm, or patch the schema in the overlay.",
    "MG125": "List a value of that type and within those bounds, or drop them.",
    "MG126": "Take a string or an integer, and say in the description which values there are.",
    "MG201": "Rename one of the definitions.",
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
        self._called = Counter(map(names.definition, self._objects))
        self._definitions: dict[str, ir.Definition] = {}
        self._merging: dict[bytes, str] = {}  # the inline conjunctions that are being merged: what they are called
        self._hoisted: set[str] = set()  # from where
        self._inherited = 0
        self.diagnostics: dict[Diagnostic, None] = {}  # what is inherited is looked at more than once

    def schema(self) -> ir.Schema:
        for name, node in sorted(self._objects.items()):
            pointer = self._pointer(name)
            called = names.definition(name)
            if self._called[called] > 1:
                self._report("MG201", pointer, f"the definition {name} would be named {called}, like another")
            try:
                self._define(called, node, pointer, anonymous=False)
            except RecursionError:
                self._report("MG006", pointer, "the definition is nested too deeply with what it extends and holds")
                raise Refused(self.diagnostics) from None
        schema = ir.Schema(definitions=dict(sorted(self._definitions.items())))
        self.diagnostics |= dict.fromkeys(preset_findings(schema))
        return schema

    # Definitions

    def _pointer(self, name: str) -> str:
        return pointer_to(self._keyword, name)

    def _define(self, name: str, node: SchemaObject, pointer: str, *, anonymous: bool) -> ir.Named:
        """Add *node* under *name*, as an object where it has known keys and as an alias where it has none."""
        if anonymous:
            name = self._claimed(name, pointer)
        self._definitions[name] = self._object(name, node, pointer, anonymous=anonymous) or ir.Alias(
            name=name,
            pointer=pointer,
            type=self._type(node, pointer, name, hoist=False),
            anonymous=anonymous,
            description=node.description,
        )
        return ir.Named(name=name)

    def _inherit(self, count: int, pointer: str) -> None:
        """Note that the schema at *pointer* inherits *count* more definitions, properties or types."""
        self._inherited += count
        if self._inherited > MAX_INHERITED:
            self._report(
                "MG006", pointer, f"more than {MAX_INHERITED} inherited definitions, properties and types, from here"
            )
            raise Refused(self.diagnostics)

    def _claimed(self, name: str, pointer: str) -> str:
        """Return what the inline schema at *pointer* is called as a definition: *name*, which ought to be free."""
        self._inherit(pointer in self._hoisted, pointer)
        self._hoisted.add(pointer)
        name = self._free(name)
        if name in self._definitions:
            where = self._definitions[name].pointer
            self._report("MG210", pointer, f"the inline type here would be named {name}, like the one at {where}")
        return name

    def _free(self, name: str) -> str:
        """Return *name*, or where a definition of the document has it, that with a suffix."""
        while name in self._called:
            name += "Inline"
        return name

    def _object(self, name: str, node: SchemaObject, pointer: str, *, anonymous: bool) -> ir.Object | None:
        """Return *node* as an object with known keys, its ``allOf`` merged, or None if it has none."""
        if node.ref or not (node.all_of or {*node.types} <= {"object"}):
            return None
        parts = self._parts(node, pointer, set())
        described: dict[str, list[tuple[SchemaNode, str]]] = {}
        for part, where in parts:
            for key, inner in (part.properties or {}).items():
                described.setdefault(key, []).append((inner, f"{where}/properties{pointer_to(key)}"))
        elsewhere = (part for part, where in parts if not f"{where}/".startswith(f"{pointer}/"))
        self._inherit(sum(len(part.properties or ()) for part in elsewhere), pointer)
        refuses = any(part.additional is False for part, _ in parts)
        if not described and not refuses:
            return None
        self._check_parts(parts, described.keys(), pointer)
        required = frozenset[str]().union(*(part.required for part, _ in parts))
        return ir.Object(
            name=name,
            pointer=pointer,
            properties=tuple(
                self._property(key, described[key], name, required=key in required) for key in sorted(described)
            ),
            unknown="refused" if refuses else self._unknown(parts),
            anonymous=anonymous,
            description=node.description,
        )

    def _check_parts(self, parts: list[_Part], keys: AbstractSet[str], pointer: str) -> None:
        """Report what an object with *keys*, merged of *parts*, would not say."""
        for part, where in parts:
            if part.any_of:
                self._report("MG124", where, "anyOf stands beside properties or allOf, which also decide")
            if part.fixed is not None:
                self._report("MG125", where, "no listed value is an object with these properties")
            if part.additional is False and keys - (part.properties or {}).keys():
                self._report("MG121", where, "additionalProperties refuses keys that another arm of allOf describes")
            if not (part.additional is None or part.additional is False or admits_anything(part.additional)):
                self._report("MG121", where, "additionalProperties restricts the keys beside known properties")
        # An integer is a number as well.
        types = [{*part.types, *(("integer",) if "number" in part.types else ())} for part, _ in parts if part.types]
        together = types[0].intersection(*types[1:]) if types else {"object"}
        if together != {"object"}:
            admitted = ", ".join(sorted(together)) or "nothing"
            self._report("MG123", pointer, f"allOf has properties, but its types together admit {admitted}")

    def _unknown(self, parts: list[_Part]) -> Literal["kept", "dropped"]:
        """Say what becomes of unknown keys; one part that is open opens the whole, which then holds all keys."""
        return "dropped" if all(part.additional is None for part, _ in parts) else "kept"

    def _property(
        self, key: str, described: list[tuple[SchemaNode, str]], owner: str, *, required: bool
    ) -> ir.Property:
        """Return the property *key* of *owner*, as the parts of its ``allOf`` describe it."""
        (node, pointer), *others = described
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
        merged = msgspec.structs.replace(first, **other)
        if not own or not other or exact(own) == exact(other):
            return merged
        differing = sorted(
            keyword for keyword in own.keys() & other.keys() if exact(own[keyword]) != exact(other[keyword])
        )
        for keyword in differing:
            self._report("MG122", pointer, f"two arms of allOf give different {keyword} for one property")
        if apart := [word for keyword, word in _APART.items() if keyword in {*own, *other} - {*differing}]:
            self._report(
                "MG122", pointer, f"two arms of allOf describe one property, and {', '.join(apart)} stands alone"
            )
        # additionalProperties speaks of the keys that its own arm does not describe.
        restricts = merged.additional is not None and not admits_anything(merged.additional)
        if restricts and exact(first.properties) != exact(second.properties):
            self._report(
                "MG122", pointer, "two arms of allOf describe different keys of one property, and one refuses more"
            )
        return merged

    def _parts(self, node: SchemaObject, pointer: str, seen: set[str]) -> list[_Part]:
        """Return the schemas whose conjunction *node* is, references followed, but each definition only once."""
        if node.ref:
            name = ref_name(node.ref)
            self._inherit(1, pointer)
            if name in seen:
                return []
            seen.add(name)
            return self._parts(self._objects[name], self._pointer(name), seen)
        parts = [(node, pointer)] if node.decides().keys() - {"all_of"} else []
        for index, arm in enumerate(node.all_of):
            where = f"{pointer}/allOf/{index}"
            found = [] if isinstance(arm, bool) else self._parts(arm, where, seen)
            if found and not any(map(_speaks_of_objects, found)):
                self._report("MG123", where, "allOf can only be merged where every arm is an object with properties")
            parts += found
        return parts

    # Types

    def _type(self, node: SchemaNode, pointer: str, name: str, *, hoist: bool = True) -> ir.TypeRef:
        """Return the type of *node*; *name* is what it is called if it must be hoisted."""
        if isinstance(node, bool):
            return ir.Anything()
        if node.ref:
            return ir.Named(name=names.definition(ref_name(node.ref)))
        if node.any_of:
            return self._union(node, pointer, name, hoist=hoist)
        if node.all_of:
            return self._conjunction(node, pointer, name)
        if node.fixed is not None:
            return self._fixed(node, pointer)
        types = node.types or node.implied_types()
        if node.bounds and not types:
            self._report(
                "MG118", pointer, f"{', '.join(sorted(node.bounds))} without type bounds values of one type only"
            )
        return simplified([self._kind(kind, node, pointer, name, hoist=hoist) for kind in types] or [ir.Anything()])

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
        if extra is None or admits_anything(extra):
            return ir.Mapping(value=ir.Anything())
        return ir.Mapping(value=self._type(extra, f"{pointer}/additionalProperties", f"{name}Value"))

    def _conjunction(self, node: SchemaObject, pointer: str, name: str) -> ir.TypeRef:
        """Return the type of an ``allOf``: one arm stands for itself, several are merged into an object."""
        arm, *others = node.all_of
        if not others and (node.decides().keys() == {"all_of"} or self._is_only_object(node, arm)):
            return self._type(arm, f"{pointer}/allOf/0", name)
        if not any(part.properties for part, _ in self._parts(node, pointer, set())):
            self._report("MG123", pointer, "allOf can only be merged where an arm is an object with properties")
            return ir.Anything()
        # An object may extend itself under one of its own keys: what is inherited there is what is being merged.
        said = exact(node)
        if said not in self._merging:
            self._merging[said] = self._free(name)
            self._define(name, node, pointer, anonymous=True)
            return ir.Named(name=self._merging.pop(said))
        return ir.Named(name=self._merging[said])

    def _is_only_object(self, node: SchemaObject, arm: SchemaNode) -> bool:
        """Whether *node* says no more beside *arm* than that it is an object, as the definition there says itself."""
        if not isinstance(arm, SchemaObject) or not arm.ref or node.decides().keys() != {"all_of", "types"}:
            return False
        return node.types == self._objects[ref_name(arm.ref)].types == ("object",)

    def _union(self, node: SchemaObject, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return the type of an ``anyOf``, hoisted where it takes more than JSON types to tell its arms apart."""
        if beside := sorted(node.decides().keys() - {"any_of"}):
            self._report("MG124", pointer, f"anyOf stands beside {', '.join(beside)}, which also decides")
        distinct = {exact(arm): (index, arm) for index, arm in reversed([*enumerate(node.any_of)])}
        given = sorted(distinct.values(), key=itemgetter(0))
        named = zip(given, suffixes([arm for _, arm in given]), strict=True)
        arms = [self._type(arm, f"{pointer}/anyOf/{index}", name + suffix) for (index, arm), suffix in named]
        union = simplified(arms)
        self._check_length(union, pointer)
        mentions_names = any(True for _ in ir.names(union))
        if not hoist or not isinstance(union, ir.Union) or (json_types_differ(union.arms) and not mentions_names):
            return union
        name = self._claimed(name, pointer)
        self._definitions[name] = ir.Alias(name=name, pointer=pointer, type=union, anonymous=True)
        return ir.Named(name=name)

    def _fixed(self, node: SchemaObject, pointer: str) -> ir.TypeRef:
        """Return the values of a ``const`` or ``enum`` that the ``type`` and the bounds beside it also admit."""
        admitted: list[ir.Constant] = []
        for value in node.fixed or ():
            if isinstance(value, float):
                self._report("MG110", pointer, f"{value!r} cannot be told apart as a constant")
            elif not node.types or json_type(value) in node.types or _is_number_of(value, node.types):
                admitted.append(value)
        if "pattern" in node.bounds and any(isinstance(value, str) for value in admitted):
            self._report("MG118", pointer, "a pattern stands beside listed values, and is never tried on them")
            return ir.Anything()
        admitted = [value for value in admitted if keeps(value, _bounds_of(value, node))]
        if not admitted:
            self._report("MG125", pointer, "no listed value has the type, and is within the bounds, given beside it")
            return ir.Anything()
        found = fixed_type(admitted)
        self._check_length(found, pointer)
        return found

    def _check_length(self, ref: ir.TypeRef, pointer: str) -> None:
        arms = ref.arms if isinstance(ref, ir.Union) else (ref,)
        if any(isinstance(arm, ir.Fixed) and len(arm.values) > MAX_VALUES for arm in arms):
            self._report("MG126", pointer, f"more than {MAX_VALUES} values are listed")

    def _report(self, code: str, pointer: str, message: str) -> None:
        self.diagnostics[Diagnostic(code=code, pointer=pointer, message=message, hint=_HINTS[code])] = None


def _speaks_of_objects(part: _Part) -> bool:
    decides = part[0].decides()
    return not decides.keys().isdisjoint(("properties", "required", "additional")) or decides == {"types": ("object",)}


def _preset(node: SchemaNode) -> ir.Constant:
    """Return the ``default`` of *node*: on a key that must be there it can only be meant for who writes the message."""
    if not isinstance(node, SchemaObject) or isinstance(node.default, float):
        return None
    return node.default


def _is_number_of(value: ir.Constant, types: tuple[str, ...]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and "number" in types


def _bounds_of(value: ir.Constant, node: SchemaObject) -> tuple[tuple[str, Any], ...]:
    """Return the bounds of *node* that speak of values like *value*."""
    match json_type(value):
        case "string":
            return _bounds(node, _STRING_BOUNDS)
        case "integer":
            return _bounds(node, _NUMBER_BOUNDS)
        case _:
            return ()


def _bounds(node: SchemaObject, keywords: tuple[tuple[str, str], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((meta, node.bounds[keyword]) for meta, keyword in keywords if keyword in node.bounds)
