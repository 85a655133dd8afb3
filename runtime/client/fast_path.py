"""The fast path of `tools/call`, the request that clients send most often.

Theory of operation. Most calls consist of a name and arguments, and most results of text. Every revision writes these
alike, apart from the `_meta` of a request. So the regular path encodes one sample call; from then on, only name and
arguments are put into its place. A result is taken if it decodes as text blocks and nothing else. Everything else takes
the regular path, which also explains errors. Both give the same result (ADR 0010 is about the server's fast path).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.client.tool_results import ToolResult
from mcpgen.runtime.protocol.finite_numbers import nonfinite_number
from mcpgen.runtime.protocol.newest import NEWEST, models

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.codec import OutgoingRequestCodec

__all__ = ["FastCall", "TOOLS_CALL"]

TOOLS_CALL: Final = "tools/call"


class _Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class _TextResult(Struct, forbid_unknown_fields=True, rename="camel"):
    content: list[_Text]
    is_error: bool | UnsetType = UNSET


class _SampleParams(Struct):
    """The sample call as the regular path writes it. If it is written in another way, decoding fails."""

    name: Literal["n"]
    arguments: dict[Literal["a"], Literal[1]]


_NO_ARGUMENTS: Final[dict[str, object]] = {}
_SAMPLE: Final = {"name": "n", "arguments": {"a": 1}}

# All that such a result of a handshake revision lacks. To decode it takes half the time that constructing it would.
_COMPLETE: Final = b',"resultType":"complete"}'

_encode: Final = msgspec.json.Encoder().encode
_decode_text: Final = msgspec.json.Decoder(_TextResult).decode
_decode_newest: Final = models.decoder(ToolResult)


class FastCall:
    """Encodes calls and decodes their results, for callers in the newest revision.

    Args:
        ask: The codec of the regular path.
        revision: The server's revision.
        native_meta: The `_meta` of a request in the native revision.
        peer_meta: The `_meta` in the server's revision, if that is another one.

    Attributes:
        result: Decodes a result; None if it has to go the regular path.
    """

    def __init__(
        self,
        ask: OutgoingRequestCodec,
        revision: str,
        native_meta: dict[str, object],
        peer_meta: dict[str, object] | None,
    ) -> None:
        self.result: Callable[[Raw], ToolResult | None] = _decode_stateless if revision == NEWEST else _decode_handshake
        written = ask.params({**_SAMPLE, "_meta": native_meta}, peer_meta)
        # The params besides name and arguments; None if the sample was written in another way.
        self._other_params: dict[str, Raw] | None = None
        if isinstance(written, bytes):
            try:
                msgspec.json.decode(written, type=_SampleParams)
            except msgspec.ValidationError:
                return
            members = msgspec.json.decode(written, type=dict[str, Raw])
            self._other_params = {key: Raw(bytes(each)) for key, each in members.items() if key not in _SAMPLE}

    def params(self, value: dict[str, Any]) -> bytes | None:
        """Return the encoded params of a call; None if they have to go the regular path."""
        if self._other_params is None or type(value.get("name")) is not str or not value.keys() <= _SAMPLE.keys():
            return None
        if type(value.get("arguments", _NO_ARGUMENTS)) is not dict:
            return None
        try:
            encoded = _encode({**value, **self._other_params})
        except (TypeError, ValueError, OverflowError, RecursionError):  # not JSON; the regular path explains it
            return None
        # It may stand for nan, which the regular path explains.
        return None if b"null" in encoded and nonfinite_number(value) is not None else encoded


def _decode_stateless(raw: Raw) -> ToolResult | None:
    """Return a complete result of a stateless server; None for another."""
    try:
        result: ToolResult = _decode_newest(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return result if result.result_type == "complete" else None


def _decode_handshake(raw: Raw) -> ToolResult | None:
    """Return a result of a handshake server that is text and nothing else; None for another."""
    try:
        _decode_text(raw)
        result: ToolResult = _decode_newest(b"".join((memoryview(raw)[:-1], _COMPLETE)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return result
