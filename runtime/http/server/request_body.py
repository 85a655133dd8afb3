"""Read the body of a request, within limits on its length, its duration and what all requests hold together."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from mcpgen.runtime.errors import McpgenError, seconds_text
from mcpgen.runtime.http.server.first_step import Waiting, first_step
from mcpgen.runtime.http.server.open_requests import OPEN_REQUEST_BYTES, TOO_MANY, headers_bytes
from mcpgen.runtime.http.server.responses import ClientDisconnected
from mcpgen.runtime.http.server.timeouts import with_timeout
from mcpgen.runtime.server.fair_turns import REQUEST_COST_BYTES, is_large, request_cost

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from mcpgen.runtime.http.server.responses import Receive
    from mcpgen.runtime.server.fair_turns import FairTurns
    from mcpgen.runtime.server.ledger import Account
    from mcpgen.runtime.server.quota import Entry, Quota

__all__ = ["BodyRefused", "Uploads", "read_body"]

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


class Uploads(NamedTuple):
    """Count the bodies that arrive in several parts, and long heads whose bodies are to come.

    Attributes:
        quota: What is open in the application.
        account: Of what incomplete bodies keep.
        turns: Says when a body may be decoded.
    """

    quota: Quota
    account: Account
    turns: FairTurns


class _Upload:
    """Counts a body that arrives in several parts, until it is complete.

    Args:
        uploads: The bodies of the application.
        owner: Whom it counts for.
        head_size: What the head of the request takes beyond a usual one.

    Attributes:
        scope: Is cancelled if the body has to make room for those of others.
    """

    __slots__ = ("_account", "_entry", "_head_size", "_owner", "_quota", "_size", "_turns", "scope")

    def __init__(self, uploads: Uploads, owner: str, head_size: int) -> None:
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self._quota, self._account, self._turns = uploads
        self._owner = owner
        self._head_size = head_size
        self._size = 0
        self._entry: Entry | None = None

    def grow(self, size: int) -> bool:
        """Count *size* bytes in all; return False if there is no room for them."""
        self._account.bytes += size - self._size
        self._size = size
        size += OPEN_REQUEST_BYTES + self._head_size
        if self._entry is not None:
            return self._entry.resize(size)
        self._entry = self._quota.admit(self._owner, size, give_way=self.scope.cancel)
        return self._entry is not None

    async def wait_turn(self, body: bytearray) -> None:
        """Return when the event loop has time to decode it, which is complete now."""
        size, cost = len(body), request_cost(body)
        if self._turns.must_wait() or (is_large(size, cost) and self._turns.must_wait_if_large(size)):
            await self._turns.wait_to_decode(self._owner, size, cost)

    def end(self) -> None:
        """Count it no longer."""
        self._account.bytes -= self._size
        if self._entry is not None:
            self._entry.release()


async def read_body(  # noqa: PLR0913 (the request, and its limits)
    receive: Receive,
    headers: Mapping[str, str],
    owner: str,
    uploads: Uploads,
    *,
    max_bytes: int,
    seconds: float,
    is_on_asyncio: bool,
) -> bytes:
    """Return the body of a request when the event loop has time to decode it.

    Args:
        receive: Of ASGI.
        headers: The request's headers, by name.
        owner: Whom it counts for if it arrives in several parts.
        uploads: Such bodies.
        max_bytes: The limit on its length.
        seconds: The limit on the time until it is complete.
        is_on_asyncio: Whether the event loop is known to be one of asyncio.

    Raises:
        BodyRefused: It exceeds a limit; that of its length can be exceeded by ``Content-Length`` before it is read.
        ClientDisconnected: The client closed its connection before the body was complete.
    """
    length = headers.get("content-length")
    if length is not None and length.isdecimal() and (len(length) > _MAX_LENGTH_DIGITS or int(length) > max_bytes):
        raise _too_long(max_bytes)
    try:
        message = first_step(receive()) if is_on_asyncio else await with_timeout(seconds, receive())
        if isinstance(message, Waiting):
            if head_size := headers_bytes(headers):
                message = await _first_part(message, head_size, owner, uploads, seconds)
            else:
                async with asyncio.timeout(seconds):
                    message = await message
        if message["type"] == "http.disconnect":
            raise _disconnected()
        body: bytes = message.pop("body", b"")
        is_last = not message.get("more_body", False)
        turns, is_small = uploads.turns, len(body) <= REQUEST_COST_BYTES  # as much as the connection takes
        if not is_last or turns.must_wait() or (not is_small and turns.is_used_up):
            head_size = headers_bytes(headers)
            if is_last and is_small and not head_size:
                await turns.wait_to_decode(owner, len(body), request_cost(body))
            else:
                parts, body = [body], b""  # the first part must not be kept while the others arrive
                upload = _Upload(uploads, owner, head_size)
                body = await _read_rest(receive, parts, max_bytes, seconds, upload, is_last=is_last)
    except TimeoutError:
        raise BodyRefused(408, f"the body did not arrive within {seconds_text(seconds)} (body_seconds)") from None
    if len(body) > max_bytes:
        raise _too_long(max_bytes)
    uploads.turns.spend(request_cost(body))
    return body


async def _first_part(
    waiting: Waiting[MutableMapping[str, Any]], head_size: int, owner: str, uploads: Uploads, seconds: float
) -> MutableMapping[str, Any]:
    """Wait for the first part of a body. Meanwhile, its long head counts: thousands of clients may send nothing else.

    Raises:
        BodyRefused: There is no room for the head.
        TimeoutError: It takes too long.
    """
    entry = None
    try:
        async with asyncio.timeout(seconds) as limit:  # the first step may have entered a scope of anyio
            give_way = partial(_end_now, limit)
            entry = uploads.quota.admit(owner, OPEN_REQUEST_BYTES + head_size, give_way=give_way)
            if entry is None:
                waiting.close()
                raise BodyRefused(503, TOO_MANY)
            return await waiting
    except TimeoutError:
        if entry is not None and entry.is_leaving:
            raise BodyRefused(503, TOO_MANY) from None
        raise
    finally:
        if entry is not None:
            entry.release()


def _end_now(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(0)


async def _read_rest(  # noqa: PLR0913 (of `read_body`)
    receive: Receive, parts: list[bytes], max_bytes: int, seconds: float, upload: _Upload, *, is_last: bool
) -> bytes:
    """Return the body that *parts* begin, which are taken out of the list."""
    body = bytearray()
    try:
        with upload.scope:
            with anyio.fail_after(seconds):
                while True:
                    body += parts.pop()
                    if len(body) > max_bytes:
                        raise _too_long(max_bytes)
                    if not upload.grow(len(body)):
                        raise BodyRefused(503, TOO_MANY)
                    if is_last:
                        break
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _disconnected()
                    parts.append(message.pop("body", b""))
                    is_last = not message.get("more_body", False)
            await upload.wait_turn(body)
            return bytes(body)
    finally:
        upload.end()
    raise BodyRefused(503, TOO_MANY)  # it gave way


def _too_long(max_bytes: int) -> BodyRefused:
    return BodyRefused(413, f"the body is longer than the server's limit of {max_bytes} bytes (max_frame_bytes)")


def _disconnected() -> ClientDisconnected:
    return ClientDisconnected("a client disconnected before its request was complete")
