"""Read the body of a response within limits: all of it, its beginning, or its events.

Theory of operation. A reader that has enough does not leave the stream open, but cancels its next wait for data, so
that all layers down to the socket end in order. After the answer, a stream is read on for a moment: its end comes right
behind, and then its connection can be used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint

from mcpgen.runtime.errors import RequestLost
from mcpgen.runtime.http.media_types import media_type
from mcpgen.runtime.http.sse import EventTooLarge

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from mcpgen.runtime.http.client.http_exchange import HttpResponse
    from mcpgen.runtime.http.sse import Event, EventReader

__all__ = ["is_compressed", "is_success", "read_body", "read_events", "read_head", "response_type"]

# An error page gives its reason at the beginning.
_MAX_HEAD_BYTES: Final = 16 * 1024
_HEAD_SECONDS: Final = 5.0

_LINGER_SECONDS: Final = 0.5

# What is read in one turn of the event loop. A chunk of 256 KiB can hold 260,000 lines, each of which takes 0.2 µs, and
# the chunks of a hundred streams can arrive in one turn.
_PIECE_BYTES: Final = 32 * 1024
_PIECE_BYTES_OF_SHORT_LINES: Final = 4 * 1024
_SHORT_LINE_BYTES: Final = 64

_MAX_LENGTH_DIGITS: Final = 20  # Python parses longer numbers slowly; the body is counted anyway


def is_success(response: HttpResponse) -> bool:
    """Return whether the status of *response* is a success."""
    return 200 <= response.status < 300  # noqa: PLR2004 (as HTTP counts)


def response_type(response: HttpResponse) -> str:
    """Return the media type of *response*; empty if it names none."""
    return media_type(response.headers.get("content-type", ""))


def is_compressed(response: HttpResponse) -> bool:
    """Return whether the body of *response* is compressed."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")


def _check_encoding(response: HttpResponse) -> None:
    if is_compressed(response):  # its decoded length has no bound
        raise RequestLost("the response is compressed, although the request asked for no compression")


async def read_body(response: HttpResponse, max_bytes: int) -> bytes:
    """Return the body of *response*.

    Raises:
        RequestLost: It is longer than *max_bytes*, or compressed.
    """
    _check_encoding(response)
    whole = response.whole_body
    if whole is not None and len(whole) <= max_bytes:
        return whole
    body = bytearray()
    length = response.headers.get("content-length", "")
    is_long = length.isdigit() and len(length) < _MAX_LENGTH_DIGITS and int(length) > max_bytes
    with anyio.CancelScope() as scope:
        if is_long:
            scope.cancel()
        async for chunk in response.chunks():
            body += chunk
            if len(body) > max_bytes:
                is_long = True
                scope.cancel()
                body.clear()
    if is_long:
        raise RequestLost(f"the response is longer than max_frame_bytes={max_bytes} allows")
    return bytes(body)


async def read_head(response: HttpResponse) -> bytes:
    """Return the beginning of the body of *response*; empty if it is compressed or does not arrive soon."""
    body = bytearray()
    if is_compressed(response):
        return b""
    whole = response.whole_body
    if whole is not None:
        return whole[:_MAX_HEAD_BYTES]
    with anyio.move_on_after(_HEAD_SECONDS) as scope:
        async for chunk in response.chunks():
            body += chunk
            if len(body) >= _MAX_HEAD_BYTES:
                scope.cancel()
    return bytes(body[:_MAX_HEAD_BYTES])


async def read_events(
    response: HttpResponse,
    reader: EventReader,
    receive: Callable[[Event], bool],
    ready: Callable[[int], Awaitable[None]],
) -> bool:
    """Call *receive* with each event of *response* until it returns True; return whether it did.

    Args:
        response: The response.
        reader: Finds the events in it.
        receive: Called with each event.
        ready: Awaited before each event is received, with the length of its data.

    Raises:
        RequestLost: An event is too long, or the response is compressed.
        ConnectionBroke: The connection broke.
    """
    _check_encoding(response)
    is_enough = False
    too_large: EventTooLarge | None = None
    with anyio.CancelScope() as scope:
        async for chunk in response.chunks():
            if is_enough or too_large is not None:
                continue
            try:
                async for each in _events(reader, chunk):
                    await ready(len(each.data))
                    is_enough = receive(each) or is_enough
                    del each  # it can have megabytes, and the next one may never come
            except EventTooLarge as error:
                too_large = error
            if too_large is not None:
                scope.cancel()
            elif is_enough:
                scope.deadline = anyio.current_time() + _LINGER_SECONDS
    if too_large is not None and not is_enough:
        raise RequestLost(f"the stream cannot be read any further: {too_large}")
    return is_enough


async def _events(reader: EventReader, chunk: bytes) -> AsyncGenerator[Event]:
    """Yield the events that *chunk* completes, in several turns of the event loop if it is long.

    Raises:
        EventTooLarge: The next event is too long.
    """
    lines = chunk.count(b"\n") + chunk.count(b"\r")
    size = _PIECE_BYTES_OF_SHORT_LINES if lines * _SHORT_LINE_BYTES > len(chunk) else _PIECE_BYTES
    for start in range(0, len(chunk), size):
        if start:
            await checkpoint()
        too_large: EventTooLarge | None = None
        try:
            found: Sequence[Event] = reader.feed(chunk[start : start + size])
        except EventTooLarge as error:
            found, too_large = error.events, error
        for each in found:
            yield each
        if too_large is not None:
            raise too_large
