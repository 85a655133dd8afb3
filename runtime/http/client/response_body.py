"""Reading the bodies of responses: all of one, the head of one, or its events; never more than is allowed.

Theory of operation. Whoever has read enough does not leave a stream where it stands, but has the next wait for data
cancelled: so everything between us and the socket ends in order. After the answer has come the stream is read on for a
moment, since its end comes right behind, and its connection can then be used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.errors import RequestLost
from mcpgen.runtime.http.sse import EventTooLarge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import httpx

    from mcpgen.runtime.http.sse import Event, EventReader

__all__ = ["EVENTS", "JSON", "read_events", "read_head", "media_type", "read_body"]

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

# A page that says what went wrong says it soon.
_MOST_HEAD: Final = 16 * 1024
_HEAD_SECONDS: Final = 5.0

_LINGER_SECONDS: Final = 0.5

_MOST_DIGITS: Final = 20  # Python reads longer numbers ever more slowly; what comes is counted anyway


def media_type(response: httpx.Response) -> str:
    """Return what a response says its body is, without parameters; empty if it does not."""
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()


def _check_encoding(response: httpx.Response) -> None:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise RequestLost("the answer is compressed, which was not asked for: nobody knows how long it would become")


def _parts(response: httpx.Response) -> AsyncIterator[bytes]:
    """Return the body of *response* as it comes; all of it if it was read before, as credentials or a mock may do."""
    return response.aiter_bytes() if response.is_stream_consumed else response.aiter_raw()


async def read_body(response: httpx.Response, most: int) -> bytes:
    """Return the body of *response*.

    Raises:
        RequestLost: It is longer than *most* bytes.
    """
    _check_encoding(response)
    body = bytearray()
    said = response.headers.get("content-length", "")
    is_long = said.isdigit() and len(said) < _MOST_DIGITS and int(said) > most
    with anyio.CancelScope() as scope:
        if is_long:
            scope.cancel()
        async for chunk in _parts(response):
            body += chunk
            if len(body) > most:
                is_long = True
                scope.cancel()
                body.clear()
    if is_long:
        raise RequestLost(f"the answer is longer than max_frame_bytes={most} allows")
    return bytes(body)


async def read_head(response: httpx.Response) -> bytes:
    """Return how the body of *response* begins, or none of it if that cannot be had."""
    body = bytearray()
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        return b""
    with anyio.move_on_after(_HEAD_SECONDS) as scope:
        async for chunk in _parts(response):
            body += chunk
            if len(body) >= _MOST_HEAD:
                scope.cancel()
    return bytes(body[:_MOST_HEAD])


async def read_events(response: httpx.Response, reader: EventReader, take: Callable[[Event], bool]) -> bool:
    """Hand the events of *response* to *take* until it has what it wants, or there are no more; return whether it has.

    Raises:
        RequestLost: One of them is too long.
        httpx.HTTPError: The connection broke.
    """
    _check_encoding(response)
    is_enough = False
    too_large: EventTooLarge | None = None
    with anyio.CancelScope() as scope:
        async for chunk in _parts(response):
            if is_enough or too_large is not None:
                continue
            try:
                found = reader.feed(chunk)
            except EventTooLarge as error:
                found, too_large = list(error.events), error
            for each in found:
                is_enough = take(each) or is_enough
            if too_large is not None:
                scope.cancel()
            elif is_enough:
                scope.deadline = anyio.current_time() + _LINGER_SECONDS
    if too_large is not None and not is_enough:
        raise RequestLost(f"what the server sends cannot be read on: {too_large}")
    return is_enough
