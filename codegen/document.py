"""Reading a schema document: bytes of unknown origin in, plain JSON values or coded diagnostics out.

What passes here is safe for the stages behind it: an object, of bounded size and depth, without repeated keys, with
numbers and strings that can be written again. Whether it is a schema that can be generated from is ``check_document``'s
question. Nothing here follows a reference or touches the network.
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

# The largest document upstream has published is 0.4 MB (a draft saved as UTF-16). Twenty times that leaves
# room for growth and keeps a wrong file name, a log or a disk image, from filling the memory.
MAX_DOCUMENT_BYTES = 8 * 1024 * 1024

# Upstream's deepest document nests 14 levels. The stages behind us recurse over nested schemas, a few Python frames a
# level; 64 is far from the interpreter's limit of 1,000 frames and four times what was ever needed.
MAX_DEPTH = 64

# Longer integers than this have no use in a schema, and Python refuses to convert beyond 4,300 digits.
MAX_INTEGER_DIGITS = 400

# Where MCP keeps the direction of its messages, and the envelope they travel in. Every document that upstream ever
# published has both; schemas of its registry, and of other JSON-RPC protocols, lack one or the other.
_DIRECTIONS = ("ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification")
_ENVELOPES = ("JSONRPCMessage", "JSONRPCRequest")


Parsed: TypeAlias = "dict[str, Parsed] | list[Parsed] | str | int | float | bool | _Unrepresentable | None"


class _Unrepresentable:
    """Stands in a parsed document for a number that cannot be carried, until its pointer is known."""

    def __init__(self, text: str) -> None:
        self.text = text


def read_document(path: Path) -> dict[str, Json]:
    """Return the JSON object in the file at *path*.

    Raises:
        Refused: MG001 to MG009, with every fault of the last kind found.
    """
    return parse_document(read_bytes(path), name=str(path))


def read_bytes(path: Path) -> bytes:
    """Return the content of the file at *path*, which is at most ``MAX_DOCUMENT_BYTES`` long.

    Raises:
        Refused: MG001, it cannot be read; MG007, it is longer.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: the path holds a null character
        reason = getattr(error, "strerror", None) or str(error)
        _refuse("MG001", f"cannot read {path}: {reason}", "Give the path of a JSON file that you may read.")
    if len(content) > MAX_DOCUMENT_BYTES:
        _refuse("MG007", f"{path} is longer than {MAX_DOCUMENT_BYTES} bytes", "Check that this is the right file.")
    return content


def parse_document(content: bytes, *, name: str) -> dict[str, Json]:
    """Return the JSON object that *content* holds; *name* says in diagnostics where it came from.

    Raises:
        Refused: MG002 to MG006, MG008, MG009.
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
        _refuse("MG003", f"{name} is not JSON: {error.msg}, {where}", "Correct the file; JSON has no comments.")
    except RecursionError:
        _refuse_depth()
    findings = _faults(document, repeated)
    if findings:
        raise Refused(findings)
    if not isinstance(document, dict):
        _refuse("MG009", f"{name} holds a JSON value that is not an object", "A schema document is a JSON object.")
    return cast("dict[str, Json]", document)  # nothing unrepresentable is left in it


def check_mcp(document: dict[str, Json]) -> list[Diagnostic]:
    """Return MG011 unless *document*, which ``check_document`` passed, defines the messages of MCP."""
    definitions = document.get("$defs", document.get("definitions"))
    names = definitions if isinstance(definitions, dict) else {}
    if any(name in names for name in _DIRECTIONS) and any(name in names for name in _ENVELOPES):
        return []
    return [
        Diagnostic(
            code="MG011",
            message="no MCP messages are defined here",
            hint=f"An MCP document defines one of {', '.join(_DIRECTIONS)} and one of {', '.join(_ENVELOPES)}.",
        )
    ]


def _decode(content: bytes, name: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse("MG002", f"{name} is UTF-16 text", "JSON files are UTF-8 (RFC 8259, section 8.1): convert the file.")
    if content.startswith(b"\xef\xbb\xbf"):
        hint = "Save the file as UTF-8 without a byte order mark (RFC 8259, section 8.1)."
        _refuse("MG002", f"{name} starts with a byte order mark", hint)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "JSON files are UTF-8 (RFC 8259, section 8.1): convert the file."
        _refuse("MG002", f"{name} is not UTF-8 text: byte {error.start} is not part of a character", hint)


def _parse_integer(text: str) -> int | _Unrepresentable:
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else _Unrepresentable(f"{text[:20]}… ({len(text)} characters)")


def _parse_number(text: str) -> float | _Unrepresentable:
    number = float(text)
    return number if abs(number) != float("inf") else _Unrepresentable(text)


def _faults(document: Parsed, repeated: list[tuple[dict[str, Parsed], str]]) -> list[Diagnostic]:
    """Return what is wrong with the values of *document*, whatever they mean.

    Objects in *repeated* that are not found in the document were themselves the value of a repeated key, and lost.
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
                        message=f"the number {value.text[:60]} cannot be carried",
                        hint="JSON has no NaN or Infinity; write a number that fits into 64 bits.",
                    )
                )
            case _:
                pass  # any other value can be carried as it is
    return findings


def _is_text(value: str) -> bool:
    # "\ud800" is JSON, but half a character: no UTF-8 file can hold it, so it could not be written to source.
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _not_text(value: str, path: tuple[str | int, ...]) -> Diagnostic:
    return Diagnostic(
        code="MG008",
        pointer=pointer_to(*path),
        message=f"{value[:60]!a} holds half of a surrogate pair",
        hint="Write the character itself, or both halves of the pair.",
    )


def _repeated(key: str, path: tuple[str | int, ...]) -> Diagnostic:
    return Diagnostic(
        code="MG004",
        pointer=pointer_to(*path),
        message=f"the key {key[:60]!a} is given more than once",
        hint="Keep one of them: readers disagree on which one counts.",
    )


def _refuse_depth(pointer: str = "") -> NoReturn:
    message = f"the document is nested more than {MAX_DEPTH} levels deep"
    _refuse("MG006", message, "Give inner schemas definitions of their own.", pointer)


def _refuse(code: str, message: str, hint: str, pointer: str = "") -> NoReturn:
    raise Refused([Diagnostic(code=code, pointer=pointer, message=message, hint=hint)])
