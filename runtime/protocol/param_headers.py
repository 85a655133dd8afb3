"""What headers repeat of a request's body: what a client sends, and what a server compares.

Gateways route by headers, servers execute bodies. If the two could differ, a request would be routed as one thing and
executed as another; so each header that names something in the body must be there, once, and say the same.

Spec: 2026-07-28, basic/transports/streamable-http#request-metadata and #server-validation, server/tools#x-mcp-header;
2025-06-18 and 2025-11-25, basic/transports#protocol-version-header.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol import headers as http

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ParamHeader",
    "InvalidParamHeader",
    "ParamHeaders",
    "Rule",
    "param_headers_of",
    "param_header_values",
    "header_mismatch",
    "standard_headers",
]

KEY: Final = "x-mcp-header"

# Where the params have what Mcp-Name repeats. With other methods the header repeats nothing, so that it is ignored.
NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_TYPES: Final = ("string", "integer", "boolean")
# Keywords of JSON Schema whose members are called as an author likes, so that one may be called like our annotation.
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
# Keywords that hold no schema, whatever stands in them.
_DATA: Final = frozenset({"const", "default", "dependentRequired", "enum", "example", "examples"})

# 42.0 is 42; what no conforming client writes, such as 4.2e1 or 042, is read in more than one way, hence not at all.
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.0+)?")

_HANDSHAKES: Final = [each.label for each in REVISIONS if each.era == "handshake"]
_WITHOUT_HEADERS: Final = frozenset(_HANDSHAKES[: _HANDSHAKES.index("2025-06-18")])  # it introduced the first of them
_WITH_REVISION_ONLY: Final = frozenset(_HANDSHAKES) - _WITHOUT_HEADERS

# Enough to recognise a value; an error must not be as long as what caused it.
_MAX_SHOWN_CHARS: Final = 100


class Rule(Enum):
    """What an annotation breaks."""

    NAME = auto()
    TYPE = auto()
    UNIQUE = auto()
    PLACE = auto()


class InvalidParamHeader(ValueError):  # noqa: N818 (the specification's word)
    """An annotation of an input schema breaks a rule, so that clients must not offer the tool.

    Attributes:
        rule: Which one.
        header: What the annotation says, of whatever type.
        path: The names of the properties that lead to it; None where other keywords do.
        other: For UNIQUE, the path of the property that asked for the same header before.
        reason: What is wrong, for a log.
    """

    def __init__(
        self, rule: Rule, header: object, path: tuple[str, ...] | None, other: tuple[str, ...] | None = None
    ) -> None:
        self.rule = rule
        self.header = header
        self.path = path
        self.other = other
        super().__init__(rule, path)

    @property
    def reason(self) -> str:  # noqa: D102 (documented above)
        what = f"the property {_shown('.'.join(self.path or ()))} asks for the header {_shown(self.header)}"
        match self.rule:
            case Rule.NAME:
                return f"{what}, which is no name of a header"
            case Rule.TYPE:
                return f"{what}, which only a string, an integer or a boolean can be in"
            case Rule.UNIQUE:
                return f"{what}, as does {_shown('.'.join(self.other or ()))}"
            case Rule.PLACE:
                return f"the header {_shown(self.header)} is asked for where `properties` alone do not lead"

    def __str__(self) -> str:
        return self.reason


class ParamHeader(Struct, frozen=True):
    """A parameter that a header repeats.

    Attributes:
        name: What its schema calls the header.
        header: The header's whole name, in lower case.
        path: Where the parameter stands in the arguments.
        json_type: Its type.
    """

    name: str
    header: str
    path: tuple[str, ...]
    json_type: Literal["string", "integer", "boolean"]


class ParamHeaders(Struct, frozen=True):
    """The parameters of one tool that headers repeat."""

    annotations: tuple[ParamHeader, ...] = ()


class _Mismatch(Exception):  # noqa: N818 (it says what the answer will say)
    pass


def param_headers_of(input_schema: Mapping[str, Any]) -> ParamHeaders:
    """Return what the headers of a call repeat, by the tool's input schema.

    Raises:
        InvalidAnnotation: An annotation breaks a rule. Over HTTP, a client must leave the tool out of what it lists.
    """
    found: dict[str, ParamHeader] = {}
    for path, schema in _schemas(input_schema):
        if KEY not in schema:
            continue
        name, json_type = schema[KEY], schema.get("type")
        if not path:
            raise InvalidParamHeader(Rule.PLACE, name, None)
        if not isinstance(name, str) or not http.TOKEN.fullmatch(name):
            raise InvalidParamHeader(Rule.NAME, name, path)
        if json_type not in _TYPES:
            raise InvalidParamHeader(Rule.TYPE, name, path)
        header = http.PARAM_PREFIX + name.lower()
        if header in found:
            raise InvalidParamHeader(Rule.UNIQUE, name, path, found[header].path)
        found[header] = ParamHeader(name, header, path, json_type)
    return ParamHeaders(tuple(found.values()))


def _schemas(root: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Yield a schema and all in it, each with the `properties` that lead to it; None if something else does.

    It does not recurse: how deep a schema goes is its author's choice.
    """
    waiting: deque[tuple[tuple[str, ...] | None, object]] = deque([((), root)])
    while waiting:
        path, value = waiting.popleft()
        if isinstance(value, list):
            waiting.extend((None, each) for each in cast("list[object]", value))
        if not isinstance(value, Mapping):
            continue
        schema = cast("Mapping[str, Any]", value)
        yield path, schema
        for keyword, inner in schema.items():
            if keyword in _MAPS and isinstance(inner, Mapping):
                leads = keyword == "properties" and path is not None
                members = cast("Mapping[str, object]", inner)
                waiting.extend(((*(path or ()), name) if leads else None, each) for name, each in members.items())
            elif keyword not in _DATA:
                waiting.append((None, inner))


def standard_headers(method: str, params: Mapping[str, Any], revision: str) -> dict[str, str]:
    """Return the headers that a client sends with a request, whatever the request is, by their names in lower case.

    ``initialize`` goes without: until it is answered, nobody knows the revision.

    Raises:
        UsageError: A header cannot carry the method or the name.
    """
    if revision in _WITHOUT_HEADERS:
        return {}
    found = {http.REVISION: revision}
    if revision in _WITH_REVISION_ONLY:
        return found
    try:
        found[http.METHOD] = http.check_plain(method)
        name = params.get(NAMED_BY.get(method, ""))
        if isinstance(name, str):
            found[http.NAME] = http.encode_value(name)
    except ValueError as error:
        raise UsageError(f"{_shown(method)} cannot be sent over HTTP with such a method or name: {error}") from error
    return found


def param_header_values(mirror: ParamHeaders, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that a client sends for the arguments of a call, by their names in lower case.

    An argument that is null or absent has none.

    Raises:
        UsageError: A header cannot carry the argument, such as a list for what the schema calls a string. The server
            would have to refuse the call.
    """
    found: dict[str, str] = {}
    for each in mirror.annotations:
        value = _argument(arguments, each.path)
        if value is None:
            continue
        try:
            # Not of these types: it says so itself.
            found[each.header] = http.encode_value(cast("str | int | bool", value))
        except ValueError as error:
            raise UsageError(
                f"the argument {_shown('.'.join(each.path))} is repeated in the header Mcp-Param-{each.name}: {error}"
            ) from error
    return found


def header_mismatch(
    headers: Mapping[str, str],
    method: str,
    params: Mapping[str, Any],
    revision_in_body: str | None,
    mirror: ParamHeaders | None,
) -> str | None:
    """Return what a server of 2026-07-28 says of a request whose headers do not repeat its body; None if they do.

    It is the message of the error -32020, with the status 400. Only requests have such headers, neither notifications
    nor what belongs to a session.

    Args:
        headers: By name, in lower case, as `gathered` returns them, so that what was given twice can be told.
        method: The request's.
        params: The request's.
        revision_in_body: What its ``_meta`` says. Without, only the header's presence is looked at; the request lacks
            what it must have, which is another error (-32602).
        mirror: That of the tool to call, if there is one.
    """
    try:
        _compare_plain(headers, http.REVISION, "MCP-Protocol-Version", revision_in_body)
        _compare_plain(headers, http.METHOD, "Mcp-Method", method)
        if method in NAMED_BY:
            _compare_name(headers, params.get(NAMED_BY[method]))
        if mirror is not None and method == "tools/call":
            arguments = params.get("arguments")
            for each in mirror.annotations:
                _compare_argument(headers, each, _argument(arguments, each.path))
    except _Mismatch as error:
        return f"Header mismatch: {error}"
    return None


def _compare_plain(headers: Mapping[str, str], name: str, title: str, body: str | None) -> None:
    said = _present(headers, name, title)
    try:
        text = http.stripped(said)  # these two are never base64
    except ValueError as error:
        raise _refused(title, said, error) from error
    if body is not None and text != body:
        raise _differs(title, text, body)


def _compare_name(headers: Mapping[str, str], body: object) -> None:
    said = _decoded(_present(headers, http.NAME, "Mcp-Name"), "Mcp-Name")
    if not isinstance(body, str):
        raise _Mismatch(f"Mcp-Name header value {_shown(said)} stands for no name or URI in the body")
    if said != body:
        raise _differs("Mcp-Name", said, body)


def _compare_argument(headers: Mapping[str, str], annotation: ParamHeader, body: object) -> None:
    title = f"Mcp-Param-{annotation.name}"
    if body is None:
        if annotation.header in headers:
            raise _Mismatch(f"there is a {title} header, but no such value in the body")
        return
    said = _decoded(_present(headers, annotation.header, title), title)
    try:
        expected = http.value_text(body)
    except ValueError as error:
        raise _Mismatch(f"{title} header cannot match the body value: {error}") from error
    if said == expected:
        return
    is_number = annotation.json_type == "integer" and isinstance(body, int | float) and not isinstance(body, bool)
    if not is_number or not _INTEGER.fullmatch(said) or int(said.partition(".")[0]) != body:
        raise _differs(title, said, body)


def _present(headers: Mapping[str, str], name: str, title: str) -> str:
    said = headers.get(name)
    if said is None:
        raise _Mismatch(f"{title} header is missing")
    return said


def _decoded(said: str, title: str) -> str:
    try:
        return http.decode_value(said)
    except ValueError as error:
        raise _refused(title, said, error) from error


def _refused(title: str, said: str, error: ValueError) -> _Mismatch:
    return _Mismatch(f"{title} header value {_shown(said)} is refused: {error}")


def _differs(title: str, said: str, body: object) -> _Mismatch:
    return _Mismatch(f"{title} header value {_shown(said)} does not match body value {_shown(body)}")


def _argument(arguments: object, path: tuple[str, ...]) -> object:
    """Return the value at a path; None if there is none."""
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = cast("Mapping[str, object]", arguments).get(name)
    return arguments


def _shown(value: object) -> str:
    """Return what a peer sent, fit for a sentence: it may be long, and Python refuses to write out huge integers."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _MAX_SHOWN_CHARS else f"{value[:_MAX_SHOWN_CHARS]!r}…"
    try:
        return http.value_text(value)
    except ValueError:
        return f"of the type {type(value).__name__}"
