"""What is sent back, as ASGI has it: a JSON document, nothing, a refusal, or a stream of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
from msgspec import UNSET

from mcpgen.runtime.http.events import KEEP_ALIVE
from mcpgen.runtime.wire import envelope
from mcpgen.runtime.wire.messages import Code, Error

if TYPE_CHECKING:
    from msgspec import UnsetType

    from mcpgen.runtime.http.serving.outlet import Outlet
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.transports.spawning import Spawner
    from mcpgen.runtime.wire.messages import RequestId

__all__ = [
    "Header",
    "Receive",
    "Scope",
    "Send",
    "answer",
    "empty",
    "lose_when_gone",
    "refuse",
    "stream",
    "stream_until_gone",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

_JSON: Final[Header] = (b"content-type", b"application/json")

# 2026-07-28, basic/transports/streamable-http, "Receiving Messages": the last tells a proxy not to hold events back.
# Caches, and whoever compresses, would do the same.
_EVENTS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


async def answer(send: Send, body: bytes, status: int = 200, headers: tuple[Header, ...] = ()) -> None:
    """Send one JSON document."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def empty(send: Send, status: int, headers: tuple[Header, ...] = ()) -> None:
    """Send a status, and no body."""
    length = () if status == 204 else ((b"content-length", b"0"),)  # noqa: PLR2004 (RFC 9110, 8.6: 204 has no length)
    await send({"type": "http.response.start", "status": status, "headers": [*length, *headers]})
    await send({"type": "http.response.body", "body": b""})


async def refuse(  # noqa: PLR0913 (the parts of an error, and of a response)
    send: Send,
    status: int,
    reason: str,
    *,
    code: int = Code.INVALID_REQUEST,
    request_id: RequestId | UnsetType = UNSET,
    data: object = None,
    headers: tuple[Header, ...] = (),
) -> None:
    """Send a status, with an error of JSON-RPC that says why.

    Spec:
        2025-11-25, basic/transports, "Sending Messages to the Server": the body may be an error response without an id.
    """
    error = Error(code, reason) if data is None else Error(code, reason, data)
    await answer(send, envelope.encode_error(request_id, error), status, headers)


async def stream(outlet: Outlet, send: Send, limits: HttpLimits) -> None:
    """Send what comes out of *outlet* as a stream of events, until there is no more or nobody reads it.

    Raises:
        TimeoutError: The client keeps the connection, and reads nothing.
    """
    await send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS]})
    await _push(send, b"", limits.write_seconds)  # so that the client knows that there is a stream
    while True:
        if not outlet.is_ready:
            with anyio.move_on_after(limits.keep_alive_seconds) as scope:
                await outlet.ready()
            if scope.cancelled_caught and not outlet.is_ready:
                await _push(send, KEEP_ALIVE, limits.write_seconds)
                continue
        chunk, is_over = outlet.take(), outlet.is_over
        if outlet.is_lost:
            return
        if chunk:
            await _push(send, chunk, limits.write_seconds)
        if is_over:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return


async def stream_until_gone(outlet: Outlet, receive: Receive, send: Send, limits: HttpLimits, spawner: Spawner) -> None:
    """Send a stream of events, until there is no more or the client has closed its connection."""
    watch = spawner.start(lose_when_gone, receive, outlet)
    try:
        await stream(outlet, send, limits)
    finally:
        watch.cancel()


async def lose_when_gone(receive: Receive, outlet: Outlet) -> None:
    """Lose *outlet* when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    outlet.lose()


async def _push(send: Send, chunk: bytes, seconds: float) -> None:
    with anyio.fail_after(seconds):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
