"""Facts that a document itself states: its definitions, its era and its error codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcpgen.codegen import names
from mcpgen.codegen.overlay import Era, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "because",
    "defined_errors",
    "definitions",
    "era_of",
    "error_definitions",
    "error_pointer",
    "required_property",
]


def _object(value: object) -> dict[str, Any]:
    """Return *value* if it is a JSON object; otherwise an empty one: nothing is checked yet."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def definitions(document: dict[str, Any]) -> dict[str, Any]:
    """Return the definitions of *document* by name."""
    return _object(document.get("$defs", document.get("definitions")))


def required_property(schema: object, key: str) -> object:
    """Return the schema of *key* if the object *schema* requires it; otherwise None."""
    found = _object(schema)
    required: object = found.get("required")
    is_required = isinstance(required, list) and key in required
    return _object(found.get("properties")).get(key) if is_required else None


def _methods_of(document: dict[str, Any]) -> Iterator[str]:
    for each in definitions(document).values():
        method = _object(_object(_object(each).get("properties")).get("method")).get("const")
        if isinstance(method, str):
            yield method


def era_of(document: dict[str, Any]) -> Era | None:
    """Return the era that the requests of *document* show; None if they show none."""
    methods = set(_methods_of(document))
    if "initialize" in methods:
        return "handshake"
    return "stateless" if "server/discover" in methods else None


def because(document: dict[str, Any]) -> str:
    """Return the clause that says why `era_of` decided as it did."""
    match era_of(document):
        case "handshake":
            return ", because the document has `initialize`"
        case "stateless":
            return ", because the document has `server/discover` and no `initialize`"
        case _:
            return ", because the document has neither `initialize` nor `server/discover`"


def error_definitions(document: dict[str, Any]) -> dict[str, int]:
    """Return the constant code of each definition of an error, by the definition's name."""
    found: dict[str, int] = {}
    for name, schema in definitions(document).items():
        if name.endswith("Error") and (codes := list(_codes(schema))):
            found[name] = codes[0]
    return found


def _codes(schema: object) -> Iterator[int]:
    """Yield the constants of a `code` in *schema*: at its top, or below `error` and `allOf`."""
    found = _object(schema)
    properties = _object(found.get("properties"))
    code = _object(properties.get("code")).get("const")
    if type(code) is int:
        yield code
    if "error" in properties:
        yield from _codes(properties["error"])
    members: object = found.get("allOf")
    for each in cast("list[object]", members) if isinstance(members, list) else ():
        yield from _codes(each)


def error_pointer(document: dict[str, Any], name: str) -> str:
    """Return the JSON Pointer of the definition *name*."""
    return f"/{'$defs' if '$defs' in document else 'definitions'}/{name}"


# JSON-RPC 2.0, section 5.1: schema/overlay.toml lists these for every document.
_STANDARD = frozenset({-32700, *range(-32603, -32599)})


def defined_errors(document: dict[str, Any], known: list[ErrorCode]) -> tuple[list[ErrorCode], list[str]]:
    """Return the error codes that only the document defines, and a sentence about each."""
    codes = {each.code for each in known} | _STANDARD
    taken = {each.name for each in known}
    errors: list[ErrorCode] = []
    for name, code in error_definitions(document).items():
        word = names.snake(name.removesuffix("Error")).upper()
        if code not in codes and word not in taken and word[:1].isalpha():
            errors.append(ErrorCode(code=code, name=word, text=f"The error of the definition {name}."))
            codes.add(code)
            taken.add(word)
    return errors, [f"The document defines the error code {each.name} {each.code}." for each in errors]
