"""HTTP+SSE of 2024-11-05: one endpoint that a server speaks on, as a stream of events, and another that it hears on.

Spec:
    2024-11-05, basic/transports, "HTTP with SSE"; 2025-11-25, basic/transports, "Backwards Compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import RequestLost, UsageError, printable
from mcpgen.runtime.http.client.address import join_url
from mcpgen.runtime.http.client.error_responses import not_a_message, read_error_reply
from mcpgen.runtime.http.client.post_requests import ACCEPT
from mcpgen.runtime.http.client.response_body import EVENTS, media_type, read_events, read_head
from mcpgen.runtime.http.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.client.post_requests import MessageReceiver
    from mcpgen.runtime.http.sse import Event
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["LegacySse"]

_MOST_SHOWN = 200


class LegacySse:
    """The two endpoints of one conversation.

    Attributes:
        endpoint: The one to write to; None until the server has said which, and if it never does.
        settled: Set when it has, or never will.
        failure: Why there is no such endpoint, or the stream has ended.
        is_misleading: Whether it has said which, and that cannot be used.
        scope: Ends the stream.
    """

    def __init__(
        self, exchanges: HttpRequests, limits: ClientLimits, take: MessageReceiver, session: HttpSession
    ) -> None:
        self.endpoint: Address | None = None
        self.settled: anyio.Event = anyio.Event()
        self.failure: RequestLost | None = None
        self.is_misleading: bool = False
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self._exchanges = exchanges
        self._limits = limits
        self._take = take
        self._session = session

    async def run(self) -> None:
        """Take what the server says, until the stream ends."""
        reader = EventReader(max_event_bytes=self._limits.max_frame_bytes)
        shown = self._exchanges.address.shown
        try:
            with self.scope:
                async with self._exchanges.open("GET", EVENTS, {}) as response:
                    if not response.is_success:
                        raise (await read_error_reply(response, None, self._exchanges.address)).failure
                    if media_type(response) != EVENTS:
                        raise not_a_message(response, self._exchanges.address, "it is no stream of events")
                    await read_events(response, reader, self._hear)
            self.failure = self.failure or RequestLost(f"{shown} has ended the stream on which it speaks")
        except RequestLost as error:
            broken = (
                error if self.endpoint is None else RequestLost(f"the stream on which {shown} speaks broke: {error}")
            )
            self.failure = self.failure or broken
        finally:
            self.settled.set()

    def _hear(self, event: Event) -> bool:
        """Take an event; return whether no other is wanted."""
        if self.endpoint is None:
            self._learn(event)
            self.settled.set()
            return self.endpoint is None
        if event.name == "message" and event.data:
            self._take(event.data.encode(), None, self._session)
        return False

    def _learn(self, event: Event) -> None:
        """Take the first event for the endpoint's address.

        It gets our credentials, so that it has to be of the same origin as the server.
        """
        address = self._exchanges.address
        if event.name != "endpoint":
            self.failure = RequestLost(f"the stream of {address.shown} does not begin with the other endpoint")
            return
        self.is_misleading = True
        said = repr(printable(event.data[:_MOST_SHOWN]))
        try:
            found = join_url(address, event.data.strip())
        except UsageError as error:
            self.failure = RequestLost(f"{address.shown} names {said} as its other endpoint: {error}")
            return
        if found.origin != address.origin:
            self.failure = RequestLost(
                f"{address.shown} names {said} as its other endpoint, which is of another origin and gets nothing"
            )
            return
        self.is_misleading = False
        self.endpoint = found

    async def post(self, message: OutgoingMessage, headers: Mapping[str, str]) -> None:
        """Send a message; its answer comes on the stream.

        Raises:
            RequestLost: The server has not taken it.
        """
        async with self._exchanges.open("POST", ACCEPT, headers, message.body, to=self.endpoint) as response:
            if not response.is_success:
                raise (await read_error_reply(response, None, self.endpoint or self._exchanges.address)).failure
            await read_head(response)  # so that the connection can be used again
