"""HTTP responses over ASGI: a JSON document, an empty body, an error, or a stream of events."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import UNSET

from mcpgen.runtime.http.server.response_buffer import SMALL_BYTES
from mcpgen.runtime.http.server.timeouts import with_timeout
from mcpgen.runtime.http.sse import KEEP_ALIVE
from mcpgen.runtime.limits import MAX_ID_CHARS
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.negotiation import unsupported_revision
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.transports.spawner import turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import UnsetType

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = [
    "ABORT",
    "abort_of",
    "ClientDisconnected",
    "Header",
    "REFUSALS",
    "RETRY_AFTER",
    "Receive",
    "Scope",
    "Send",
    "error_body",
    "retry_after",
    "send_empty",
    "send_end",
    "send_error",
    "send_events_until_disconnect",
    "send_json",
    "send_large",
    "send_response",
    "send_unknown_session",
    "send_unreachable",
    "send_unsupported_revision",
]

_LOG = logging.getLogger("mcpgen.http")

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

_JSON_TYPE: Final[Header] = (b"content-type", b"application/json")

# How many requests of this process were refused with these statuses: for want of rate, and of room.
REFUSALS: Final = {429: 0, 503: 0}


def retry_after(seconds: float) -> Header:
    """Return the header ``Retry-After``, in whole seconds."""
    return b"retry-after", b"%d" % ceil(seconds)


# When a client may repeat a request that was refused because of load.
RETRY_AFTER: Final[Header] = retry_after(1)

# 2026-07-28, basic/transports/streamable-http, "Receiving Messages": `X-Accel-Buffering` tells a proxy not to hold
# events back. `Cache-Control` keeps caches and compressing proxies from doing the same.
_EVENTS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


ABORT: Final = "mcpgen.abort"
"""An ASGI extension of `mcpgen serve`: ``abort`` closes the connection without sending what waits, and ``is_closing``
returns whether it is closed or about to be."""


class ClientDisconnected(Exception):  # noqa: N818 (no error: the response has no reader)
    """The client has closed its connection, or does not read its response."""


def abort_of(scope: Scope) -> Callable[[], object] | None:
    """Return what closes a connection without sending what waits; None if the ASGI server is not ours."""
    extension = scope.get("extensions", {}).get(ABORT)
    return None if extension is None else extension["abort"]


def send_json(send: Send, body: bytes, status: int = 200, headers: tuple[Header, ...] = ()) -> Awaitable[None]:
    """Send one JSON document when it is awaited.

    Raises:
        ClientDisconnected: The client has closed its connection.
    """
    length = (b"content-length", b"%d" % len(body))
    return _send_whole(send, body, status, [_JSON_TYPE, length, *headers])


async def _send_whole(send: Send, body: bytes, status: int, headers: list[Header]) -> None:
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except OSError as error:  # ASGI 2.4: the client has disconnected
        raise ClientDisconnected("a client disconnected before its response was sent") from error


async def send_large(
    state: AppState, response: ResponseBuffer, send: Send, on_abort: Callable[[], object] | None, request_id: RequestId
) -> None:
    """Send one large JSON document, all that *response* holds, which is counted until the client has read it.

    *request_id* is that of the request.

    Raises:
        ClientDisconnected: The client has closed its connection, or does not read.
    """
    if response.is_disconnected:
        reason = "clients leave too many bytes unread (max_unread_bytes)"
        await send_error(send, 503, reason, headers=(RETRY_AFTER,), request_id=request_id)
        return
    response.on_abort = on_abort
    try:
        await _send_until_read(send, response, state.limits.write_seconds)
    finally:
        response.close()


async def _send_until_read(send: Send, response: ResponseBuffer, seconds: float, status: int = 200) -> None:
    headers = [_JSON_TYPE, (b"content-length", b"%d" % response.waiting_bytes)]
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send(_chunk(response.take()))  # not kept here: a client that does not read would hold two copies
        # An ASGI server returns from this when the client has read nearly all of what was sent before.
        await with_timeout(seconds, send({"type": "http.response.body", "body": b"", "more_body": False}))
        response.sent()
    except (OSError, TimeoutError) as error:
        raise ClientDisconnected("a client disconnected before its response was sent, or does not read it") from error


async def send_empty(send: Send, status: int, headers: tuple[Header, ...] = ()) -> None:
    """Send a status without a body.

    Raises:
        ClientDisconnected: The client has closed its connection.
    """
    length = () if status == 204 else ((b"content-length", b"0"),)  # noqa: PLR2004 (RFC 9110, 8.6: 204 has no length)
    await _send_whole(send, b"", status, [*length, *headers])


async def send_error(  # noqa: PLR0913 (the parts of an error, and of a response)
    send: Send,
    status: int,
    reason: str,
    *,
    code: int = ErrorCode.INVALID_REQUEST,
    request_id: RequestId | UnsetType = UNSET,
    data: object = None,
    headers: tuple[Header, ...] = (),
    body: bytes = b"",
) -> None:
    """Send a status with a JSON-RPC error in the body.

    Args:
        send: Of ASGI.
        status: The status.
        reason: The message of the error.
        code: Its code.
        request_id: The id of the request, if it is known.
        data: The data of the error.
        headers: Of the response.
        body: That of the POST that is refused; if `request_id` is not known, it is read there.

    Raises:
        ClientDisconnected: The client has closed its connection.

    Spec:
        2025-11-25, basic/index, "Error Responses": MUST include the same ID as the request; basic/transports, "Sending
        Messages to the Server": without an id if the message is no request. An id beyond `MAX_ID_CHARS` is left out.
    """
    error = Error(code, reason) if data is None else Error(code, reason, data)
    await send_json(send, error_body(status, error, request_id=request_id, body=body), status, headers)


def error_body(status: int, error: Error, *, request_id: RequestId | UnsetType = UNSET, body: bytes) -> bytes:
    """Return the JSON-RPC error with which a request is refused; see `send_error`."""
    found = envelope.request_id_in(body) if request_id is UNSET and body else request_id
    if isinstance(found, str) and len(found) > MAX_ID_CHARS:
        found = UNSET  # no limit counts this response, and the client need not read it
    if status in REFUSALS:
        REFUSALS[status] += 1
    return envelope.encode_error(found, error)


async def send_unsupported_revision(  # noqa: PLR0913 (of `send_error`)
    send: Send,
    revision: str,
    served: Sequence[str],
    *,
    code: int | None = None,
    request_id: RequestId | UnsetType = UNSET,
    body: bytes = b"",
) -> None:
    """Refuse a request whose *revision* is not one of those *served*.

    Args:
        send: Of ASGI.
        revision: The revision in the request's header or metadata.
        served: The revisions that the server serves.
        code: The code of the error; by default the one that 2026-07-28 defines.
        request_id: The id of the request, if it is known.
        body: The body of a POST, from which the id is read otherwise.

    Raises:
        ClientDisconnected: The client has closed its connection.

    Spec:
        2025-06-18 and 2025-11-25, basic/transports, "Protocol Version Header": MUST. 2026-07-28,
        basic/transports/streamable-http, "Protocol Version Header".
    """
    error = unsupported_revision(revision, served)
    code = error.code if code is None else code
    await send_error(send, 400, error.message, code=code, request_id=request_id, data=error.data, body=body)


async def send_unknown_session(send: Send, body: bytes = b"") -> None:
    """Refuse a request whose session does not exist, or has ended; *body* is that of a POST.

    Raises:
        ClientDisconnected: The client has closed its connection.

    Spec:
        2025-11-25, basic/transports, "Session Management".
    """
    await send_error(send, 404, "the session does not exist or has ended; start a new one with initialize", body=body)


async def send_unreachable(send: Send, error: ClusterUnavailable, body: bytes = b"") -> None:
    """Refuse a request that other workers take part in, and cannot now; *body* is that of a POST.

    Raises:
        ClientDisconnected: The client has closed its connection.
    """
    _LOG.debug("%s", error)
    reason = (
        "the request cannot be served now: the workers of this server cannot reach each other, or this worker has no "
        "room or is shutting down; try again"
    )
    await send_error(send, 503, reason, headers=(RETRY_AFTER,), body=body)


async def send_response(  # noqa: PLR0913 (the parts of ASGI, and two callbacks)
    state: AppState,
    receive: Receive,
    send: Send,
    response: ResponseBuffer,
    *,
    start_stream: Callable[[], object],
    json_seconds: float,
    status: Callable[[bytes], int] | None = None,
    body: bytes = b"",
) -> None:
    """Send the messages of *response*: as one JSON document if possible, as a stream of events otherwise.

    Args:
        state: The state of the application.
        receive: Of ASGI.
        send: Of ASGI.
        response: The messages.
        start_stream: Called to make *response* a stream.
        json_seconds: How long the answer may take to be sent as JSON; then a stream is started.
        status: Returns the status for an answer that is sent as JSON; by default 200.
        body: The body of the request.
    """
    if not response.is_ready:
        await turn()  # most handlers have answered by then
    answer = response.sole_answer()
    if answer is None:
        watch = (await state.open()).start(_watch_for_disconnect, receive, response)
        try:
            answer = await _wait_for_answer(state, response, start_stream, json_seconds)
            if answer is None and state.is_shutting_down and not response.is_stream and response.is_empty:
                await send_error(send, 503, "the server is shutting down", body=body)
                return
            if answer is None:
                await _send_events(response, send, state.limits)
        finally:
            watch.cancel()
    if answer is not None and len(answer) > SMALL_BYTES:
        code = response.status or (200 if status is None else status(answer))
        del answer
        await _send_until_read(send, response, state.limits.write_seconds, code)
    elif answer is not None and response.status:
        await send_json(send, answer, response.status, (RETRY_AFTER,))
    elif answer is not None:
        await send_json(send, answer, 200 if status is None else status(answer))


async def _wait_for_answer(
    state: AppState, response: ResponseBuffer, start_stream: Callable[[], object], seconds: float
) -> bytes | None:
    """Return the answer if it is the first message and comes within *seconds*; otherwise start a stream."""
    await response.wait_ready(seconds)
    answer = response.sole_answer()
    # After a disconnect no stream starts: later messages would wait on a stream of which no client knows.
    may_start = not response.is_disconnected and not (state.is_shutting_down and response.has_ended)
    if answer is None and may_start and not response.is_stream:
        start_stream()
    return answer


async def send_events_until_disconnect(
    response: ResponseBuffer, receive: Receive, send: Send, limits: HttpLimits, spawner: Spawner
) -> None:
    """Send the messages of *response* as a stream of events, until it ends or the client disconnects.

    Raises:
        ClientDisconnected: The client has closed its connection, or keeps it open and does not read.
    """
    watch = spawner.start(_watch_for_disconnect, receive, response)
    try:
        await _send_events(response, send, limits)
    finally:
        watch.cancel()


async def _send_events(response: ResponseBuffer, send: Send, limits: HttpLimits) -> None:
    try:
        await _write_events(response, send, limits)
    except TimeoutError as error:
        raise ClientDisconnected("a connection was closed because its client does not read") from error
    except OSError as error:  # ASGI 2.4: the client has disconnected
        raise ClientDisconnected("a client disconnected from its stream") from error


async def _write_events(response: ResponseBuffer, send: Send, limits: HttpLimits) -> None:
    async def write(message: dict[str, Any]) -> None:
        response.is_sending = True
        await with_timeout(limits.write_seconds, send(message))
        response.is_sending = False

    await write({"type": "http.response.start", "status": 200, "headers": [*_EVENTS]})
    await write(_chunk(b""))  # the server sends the headers with the first part of the body
    while True:
        if not await response.wait_ready(limits.keep_alive_seconds):
            await write(_chunk(KEEP_ALIVE))
            continue
        chunk, is_last = response.take(), response.has_ended
        if response.is_disconnected:
            return
        if chunk:
            is_large = len(chunk) > SMALL_BYTES
            await write(_chunk(chunk))
            del chunk  # or each of thousands of streams would keep its last messages until the next ones
            if is_large:
                await write(_chunk(b""))  # returns when the client has read nearly all of it
            response.sent()
        if is_last:
            await write({"type": "http.response.body", "body": b"", "more_body": False})
            return


async def send_end(send: Send, response: ResponseBuffer) -> None:
    """Send what waits of a stream of events, and end it, if its connection is still open."""
    with suppress(Exception):  # what frameworks raise for a closed connection differs
        await send({"type": "http.response.body", "body": response.take(), "more_body": False})


async def _watch_for_disconnect(receive: Receive, response: ResponseBuffer) -> None:
    """End *response* when the client closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    response.disconnect()


def _chunk(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}
