"""The document of an extension, completed with the definitions of its base revision.

An extension copies the definitions of MCP that it uses into its own document, refers to definitions that it does not
have (by their names, or by the address of the official document), or adds keys to an object of MCP. The completed
document has all definitions of the base, and each definition of the extension instead of that of the base. Then the
overlay of the extension applies, so that it can also change objects of the base.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any, cast

import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.canonical import reduce
from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.json_pointers import objects
from mcpgen.codegen.keywords import ANNOTATIONS
from mcpgen.codegen.overlay import apply_overlay, patched_document
from mcpgen.codegen.schema_checks import definitions_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from mcpgen.codegen.json_pointers import Json
    from mcpgen.codegen.overlay import Overlay, SharedOverlay
    from mcpgen.codegen.pinned import SchemaRoom

__all__ = ["DIRECTIONS", "Base", "completed", "is_identifier", "linked"]

_HOMES = ("$defs", "definitions")
# These list the messages of the base. An extension has messages of its own.
DIRECTIONS = frozenset(
    {f"{side}{kind}" for side in ("Client", "Server") for kind in ("Request", "Notification", "Result")}
    | {"JSONRPCMessage", "JSONRPCResponse", "JSONRPCResultResponse"}
)
# Keywords of a type with a meaning.
_NAMED = frozenset({"$ref", "allOf", "const", "properties"})
_PRIVATE = re.compile(r"_+(?=[A-Za-z])")
# 2026-07-28, basic/index, "_meta": the prefix of a key consists of labels. An identifier must have one.
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The documents of the base of an extension.

    Attributes:
        official: Its document.
        patched: Its document with its overlay applied.
        address: A regular expression for the addresses of the official document, as references give them.
    """

    official: dict[str, Any]
    patched: dict[str, Any]
    address: str = ""

    @classmethod
    def of(cls, room: SchemaRoom, revision: str) -> Base:
        """Return the documents of *revision* in *room*.

        Raises:
            Refused: It is not there, a file does not have the recorded hash, or an overlay does not fit.
        """
        return cls(
            official=room.document(revision),
            patched=patched_document(revision, room),
            address=room.address(revision),
        )


def completed(document: dict[str, Any], base: Base, overlay: Overlay, shared: SharedOverlay) -> dict[str, Any]:
    """Return *document* with the definitions of its base that it uses or changes, and with its overlay applied.

    Args:
        document: The document of the extension.
        base: The documents of the base.
        overlay: The overlay of the extension.
        shared: The overlay of all documents.

    Raises:
        Refused: MG010, its definitions are in two places, or not in an object; or the overlay does not fit.
    """
    problem = definitions_of(document)[1] if any(each in document for each in _HOMES) else None
    if problem is not None:
        raise Refused([problem])
    home = "$defs" if "$defs" in base.patched else "definitions"
    own = _hoisted(document, home)
    inherited, published = base.patched[home], base.official[home]
    if base.address:
        _use_base(own, published, re.compile(rf"(?:{base.address})#/(?:\$defs|definitions)/([^/]+)"), home)
    # A copy of an official definition gets the corrections of the base.
    copied = {name for name in own if name in published and _is_copy(own[name], published[name])}
    definitions = {name: each for name, each in own.items() if name not in copied}
    root = {name: each for name, each in document.items() if name not in _HOMES}
    applied = apply_overlay({**root, home: {**inherited, **definitions}}, overlay, shared)
    found: dict[str, Any] = applied[home]
    called = _called(found, overlay.methods)
    kept = _reachable({*own, *_changed(found, inherited), *called}, found)
    return {**applied, home: {name: each for name, each in found.items() if name in kept}}


def linked(document: dict[str, Any]) -> dict[str, Any]:
    """Return *document* with a reference in place of each inline type that repeats a definition of it.

    TypeScript's schema generators write the definition at each place that uses it.
    """
    home = next(each for each in _HOMES if each in document)
    definitions: dict[str, Any] = document[home]
    while True:  # an outer copy can equal its definition only after the copies inside it are linked
        by_text: dict[str, str] = {}
        for name in sorted(definitions):
            if _is_described(definitions[name]):
                by_text.setdefault(_text(definitions[name]), f"#/{home}/{name}")
        found = {name: _inside(schema, by_text) for name, schema in definitions.items()}
        if _same(found, definitions):
            return {**document, home: found}
        definitions = found


def is_identifier(text: str) -> bool:
    """Whether *text* can identify an extension: a prefix is mandatory."""
    return len(text) <= names.MAX_LABEL_LENGTH and _IDENTIFIER.fullmatch(text) is not None


def _link(schema: Any, by_text: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    if _is_described(schema) and (reference := by_text.get(_text(schema))):
        return {"$ref": reference}
    return _inside(schema, by_text)


def _inside(schema: Any, by_text: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(schema, list):
        return [_link(each, by_text) for each in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        # The members of `allOf` are merged: a reference would save no class.
        key: [_inside(arm, by_text) for arm in cast("list[object]", each)]
        if key == "allOf" and isinstance(each, list)
        else _link(each, by_text)
        for key, each in cast("dict[str, Any]", schema).items()
    }


def _is_described(schema: object) -> bool:
    """Whether *schema* is an object with keys, or a union of objects or constants: a type with a meaning."""
    found = cast("dict[str, object]", schema) if isinstance(schema, dict) else {}
    return "$ref" not in found and bool(found.get("properties") or _has_meaning(found.get("anyOf")))


def _has_meaning(arms: object) -> bool:
    listed = cast("list[object]", arms) if isinstance(arms, list) else []
    # A union of plain types says nothing about its meaning.
    return len(listed) > 1 and all(
        isinstance(each, dict) and not _NAMED.isdisjoint(cast("dict[str, object]", each)) for each in listed
    )


def _text(schema: dict[str, Any]) -> str:
    return json.dumps({key: each for key, each in schema.items() if key not in ANNOTATIONS}, sort_keys=True)


def _is_copy(own: Json, published: dict[str, Any]) -> bool:
    """Whether *own*, which is not checked yet, is the definition *published*, apart from descriptions."""
    return isinstance(own, dict) and _same(reduce(own), reduce(published))


def _same(one: Json, other: Json) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _hoisted(document: dict[str, Any], home: str) -> dict[str, Any]:
    """Return the definitions of *document*, and those inside its definitions, with references for the keyword *home*.

    A reference is resolved against the root, where Zod's generator does not put the definitions of recursive types.

    Raises:
        Refused: MG313, two definitions inside others have the same name and differ.
    """
    found = copy.deepcopy(cast("dict[str, Any]", document.get("$defs", document.get("definitions", {}))))
    inner: dict[str, Any] = {}
    for schema in list(objects(found)):
        if "$ref" not in schema and "type" not in schema and "anyOf" not in schema:
            continue  # a table of names
        for keyword in _HOMES:
            held = schema.pop(keyword, None)
            for name, each in (held if isinstance(held, dict) else {}).items():
                if name not in found and not _same(inner.setdefault(name, each), each):
                    raise Refused([_ambiguous(name, keyword)])
    renamed = {name: names.pascal(_PRIVATE.sub("", name)) if name.startswith("__") else name for name in inner}
    for name, each in inner.items():
        found.setdefault(renamed[name], each)
    for schema in objects(found):
        if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#/"):
            _, keyword, *rest = reference.split("/")
            if keyword in _HOMES and len(rest) == 1:
                schema["$ref"] = f"#/{home}/{renamed.get(rest[0], rest[0])}"
    return found


def _use_base(own: dict[str, Any], published: Mapping[str, Any], address: re.Pattern[str], home: str) -> None:
    """Replace the references in *own* that match *address*, and so point at a definition of the base.

    A definition of the same name in *own* that differs hides that of the base. Such a reference stays as it is.
    """
    for schema in objects(own):
        reference = schema.get("$ref")
        found = address.fullmatch(reference) if isinstance(reference, str) else None
        name = found[1] if found else ""
        if name in published and (name not in own or _is_copy(own[name], published[name])):
            schema["$ref"] = f"#/{home}/{name}"


def _ambiguous(name: str, keyword: str) -> Diagnostic:
    return Diagnostic(
        code="MG313",
        pointer=pointer_to(keyword, name),
        message=f"two definitions contain different definitions of {name}",
        hint="Move them to the root of the document, under different names.",
    )


def _changed(found: Mapping[str, Any], base: Mapping[str, Any]) -> set[str]:
    """Return the definitions that *base* lacks or has in another form, and those that contain one of them."""
    changed = {name for name, each in found.items() if name not in base or not _same(each, base[name])}
    grown = True
    while grown:
        more = {
            name
            for name, each in found.items()
            if name not in changed and name not in DIRECTIONS and not changed.isdisjoint(_mentioned(each))
        }
        changed |= more
        grown = bool(more)
    return changed


def _called(definitions: Mapping[str, Any], methods: Container[str]) -> Iterator[str]:
    """Yield the definitions of the messages of *methods*, and of what answers them."""
    for name, schema in definitions.items():
        constants = (cast("str", each["const"]) for each in objects(schema) if isinstance(each.get("const"), str))
        if any(each in methods for each in constants):
            stem = name.removesuffix("Request")
            yield from (each for each in (name, f"{stem}Result", f"{stem}ResultResponse") if each in definitions)


def _reachable(roots: Iterable[str], definitions: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    pending = [name for name in roots if name in definitions]
    while pending:
        if (name := pending.pop()) not in found:
            found.add(name)
            pending += [each for each in _mentioned(definitions[name]) if each in definitions]
    return found


def _mentioned(schema: Json) -> Iterator[str]:
    for each in objects(schema):
        if isinstance(reference := each.get("$ref"), str):
            yield reference.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
