"""POST requests to the endpoint of Streamable HTTP, and their answers: a JSON document or a stream of events.

Theory of operation. In a session, the stream of a request may break, or be ended by the server, before the answer. If
its events have ids, the rest is requested with GET, for as long as the client waits for the answer. In a stateless
revision, a request whose stream breaks is lost.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Sending Messages to the Server" and "Resumability and Redelivery";
    2026-07-28, basic/transports/streamable-http, "Sending Messages" and "Receiving Messages".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from mcpgen.runtime.errors import RequestLost, printable
from mcpgen.runtime.http.client.error_responses import NOT_FOUND, ErrorReply, not_a_message, read_error_reply
from mcpgen.runtime.http.client.http_exchange import ConnectionBroke
from mcpgen.runtime.http.client.outgoing_messages import INITIALIZE
from mcpgen.runtime.http.client.response_body import (
    is_compressed,
    is_success,
    read_body,
    read_events,
    read_head,
    response_type,
)
from mcpgen.runtime.http.errors import HttpRefused, ServerUnreachable
from mcpgen.runtime.http.media_types import EVENT_STREAM, JSON
from mcpgen.runtime.http.sse import EventReader
from mcpgen.runtime.protocol import headers as http

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.client.http_exchange import HttpResponse
    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.sse import Event
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["ACCEPT", "MessageReceiver", "PostRequests", "SessionLost", "resumable_id", "retry_delay"]

ACCEPT: Final = f"{JSON}, {EVENT_STREAM}"

# How often in a row resuming a stream may fail.
_MAX_FAILURES: Final = 5

# A server that takes no connections any more has this time to come back, from the break on, or from its own time to
# reconnect, if that is longer. It is tried often within it: some servers restart fast, and then the calls are not lost.
_GONE_SECONDS: Final = 1.75
_GONE_DELAY_SECONDS: Final = 0.25

# The delays before a stream is resumed, if the server sets none. HTML, "Server-sent events", suggests "a few seconds";
# they are shorter since a call waits for it. Each failure doubles the delay.
_FIRST_DELAY_SECONDS: Final = 0.5
_MAX_DELAY_SECONDS: Final = 5.0
_MAX_DOUBLINGS: Final = 10
# If a server sets 0 and then sends nothing, requests must not follow each other without a pause.
_MIN_DELAY_SECONDS: Final = 0.02

# An id is sent in a header, and servers accept about 8 KiB of headers.
_MAX_ID_BYTES: Final = 4096
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class SessionLost(Exception):  # noqa: N818 (no error: a new session follows)
    """A stream cannot be resumed, since the server does not know its session any more."""


class MessageReceiver(Protocol):
    """Receives the messages of the server."""

    def receive(self, frame: bytes, message: OutgoingMessage | None, session: HttpSession | None, /) -> bool:
        """Receive *frame*, and return whether it contains the answer to *message*."""
        ...

    async def ready(self, size: int, /) -> None:
        """Return when a message of *size* bytes may come."""


class PostRequests:
    """Sends messages to the endpoint.

    Args:
        requests: Makes the HTTP requests.
        limits: The limits of the client.
        receiver: Receives each message of the server.
    """

    def __init__(self, requests: HttpRequests, limits: ClientLimits, receiver: MessageReceiver) -> None:
        self._requests = requests
        self._limits = limits
        self._receiver = receiver

    async def send_request(
        self, message: OutgoingMessage, headers: Mapping[str, str], session: HttpSession | None
    ) -> ErrorReply | None:
        """Send a request, and return when it is answered; return the reply if its status is an error.

        Args:
            message: The request.
            headers: Headers of this request, besides those of each request.
            session: The session that it belongs to, or starts; None in a stateless revision.

        Raises:
            RequestLost: The request may not have arrived, or its answer will not come.
            SessionLost: The session was lost meanwhile.
        """
        address = self._requests.address
        async with self._requests.open("POST", ACCEPT, headers, message.body) as response:
            if not is_success(response):
                return await read_error_reply(response, message, address)
            if message.method == INITIALIZE and session is not None:
                session.set_id(response.headers.get(http.SESSION))
            kind = response_type(response)
            if kind == JSON:
                await self._receiver.ready(0)
                body = await read_body(response, self._limits.max_frame_bytes)
                await self._receiver.ready(len(body))
                if not self._receiver.receive(body, message, session):
                    raise RequestLost(
                        f"{address.shown} replied to {message.method} with a body that is not the response to it"
                    )
                return None
            if kind != EVENT_STREAM:
                body = await read_head(response)
                advice = (
                    f"the body is {printable(kind)}, not {JSON} or {EVENT_STREAM}"
                    if kind
                    else "the response has no Content-Type"
                )
                is_empty = not body and not is_compressed(response)
                raise not_a_message(response, address, "the body is empty" if is_empty else advice, body)
            reader = EventReader(max_event_bytes=self._limits.max_frame_bytes)
            broken = await self._read_events(response, reader, message, session)
        if broken is None:
            return None
        if session is None or resumable_id(reader) is None:
            raise broken
        await self._resume(reader, message, session)
        return None

    async def send_message(self, message: OutgoingMessage, headers: Mapping[str, str]) -> ErrorReply | None:
        """Send a message that is not a request; return the reply if its status is an error.

        Raises:
            RequestLost: It may not have arrived.
        """
        async with self._requests.open("POST", ACCEPT, headers, message.body) as response:
            if not is_success(response):
                return await read_error_reply(response, message, self._requests.address)
            await read_head(response)  # a read body, though empty, frees the connection for other requests
            return None

    async def _read_events(
        self, response: HttpResponse, reader: EventReader, message: OutgoingMessage, session: HttpSession | None
    ) -> RequestLost | None:
        """Receive the messages of a stream until the answer; return an error if the stream ends before it.

        Raises:
            RequestLost: The stream cannot be read, nor resumed.
        """

        def receive(event: Event) -> bool:
            is_message = event.name == "message" and bool(event.data)
            return is_message and self._receiver.receive(event.data, message, session)

        shown, method = self._requests.address.shown, message.method
        try:
            if await read_events(response, reader, receive, self._receiver.ready):
                return None
        except ConnectionBroke as error:
            return RequestLost(f"the stream of {shown} broke before {method} was answered: {error.reason}")
        return RequestLost(f"{shown} ended its stream before {method} was answered")

    async def _resume(self, reader: EventReader, message: OutgoingMessage, session: HttpSession) -> None:
        """Resume a stream, again and again, until the answer.

        Raises:
            RequestLost: The stream cannot be resumed.
            SessionLost: The server does not know the session any more.
        """
        failures = idle = 0
        delay = retry_delay(reader, failures, idle, _MAX_DELAY_SECONDS)
        gone_at = anyio.current_time() + max(_GONE_SECONDS, delay)
        while True:
            last_id = resumable_id(reader)
            reader.finish()
            await anyio.sleep(delay)
            if session.is_lost:
                raise RequestLost(f"the session was lost before {message.method} was answered")
            try:
                headers = {**session.headers, "last-event-id": last_id or ""}
                async with self._requests.open("GET", EVENT_STREAM, headers) as response:
                    if not is_success(response):
                        refusal = (await read_error_reply(response, None, self._requests.address)).failure
                        raise SessionLost if refusal.status == NOT_FOUND and session.id is not None else refusal
                    if response_type(response) != EVENT_STREAM:
                        raise not_a_message(response, self._requests.address, "the body is not an event stream")
                    if await self._read_events(response, reader, message, session) is None:
                        return
                idle = idle + 1 if resumable_id(reader) == last_id else 0
                failures = 0
                delay = retry_delay(reader, failures, idle, _MAX_DELAY_SECONDS)
                gone_at = anyio.current_time() + max(_GONE_SECONDS, delay)
            except ServerUnreachable as error:
                if anyio.current_time() + _GONE_DELAY_SECONDS > gone_at:
                    raise RequestLost(f"the server ended before {message.method} was answered: {error}") from error
                delay = _GONE_DELAY_SECONDS
            except RequestLost as error:
                failures += 1
                may_pass = not isinstance(error, HttpRefused) or error.status >= 500 or error.status in (409, 429)  # noqa: PLR2004
                if not may_pass or failures >= _MAX_FAILURES:
                    raise RequestLost(
                        f"the stream broke before {message.method} was answered, and cannot be resumed: {error}"
                    ) from error
                delay = retry_delay(reader, failures, idle, _MAX_DELAY_SECONDS)
                gone_at = anyio.current_time() + max(_GONE_SECONDS, delay)


def resumable_id(reader: EventReader) -> str | None:
    """Return the event id with which a stream can be resumed; None if it cannot."""
    found = reader.last_event_id
    if found is None or len(found.encode()) > _MAX_ID_BYTES or _CONTROL.search(found):
        return None
    return found


def retry_delay(reader: EventReader, failures: int, idle: int, max_seconds: float) -> float:
    """Return how many seconds to wait before a stream is requested again.

    Args:
        reader: The reader of the stream, which may have set a reconnection time.
        failures: How many attempts in a row have failed.
        idle: How many attempts in a row have succeeded without a message.
        max_seconds: The longest delay, unless the server sets a longer one.

    Spec:
        2025-11-25, basic/transports, "Sending Messages to the Server": a client MUST respect the server's time.
    """
    doublings = min(max(failures, idle), _MAX_DOUBLINGS)
    growing = min(max_seconds, _FIRST_DELAY_SECONDS * (1 << doublings))
    if reader.retry_ms is None:
        return growing
    server_seconds = max(_MIN_DELAY_SECONDS, reader.retry_ms / 1000)
    return max(server_seconds, growing) if failures else server_seconds
