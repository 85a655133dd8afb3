"""Messages to the one endpoint of Streamable HTTP, each its own POST, and the answers, however they come.

Theory of operation. An answer is a JSON object or a stream of events. A stream of a session may break, or be ended by
the server, before the answer is on it; if its events had ids, the rest is asked for with GET, as often as the server
likes, and as long as whoever waits for the answer does. A stream of the stateless era that breaks takes its request
with it.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Sending Messages to the Server" and "Resumability and Redelivery";
    2026-07-28, basic/transports/streamable-http, "Sending Messages" and "Receiving Messages".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import httpx

from mcpgen.runtime.errors import RequestLost, printable
from mcpgen.runtime.http.client.error_responses import NOT_FOUND, ErrorReply, not_a_message, read_error_reply
from mcpgen.runtime.http.client.http_session import is_session_id
from mcpgen.runtime.http.client.outgoing_messages import INITIALIZE
from mcpgen.runtime.http.client.response_body import EVENTS, JSON, media_type, read_body, read_events, read_head
from mcpgen.runtime.http.errors import HttpRefused
from mcpgen.runtime.http.sse import EventReader
from mcpgen.runtime.protocol import headers as http

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.sse import Event
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["ACCEPT", "PostRequests", "SessionLost", "MessageReceiver", "resumable_id", "retry_delay"]

ACCEPT: Final = f"{JSON}, {EVENTS}"

# How often in a row it may fail to get the rest of a stream.
_MOST_ATTEMPTS: Final = 5

# What is waited before a stream is asked for again, where the server does not say: HTML, "Server-sent events", leaves
# it to whoever asks, "in the region of a few seconds"; a call waits for this one. Each failure doubles it.
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 5.0
_MOST_DOUBLINGS: Final = 10
# A server that says 0 and then has nothing to say should not keep both of us busy.
_SHORTEST_WAIT: Final = 0.02

# An id travels in a header, and servers take about 8 KiB of those.
_MOST_ID_BYTES: Final = 4096
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class SessionLost(Exception):  # noqa: N818 (no error: the next step)
    """The server does not know the session any more in which a stream was to be resumed."""


class MessageReceiver(Protocol):
    """Who gets what the server says."""

    def __call__(self, frame: bytes, message: OutgoingMessage | None, session: HttpSession | None, /) -> bool:
        """Act on *frame*, and return whether it has the answer to *message*."""
        ...


class PostRequests:
    """Sends messages to the endpoint.

    Args:
        exchanges: Makes the requests.
        limits: How long a message may be.
        take: Who gets what the server says.
    """

    def __init__(self, exchanges: HttpRequests, limits: ClientLimits, take: MessageReceiver) -> None:
        self._exchanges = exchanges
        self._limits = limits
        self._take = take

    async def ask(
        self, message: OutgoingMessage, headers: Mapping[str, str], session: HttpSession | None
    ) -> ErrorReply | None:
        """Send a request, and return when it is answered, or what came instead.

        Args:
            message: The request.
            headers: What it says beside what every request says.
            session: What it belongs to, or begins; None in the stateless era.

        Raises:
            RequestLost: It is not known whether it has arrived, or its answer will not come.
            SessionLost: The session was lost meanwhile.
        """
        address = self._exchanges.address
        reader = EventReader(max_event_bytes=self._limits.max_frame_bytes)
        async with self._exchanges.open("POST", ACCEPT, headers, message.body) as response:
            if not response.is_success:
                return await read_error_reply(response, message, address)
            if message.method == INITIALIZE and session is not None:
                _begin(session, response)
            media = media_type(response)
            if media == JSON:
                if not self._take(await read_body(response, self._limits.max_frame_bytes), message, session):
                    raise RequestLost(f"{address.shown} has answered {message.method} with what is no answer to it")
                return None
            if media != EVENTS:
                body = await read_head(response)
                what = f"this is {printable(media)}, and no message" if media else "this is no message"
                raise not_a_message(response, address, what if body else "there is no message in it", body)
            broken = await self._read(response, reader, message, session)
        if broken is None:
            return None
        if session is None or resumable_id(reader) is None:
            raise broken
        await self._resume(reader, message, session)
        return None

    async def tell(self, message: OutgoingMessage, headers: Mapping[str, str]) -> ErrorReply | None:
        """Send a message that is no request; return what is said against it, if anything.

        Raises:
            RequestLost: It is not known whether it has arrived.
        """
        async with self._exchanges.open("POST", ACCEPT, headers, message.body) as response:
            if not response.is_success:
                return await read_error_reply(response, message, self._exchanges.address)
            await read_head(response)  # there is none, and so the connection can be used again
            return None

    async def _read(
        self, response: httpx.Response, reader: EventReader, message: OutgoingMessage, session: HttpSession | None
    ) -> RequestLost | None:
        """Take what is on a stream until there is the answer; return why there is none, if there is none.

        Raises:
            RequestLost: There is no use in asking for the rest.
        """

        def take(event: Event) -> bool:
            return event.name == "message" and bool(event.data) and self._take(event.data.encode(), message, session)

        shown, method = self._exchanges.address.shown, message.method
        try:
            if await read_events(response, reader, take):
                return None
        except httpx.HTTPError as error:
            return RequestLost(
                f"the stream of {shown} broke before {method} was answered: {str(error) or type(error).__name__}"
            )
        return RequestLost(f"{shown} has ended its stream before {method} was answered")

    async def _resume(self, reader: EventReader, message: OutgoingMessage, session: HttpSession) -> None:
        """Ask for the rest of a stream until it has the answer.

        Raises:
            RequestLost: The rest cannot be had.
            SessionLost: The server does not know the session any more.
        """
        failures = idle = 0
        while True:
            last_id = resumable_id(reader)
            reader.finish()
            await anyio.sleep(retry_delay(reader, failures, idle, _LONGEST_WAIT))
            if session.is_lost:
                raise RequestLost(f"the session was lost before {message.method} was answered")
            try:
                headers = {**session.headers, "last-event-id": last_id or ""}
                async with self._exchanges.open("GET", EVENTS, headers) as response:
                    self._check_resumed(await self._refused(response), session)
                    if await self._read(response, reader, message, session) is None:
                        return
                idle = idle + 1 if resumable_id(reader) == last_id else 0
                failures = 0
            except RequestLost as error:
                failures += 1
                may_pass = not isinstance(error, HttpRefused) or error.status >= 500 or error.status in (409, 429)  # noqa: PLR2004
                if not may_pass or failures >= _MOST_ATTEMPTS:
                    raise RequestLost(
                        f"the stream broke before {message.method} was answered, and cannot be resumed: {error}"
                    ) from error

    async def _refused(self, response: httpx.Response) -> HttpRefused | None:
        if not response.is_success:
            return (await read_error_reply(response, None, self._exchanges.address)).failure
        if media_type(response) != EVENTS:
            return not_a_message(response, self._exchanges.address, "it is no stream of events")
        return None

    @staticmethod
    def _check_resumed(refused: HttpRefused | None, session: HttpSession) -> None:
        if refused is None:
            return
        if refused.status == NOT_FOUND and session.id is not None:
            raise SessionLost
        raise refused


def resumable_id(reader: EventReader) -> str | None:
    """Return where a stream can be resumed; None if it cannot."""
    found = reader.last_event_id
    if found is None or len(found.encode()) > _MOST_ID_BYTES or _CONTROL.search(found):
        return None
    return found


def retry_delay(reader: EventReader, failures: int, idle: int, longest: float) -> float:
    """Return how long to wait before a stream is asked for again.

    Args:
        reader: Of the stream, which may have said how long.
        failures: How often in a row that has failed.
        idle: How often in a row it succeeded, and nothing came.
        longest: What is waited at most, unless the server says more.

    Spec:
        2025-11-25, basic/transports, "Sending Messages to the Server": the time that the server says MUST be waited.
    """
    tries = min(max(failures, idle), _MOST_DOUBLINGS)
    if reader.retry_ms is None:
        return min(longest, _FIRST_WAIT * (1 << tries))
    least = max(_SHORTEST_WAIT, reader.retry_ms / 1000)
    return max(least, min(longest, _FIRST_WAIT * (1 << tries))) if failures else least


def _begin(session: HttpSession, response: httpx.Response) -> None:
    """Note what a server calls the session that it begins."""
    said: str | None = response.headers.get(http.SESSION)
    if said is not None and not is_session_id(said):
        raise RequestLost("the server calls its session what no header could repeat")
    session.id = said
