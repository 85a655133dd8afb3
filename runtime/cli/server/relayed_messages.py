"""What the relay of ``mcpgen serve --reload`` reads in the messages that it passes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.cli.server.request_log import Message, messages_of
from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, Malformed, Request
from mcpgen.runtime.protocol.payload_codec import UNREADABLE
from mcpgen.runtime.protocol.reading_policy import meant_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["changing_lists", "id_in", "messages_with_bytes", "requests_in"]

_LIMITS: Final = Limits()


def requests_in(frame: bytes) -> list[RequestId]:
    """Return the ids of the requests in *frame*, also of those that the server refuses, or accepts though not valid."""
    found = envelope.decode(frame, max_values=_LIMITS.max_values)
    # To read a longer message again takes ten times its size.
    is_short = len(frame) <= _LIMITS.max_frame_bytes
    meant = meant_message(frame, found, _LIMITS)[0] if is_short and isinstance(found, Batch | Malformed) else found
    items = meant.items if isinstance(meant, Batch) else (meant,)
    return [
        each.id
        for each in items
        if (isinstance(each, Request) or (isinstance(each, Malformed) and each.kind == "request"))
        and each.id is not None
    ]


def messages_with_bytes(frame: bytes) -> list[tuple[Message, bytes]]:
    """Return the messages in *frame*, each with its own bytes; none if one of them is not valid."""
    messages = messages_of(frame)
    if not frame.lstrip().startswith(b"["):
        return [(each, frame) for each in messages]
    return list(zip(messages, map(bytes, msgspec.json.decode(frame, type=list[Raw])), strict=True)) if messages else []


def id_in(value: Raw | UnsetType, *names: str) -> object:
    """Return the id in *value* that *names* lead to; None if there is none."""
    if isinstance(value, UnsetType):
        return None
    try:
        for each in names:  # other keys are not decoded: they may have numbers of any size
            value = msgspec.json.decode(value, type=dict[str, Raw])[each]
        return msgspec.json.decode(value, type=str | int | float)
    except (KeyError, *UNREADABLE):
        return None


def changing_lists(response: Message) -> Iterator[str]:
    """Yield the lists whose changes the server declares in its response to ``initialize``."""
    if response.result is UNSET:
        return
    result: Any = msgspec.json.decode(response.result)
    capabilities = result.get("capabilities") if is_object(result) else None
    for each in ("tools", "prompts", "resources"):
        declared = capabilities.get(each) if is_object(capabilities) else None
        if is_object(declared) and declared.get("listChanged") is True:
            yield each
