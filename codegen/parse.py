"""From parsed schema objects to the intermediate representation.

Inline objects, and inline unions that hold objects, are hoisted into definitions named after their path
(``ClientCapabilitiesElicitation``): a name says where the type came from and does not change when a sibling appears.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from mcpgen.codegen import ir, names
from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.frontend import SchemaNode, schema_objects
from mcpgen.codegen.unions import json_types_differ

_STRING_BOUNDS = (("min_length", "minLength"), ("max_length", "maxLength"), ("pattern", "pattern"))
_NUMBER_BOUNDS = (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"))
_ARRAY_BOUNDS = (("min_length", "minItems"), ("max_length", "maxItems"))
# Keywords that decide what a value is; the rest is annotation. Used to see what stands beside a combinator.
_DECIDING = {"type", "properties", "additionalProperties", "items", "enum", "const", "anyOf", "allOf", "ref"}
_ANNOTATIONS = {"title", "description", "default", "examples", "example", "id", "extras"}


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

    def _define(self, name: str, node: SchemaNode, pointer: str, *, anonymous: bool) -> ir.Named:
        """Add *node* under *name*, as an object where it has known keys and as an alias where it has none."""
        if anonymous and name in self._objects:
            self._report("MG210", pointer, f"the inline type here would be named {name}, which is a definition", name)
        elif name in self._definitions:
            where = self._definitions[name].pointer
            self._report("MG210", pointer, f"the inline type here would be named {name}, like the one at {where}", name)
        description = "" if node is True or node is False else node.description or ""
        if isinstance(found := self._object(name, node, pointer, anonymous=anonymous), ir.Object):
            self._definitions[name] = found
        else:
            self._definitions[name] = ir.Alias(
                name=name,
                pointer=pointer,
                type=self._type(node, pointer, name, hoist=False),
                anonymous=anonymous,
                description=description,
            )
        return ir.Named(name=name)

    def _object(self, name: str, node: SchemaNode, pointer: str, *, anonymous: bool) -> ir.Object | None:
        """Return *node* as an object with known keys, its ``allOf`` merged, or None if it has none."""
        if isinstance(node, bool):
            return None
        parts = self._all_of(node, pointer)
        keys = sorted({key for part, _ in parts for key in part.properties or {}})
        refuses = any(part.additionalProperties is False for part, _ in parts)
        if not keys and not refuses:
            return None
        required = {key for part, _ in parts for key in part.required}
        return ir.Object(
            name=name,
            pointer=pointer,
            properties=tuple(self._property(key, parts, name, required=key in required) for key in keys),
            unknown="refused" if refuses else self._unknown(parts),
            anonymous=anonymous,
            description=node.description or "",
        )

    def _unknown(self, parts: list[tuple[Any, str]]) -> str:
        """Say what becomes of unknown keys; one part that is open opens the whole, which then holds all keys."""
        kept = "dropped"
        for part, pointer in parts:
            extra = part.additionalProperties
            if extra is None:
                continue
            if not _admits_anything(extra):
                self._report("MG121", pointer, "additionalProperties restricts the keys beside known properties", "")
            kept = "kept"
        return kept

    def _property(self, key: str, parts: list[tuple[Any, str]], owner: str, *, required: bool) -> ir.Property:
        """Return the property *key* of *owner*, from the parts of its ``allOf`` that mention it."""
        found = [
            (part.properties[key], f"{pointer}/properties{pointer_to(key)}")
            for part, pointer in parts
            if key in (part.properties or {})
        ]
        node, pointer = found[0]
        for other, other_pointer in found[1:]:
            node = self._narrow(node, other, other_pointer)
            pointer = other_pointer
        return ir.Property(
            wire=key,
            pointer=pointer,
            type=self._type(node, pointer, owner + (names.pascal(key) or "Field")),
            required=required,
            description="" if isinstance(node, bool) else node.description or "",
        )

    def _narrow(self, first: SchemaNode, second: SchemaNode, pointer: str) -> SchemaNode:
        """Return a schema that admits what both admit, where one only adds keywords to the other."""
        if first == second or second is True:
            return first
        if first is True:
            return second
        if isinstance(first, bool) or isinstance(second, bool):
            self._report("MG122", pointer, "a property is refused by one arm of allOf and given by another", "")
            return first
        own, other = _keywords(first), _keywords(second)
        for keyword in sorted(own.keys() & other.keys()):
            if own[keyword] != other[keyword]:
                self._report("MG122", pointer, f"two arms of allOf give different {keyword} for one property", "")
        merged = first.model_copy(update={keyword: value for keyword, value in other.items() if keyword != "const"})
        merged.extras = {**first.extras, **second.extras}
        return merged

    def _all_of(self, node: Any, pointer: str, seen: tuple[str, ...] = ()) -> list[tuple[Any, str]]:
        """Return the object schemas whose conjunction *node* is, references followed, each with its pointer."""
        if not node.allOf:
            return [(node, pointer)] if node.properties is not None or node.additionalProperties is False else []
        parts = [(node, pointer)] if node.properties is not None else []
        for index, arm in enumerate(node.allOf):
            where = f"{pointer}/allOf/{index}"
            if isinstance(arm, bool):
                continue
            if arm.ref:
                name = _ref_name(arm.ref)
                if name in seen:
                    continue
                arm, where = self._objects[name], f"/{self._keyword}/{name}"  # noqa: PLW2901 the arm is what it names
                found = self._all_of(arm, where, (*seen, name))
            else:
                found = self._all_of(arm, where, seen)
            if not found and arm.type != "object":
                self._report("MG123", where, "allOf can only be merged where every arm is an object", "")
            parts += found
        return parts

    # Types

    def _type(self, node: SchemaNode, pointer: str, name: str, *, hoist: bool = True) -> ir.TypeRef:
        """Return the type of *node*; *name* is what it is called if it must be hoisted."""
        if isinstance(node, bool):
            return ir.Anything()
        if node.ref:
            return ir.Named(name=_ref_name(node.ref))
        if node.anyOf:
            return self._union(node, pointer, name, hoist=hoist)
        if node.allOf:
            return self._conjunction(node, pointer, name)
        if "const" in node.extras or node.enum:
            return self._fixed(node, pointer)
        kinds = node.type if isinstance(node.type, list) else [node.type] if node.type else _implied_kinds(node)
        arms = [self._kind(kind, node, pointer, name, hoist=hoist) for kind in kinds]
        return _simplify(arms) if arms else ir.Anything()

    def _kind(self, kind: str, node: Any, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return the type of *node* where its JSON type is *kind*."""
        match kind:
            case "object":
                return self._mapping(node, pointer, name, hoist=hoist)
            case "array":
                item = self._type(True if node.items is None else node.items, f"{pointer}/items", f"{name}Item")
                return ir.Array(item=item, bounds=_bounds(node, _ARRAY_BOUNDS))
            case "string":
                return ir.Scalar(kind="string", bounds=_bounds(node, _STRING_BOUNDS))
            case "integer" | "number":
                return ir.Scalar(kind=kind, bounds=_bounds(node, _NUMBER_BOUNDS))
            case "boolean" | "null":
                return ir.Scalar(kind=kind)
            case _:
                self._report("MG103", pointer, f"{kind!r} is not a JSON type", "")
                return ir.Anything()

    def _mapping(self, node: Any, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return an inline object: hoisted where it has known keys, otherwise a mapping."""
        if hoist and self._object_has_keys(node):
            return self._define(name, node, pointer, anonymous=True)
        extra = node.additionalProperties
        if extra is None or _admits_anything(extra):
            return ir.Mapping(value=ir.Anything())
        return ir.Mapping(value=self._type(extra, f"{pointer}/additionalProperties", f"{name}Value"))

    def _object_has_keys(self, node: Any) -> bool:
        return bool(node.properties) or node.additionalProperties is False

    def _conjunction(self, node: Any, pointer: str, name: str) -> ir.TypeRef:
        """Return the type of an ``allOf``: one arm stands for itself, several are merged into an object."""
        if len(node.allOf) == 1 and not (_DECIDING & _keywords(node).keys()) - {"allOf"}:
            return self._type(node.allOf[0], f"{pointer}/allOf/0", name)
        if any(part.properties for part, _ in self._all_of(node, pointer)):
            return self._define(name, node, pointer, anonymous=True)
        self._report("MG123", pointer, "allOf can only be merged where an arm is an object with properties", "")
        return ir.Anything()

    def _union(self, node: Any, pointer: str, name: str, *, hoist: bool) -> ir.TypeRef:
        """Return the type of an ``anyOf``, hoisted where it takes more than JSON types to tell its arms apart."""
        if beside := sorted((_DECIDING & _keywords(node).keys()) - {"anyOf"}):
            self._report("MG124", pointer, f"anyOf stands beside {', '.join(beside)}, which also decides", "")
        suffixes = _arm_suffixes(node.anyOf)
        arms = [
            self._type(arm, f"{pointer}/anyOf/{index}", name + suffix)
            for index, (arm, suffix) in enumerate(zip(node.anyOf, suffixes, strict=True))
        ]
        union = _simplify(arms)
        if hoist and isinstance(union, ir.Union) and self._needs_name(union):
            if name in self._objects or name in self._definitions:
                self._report("MG210", pointer, f"the inline union here would be named {name}, which is taken", name)
            self._definitions[name] = ir.Alias(name=name, pointer=pointer, type=union, anonymous=True)
            return ir.Named(name=name)
        return union

    def _needs_name(self, union: ir.Union) -> bool:
        """Whether *union* may be one that msgspec cannot decode by itself, and so needs a definition of its own."""
        return any(True for _ in ir.names(union)) or not json_types_differ(union.arms)

    def _fixed(self, node: Any, pointer: str) -> ir.TypeRef:
        """Return the values of a ``const`` or ``enum`` that the ``type`` beside it also admits."""
        values = [node.extras["const"]] if "const" in node.extras else node.enum
        if "const" in node.extras and node.enum:
            values = [value for value in values if value in node.enum]
        kinds = node.type if isinstance(node.type, list) else [node.type] if node.type else None
        admitted: list[ir.Constant] = []
        for value in values:
            if not isinstance(value, get_args(ir.Constant)):
                self._report("MG110", pointer, f"{value!r} cannot be told apart as a constant", "")
            elif (kinds is None or _kind_of(value) in kinds) and not any(value is v or value == v and type(value) is type(v) for v in admitted):
                admitted.append(value)
        if not admitted:
            self._report("MG125", pointer, "no listed value has the type given beside it", "")
        return _fixed_type(admitted)

    def _report(self, code: str, pointer: str, message: str, hint_name: str) -> None:
        hint = _HINTS[code].format(name=hint_name)
        self.diagnostics.append(
            Diagnostic(code=code, severity="error", pointer=pointer, message=message, hint=hint)
        )


_HINTS = {
    "MG103": "Use one of string, integer, number, boolean, null, array, object.",
    "MG110": "List strings, integers, booleans or null.",
    "MG125": "List a value of that type, or drop the type.",
    "MG121": "Give additionalProperties as {{}} or leave it out, or patch it so in the overlay.",
    "MG122": "Repeat the property in both arms with the same keywords, or patch one arm in the overlay.",
    "MG123": "Write the schema without allOf, or patch it in the overlay.",
    "MG124": "Move the other keywords into each arm, or patch the schema in the overlay.",
    "MG210": "Give the inline type a definition of its own with an [[extract]] in the overlay, named other than {name}.",
}


def _keywords(node: Any) -> dict[str, Any]:
    """Return the keywords of *node* that are not annotations; the parser keeps ``const`` apart, with its extras."""
    found = {keyword: getattr(node, keyword) for keyword in node.model_fields_set - _ANNOTATIONS}
    return {**found, "const": node.extras["const"]} if "const" in node.extras else found


def _admits_anything(node: SchemaNode) -> bool:
    """Whether *node* is ``true`` or ``{}``, annotations aside."""
    return node is True or (not isinstance(node, bool) and not _keywords(node))


def _arm_suffixes(arms: list[SchemaNode]) -> list[str]:
    """Name the inline arms of a union after what tells them apart: never after their position.

    The first of these that differs for all of them: their titles; their constants; these and their required keys;
    these and all their keys; all their keys with the required keys of the objects there. An array goes by the
    definitions that its items mention.
    """
    inline = [(index, arm) for index, arm in enumerate(arms) if not isinstance(arm, bool) and _is_structured(arm)]
    suffixes = [""] * len(arms)
    for describe in (_titled, _with_constants, _with_required, _with_keys, _with_inner_keys):
        found = {index: names.pascal("_".join(describe(arm))) for index, arm in inline}
        if all(found.values()) and len(set(found.values())) == len(found):
            break
    else:
        found = {index: suffix or "Object" for index, suffix in found.items()}
    for index, suffix in found.items():
        suffixes[index] = suffix
    return suffixes


def _is_structured(arm: Any) -> bool:
    return not arm.ref and bool(arm.properties or arm.items or arm.allOf or arm.anyOf)


def _titled(arm: Any) -> list[str]:
    return [arm.title] if arm.title else []


def _with_constants(arm: Any) -> list[str]:
    inner = (node for _, node in sorted((arm.properties or {}).items()) if not isinstance(node, bool))
    return [str(node.extras["const"]) for node in inner if "const" in node.extras] + _mentioned(arm.items)


def _with_required(arm: Any) -> list[str]:
    return _with_constants(arm) + sorted(arm.required)


def _with_keys(arm: Any) -> list[str]:
    return _with_constants(arm) + sorted(arm.properties or {})


def _with_inner_keys(arm: Any) -> list[str]:
    inner = ((key, node) for key, node in sorted((arm.properties or {}).items()) if not isinstance(node, bool))
    return _with_constants(arm) + [word for key, node in inner for word in (key, *sorted(node.required))]


def _mentioned(items: Any) -> list[str]:
    """Return the names of the definitions that the items of an array are."""
    if items is None or isinstance(items, (bool, list)):
        return []
    return [_ref_name(items.ref)] if items.ref else [name for arm in items.anyOf for name in _mentioned(arm)]


def _implied_kinds(node: Any) -> list[str]:
    """Return the JSON type that a schema without ``type`` plainly means."""
    if node.properties is not None or node.additionalProperties is not None:
        return ["object"]
    return ["array"] if node.items is not None else []


def _kind_of(value: ir.Constant) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case str():
            return "string"
        case None:
            return "null"


def _bounds(node: Any, keywords: Iterable[tuple[str, str]]) -> tuple[tuple[str, Any], ...]:
    found = ((meta, getattr(node, keyword)) for meta, keyword in keywords)
    return tuple((meta, getattr(value, "value", value)) for meta, value in found if value is not None)


def _fixed_type(values: list[ir.Constant]) -> ir.TypeRef:
    """Return the exact type for *values*: both booleans are the type boolean, null is a type of its own."""
    arms: list[ir.TypeRef] = []
    booleans = [value for value in values if isinstance(value, bool)]
    plain = tuple(value for value in values if value is not None and not isinstance(value, bool))
    if plain:
        arms.append(ir.Fixed(values=plain))
    if len(booleans) == len({True, False}):
        arms.append(ir.Scalar(kind="boolean"))
    elif booleans:
        arms.append(ir.Fixed(values=tuple(booleans)))
    if None in values:
        arms.append(ir.Scalar(kind="null"))
    return arms[0] if len(arms) == 1 else ir.Union(arms=tuple(arms))


def _simplify(arms: list[ir.TypeRef]) -> ir.TypeRef:
    """Return the union of *arms*: flat, without repetition, and without an arm that another one contains."""
    flat: list[ir.TypeRef] = []
    for arm in arms:
        for each in arm.arms if isinstance(arm, ir.Union) else (arm,):
            if each not in flat:
                flat.append(each)
    if any(isinstance(arm, ir.Anything) for arm in flat):
        return ir.Anything()
    wide = {arm.kind for arm in flat if isinstance(arm, ir.Scalar) and not arm.bounds}
    kept = [arm for arm in flat if not _contained(arm, wide)]
    fixed = [arm for arm in kept if isinstance(arm, ir.Fixed)]
    if len(fixed) > 1:
        values = list(dict.fromkeys(value for arm in fixed for value in arm.values))
        kept = [arm for arm in kept if not isinstance(arm, ir.Fixed)]
        kept.insert(0, ir.Fixed(values=tuple(values)))
    return kept[0] if len(kept) == 1 else ir.Union(arms=tuple(kept))


def _contained(arm: ir.TypeRef, wide: set[ir.ScalarKind]) -> bool:
    """Whether an unbounded scalar of *wide* admits all that *arm* admits."""
    match arm:
        case ir.Fixed(values=values):
            return all(_kind_of(value) in wide or (_kind_of(value) == "integer" and "number" in wide) for value in values)
        case ir.Scalar(kind="integer"):
            return "number" in wide or ("integer" in wide and bool(arm.bounds))
        case ir.Scalar(kind=kind, bounds=bounds):
            return bool(bounds) and kind in wide
        case _:
            return False


def _ref_name(ref: str) -> str:
    return ref.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")

