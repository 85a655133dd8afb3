"""Convert parsed schema objects to the intermediate representation.

Inline objects, and inline unions that need their own decoder, become definitions that are named after their path
(``ClientCapabilitiesElicitation``). Such a name shows the origin of the type and does not change when the schema gains
a sibling.
"""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mcpgen.codegen import ir, names
from mcpgen.codegen.conjunctions import adds_nothing, can_extend, is_open, merged, says_object
from mcpgen.codegen.constants import json_type, json_types, keeps, preset_findings
from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.frontend import SchemaNode, SchemaObject, admits_anything, exact, preset, quoted, schema_objects
from mcpgen.codegen.keywords import shown
from mcpgen.codegen.union_arms import fixed_type, json_types_differ, ref_name, simplified, suffixes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["parse"]

# For each allOf, the parser visits all inherited definitions, properties and inline types again. A document of a few
# kilobytes can make that take hours. The largest official document, of any draft, needs 304 visits.
MAX_INHERITED = 10_000

# What inherited properties say is written again for each class, and megabytes of constants take minutes to format. The
# official documents inherit up to 7 kB, without descriptions.
MAX_INHERITED_BYTES = 512 * 1024

# Formatting more values takes minutes. The longest official enum has 8 values.
MAX_VALUES = 10_000

_HINTS = {
    "MG006": "Let definitions hold each other with `$ref` instead of extending each other with `allOf`.",
    "MG110": "Use strings, integers, booleans or null.",
    "MG113": "Describe it in the `properties` beside this `additionalProperties`. The schema {} accepts any value.",
    "MG118": "Add `type`.",
    "MG121": "Set `additionalProperties` to {} or remove it, in the document or with a patch in the overlay.",
    "MG122": "Use the same keywords for the property in both members, or patch one of them in the overlay.",
    "MG123": "Write the schema without `allOf`, or patch it in the overlay.",
    "MG124": "Move the other keywords into each member of `anyOf`, or patch the schema in the overlay.",
    "MG125": "Remove `enum` or `const`, or correct the keywords that exclude all of its values.",
    "MG126": "Use a string or an integer without `enum`, and list the values in the description.",
    "MG201": "Rename one of the definitions.",
    "MG210": "Make the inline type a definition, with an [[extract]] in the overlay.",
}

_Part: TypeAlias = tuple[SchemaObject, str]  # one of the object schemas that an `allOf` merges, with its pointer


def parse(document: dict[str, Any]) -> ir.Schema:
    """Parse a checked and patched *document*.

    Raises:
        Refused: With a diagnostic for each construct that has no exact Python type.
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
        self._merging: dict[bytes, str] = {}  # the names of the inline allOf schemas that are being merged
        self._hoisted: set[str] = set()  # the pointers of hoisted schemas
        self._inherited = 0
        self._inherited_bytes = 0
        self.diagnostics: dict[Diagnostic, None] = {}  # a dict, because inherited schemas are visited more than once

    def schema(self) -> ir.Schema:
        for name, node in sorted(self._objects.items()):
            pointer = self._pointer(name)
            called = names.definition(name)
            if self._called[called] > 1:
                self._report(
                    "MG201",
                    pointer,
                    f"the definition {name} and another one would both get the Python name {called}",
                )
            try:
                self._define(called, node, pointer, anonymous=False)
            except RecursionError:
                self._report(
                    "MG006",
                    pointer,
                    "the definition is nested too deeply, including the definitions that it extends and holds",
                )
                raise Refused(self.diagnostics) from None
        schema = ir.Schema(definitions=dict(sorted(self._definitions.items())))
        self.diagnostics |= dict.fromkeys(preset_findings(schema))
        return schema

    # Definitions

    def _pointer(self, name: str) -> str:
        return pointer_to(self._keyword, name)

    def _define(self, name: str, node: SchemaObject, pointer: str, *, anonymous: bool) -> ir.Named:
        """Add *node* under *name*: as an object if it has known keys, otherwise as an alias."""
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

    def _inherit(self, count: int, pointer: str, *, size: int = 0) -> None:
        """Count *count* more things of *size* bytes that the schema at *pointer* inherits."""
        self._inherited, self._inherited_bytes = self._inherited + count, self._inherited_bytes + size
        if self._inherited > MAX_INHERITED or self._inherited_bytes > MAX_INHERITED_BYTES:
            most = f"{MAX_INHERITED} definitions, properties and types, or {MAX_INHERITED_BYTES} bytes of properties"
            self._report("MG006", pointer, f"the `allOf` schemas inherit more than {most}")
            raise Refused(self.diagnostics)

    def _claimed(self, name: str, pointer: str) -> str:
        """Return the definition's name of the inline schema at *pointer*, and report a conflict."""
        self._inherit(pointer in self._hoisted, pointer)
        self._hoisted.add(pointer)
        name = self._free(name)
        if name in self._definitions:
            where = self._definitions[name].pointer
            self._report("MG210", pointer, f"the inline type here and the one at {where} would both be named {name}")
        return name

    def _free(self, name: str) -> str:
        """Return *name*, with a suffix if a definition of the document has that name."""
        while name in self._called:
            name += "Inline"
        return name

    def _object(self, name: str, node: SchemaObject, pointer: str, *, anonymous: bool) -> ir.Object | None:
        """Return *node* as an object with known keys and its ``allOf`` merged, or None if it has no known keys."""
        if node.ref or not (node.all_of or {*node.types} <= {"object"}):
            return None
        parts = self._parts(node, pointer, set())
        described: dict[str, list[tuple[SchemaNode, str]]] = {}
        for part, where in parts:
            for key, inner in (part.properties or {}).items():
                described.setdefault(key, []).append((inner, f"{where}/properties{pointer_to(key)}"))
        required = frozenset[str]().union(*(part.required for part, _ in parts))
        for key in sorted(required - described.keys()):
            # JSON Schema applies `additionalProperties` to such a key. If that is false, the key is refused below.
            found = ((part.additional, f"{where}/additionalProperties") for part, where in parts)
            described[key] = [(further, place) for further, place in found if further] or [(True, pointer)]
        elsewhere = [part for part, where in parts if not f"{where}/".startswith(f"{pointer}/")]
        for part in elsewhere:
            self._inherit(len(part.properties or ()), pointer, size=len(exact(part.properties)))
        closed = [(part.properties or {}).keys() for part, _ in parts if part.additional is False]
        if not described and not closed:
            return None
        described = {key: each for key, each in described.items() if all(key in keys for keys in closed)}
        for key in sorted(required - described.keys()):
            self._report("MG113", pointer, f"`additionalProperties` forbids the required property {shown(key)}")
        self._check_parts(parts, pointer)
        return ir.Object(
            name=name,
            pointer=pointer,
            properties=tuple(
                self._property(key, described[key], name, required=key in required) for key in sorted(described)
            ),
            unknown="refused" if closed else "kept" if is_open([part for part, _ in parts]) else "dropped",
            anonymous=anonymous,
            description=node.description,
        )

    def _check_parts(self, parts: list[_Part], pointer: str) -> None:
        """Report the keywords of *parts* that an object merged from them cannot express."""
        for part, where in parts:
            if part.any_of:
                self._report(
                    "MG124", where, "`anyOf` stands beside `properties` or `allOf`, which also restrict the value"
                )
            if part.fixed is not None:
                self._report("MG125", where, "no value of `enum` or `const` is an object with these properties")
            if not (part.additional is None or part.additional is False or admits_anything(part.additional)):
                self._report(
                    "MG121",
                    where,
                    "`additionalProperties` restricts further keys of an object that also has `properties`",
                )
        # An integer is also a number.
        types = [{*part.types, *(("integer",) if "number" in part.types else ())} for part, _ in parts if part.types]
        together = types[0].intersection(*types[1:]) if types else {"object"}
        if together != {"object"}:
            admitted = ", ".join(sorted(together)) or "nothing"
            self._report("MG123", pointer, f"`allOf` has properties, but its `type` keywords together allow {admitted}")

    def _property(
        self, key: str, described: list[tuple[SchemaNode, str]], owner: str, *, required: bool
    ) -> ir.Property:
        """Return the property *key* of *owner*, merged from its descriptions in an ``allOf``."""
        (node, pointer), *others = described
        for other, other_pointer in others:
            node, pointer = self._both(node, pointer, other, other_pointer), other_pointer
        return ir.Property(
            wire=key,
            pointer=pointer,
            type=self._type(node, pointer, owner + (names.pascal(key) or "Field")),
            required=required,
            preset=preset(node) if required else None,
            description=node.description if isinstance(node, SchemaObject) else "",
        )

    def _both(self, first: SchemaNode, place: str, second: SchemaNode, pointer: str) -> SchemaNode:
        """Return a schema that accepts what both accept; *place* and *pointer* are those of *first* and *second*."""
        found, faults = merged(first, second)
        if not faults or isinstance(first, bool) or isinstance(second, bool):
            return found
        of_first, of_second = list(self._shapes(first, place, set())), list(self._shapes(second, pointer, set()))
        if says_object(first) and adds_nothing(first, of_second):
            return second
        if says_object(second) and adds_nothing(second, of_first):
            return first
        if len(of_first) == len(of_second) == 1 and can_extend(of_first[0]) and can_extend(of_second[0]):
            return SchemaObject(all_of=(first, second), origins=(place, pointer))
        for fault in faults:
            self._report("MG122", pointer, fault)
        return found

    def _shapes(self, node: SchemaNode, pointer: str, seen: set[str]) -> Iterator[list[SchemaObject]]:
        """Yield the schemas to merge for each type that *node* can be: it can be a union, or refer to one."""
        if isinstance(node, bool):
            yield []
        elif node.ref and (name := ref_name(node.ref)) not in seen:
            seen.add(name)
            yield from self._shapes(self._objects[name], self._pointer(name), seen)
        elif node.decides().keys() == {"any_of"}:
            for index, arm in enumerate(node.any_of):
                yield from self._shapes(arm, f"{pointer}/anyOf/{index}", seen)
        elif not node.ref:
            yield [part for part, _ in self._parts(node, pointer, set())]

    def _parts(self, node: SchemaObject, pointer: str, seen: set[str]) -> list[_Part]:
        """Return the schemas that *node* merges, with references followed, each definition only once."""
        if node.ref:
            name = ref_name(node.ref)
            self._inherit(1, pointer)
            if name in seen:
                return []
            seen.add(name)
            return self._parts(self._objects[name], self._pointer(name), seen)
        parts = [(node, pointer)] if node.decides().keys() - {"all_of"} else []
        for index, arm in enumerate(node.all_of):
            where = node.origins[index] if node.origins else f"{pointer}/allOf/{index}"
            found = [] if isinstance(arm, bool) else self._parts(arm, where, seen)
            if found and not any(map(_describes_objects, found)):
                self._report("MG123", where, "`allOf` can only be merged if every member describes an object")
            parts += found
        return parts

    # Types

    def _type(self, node: SchemaNode, pointer: str, name: str, *, hoist: bool = True) -> ir.TypeRef:
        """Return the type of *node*; *name* is its name if it is hoisted."""
        if isinstance(node, bool):
            return ir.Anything() if node else ir.Nothing()
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
            bounds, others = quoted(sorted(node.bounds)), " and ".join(node.bounded_types())
            problem = f"without it, all values of types other than {others} are valid"
            self._report("MG118", pointer, f"a schema with {bounds} needs a `type`: {problem}")
        return simplified([self._kind(kind, node, pointer, name, hoist=hoist) for kind in types] or [ir.Anything()])

    def _kind(self, kind: str, node: SchemaObject, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return the type of *node* for the JSON type *kind*, which `check_document` has checked."""
        match kind:
            case "object":
                return self._mapping(node, pointer, name, hoist=hoist)
            case "array":
                item = self._type(True if node.items is None else node.items, f"{pointer}/items", f"{name}Item")
                return ir.Array(item=item, bounds=node.bounds_for("array"))
            case "string":
                return ir.Scalar(kind="string", bounds=node.bounds_for("string"))
            case "integer":
                return ir.Scalar(kind="integer", bounds=node.bounds_for("integer"))
            case "number":
                return ir.Scalar(kind="number", bounds=node.bounds_for("number"))
            case "boolean":
                return ir.Scalar(kind="boolean")
            case _:
                return ir.Scalar(kind="null")

    def _mapping(self, node: SchemaObject, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return an inline object: a hoisted definition if it has known keys, otherwise a mapping."""
        if node.properties or node.required or node.additional is False:
            node = msgspec.structs.replace(node, types=("object",))
            return self._define(name if hoist else f"{name}Object", node, pointer, anonymous=True)
        extra = node.additional
        if extra is None or admits_anything(extra):
            return ir.Mapping(value=ir.Anything())
        return ir.Mapping(value=self._type(extra, f"{pointer}/additionalProperties", f"{name}Value"))

    def _conjunction(self, node: SchemaObject, pointer: str, name: str) -> ir.TypeRef:
        """Return the type of an ``allOf``: that of its only member, or an object merged from several."""
        arm, *others = node.all_of
        if not others and (node.decides().keys() == {"all_of"} or self._is_only_object(node, arm)):
            return self._type(arm, f"{pointer}/allOf/0", name)
        if not any(part.properties for part, _ in self._parts(node, pointer, set())):
            self._report("MG123", pointer, "`allOf` can only be merged if a member is an object with properties")
            return ir.Anything()
        # An object may extend itself under one of its own keys. That key then refers to the object being merged.
        content = exact(node)
        if content not in self._merging:
            self._merging[content] = self._free(name)
            self._define(name, node, pointer, anonymous=True)
            return ir.Named(name=self._merging.pop(content))
        return ir.Named(name=self._merging[content])

    def _is_only_object(self, node: SchemaObject, arm: SchemaNode) -> bool:
        """Whether *node* only adds ``type: object`` to *arm*, a reference to a definition that has this type itself."""
        if not isinstance(arm, SchemaObject) or not arm.ref or node.decides().keys() != {"all_of", "types"}:
            return False
        return node.types == self._objects[ref_name(arm.ref)].types == ("object",)

    def _union(self, node: SchemaObject, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return the type of an ``anyOf``; hoist it if JSON types alone do not distinguish its members."""
        if beside := sorted(node.decides().keys() - {"any_of"}):
            self._report(
                "MG124", pointer, f"`anyOf` stands beside keywords that also restrict the value: {quoted(beside)}"
            )
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
        """Return the values of a ``const`` or ``enum`` that also match the ``type`` and the bounds beside it."""
        if not node.fixed:
            self._report("MG125", pointer, "`enum` does not contain the value of `const`")
            return ir.Anything()
        admitted: list[ir.Constant] = []
        for value in node.fixed:
            if isinstance(value, float):
                self._report("MG110", pointer, f"{value!r} cannot be a constant")
            elif not node.types or not json_types(value).isdisjoint(node.types):
                admitted.append(value)
        if "pattern" in node.bounds and any(isinstance(value, str) for value in admitted):
            self._report(
                "MG118",
                pointer,
                "`pattern` stands beside `enum` or `const`; the generator does not test values against patterns",
                hint="Remove the `pattern`, and each value that does not match it.",
            )
            return ir.Anything()
        admitted = [value for value in admitted if keeps(value, node.bounds_for(json_type(value)))]
        if not admitted:
            self._report("MG125", pointer, "no value of `enum` or `const` matches the `type` and the bounds beside it")
            return ir.Anything()
        found = fixed_type(admitted)
        self._check_length(found, pointer)
        return found

    def _check_length(self, ref: ir.TypeRef, pointer: str) -> None:
        arms = ref.arms if isinstance(ref, ir.Union) else (ref,)
        if any(isinstance(arm, ir.Fixed) and len(arm.values) > MAX_VALUES for arm in arms):
            self._report("MG126", pointer, f"the type has more than {MAX_VALUES} constant values")

    def _report(self, code: str, pointer: str, message: str, *, hint: str = "") -> None:
        self.diagnostics[Diagnostic(code=code, pointer=pointer, message=message, hint=hint or _HINTS[code])] = None


def _describes_objects(part: _Part) -> bool:
    decides = part[0].decides()
    return not decides.keys().isdisjoint(("properties", "required", "additional")) or decides == {"types": ("object",)}
