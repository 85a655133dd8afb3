"""The stream on which a server that shakes hands says what no request of ours has asked for.

Theory of operation. It is asked for with GET when the handshake is over, and asked for again whenever it breaks, with
the id of the last event. A server may have none. While a server is away, which may be a restart, it is tried ever more
rarely; one that comes back without the session says so, and then another is begun.

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
from mcpgen.runtime.http.client.response_body import EVENTS, media_type, read_events
from mcpgen.runtime.http.sse import EventReader

if TYPE_CHECKING:
    import httpx

    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.http.client.post_requests import MessageReceiver
    from mcpgen.runtime.http.sse import Event
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["read_get_stream"]

_LOG = logging.getLogger("mcpgen.client")

# A server that is away, or ends its stream at once each time, is not asked more often than that.
_LONGEST_WAIT: Final = 30.0

# A stream that lasted so long was one, even if nothing came.
_LONG_SECONDS: Final = 5.0

# Conflict: the server has not noticed yet that the stream before is gone.
_LATER: Final = frozenset({408, 409, 429})


async def read_get_stream(
    exchanges: HttpRequests, limits: ClientLimits, take: MessageReceiver, session: HttpSession
) -> bool:
    """Take what comes on the stream, until there is none any more; return whether that is since the session is lost.

    Args:
        exchanges: Makes the requests.
        limits: How long a message may be.
        take: Who gets what the server says.
        session: The session.
    """
    reader = EventReader(max_event_bytes=limits.max_frame_bytes)
    failures = idle = 0
    while not session.is_lost:
        last_id = resumable_id(reader)
        headers = session.headers if last_id is None else {**session.headers, "last-event-id": last_id}
        heard, since = False, anyio.current_time()
        try:
            async with exchanges.open("GET", EVENTS, headers) as response:
                if response.is_success and media_type(response) == EVENTS:
                    session.has_stream, failures = True, 0
                    heard = await _hear(response, reader, take, session)
                elif response.status_code == NOT_FOUND and session.has_stream and session.id is not None:
                    return True
                elif response.status_code in _LATER or response.status_code >= 500:  # noqa: PLR2004 (as HTTP counts)
                    failures += 1
                elif last_id is not None:  # it may know the session, and not that id any more
                    reader = EventReader(max_event_bytes=limits.max_frame_bytes)
                    failures += 1
                else:
                    said = await read_error_reply(response, None, exchanges.address)
                    _LOG.debug("the server has no stream of its own: %s", said.failure)
                    return False
        except RequestLost as error:
            failures += 1
            _LOG.debug("the server's own stream broke: %s", error)
        heard = heard or anyio.current_time() - since > _LONG_SECONDS
        idle = 0 if heard else idle + 1
        reader.finish()
        await anyio.sleep(retry_delay(reader, failures, idle, _LONGEST_WAIT))
    return False


async def _hear(response: httpx.Response, reader: EventReader, take: MessageReceiver, session: HttpSession) -> bool:
    """Take what comes until the stream ends; return whether anything came."""
    heard = False

    def hear(event: Event) -> bool:
        nonlocal heard
        heard = True
        if event.name == "message" and event.data:
            take(event.data.encode(), None, session)
        return False

    await read_events(response, reader, hear)
    return heard
