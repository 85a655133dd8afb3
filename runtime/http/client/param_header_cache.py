"""Listing a server's tools again, since it misses headers that nobody knew of.

Spec:
    2026-07-28, basic/transports/streamable-http, "Client Behavior": after a HeaderMismatch a client SHOULD list the
    tools, and make the request again.

What is known of a server's tools: which of their arguments headers repeat, and which tools must not be offered.

Spec:
    2026-07-28, basic/transports/streamable-http, "Custom Headers from Tool Parameters"; server/tools, "x-mcp-header".
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.runtime.errors import printable
from mcpgen.runtime.http.client.outgoing_messages import LIST_TOOLS, message_headers, transport_request
from mcpgen.runtime.protocol.messages import Response
from mcpgen.runtime.protocol.param_headers import KEY, InvalidParamHeader, ParamHeaders, param_headers_of

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.client.post_requests import PostRequests

__all__ = ["ParamHeaderCache", "relist"]


class _Params(Struct):
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class _Page(Struct, rename="camel"):
    next_cursor: str | UnsetType | None = UNSET


async def relist(posts: PostRequests, call: OutgoingMessage, max_pages: int) -> None:
    """Ask for all pages of the tools, for whom *call* is made; what can be learnt of them is learnt on the way.

    Raises:
        RequestLost: A page could not be had.
    """
    params: dict[str, Any] = {"_meta": _meta_of(call)}
    for _ in range(max_pages):
        listing = transport_request(LIST_TOOLS, params)
        refused = await posts.ask(listing, message_headers(listing, None), None)
        if refused is not None or not isinstance(listing.answer, Response):
            return
        try:
            cursor = msgspec.json.decode(listing.answer.result, type=_Page).next_cursor
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if not isinstance(cursor, str):
            return
        params = {**params, "cursor": cursor}


def _meta_of(call: OutgoingMessage) -> dict[str, Any]:
    """Return what a call says about who makes it; its progress is its own."""
    if isinstance(call.params, UnsetType):
        return {}
    meta = msgspec.json.decode(call.params, type=_Params).meta
    return {} if isinstance(meta, UnsetType) else {name: meta[name] for name in meta if name != "progressToken"}


# A server may list any number of tools; those with annotations that were listed last are known.
_MOST: Final = 10_000
_MOST_WARNINGS: Final = 100

_LOG = logging.getLogger("mcpgen.client")


class _Tool(Struct):
    name: str
    input_schema: Raw = field(name="inputSchema")


class _Tools(Struct):
    tools: list[Raw]


class ParamHeaderCache:
    """Learns from lists of tools.

    Attributes:
        lists: How many pages were learnt.
    """

    def __init__(self) -> None:
        self.lists: int = 0
        self._known: OrderedDict[str, ParamHeaders] = OrderedDict()
        self._warned: set[tuple[str, str]] = set()

    def of(self, tool: str | None) -> ParamHeaders | None:
        """Return what headers repeat of a call of *tool*; None if nothing, or nobody knows."""
        return None if tool is None else self._known.get(tool)

    def learn(self, frame: bytes, result: Raw) -> bytes:
        """Learn from *result*, a page of tools, and return its *frame* without those that break a rule."""
        self.lists += 1
        try:
            tools = msgspec.json.decode(result, type=_Tools).tools
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return frame  # whoever asked finds out
        kept = [each for each in tools if self._takes(each)]
        return frame if len(kept) == len(tools) else _with_tools(frame, kept)

    def _takes(self, tool: Raw) -> bool:
        """Learn what *tool* says, and return False if it must not be offered."""
        try:
            found = msgspec.json.decode(tool, type=_Tool)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True  # whoever asked finds out
        try:
            if not _may_be_annotated(found.input_schema):
                self._known.pop(found.name, None)
                return True
            mirror = param_headers_of(msgspec.json.decode(found.input_schema, type=dict[str, Any]))
        except InvalidParamHeader as error:
            self._known.pop(found.name, None)
            self._warn(found.name, error.reason)
            return False
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True
        self._known.pop(found.name, None)
        if mirror.annotations:
            self._known[found.name] = mirror
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return True

    def _warn(self, tool: str, reason: str) -> None:
        if (tool, reason) not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add((tool, reason))
            _LOG.warning("the tool %s is left out of what the server lists: %s", printable(tool[:100]), reason)


def _may_be_annotated(schema: Raw) -> bool:
    """Whether the annotation may be in *schema*, whose names may be written with escapes."""
    text = bytes(schema)
    return KEY.encode() in text or b"\\u" in text


def _with_tools(frame: bytes, tools: list[Raw]) -> bytes:
    message = msgspec.json.decode(frame, type=dict[str, Raw])
    result = msgspec.json.decode(message["result"], type=dict[str, Raw])
    result["tools"] = Raw(msgspec.json.encode(tools))
    message["result"] = Raw(msgspec.json.encode(result))
    return msgspec.json.encode(message)
