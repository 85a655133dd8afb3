"""The body of a request, and no more of it than is allowed, in no more time than that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import McpgenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.serving.replies import Receive

__all__ = ["Hungup", "Unreadable", "read_body"]


class Hungup(Exception):  # noqa: N818 (no error: there is nobody to tell)
    """The client has gone before its request was complete."""


class Unreadable(McpgenError):  # noqa: N818 (named as those of runtime/errors.py are)
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


async def read_body(receive: Receive, headers: Mapping[str, str], *, most_bytes: int, seconds: float) -> bytes:
    """Return the body.

    Raises:
        Unreadable: It is too long, which its length may say before it is read, or takes too long to come.
        Hungup: The client has gone.
    """
    length = headers.get("content-length")
    if length is not None and length.isdecimal() and (len(length) > 15 or int(length) > most_bytes):  # noqa: PLR2004
        raise _too_long(most_bytes)
    message = await receive()  # a body that is there already costs no timer
    if message["type"] == "http.disconnect":
        raise Hungup
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        with anyio.move_on_after(seconds) as scope:
            body = await _rest(receive, body, most_bytes)
        if scope.cancelled_caught:
            raise Unreadable(408, f"the body did not come within {seconds:g} seconds")
    if len(body) > most_bytes:
        raise _too_long(most_bytes)
    return body


async def _rest(receive: Receive, first: bytes, most_bytes: int) -> bytes:
    parts, size = [first], len(first)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Hungup
        part: bytes = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            raise _too_long(most_bytes)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_long(most_bytes: int) -> Unreadable:
    return Unreadable(413, f"the body is over the server's limit of {most_bytes} bytes (max_frame_bytes)")
