"""The headers of tool calls over HTTP that repeat arguments: which a tool has, and that no others are listed.

Spec:
    2026-07-28, server/tools#x-mcp-header; basic/transports/streamable-http, "Server Validation".
"""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from mcpgen.runtime.errors import UsageError, quoted
from mcpgen.runtime.protocol.param_headers import (
    KEY,
    InvalidParamHeader,
    ParamHeaders,
    param_headers_of,
    remove_param_headers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.codec import IncomingRequestCodec

__all__ = ["ToolHeaders"]

_LOG = logging.getLogger("mcpgen.http")


class _List(Struct):
    tools: list[dict[str, Any]]


_KEY: Final = b'"%b"' % KEY.encode()
_decode_list: Final = msgspec.json.Decoder(_List).decode

# Names come from handlers, which may list others each time.
_MAX_WARNINGS: Final = 100


class ToolHeaders:
    """The headers of each tool of some handlers, which provide the schemas by a method ``input_schema(name)``."""

    def __init__(self, handlers: object) -> None:
        self._find: Callable[[str], dict[str, Any] | None] | None = getattr(handlers, "input_schema", None)
        self._found: dict[str, ParamHeaders] = {}
        self._warned: set[str] = set()

    def of(self, tool: str) -> ParamHeaders | None:
        """Return which arguments of *tool* are repeated; None if none are, or the tool is unknown."""
        if tool not in self._found:
            schema = None if self._find is None else self._find(tool)
            if schema is None:
                return None  # unknown names are not kept: there is no limit to them
            try:
                self._found[tool] = param_headers_of(schema)
            except InvalidParamHeader as error:  # none of its headers is listed, so no client sends them
                self._warn(tool, error)
                self._found[tool] = ParamHeaders()
        found = self._found[tool]
        return found if found.annotations else None

    def only_valid(self, codec: IncomingRequestCodec) -> IncomingRequestCodec:
        """Return *codec* of `tools/list`, which lists no headers that break a rule, and none that are not compared.

        The first are removed from the schema of their tool. The others are refused, on stdio, too, so that authors
        notice before they serve HTTP.
        """
        listing = copy.copy(codec)
        write = codec.result

        def write_valid(result: Any) -> bytes:
            written = write(result)
            return written if written.find(_KEY) < 0 else self._checked(written)

        listing.result = write_valid
        return listing

    def _checked(self, written: bytes) -> bytes:
        tools, is_changed = _decode_list(written).tools, False
        for tool in tools:
            try:
                headers = param_headers_of(tool["inputSchema"]).annotations
            except InvalidParamHeader as error:
                self._warn(tool["name"], error)
                remove_param_headers(tool["inputSchema"])
                is_changed = True
                continue
            if headers and self.of(tool["name"]) is None:
                raise UsageError(
                    f"the tool {quoted(tool['name'])} has `{KEY}` in its input schema, but the handlers have no method "
                    "`input_schema(name)` that returns it, so the headers of a call could not be compared with "
                    f"its arguments; add the method, or remove `{KEY}`"
                )
        if not is_changed:
            return written
        members = msgspec.json.decode(written, type=dict[str, Raw])
        return msgspec.json.encode({**members, "tools": tools})

    def _warn(self, tool: str, error: InvalidParamHeader) -> None:
        if tool not in self._warned and len(self._warned) < _MAX_WARNINGS:
            self._warned.add(tool)
            _LOG.warning("tools/list shows the tool %s without `x-mcp-header`: %s", quoted(tool), error)
