"""Read a schema document: bytes from an untrusted source in, plain JSON values or diagnostics out.

A document that passes is safe for the later stages: a JSON object with limited size and depth, without repeated keys,
and with numbers and strings that can be written again. ``check_document`` checks whether bindings can be generated from
it. This module follows no references and does not use the network.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

from mcpgen.codegen.diagnostics import Diagnostic, Refused, pointer_to
from mcpgen.codegen.schema_checks import check_document

if TYPE_CHECKING:
    from pathlib import Path

    from mcpgen.codegen.json_pointers import Json

__all__ = ["check_document", "check_mcp", "parse_document", "read_document"]

# The largest official document is 0.4 MB (a draft saved as UTF-16). Twenty times that leaves room for growth, and the
# limit protects the memory when a user names a wrong file, such as a log or a disk image.
MAX_DOCUMENT_BYTES = 8 * 1024 * 1024

# The deepest official document has 17 levels. The later stages recurse over nested schemas with a few Python frames per
# level. 64 levels stay far below the interpreter's limit of 1,000 frames, and far above what official documents need.
MAX_DEPTH = 64

# Pointers to all parts of a document, and names of its inline types, are made of its keys. The longest pointer of an
# official document has 160 characters, and 64 levels of usual keywords have 1,400.
MAX_POINTER_CHARS = 2_000

# A schema has no use for longer integers, and Python refuses to convert more than 4,300 digits.
MAX_INTEGER_DIGITS = 400

# The unions of MCP's messages by direction, and the JSON-RPC envelopes. Every official document has both. The
# schemas of the MCP registry and of other JSON-RPC protocols lack one or the other.
_DIRECTIONS = ("ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification")
_ENVELOPES = ("JSONRPCMessage", "JSONRPCRequest")

# Our words for some of those of Python's parser.
_REASONS = {
    "Expecting value": "a value is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Expecting ':' delimiter": "a colon is missing after the key",
    "Expecting ',' delimiter": "a comma, or a closing bracket or brace, is missing",
    "Unterminated string starting at": "the string has no end",
    "Invalid control character at": "a string contains a line break or another control character",
    "Extra data": "there is more text after the end of the value",
}


Parsed: TypeAlias = "dict[str, Parsed] | list[Parsed] | str | int | float | bool | _Unrepresentable | None"


class _Unrepresentable:
    """A placeholder in a parsed document for a number that is not supported, until its pointer is known."""

    def __init__(self, text: str) -> None:
        self.text = text


def read_document(path: Path) -> dict[str, Json]:
    """Return the JSON object in the file at *path*.

    Raises:
        Refused: MG001 to MG009, MG013.
    """
    return parse_document(read_bytes(path), name=str(path))


def read_bytes(path: Path) -> bytes:
    """Return the content of the file at *path*.

    Raises:
        Refused: MG001, it cannot be read; MG007, it is longer than ``MAX_DOCUMENT_BYTES``.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: the path contains a null character
        reason = getattr(error, "strerror", None) or str(error)
        _refuse("MG001", f"cannot read {path}: {reason}", "Check the path and the permissions of the file.")
    if len(content) > MAX_DOCUMENT_BYTES:
        _refuse("MG007", f"{path} is larger than {MAX_DOCUMENT_BYTES} bytes", "Check that this is the right file.")
    return content


def parse_document(content: bytes, *, name: str) -> dict[str, Json]:
    """Return the JSON object in *content*; diagnostics call the document *name*.

    Raises:
        Refused: MG002 to MG006, MG008, MG009, MG013.
    """
    text = _decode(content, name)
    repeated: list[tuple[dict[str, Parsed], str]] = []

    def build(pairs: list[tuple[str, Parsed]]) -> dict[str, Parsed]:
        members: dict[str, Parsed] = {}
        for key, value in pairs:
            if key in members:
                repeated.append((members, key))
            members[key] = value
        return members

    try:
        document: Parsed = json.loads(
            text,
            object_pairs_hook=build,
            parse_int=_parse_integer,
            parse_float=_parse_number,
            parse_constant=_Unrepresentable,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        hint = "Correct the file. JSON has no comments, and no comma after the last member or item."
        _refuse("MG003", f"{name} is not JSON: {_REASONS.get(error.msg, error.msg)}, {where}", hint)
    except RecursionError:
        _refuse_depth()
    findings = _faults(document, repeated)
    if findings:
        raise Refused(findings)
    if not isinstance(document, dict):
        _refuse("MG009", f"the JSON value in {name} is not an object", "Use a schema document, which is a JSON object.")
    return cast("dict[str, Json]", document)  # no _Unrepresentable is left in it


def check_mcp(document: dict[str, Json]) -> list[Diagnostic]:
    """Return MG011 unless *document*, which ``check_document`` passed, defines the messages of MCP."""
    definitions = document.get("$defs", document.get("definitions"))
    names = definitions if isinstance(definitions, dict) else {}
    if any(name in names for name in _DIRECTIONS) and any(name in names for name in _ENVELOPES):
        return []
    return [
        Diagnostic(
            code="MG011",
            message="the document does not define MCP messages",
            hint=f"Use an MCP schema: it defines one of {', '.join(_DIRECTIONS)} and one of {', '.join(_ENVELOPES)}.",
        )
    ]


def _decode(content: bytes, name: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse("MG002", f"{name} is UTF-16 text", "Convert the file to UTF-8 (RFC 8259, section 8.1).")
    if content.startswith(b"\xef\xbb\xbf"):
        hint = "Save the file as UTF-8 without a byte order mark (RFC 8259, section 8.1)."
        _refuse("MG002", f"{name} starts with a byte order mark", hint)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "Convert the file to UTF-8 (RFC 8259, section 8.1)."
        _refuse("MG002", f"{name} is not UTF-8 text: byte {error.start} is not part of a character", hint)


def _parse_integer(text: str) -> int | _Unrepresentable:
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else _Unrepresentable(f"{text[:20]}… ({len(text)} characters)")


def _parse_number(text: str) -> float | _Unrepresentable:
    number = float(text)
    return number if abs(number) != float("inf") else _Unrepresentable(text)


def _faults(document: Parsed, repeated: list[tuple[dict[str, Parsed], str]]) -> list[Diagnostic]:
    """Return the faults of the values of *document* that do not depend on their meaning.

    An object in *repeated* may be missing in the document: it was itself the value of a repeated key.
    """
    keys_of: dict[int, list[str]] = {}
    for members, key in repeated:
        keys_of.setdefault(id(members), []).append(key)
    findings: list[Diagnostic] = []
    pending: list[tuple[Parsed, tuple[str | int, ...]]] = [(document, ())]
    while pending:
        value, path = pending.pop()
        if len(path) > MAX_DEPTH:
            _refuse_depth(pointer_to(*path))
        if sum(len(token) for token in path if isinstance(token, str)) > MAX_POINTER_CHARS:
            _refuse_keys(path)
        match value:
            case dict():
                findings += (_repeated(key, path) for key in keys_of.get(id(value), ()))
                findings += (_not_text(key, path) for key in value if not _is_text(key))
                pending += ((member, (*path, key)) for key, member in reversed(value.items()) if _is_text(key))
            case list():
                pending += ((value[index], (*path, index)) for index in reversed(range(len(value))))
            case str() if not _is_text(value):
                findings.append(_not_text(value, path))
            case _Unrepresentable():
                findings.append(
                    Diagnostic(
                        code="MG005",
                        pointer=pointer_to(*path),
                        message=f"the number {value.text[:60]} is not supported",
                        hint="Use a number that fits into 64 bits. JSON has no NaN and no Infinity.",
                    )
                )
            case _:
                pass  # any other value is supported
    return findings


def _is_text(value: str) -> bool:
    # "\ud800" is valid JSON but half a character: UTF-8 cannot encode it, so it cannot be written to a source file.
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _not_text(value: str, path: tuple[str | int, ...]) -> Diagnostic:
    return Diagnostic(
        code="MG008",
        pointer=pointer_to(*path),
        message=f"{value[:60]!a} contains half of a surrogate pair",
        hint="Use the character itself, or both halves of the pair.",
    )


def _repeated(key: str, path: tuple[str | int, ...]) -> Diagnostic:
    return Diagnostic(
        code="MG004",
        pointer=pointer_to(*path),
        message=f"the key {key[:60]!a} occurs more than once",
        hint="Keep one of them: JSON parsers disagree on which one counts.",
    )


def _refuse_depth(pointer: str = "") -> NoReturn:
    message = f"the document is nested more than {MAX_DEPTH} levels deep"
    _refuse("MG006", message, "Move inner schemas to definitions.", pointer)


def _refuse_keys(path: tuple[str | int, ...]) -> NoReturn:
    longest = max((token for token in path if isinstance(token, str)), key=len)
    message = (
        f"the keys that lead to a value have more than {MAX_POINTER_CHARS} characters together; "
        f"the longest begins with {longest[:60]!a}"
    )
    _refuse("MG013", message, "Use shorter names, or move inner schemas to definitions.")


def _refuse(code: str, message: str, hint: str, pointer: str = "") -> NoReturn:
    raise Refused([Diagnostic(code=code, pointer=pointer, message=message, hint=hint)])
