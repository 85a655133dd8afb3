"""The only module that imports datamodel-code-generator: a schema document in, its parsed definitions out.

Its parser reads the document, resolves the references and validates each definition into a schema object. This module
converts these objects to `SchemaObject`. It does not use the parser's next stage, Python data models, because that
stage loses what exact bindings need: which objects are open, the order of a union's members, and names without numbers.
See docs/adr/0003.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from datamodel_code_generator import Error
from datamodel_code_generator.parser.jsonschema import JsonSchemaParser
from pydantic import ValidationError

from mcpgen.codegen.diagnostics import Diagnostic, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SchemaNode", "SchemaObject", "admits_anything", "exact", "preset", "quoted", "schema_objects"]

_NUMBER_BOUNDS = (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"))
# By JSON type: the keywords of msgspec.Meta and of the document.
_BOUNDS = {
    "string": (("min_length", "minLength"), ("max_length", "maxLength"), ("pattern", "pattern")),
    "integer": _NUMBER_BOUNDS,
    "number": _NUMBER_BOUNDS,
    "array": (("min_length", "minItems"), ("max_length", "maxItems")),
}
# In the document, these attributes of SchemaObject have another name, or are one of several keywords.
_KEYWORDS = {
    "additional": "`additionalProperties`",
    "all_of": "`allOf`",
    "any_of": "`anyOf`",
    "bounds": "bounds",
    "fixed": "`enum` or `const`",
    "ref": "`$ref`",
    "types": "`type`",
}

_HOMES = ("$defs", "definitions")

Value: TypeAlias = str | int | float | bool | None


class SchemaObject(msgspec.Struct, frozen=True, kw_only=True):
    """One schema: its keywords as the parser read them. An absent keyword is empty.

    Attributes:
        properties: None if the keyword is absent, which differs from an empty object.
        additional: The value of ``additionalProperties``, or None if it is absent.
        fixed: The values of ``const`` or ``enum``, or None if both are absent.
        bounds: The bounds by keyword.
        origins: The pointers of the members of ``all_of`` if the document does not have this ``allOf``.
    """

    ref: str = ""
    types: tuple[str, ...] = ()
    properties: dict[str, SchemaNode] | None = None
    required: frozenset[str] = frozenset()
    additional: SchemaNode | None = None
    items: SchemaNode | None = None
    any_of: tuple[SchemaNode, ...] = ()
    all_of: tuple[SchemaNode, ...] = ()
    fixed: tuple[Value, ...] | None = None
    bounds: dict[str, str | int | float] = {}
    default: Value = None
    title: str = ""
    description: str = ""
    origins: tuple[str, ...] = ()

    def decides(self) -> dict[str, Any]:
        """Return the keywords that restrict the value: all but annotations."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in fields.items() if name not in _ANNOTATIONS and value != _NOTHING[name]}

    def bounds_for(self, kind: str) -> tuple[tuple[str, Any], ...]:
        """Return the bounds for values of the JSON type *kind*, as pairs of a msgspec.Meta keyword and a value."""
        known = _BOUNDS.get(kind, ())
        return tuple((meta, self.bounds[keyword]) for meta, keyword in known if keyword in self.bounds)

    def bounded_types(self) -> tuple[str, ...]:
        """Return the JSON types whose values the bounds restrict; an integer is a number."""
        return tuple(kind for kind in ("string", "number", "array") if self.bounds_for(kind))

    def implied_types(self) -> tuple[str, ...]:
        """Return the JSON type that a schema without ``type`` implies; ``check_document`` warns about it."""
        if self.properties is not None or self.additional is not None or self.required:
            return ("object",)
        return ("array",) if self.items is not None else ()


SchemaNode: TypeAlias = SchemaObject | bool
"""A schema; ``True`` accepts any value."""

_ANNOTATIONS = frozenset({"default", "title", "description", "origins"})
_NOTHING: dict[str, Any] = {name: getattr(SchemaObject(), name) for name in SchemaObject.__struct_fields__}


def admits_anything(node: SchemaNode) -> bool:
    """Whether *node* is ``true`` or ``{}``, annotations aside."""
    return node is True or (isinstance(node, SchemaObject) and not node.decides())


def preset(node: SchemaNode) -> str | int | bool | None:
    """Return the ``default`` of *node*. On a required key it can only be meant for the author of the message."""
    return None if not isinstance(node, SchemaObject) or isinstance(node.default, float) else node.default


def quoted(names: Iterable[str]) -> str:
    """Return attributes of `SchemaObject`, or keywords, as a message names them: keywords are in backquotes."""
    return ", ".join(_KEYWORDS.get(name, f"`{name}`") for name in names)


def exact(schema: object) -> bytes:
    """Return a schema or a keyword's value as bytes that are equal only for equal JSON: 1 and true differ."""
    return msgspec.json.encode(schema, order="deterministic")


class _Definitions(JsonSchemaParser):
    """The parser, stopped before a definition becomes a data model."""

    def __init__(self, source: str) -> None:
        super().__init__(source)  # pyright: ignore[reportUnknownMemberType]  # its signature is built at run time
        self.by_name: dict[str, Any] = {}

    def parse_obj(self, name: str, obj: Any, path: list[str]) -> None:
        """Keep the definition *name*, and ignore the root schema, which has no path."""
        del name
        if len(path) > 1:
            self.by_name[path[-1]] = obj


def schema_objects(document: dict[str, Any]) -> dict[str, SchemaObject]:
    """Return the schema of each definition, by name.

    Raises:
        Refused: MG120, the parser rejects the document. Normally `check_document` reports the fault first.
    """
    # Only the definitions: the parser would give a meaning to a title or an $id in the root.
    parser = _Definitions(json.dumps({keyword: document[keyword] for keyword in _HOMES if keyword in document}))
    try:
        with warnings.catch_warnings():
            # The parser warns about formats without a Python type (uri-template, byte). The bindings do not check
            # formats.
            warnings.simplefilter("ignore")
            parser.parse_raw()
    except (Error, ValidationError) as error:
        finding = Diagnostic(
            code="MG120",
            message=f"datamodel-code-generator cannot parse the document: {error}",
            hint="Compare the definition that this message names with the documents in schema/.",
        )
        raise Refused([finding]) from error
    return {name: _schema_object(parsed) for name, parsed in parser.by_name.items()}


def _node(parsed: Any) -> SchemaNode:
    return parsed if isinstance(parsed, bool) else _schema_object(parsed)


def _schema_object(parsed: Any) -> SchemaObject:
    """Return *parsed*, a ``JsonSchemaObject``. The parser keeps ``const`` among the keywords that it does not know."""
    extras: dict[str, Any] = parsed.extras
    given: set[str] = parsed.model_fields_set
    kinds: str | list[str] | None = parsed.type
    properties: dict[str, Any] | None = parsed.properties
    additional: Any = parsed.additionalProperties
    listed: tuple[Value, ...] | None = tuple(parsed.enum) if "enum" in given else None
    if "const" in extras:
        constant: Value = extras["const"]
        # 1 and true are equal in Python, but not in JSON.
        is_listed = listed is None or any(type(each) is type(constant) and each == constant for each in listed)
        listed = (constant,) if is_listed else ()
    return SchemaObject(
        ref=str(parsed.ref or ""),  # the parser has its own string type
        types=() if kinds is None else (kinds,) if isinstance(kinds, str) else tuple(kinds),
        properties=None if properties is None else {name: _node(each) for name, each in properties.items()},
        required=frozenset(parsed.required),
        additional=None if additional is None else _node(additional),
        items=None if parsed.items is None else _node(parsed.items),
        any_of=tuple(_node(arm) for arm in parsed.anyOf),
        all_of=tuple(_node(arm) for arm in parsed.allOf),
        fixed=listed,
        bounds={name: _plain(getattr(parsed, name)) for name in _bound_keywords() if getattr(parsed, name) is not None},
        default=parsed.default if isinstance(parsed.default, (str, int)) else None,
        title=parsed.title or "",
        description=parsed.description or "",
    )


def _bound_keywords() -> set[str]:
    return {keyword for pairs in _BOUNDS.values() for _, keyword in pairs}


def _plain(bound: Any) -> str | int | float:
    """Return a bound as in the document; the parser wraps numbers to remember whether they were integers."""
    value: str | int | float = getattr(bound, "value", bound)
    return value
