"""The fast path of `tools/call`: functions with plain arguments that return text or structured content.

Theory of operation. Such a call is written alike in every revision, and its result differs only in the JSON around the
text. So the arguments are decoded directly into the function's parameters, not into a revision's types, and the text is
put between two pieces of JSON that the slow path made once. Structured content, and the same as text, are put between
three. A full result that holds nothing but one text is written the same way. A call that is not that plain, or not
valid, takes the slow path, so that all errors come from there. A test compares both paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.protocol.log_levels import LEVELS
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.exchange import MethodHandler
from mcpgen.runtime.server.functions.results import StructuredJson

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.functions.tools import Tool

__all__ = ["FastPath", "plain_json"]

# Any text that occurs nowhere else in a result.
_PLACEHOLDER = "where the text goes"
_OBJECT = {"where": "structured content goes"}

_LEVELS = frozenset(LEVELS)

_encode: Final = msgspec.json.Encoder().encode


class FastPath:
    """The fast path to the functions of one server, for peers of one revision.

    Args:
        slow_path: The handler of the method.
        find: Returns the tool of a name, if there is one.
        sign: Adds to the JSON of a result what every result of the revision carries.
        has_structured_content: Whether results of the revision may have structured content.
    """

    def __init__(
        self,
        slow_path: MethodHandler,
        find: Callable[[str], Tool | None],
        sign: Callable[[bytes], bytes],
        *,
        has_structured_content: bool,
    ) -> None:
        self._slow_path = slow_path
        self._find = find
        text = models.TextContent(text=_PLACEHOLDER)
        result = sign(slow_path.codec.result(models.CallToolResult(content=[text])))
        before, _, after = result.partition(_encode(_PLACEHOLDER))
        self._text_frame = (before, after)
        self._structured_frame: tuple[bytes, bytes, bytes] | None = None
        if has_structured_content:
            result = sign(slow_path.codec.result(models.CallToolResult(content=[text], structured_content=_OBJECT)))
            before, _, rest = result.partition(_encode(_PLACEHOLDER))
            between, _, after = rest.partition(_encode(_OBJECT))
            self._structured_frame = (before, between, after)
        self._tools: dict[str, tuple[MethodHandler, Callable[[bytes | Raw], Struct]]] = {}

    def __call__(self, meta: RequestMeta) -> tuple[MethodHandler, Struct] | None:
        """Return the handler of a call and its arguments; None if the call needs the slow path."""
        if not meta.is_plain or isinstance(meta.name, UnsetType):
            return None
        if meta.log_level is not UNSET and meta.log_level not in _LEVELS:
            return None
        found = self._tools.get(meta.name) or self._add(meta.name)
        if found is None:
            return None
        handler, read = found
        try:
            return handler, read(b"{}" if meta.arguments is UNSET else meta.arguments)
        except Exception:  # noqa: BLE001 (such as of `__post_init__`; it is raised again on the slow path)
            return None

    def _add(self, name: str) -> tuple[MethodHandler, Callable[[bytes | Raw], Struct]] | None:
        tool = self._find(name)
        if tool is None:
            return None
        slow_path = self._slow_path
        handler = MethodHandler(
            method=slow_path.method,
            codec=slow_path.codec,
            call=tool.run,
            may_request_input=slow_path.may_request_input,
            slow_path=slow_path,
            text_frame=self._text_frame,
            structured_frame=self._structured_frame,
            takes_context=tool.takes_context,
            may_wait=tool.may_wait,
        )
        self._tools[name] = handler, tool.read
        return self._tools[name]


def plain_json(handler: MethodHandler, result: Any) -> bytes | None:
    """Return the JSON of a *result* of *handler* that is a text or structured content; None for any other one.

    On the slow path, return None.
    """
    if type(result) is StructuredJson:
        frames = handler.structured_frame
        if frames is None:
            return None
        data = result.json
        return b"".join((frames[0], _encode(data.decode()), frames[1], data, frames[2]))
    frame = handler.text_frame
    if frame is None:
        return None
    text = result if type(result) is str else _only_text(result)
    return None if text is None else frame[0] + _encode(text) + frame[1]


def _only_text(result: Any) -> str | None:
    """Return the text of a valid result that holds nothing else."""
    if type(result) is not models.CallToolResult or type(result.content) is not list or len(result.content) != 1:
        return None
    block = result.content[0]
    if type(block) is not models.TextContent or type(block.text) is not str or block.type != "text":
        return None
    if result.is_error is UNSET and result.structured_content is UNSET and result.result_type == "complete":
        return block.text if block.annotations is UNSET and block.meta is UNSET and result.meta is UNSET else None
    return None
