"""The headers that repeat parts of a request's body: a client sends them, and a server compares them.

Gateways route by headers, and servers execute bodies. If the two differed, a request could be routed as one thing and
executed as another. So each of these headers must be present, once, with the same value as the body.

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

from mcpgen.generated.registry import REVISIONS, Labels
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
    "has_revision_header",
    "header_mismatch",
    "standard_headers",
]

KEY: Final = "x-mcp-header"

# The member of the params that Mcp-Name repeats. With other methods, the header repeats nothing and is ignored.
NAMED_BY: Final = {
    "prompts/get": "name",
    "resources/read": "uri",
    "tools/call": "name",
    # ext-tasks, "Streamable HTTP: Routing Headers".
    "tasks/cancel": "taskId",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
}

_TYPES: Final = ("string", "integer", "boolean")
# Keywords of JSON Schema whose members have any names, also that of our annotation.
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
# Keywords that never hold a schema.
_DATA: Final = frozenset({"const", "default", "dependentRequired", "enum", "example", "examples"})

# 42.0 is 42. Forms that no conforming client writes, such as 4.2e1 or 042, are ambiguous, so they are refused.
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.0+)?")

_HANDSHAKES: Final = [each.label for each in REVISIONS if each.era == "handshake"]
_WITHOUT_HEADERS: Final = Labels(_HANDSHAKES[: _HANDSHAKES.index("2025-06-18")])  # introduced the revision header
_WITH_REVISION_ONLY: Final = Labels(set(_HANDSHAKES) - _WITHOUT_HEADERS)

# Enough to recognise a value; an error must not be as long as the message that caused it.
_MAX_SHOWN_CHARS: Final = 100


class Rule(Enum):
    """The rules of ``x-mcp-header``."""

    NAME = auto()
    TYPE = auto()
    UNIQUE = auto()
    PLACE = auto()


class InvalidParamHeader(ValueError):  # noqa: N818 (the specification's word)
    """An ``x-mcp-header`` of an input schema breaks a rule, so clients must not offer the tool.

    Attributes:
        rule: The rule.
        header: The value of the annotation, of any type.
        path: The names of the properties that lead to it; None if other keywords do.
        other: For UNIQUE, the path of the first property with the same header.
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
        what = f"the x-mcp-header {_shown(self.header)} of the property {_shown('.'.join(self.path or ()))}"
        match self.rule:
            case Rule.NAME:
                return f"{what} is not a header name"
            case Rule.TYPE:
                return f"{what} needs the type string, integer or boolean"
            case Rule.UNIQUE:
                return f"{what} is already used by the property {_shown('.'.join(self.other or ()))}"
            case Rule.PLACE:
                return (
                    f"the x-mcp-header {_shown(self.header)} is in a wrong place: it must be on a property that is "
                    "reached through `properties` only, not through `items`, `anyOf`, `$ref` or other keywords"
                )

    def __str__(self) -> str:
        return self.reason


class ParamHeader(Struct, frozen=True):
    """A parameter that a header repeats.

    Attributes:
        name: The value of ``x-mcp-header`` in its schema.
        header: The full name of the header, in lower case.
        path: The keys that lead to the parameter in the arguments.
        json_type: Its type.
    """

    name: str
    header: str
    path: tuple[str, ...]
    json_type: Literal["string", "integer", "boolean"]


class ParamHeaders(Struct, frozen=True):
    """The parameters of one tool that headers repeat."""

    annotations: tuple[ParamHeader, ...] = ()


class _Mismatch(Exception):  # noqa: N818 (its text becomes the message of the response)
    pass


def param_headers_of(input_schema: Mapping[str, Any]) -> ParamHeaders:
    """Return the parameters that headers repeat, from the tool's input schema.

    Raises:
        InvalidParamHeader: An ``x-mcp-header`` breaks a rule. Over HTTP, a client must not list the tool.
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


def remove_param_headers(input_schema: Mapping[str, Any]) -> None:
    """Remove each ``x-mcp-header`` from *input_schema* itself, which was decoded from JSON."""
    for _, schema in _schemas(input_schema):
        cast("dict[str, Any]", schema).pop(KEY, None)


def _schemas(root: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Yield a schema and all schemas inside, each with the `properties` that lead to it; None if other keywords do.

    It does not recurse, because a peer chooses the depth of its schema.
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


def has_revision_header(revision: str) -> bool:
    """Return whether clients of a revision name it in the header MCP-Protocol-Version after the handshake."""
    return revision not in _WITHOUT_HEADERS


def standard_headers(method: str, params: Mapping[str, Any], revision: str) -> dict[str, str]:
    """Return the headers that a client sends with any request, by lower-case name.

    ``initialize`` has none, because the revision is not negotiated yet.

    Raises:
        UsageError: A header cannot carry the method or the name.
    """
    if not has_revision_header(revision):
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
        raise UsageError(
            f"{_shown(method)} cannot be sent over HTTP, because its method, or the name or URI in its params, cannot "
            f"be put into a header: {error}"
        ) from error
    return found


def param_header_values(param_headers: ParamHeaders, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that a client sends for the arguments of a call, by lower-case name.

    An argument that is null or absent has no header.

    Raises:
        UsageError: A header cannot hold the argument, such as a list. The server would have to refuse the call.
    """
    found: dict[str, str] = {}
    for each in param_headers.annotations:
        value = _argument(arguments, each.path)
        if value is None:
            continue
        try:
            # It raises ValueError for other types.
            found[each.header] = http.encode_value(cast("str | int | bool", value))
        except ValueError as error:
            name = _shown(".".join(each.path))
            raise UsageError(
                f"the argument {name} cannot be put into the header Mcp-Param-{each.name}: {error}"
            ) from error
    return found


def header_mismatch(  # noqa: PLR0913 (the request's, and the tool's)
    headers: Mapping[str, str],
    method: str,
    params: Mapping[str, Any],
    revision_in_body: str | None,
    param_headers: ParamHeaders | None,
    *,
    needs_name: bool = True,
) -> str | None:
    """Return the message of the error -32020 if the headers of a request do not repeat its body; None if they do.

    The status is 400. In 2026-07-28, only requests have these headers, not notifications; requests of a session have
    none.

    Args:
        headers: By lower-case name, from `headers_by_name`, which marks repeated ones.
        method: The method of the request.
        params: The params of the request.
        revision_in_body: The revision in its ``_meta``. If it is missing, which is another error (-32602), the header
            only has to be present.
        param_headers: Those of the tool to call, if there is one.
        needs_name: Whether ``Mcp-Name`` has to be present, if the method has a member that it repeats.
    """
    try:
        _compare_plain(headers, http.REVISION, "MCP-Protocol-Version", revision_in_body)
        _compare_plain(headers, http.METHOD, "Mcp-Method", method)
        if method in NAMED_BY and (needs_name or http.NAME in headers):
            _compare_name(headers, NAMED_BY[method], params)
        if param_headers is not None and method == "tools/call":
            arguments = params.get("arguments")
            for each in param_headers.annotations:
                _compare_argument(headers, each, _argument(arguments, each.path))
    except _Mismatch as error:
        return f"Header mismatch: {error}"
    return None


def _compare_plain(headers: Mapping[str, str], name: str, title: str, body: str | None) -> None:
    value = _present(headers, name, title)
    try:
        text = http.stripped(value)  # these two are never base64
    except ValueError as error:
        raise _refused(title, value, error) from error
    if body is not None and text != body:
        raise _differs(title, text, body)


def _compare_name(headers: Mapping[str, str], key: str, params: Mapping[str, Any]) -> None:
    value = _decoded(_present(headers, http.NAME, "Mcp-Name"), "Mcp-Name")
    body: object = params.get(key)
    if not isinstance(body, str):
        reason = f"does not match the body: `params.{key}` is missing or not a string"
        raise _Mismatch(f"Mcp-Name header value {_shown(value)} {reason}")
    if value != body:
        raise _differs("Mcp-Name", value, body)


def _compare_argument(headers: Mapping[str, str], annotation: ParamHeader, body: object) -> None:
    title = f"Mcp-Param-{annotation.name}"
    if body is None:
        if annotation.header in headers:
            raise _Mismatch(f"{title} header is present, but the body has no such value")
        return
    value = _decoded(_present(headers, annotation.header, title), title)
    try:
        expected = http.value_text(body)
    except ValueError as error:
        raise _Mismatch(f"{title} header cannot match the body value: {error}") from error
    if value == expected:
        return
    is_number = annotation.json_type == "integer" and isinstance(body, int | float) and not isinstance(body, bool)
    if not is_number or not _INTEGER.fullmatch(value) or int(value.partition(".")[0]) != body:
        raise _differs(title, value, body)


def _present(headers: Mapping[str, str], name: str, title: str) -> str:
    value = headers.get(name)
    if value is None:
        raise _Mismatch(f"{title} header is missing")
    return value


def _decoded(value: str, title: str) -> str:
    try:
        return http.decode_value(value)
    except ValueError as error:
        raise _refused(title, value, error) from error


def _refused(title: str, value: str, error: ValueError) -> _Mismatch:
    return _Mismatch(f"{title} header value {_shown(value)} is not valid: {error}")


def _differs(title: str, value: str, body: object) -> _Mismatch:
    return _Mismatch(f"{title} header value {_shown(value)} does not match body value {_shown(body)}")


def _argument(arguments: object, path: tuple[str, ...]) -> object:
    """Return the value at a path; None if there is none."""
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = cast("Mapping[str, object]", arguments).get(name)
    return arguments


def _shown(value: object) -> str:
    """Return a peer's value for an error message: truncated, without huge integers, which Python does not print."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _MAX_SHOWN_CHARS else f"{value[:_MAX_SHOWN_CHARS]!r}…"
    try:
        return http.value_text(value)
    except ValueError:
        return f"of the type {type(value).__name__}"
