"""The short way for `tools/call`, the one request that clients send by the thousand: no more than its bytes need.

Theory of operation. Most calls are a name and arguments, and most answers some text. For these all revisions write the
same, but for what each request says about its client. So what the long way writes for one such call is looked at, once,
and from then on only name and arguments are put in. An answer is taken if it has nothing in it but text: decoding it as
just that proves it. Whatever else there is goes the long way, which also explains what is wrong. Both ways have the
same result (ADR 0010 is about the server's short way).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.protocol.newest import NEWEST, models

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.codec import OutgoingRequestCodec

__all__ = ["CALL", "FastCall"]

CALL: Final = "tools/call"


class _Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class _TextResult(Struct, forbid_unknown_fields=True, rename="camel"):
    content: list[_Text]
    is_error: bool | UnsetType = UNSET


class _Sample(Struct):
    """What the long way makes of a call; where it writes the two in another way, this is not found."""

    name: Literal["n"]
    arguments: dict[Literal["a"], Literal[1]]


_NONE: Final[dict[str, object]] = {}
_SAMPLE: Final = {"name": "n", "arguments": {"a": 1}}

_encode: Final = msgspec.json.Encoder().encode
_decode_text: Final = msgspec.json.Decoder(_TextResult).decode
_decode_newest: Final = models.decoder(models.CallToolResult)


class FastCall:
    """Writes calls and reads their answers, for callers in the newest revision.

    Args:
        ask: The long way.
        revision: The server's.
        home_meta: What each request of home says about the client.
        peer_meta: What each request of the server's revision says about it, if that is another.
    """

    def __init__(
        self,
        ask: OutgoingRequestCodec,
        revision: str,
        home_meta: dict[str, object],
        peer_meta: dict[str, object] | None,
    ) -> None:
        self.result: Callable[[Raw], models.CallToolResult | None] = self._newest if revision == NEWEST else _older
        written = ask.params({**_SAMPLE, "_meta": home_meta}, peer_meta)
        self._rest: dict[str, Raw] | None = None  # of the params, beside name and arguments; None if they differ
        if isinstance(written, bytes):
            try:
                msgspec.json.decode(written, type=_Sample)
            except msgspec.ValidationError:
                return
            members = msgspec.json.decode(written, type=dict[str, Raw])
            self._rest = {key: Raw(bytes(each)) for key, each in members.items() if key not in _SAMPLE}

    def params(self, value: dict[str, Any]) -> bytes | None:
        """Return the params of a call in the server's terms; None if they have to go the long way."""
        if self._rest is None or type(value.get("name")) is not str or not value.keys() <= _SAMPLE.keys():
            return None
        if type(value.get("arguments", _NONE)) is not dict:
            return None
        try:
            return _encode({**value, **self._rest})
        except (TypeError, ValueError, OverflowError, RecursionError):  # no JSON; the long way says what of it
            return None

    def _newest(self, raw: Raw) -> models.CallToolResult | None:
        try:
            result: models.CallToolResult = _decode_newest(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return result if result.result_type == "complete" else None


def _older(raw: Raw) -> models.CallToolResult | None:
    """Return an answer that is nothing but text, of a server that shakes hands; None for another."""
    try:
        found = _decode_text(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    content: Any = [models.TextContent(text=each.text) for each in found.content]
    return models.CallToolResult(content=content, is_error=found.is_error)
