"""The GET stream of a session, on which the server sends messages that belong to no request.

Theory of operation. It is opened after the handshake, and reopened whenever it breaks, with the id of its last event. A
server may refuse it. While the server cannot be reached, perhaps during a restart, attempts become rarer. If the server
then does not know the session any more, a new one must be started.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Listening for Messages from the Server".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.errors import RequestLost
from mcpgen.runtime.http.client.error_responses import NOT_FOUND, read_error_reply
from mcpgen.runtime.http.client.post_requests import resumable_id, retry_delay
from mcpgen.runtime.http.client.response_body import is_success, read_events, response_type
from mcpgen.runtime.http.media_types import EVENT_STREAM
from mcpgen.runtime.http.sse import EventReader

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.http_exchange import HttpResponse
    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.http.client.post_requests import MessageReceiver
    from mcpgen.runtime.http.sse import Event
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["read_get_stream"]

_LOG = logging.getLogger("mcpgen.client")

# The longest delay before a stream is requested again, if the server fails or ends each stream at once.
_MAX_DELAY_SECONDS: Final = 30.0

# A stream that lasted this long counts as working, even without a message.
_WORKING_SECONDS: Final = 5.0

# 409: the server has not noticed yet that the stream before has ended.
_RETRY_STATUSES: Final = frozenset({408, 409, 429})


async def read_get_stream(
    requests: HttpRequests, limits: ClientLimits, receiver: MessageReceiver, session: HttpSession
) -> bool:
    """Receive the messages of the GET stream until the server has none; return whether the session is lost.

    Args:
        requests: Makes the HTTP requests.
        limits: The limits of the client.
        receiver: Receives each message.
        session: The session.
    """
    reader = EventReader(max_event_bytes=limits.max_frame_bytes)
    failures = idle = 0
    while not session.is_lost:
        last_id = resumable_id(reader)
        headers = session.headers if last_id is None else {**session.headers, "last-event-id": last_id}
        has_event, started = False, anyio.current_time()
        try:
            async with requests.open("GET", EVENT_STREAM, headers) as response:
                if is_success(response) and response_type(response) == EVENT_STREAM:
                    session.has_get_stream, failures = True, 0
                    has_event = await _receive(response, reader, receiver, session)
                elif response.status == NOT_FOUND and _is_about_session(session):
                    return True
                elif response.status in _RETRY_STATUSES or response.status >= 500:  # noqa: PLR2004 (as HTTP counts)
                    failures += 1
                elif last_id is not None:  # the server may know the session, but no longer this id
                    retry_ms = reader.retry_ms
                    reader = EventReader(max_event_bytes=limits.max_frame_bytes)
                    reader.retry_ms = retry_ms  # the server set it for reconnecting, and this is not over
                    failures += 1
                else:
                    reply = await read_error_reply(response, None, requests.address)
                    _LOG.debug("the server has no GET stream: %s", reply.failure)
                    return False
        except RequestLost as error:
            failures += 1
            _LOG.debug("the GET stream broke: %s", error)
        is_working = has_event or anyio.current_time() - started > _WORKING_SECONDS
        idle = 0 if is_working else idle + 1
        reader.finish()
        await anyio.sleep(retry_delay(reader, failures, idle, _MAX_DELAY_SECONDS))
    return False


def _is_about_session(session: HttpSession) -> bool:
    """Return whether 404 says that the server does not know *session*.

    Some servers have no GET stream and answer 404 instead of 405, so this is tried only once.

    Spec:
        2025-11-25, basic/transports, "Session Management": after a 404, the client MUST start a new session.
    """
    return session.id is not None and (session.has_get_stream or not session.is_replacement)


async def _receive(
    response: HttpResponse, reader: EventReader, receiver: MessageReceiver, session: HttpSession
) -> bool:
    """Receive the messages of one response until it ends; return whether it had an event."""
    has_event = False

    def receive_event(event: Event) -> bool:
        nonlocal has_event
        has_event = True
        if event.name == "message" and event.data:
            receiver.receive(event.data, None, session)
        return False

    await read_events(response, reader, receive_event, receiver.ready)
    return has_event
