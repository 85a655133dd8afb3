"""Sending what comes out of an outlet: as one JSON document, or as a stream of events.

What is sent back, as ASGI has it: a JSON document, nothing, a refusal, or a stream of events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
from msgspec import UNSET

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.timeouts import with_timeout
from mcpgen.runtime.http.sse import KEEP_ALIVE
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Code, Error
from mcpgen.runtime.protocol.negotiation import unsupported_revision
from mcpgen.runtime.transports.spawner import turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from msgspec import UnsetType

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = [
    "ClientDisconnected",
    "Header",
    "Receive",
    "Scope",
    "Send",
    "send_json",
    "send_empty",
    "watch_for_disconnect",
    "send_error",
    "send_unsupported_revision",
    "send_unknown_session",
    "send_response",
    "send_events",
    "send_events_until_disconnect",
]


async def send_response(  # noqa: PLR0913 (what ASGI gives, and what decides)
    desk: AppState,
    receive: Receive,
    send: Send,
    outlet: ResponseBuffer,
    *,
    begin: Callable[[], object],
    seconds: float,
    status: Callable[[bytes], int] | None = None,
) -> None:
    """Send what comes out of *outlet*: as JSON, or after so many *seconds* as a stream.

    Args:
        desk: Of the application.
        receive: Of ASGI.
        send: Of ASGI.
        outlet: Where it comes out.
        begin: Makes it a stream.
        seconds: How long the answer may take to be JSON.
        status: Says which status goes with it; by default 200.
    """
    if not outlet.is_ready:
        await turn()  # most handlers have answered by then
    only = outlet.only()
    if only is None:
        watch = (await desk.open()).start(responses.watch_for_disconnect, receive, outlet)
        try:
            only = await _first(desk, outlet, begin, seconds)
            if only is None and desk.is_leaving and not outlet.is_stream and outlet.is_empty:
                await responses.send_error(send, 503, "the server is shutting down")
                return
            if only is None:
                await responses.send_events(outlet, send, desk.limits)
        finally:
            watch.cancel()
    if only is not None:
        await responses.send_json(send, only, 200 if status is None else status(only))


async def _first(desk: AppState, outlet: ResponseBuffer, begin: Callable[[], object], seconds: float) -> bytes | None:
    """Return the answer, if it is the first that comes, and soon; otherwise begin a stream."""
    with anyio.move_on_after(seconds):
        await outlet.ready()
    only = outlet.only()
    is_told = not outlet.is_lost  # or what is asked later would wait on a stream of which no client knows
    if only is None and is_told and not outlet.is_stream and not (desk.is_leaving and outlet.is_over):
        begin()
    return only


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


class ClientDisconnected(Exception):  # noqa: N818 (no error: there is nobody to tell)
    """The client has gone, or reads nothing, which is what sending to it says."""


async def send_json(send: Send, body: bytes, status: int = 200, headers: tuple[Header, ...] = ()) -> None:
    """Send one JSON document.

    Raises:
        Gone: The client has gone.
    """
    length = (b"content-length", b"%d" % len(body))
    await _whole(send, body, status, [_JSON, length, *headers])


async def _whole(send: Send, body: bytes, status: int, headers: list[Header]) -> None:
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except OSError as error:  # of ASGI 2.4
        raise ClientDisconnected("a client went away before its answer") from error


async def send_empty(send: Send, status: int, headers: tuple[Header, ...] = ()) -> None:
    """Send a status, and no body.

    Raises:
        Gone: The client has gone.
    """
    length = () if status == 204 else ((b"content-length", b"0"),)  # noqa: PLR2004 (RFC 9110, 8.6: 204 has no length)
    await _whole(send, b"", status, [*length, *headers])


async def send_error(  # noqa: PLR0913 (the parts of an error, and of a response)
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

    Raises:
        Gone: The client has gone.

    Spec:
        2025-11-25, basic/transports, "Sending Messages to the Server": the body may be an error response without an id.
    """
    error = Error(code, reason) if data is None else Error(code, reason, data)
    await send_json(send, envelope.encode_error(request_id, error), status, headers)


async def send_unsupported_revision(
    send: Send,
    revision: str,
    served: Sequence[str],
    *,
    code: int | None = None,
    request_id: RequestId | UnsetType = UNSET,
) -> None:
    """Refuse a request that names a *revision* which is none of those *served*.

    Args:
        send: Of ASGI.
        revision: As its header or its metadata names it.
        served: All that are.
        code: Of the error, if not the one that 2026-07-28 has for it.
        request_id: Whose.

    Raises:
        Gone: The client has gone.

    Spec:
        2025-06-18 and 2025-11-25, basic/transports, "Protocol Version Header": MUST. 2026-07-28,
        basic/transports/streamable-http, "Protocol Version Header".
    """
    error = unsupported_revision(revision, served)
    code = error.code if code is None else code
    await send_error(send, 400, error.message, code=code, request_id=request_id, data=error.data)


async def send_unknown_session(send: Send) -> None:
    """Refuse a request of a session that has ended, or never was.

    Raises:
        Gone: The client has gone.

    Spec:
        2025-11-25, basic/transports, "Session Management".
    """
    await send_error(send, 404, "there is no such session")


async def send_events(outlet: ResponseBuffer, send: Send, limits: HttpLimits) -> None:
    """Send what comes out of *outlet* as a stream of events, until there is no more or nobody reads it.

    Raises:
        Gone: The client has gone, or it keeps the connection, and reads nothing.
    """
    try:
        await _stream(outlet, send, limits)
    except TimeoutError as error:
        raise ClientDisconnected("a connection is given up: its client reads nothing") from error
    except OSError as error:  # of ASGI 2.4
        raise ClientDisconnected("a client left its stream") from error


async def _stream(outlet: ResponseBuffer, send: Send, limits: HttpLimits) -> None:
    seconds = limits.write_seconds
    await with_timeout(seconds, send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS]}))
    await with_timeout(seconds, send(_chunk(b"")))  # so that the client knows that there is a stream
    while True:
        if not outlet.is_ready:
            with anyio.move_on_after(limits.keep_alive_seconds) as scope:
                await outlet.ready()
            if scope.cancelled_caught and not outlet.is_ready:
                await with_timeout(seconds, send(_chunk(KEEP_ALIVE)))
                continue
        chunk, is_over = outlet.take(), outlet.is_over
        if outlet.is_lost:
            return
        if chunk:
            await with_timeout(seconds, send(_chunk(chunk)))
        if is_over:
            await with_timeout(seconds, send({"type": "http.response.body", "body": b"", "more_body": False}))
            return


async def send_events_until_disconnect(
    outlet: ResponseBuffer, receive: Receive, send: Send, limits: HttpLimits, spawner: Spawner
) -> None:
    """Send a stream of events, until there is no more or the client has closed its connection."""
    watch = spawner.start(watch_for_disconnect, receive, outlet)
    try:
        await send_events(outlet, send, limits)
    finally:
        watch.cancel()


async def watch_for_disconnect(receive: Receive, outlet: ResponseBuffer) -> None:
    """Lose *outlet* when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    outlet.lose()


def _chunk(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}
