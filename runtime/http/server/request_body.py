"""Read the body of a request, within limits on its length, its duration and what all requests hold together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.errors import McpgenError
from mcpgen.runtime.http.server.responses import ClientDisconnected
from mcpgen.runtime.http.server.timeouts import with_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.server.responses import Receive

__all__ = ["BodyRefused", "read_body"]

# Python parses longer numbers slowly.
_MAX_LENGTH_DIGITS: Final = 15


class BodyRefused(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """The body exceeds a limit.

    Attributes:
        status: The HTTP status of the response.
        reason: The message of the response.
    """

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(status, reason)

    def __str__(self) -> str:
        return self.reason


async def read_body(
    receive: Receive, headers: Mapping[str, str], *, max_bytes: int, seconds: float, reserve: Callable[[int], bool]
) -> bytes:
    """Return the body of a request.

    Args:
        receive: Of ASGI.
        headers: The request's headers, by name.
        max_bytes: The limit on its length.
        seconds: The limit on the time until it is complete.
        reserve: Called with the number of bytes that an incomplete body holds more, or less; it returns whether there
            is room for them.

    Raises:
        BodyRefused: It exceeds a limit; that of its length can be exceeded by ``Content-Length`` before it is read.
        ClientDisconnected: The client closed its connection before the body was complete.
    """
    length = headers.get("content-length")
    if length is not None and length.isdecimal() and (len(length) > _MAX_LENGTH_DIGITS or int(length) > max_bytes):
        raise _too_long(max_bytes)
    try:
        message = await with_timeout(seconds, receive())
        if message["type"] == "http.disconnect":
            raise _disconnected()
        body: bytes = message.get("body", b"")
        if message.get("more_body", False):
            with anyio.fail_after(seconds):
                body = await _read_rest(receive, body, max_bytes, reserve)
    except TimeoutError:
        raise BodyRefused(408, f"the body did not arrive within {seconds:g} seconds (body_seconds)") from None
    if len(body) > max_bytes:
        raise _too_long(max_bytes)
    return body


async def _read_rest(receive: Receive, part: bytes, max_bytes: int, reserve: Callable[[int], bool]) -> bytes:
    body, is_last = bytearray(), False
    try:
        while True:
            body += part
            has_room = reserve(len(part))
            if len(body) > max_bytes:
                raise _too_long(max_bytes)
            if is_last:
                return bytes(body)
            if not has_room:
                raise BodyRefused(503, "the open requests hold too many bytes (max_open_bytes)")
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _disconnected()
            part = message.get("body", b"")
            is_last = not message.get("more_body", False)
    finally:
        reserve(-len(body))


def _too_long(max_bytes: int) -> BodyRefused:
    return BodyRefused(413, f"the body is longer than the server's limit of {max_bytes} bytes (max_frame_bytes)")


def _disconnected() -> ClientDisconnected:
    return ClientDisconnected("a client disconnected before its request was complete")
