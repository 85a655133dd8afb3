"""The param headers of a server's tools, learnt from the lists of tools.

A tool's schema says which arguments a call repeats in headers. A tool whose annotations break a rule must not be used.

Spec:
    2026-07-28, basic/transports/streamable-http, "Custom Headers from Tool Parameters" and "Client Behavior";
    server/tools, "x-mcp-header".
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.client.outgoing_messages import LIST_TOOLS, message_headers, transport_request
from mcpgen.runtime.limits import MAX_CURSOR_CHARS
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Response
from mcpgen.runtime.protocol.param_headers import KEY, InvalidParamHeader, ParamHeaders, param_headers_of

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.client.post_requests import PostRequests

__all__ = ["ParamHeaderCache", "list_tools_again"]

# A server may list any number of tools, with any number of annotations; the annotated tools that were listed last are
# remembered.
_MAX_TOOLS: Final = 10_000
_MAX_BYTES: Final = 16 * 1024 * 1024

# What an annotation takes besides its texts, and what one more key in its path takes.
_ANNOTATION_BYTES: Final = 400
_KEY_BYTES: Final = 8
_BYTES_PER_CHAR: Final = 4
_MAX_WARNINGS: Final = 100
_MAX_SHOWN_CHARS: Final = 100

_LOG = logging.getLogger("mcpgen.client")


class _Tool(Struct):
    name: str
    input_schema: Raw = field(name="inputSchema")


class _Tools(Struct):
    tools: list[Raw]


class _Params(Struct):
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class _Page(Struct, rename="camel"):
    next_cursor: str | UnsetType | None = UNSET


class ParamHeaderCache:
    """The param headers of a server's tools.

    Attributes:
        kept_bytes: Their size, estimated.
    """

    def __init__(self) -> None:
        self.kept_bytes: int = 0
        self._headers: OrderedDict[str, tuple[ParamHeaders, int]] = OrderedDict()  # with their sizes
        self._warned: set[tuple[str, str]] = set()

    def of(self, tool: str | None) -> ParamHeaders | None:
        """Return the param headers of *tool*; None if it has none, or was not listed."""
        found = None if tool is None else self._headers.get(tool)
        return None if found is None else found[0]

    def learn(self, frame: bytes, answer: Response) -> bytes:
        """Learn from *answer*, a page of tools; return its *frame* without the tools that must not be used."""
        try:
            tools = msgspec.json.decode(answer.result, type=_Tools).tools
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return frame  # the caller reports the error
        kept = [each for each in tools if self._learn_tool(each)]
        return frame if len(kept) == len(tools) else _with_tools(answer, kept)

    def _learn_tool(self, tool: Raw) -> bool:
        """Learn the param headers of *tool*, and return False if it must not be used."""
        try:
            found = msgspec.json.decode(tool, type=_Tool)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True  # the caller reports the error
        try:
            if not _may_be_annotated(found.input_schema):
                self._forget(found.name)
                return True
            headers = param_headers_of(msgspec.json.decode(found.input_schema, type=dict[str, Any]))
        except InvalidParamHeader as error:
            self._forget(found.name)
            self._warn(found.name, error.reason)
            return False
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True
        self._forget(found.name)
        if headers.annotations:
            size = _size(found.name, headers)
            self._headers[found.name] = headers, size
            self.kept_bytes += size
            while len(self._headers) > _MAX_TOOLS or self.kept_bytes > _MAX_BYTES:
                self._forget(next(iter(self._headers)))
        return True

    def _forget(self, tool: str) -> None:
        self.kept_bytes -= self._headers.pop(tool, (None, 0))[1]

    def _warn(self, tool: str, reason: str) -> None:
        shown = tool[:_MAX_SHOWN_CHARS]
        if (shown, reason) not in self._warned and len(self._warned) < _MAX_WARNINGS:
            self._warned.add((shown, reason))
            _LOG.warning("the tool %s of the server is ignored: %s", printable(shown), reason)


async def list_tools_again(posts: PostRequests, call: OutgoingMessage, max_pages: int) -> None:
    """Request all pages of the tools, so that their headers are learnt, before *call* is sent again.

    Raises:
        RequestLost: The answer to a page will not come.

    Spec:
        2026-07-28, basic/transports/streamable-http, "Client Behavior": after a HeaderMismatch a client SHOULD list the
        tools, and make the request again.
    """
    params: dict[str, Any] = {"_meta": _meta_of(call)}
    for _ in range(max_pages):
        request = transport_request(LIST_TOOLS, params)
        error = await posts.send_request(request, message_headers(request, None), None)
        if error is not None or not isinstance(request.answer, Response):
            return
        try:
            cursor = msgspec.json.decode(request.answer.result, type=_Page).next_cursor
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR_CHARS:
            return
        params = {**params, "cursor": cursor}


def _meta_of(call: OutgoingMessage) -> dict[str, Any]:
    """Return the metadata of a call, without the token of its own progress."""
    if isinstance(call.params, UnsetType):
        return {}
    meta = msgspec.json.decode(call.params, type=_Params).meta
    return {} if isinstance(meta, UnsetType) else {name: meta[name] for name in meta if name != "progressToken"}


def _may_be_annotated(schema: Raw) -> bool:
    """Return whether *schema* may contain the annotation, whose name may be written with escapes."""
    text = bytes(schema)
    return KEY.encode() in text or b"\\u" in text


def _size(tool: str, headers: ParamHeaders) -> int:
    """Return an estimate of what the headers of a tool take; those that are too large are not counted to the end."""
    size = _BYTES_PER_CHAR * len(tool)
    for each in headers.annotations:
        chars = 2 * len(each.name) + sum(map(len, each.path))
        size += _ANNOTATION_BYTES + _KEY_BYTES * len(each.path) + _BYTES_PER_CHAR * chars
        if size > _MAX_BYTES:
            break
    return size


def _with_tools(answer: Response, tools: list[Raw]) -> bytes:
    # Of the answer, and not of its frame, which may be something that is almost JSON.
    result = msgspec.json.decode(answer.result, type=dict[str, Raw])
    result["tools"] = Raw(msgspec.json.encode(tools))
    return envelope.encode_response(answer.id, msgspec.json.encode(result))
