"""The body of a request, and no more of it than is allowed, in no more time than that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import McpgenError
from mcpgen.runtime.http.server.timeouts import with_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.server.responses import Receive

__all__ = ["Hungup", "BodyRefused", "read_body"]


class Hungup(Exception):  # noqa: N818 (no error: there is nobody to tell)
    """The client has gone before its request was complete."""


class BodyRefused(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
    """The body is refused.

    Attributes:
        status: The status that says so.
    """

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(status, reason)

    def __str__(self) -> str:
        return self.reason


async def read_body(
    receive: Receive, headers: Mapping[str, str], *, most_bytes: int, seconds: float, hold: Callable[[int], bool]
) -> bytes:
    """Return the body.

    Args:
        receive: Of ASGI.
        headers: By name.
        most_bytes: How long it may be.
        seconds: How long it may take to come.
        hold: Told how many bytes more are held, while the body is not complete; returns whether there is room for them.

    Raises:
        Unreadable: It is too long, which its length may say before it is read, or takes too long to come, or there is
            no room for it.
        Hungup: The client has gone.
    """
    length = headers.get("content-length")
    if length is not None and length.isdecimal() and (len(length) > 15 or int(length) > most_bytes):  # noqa: PLR2004
        raise _too_long(most_bytes)
    try:
        message = await with_timeout(seconds, receive())
        if message["type"] == "http.disconnect":
            raise Hungup
        body: bytes = message.get("body", b"")
        if message.get("more_body", False):
            with anyio.fail_after(seconds):
                body = await _rest(receive, body, most_bytes, hold)
    except TimeoutError:
        raise BodyRefused(408, f"the body did not come within {seconds:g} seconds") from None
    if len(body) > most_bytes:
        raise _too_long(most_bytes)
    return body


async def _rest(receive: Receive, part: bytes, most_bytes: int, hold: Callable[[int], bool]) -> bytes:
    body, is_last = bytearray(), False
    try:
        while True:
            body += part
            has_room = hold(len(part))
            if len(body) > most_bytes:
                raise _too_long(most_bytes)
            if is_last:
                return bytes(body)
            if not has_room:
                raise BodyRefused(503, "the open requests hold too much (max_open_bytes)")
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Hungup
            part = message.get("body", b"")
            is_last = not message.get("more_body", False)
    finally:
        hold(-len(body))


def _too_long(most_bytes: int) -> BodyRefused:
    return BodyRefused(413, f"the body is over the server's limit of {most_bytes} bytes (max_frame_bytes)")
