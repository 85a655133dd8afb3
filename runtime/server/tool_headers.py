"""The headers of tool calls over HTTP that repeat arguments: which a tool has, and that no other is listed.

Spec:
    2026-07-28, server/tools#x-mcp-header; basic/transports/streamable-http, "Server Validation".
"""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from mcpgen.runtime.errors import UsageError, quoted
from mcpgen.runtime.protocol.param_headers import KEY, InvalidParamHeader, ParamHeaders, param_headers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.codec import IncomingRequestCodec

__all__ = ["ToolHeaders"]

_LOG = logging.getLogger("mcpgen.http")


class _Tool(Struct):
    name: str
    input_schema: dict[str, Any] = field(name="inputSchema")


class _List(Struct):
    tools: list[_Tool]


_KEY: Final = b'"%b"' % KEY.encode()
_decode_list: Final = msgspec.json.Decoder(_List).decode


class ToolHeaders:
    """The headers of each tool of some handlers, which provide the schemas by a method ``input_schema(name)``."""

    def __init__(self, handlers: object) -> None:
        self._find: Callable[[str], dict[str, Any] | None] | None = getattr(handlers, "input_schema", None)
        self._found: dict[str, ParamHeaders] = {}

    def of(self, tool: str) -> ParamHeaders | None:
        """Return which arguments of *tool* are repeated; None if none are, or the tool is unknown."""
        if tool not in self._found:
            schema = None if self._find is None else self._find(tool)
            if schema is None:
                return None  # unknown names are not kept: there is no limit to them
            try:
                self._found[tool] = param_headers_of(schema)
            except InvalidParamHeader as error:  # clients leave such a tool out, so none sends its headers
                _LOG.warning("clients over HTTP will ignore the tool %r, because of its input schema: %s", tool, error)
                self._found[tool] = ParamHeaders()
        found = self._found[tool]
        return found if found.annotations else None

    def only_known(self, codec: IncomingRequestCodec) -> IncomingRequestCodec:
        """Return *codec* of `tools/list`, which refuses tools whose headers could not be compared with the arguments.

        It refuses them on stdio, too, so that authors notice before they serve HTTP.
        """
        if self._find is not None:
            return codec
        listing = copy.copy(codec)
        write = codec.result

        def write_known(result: Any) -> bytes:
            written = write(result)
            if written.find(_KEY) >= 0:
                _refuse_headers(written)
            return written

        listing.result = write_known
        return listing


def _refuse_headers(listed: bytes) -> None:
    for tool in _decode_list(listed).tools:
        try:
            headers = param_headers_of(tool.input_schema).annotations
        except InvalidParamHeader:
            continue  # clients leave such a tool out
        if headers:
            raise UsageError(
                f"the tool {quoted(tool.name)} has `{KEY}` in its input schema, but the handlers have no method "
                "`input_schema(name)`, so the headers of a call could not be compared with its arguments; add the "
                f"method, or remove `{KEY}`"
            )
