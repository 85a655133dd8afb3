"""HTTP+SSE of 2024-11-05: a stream on which the server sends its messages, and a second URL for those of the client.

`LEGACY_SERVERS` remembers which servers use it.

Spec:
    2024-11-05, basic/transports, "HTTP with SSE"; 2025-11-25, basic/transports, "Backwards Compatibility".
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.errors import RequestLost, UsageError
from mcpgen.runtime.http.client.address import join_url
from mcpgen.runtime.http.client.error_responses import not_a_message, read_error_reply
from mcpgen.runtime.http.client.post_requests import ACCEPT
from mcpgen.runtime.http.client.response_body import is_success, read_events, read_head, response_type
from mcpgen.runtime.http.media_types import EVENT_STREAM
from mcpgen.runtime.http.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from mcpgen.runtime.http.client.address import Address
    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.client.post_requests import MessageReceiver
    from mcpgen.runtime.http.sse import Event
    from mcpgen.runtime.limits import ClientLimits

__all__ = ["LEGACY_SERVERS", "LegacyServers", "LegacySse"]

_MAX_LEGACY_SERVERS: Final = 10_000


class LegacySse:
    """The stream and the message endpoint of one session.

    Attributes:
        endpoint: The URL to post to; None until the server has sent a usable one.
        ready: Set when `endpoint` is known, or will never be.
        failure: Why there is no endpoint, or why the stream has ended.
        has_bad_endpoint: Whether the server has sent an endpoint that cannot be used.
        scope: Ends the stream when cancelled.
    """

    def __init__(
        self, requests: HttpRequests, limits: ClientLimits, receiver: MessageReceiver, session: HttpSession
    ) -> None:
        self.endpoint: Address | None = None
        self.ready: anyio.Event = anyio.Event()
        self.failure: RequestLost | None = None
        self.has_bad_endpoint: bool = False
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self._requests = requests
        self._limits = limits
        self._receiver = receiver
        self._session = session

    async def run(self) -> None:
        """Receive messages until the stream ends."""
        reader = EventReader(max_event_bytes=self._limits.max_frame_bytes)
        address = self._requests.address
        try:
            with self.scope:
                async with self._requests.open("GET", EVENT_STREAM, {}) as response:
                    if not is_success(response):
                        raise (await read_error_reply(response, None, address)).failure
                    if response_type(response) != EVENT_STREAM:
                        raise not_a_message(response, address, "the body is not an event stream")
                    await read_events(response, reader, self._receive_event, self._receiver.ready)
            self.failure = self.failure or RequestLost(f"{address.shown} ended its stream of messages")
        except RequestLost as error:
            broken = f"the stream of messages from {address.shown} broke: {error}"
            self.failure = self.failure or (error if self.endpoint is None else RequestLost(broken))
        finally:
            self.ready.set()

    def _receive_event(self, event: Event) -> bool:
        """Receive an event; return True if the stream is of no use."""
        if self.endpoint is None:
            self._set_endpoint(event)
            self.ready.set()
            return self.endpoint is None
        if event.name == "message" and event.data:
            self._receiver.receive(event.data, None, self._session)
        return False

    def _set_endpoint(self, event: Event) -> None:
        """Read the first event, which names the endpoint.

        The endpoint gets the credentials, so it must have the same origin as the server's URL.
        """
        address = self._requests.address
        if event.name != "endpoint":
            reason = f"HTTP+SSE requires `endpoint` as the first event, but {address.shown} sent another one"
            self.failure = RequestLost(reason)
            return
        self.has_bad_endpoint = True
        try:
            found = join_url(address, event.data.decode().strip())
        except UsageError as error:
            self.failure = RequestLost(f"{address.shown} names an invalid URL as its message endpoint: {error}")
            return
        if found.origin != address.origin:
            self.failure = RequestLost(
                f"{address.shown} names {found.shown} as its message endpoint, which is not used: it has another origin"
            )
            return
        self.has_bad_endpoint = False
        self.endpoint = found

    async def post(self, message: OutgoingMessage, headers: Mapping[str, str]) -> None:
        """Send a message; its answer comes on the stream.

        Raises:
            RequestLost: The server has refused it, or it may not have arrived.
        """
        async with self._requests.open("POST", ACCEPT, headers, message.body, to=self.endpoint) as response:
            if not is_success(response):
                raise (await read_error_reply(response, None, self.endpoint or self._requests.address)).failure
            await read_head(response)  # frees the connection for other requests


class LegacyServers:
    """The servers that were found to use HTTP+SSE, up to 10,000, by `Http.identity`.

    No request that only Streamable HTTP knows is sent to them again.

    Spec:
        2025-11-25, basic/transports, "Backwards Compatibility"; 2026-07-28, basic/versioning, "Backward Compatibility".
    """

    def __init__(self) -> None:
        self._servers: OrderedDict[Hashable, None] = OrderedDict()

    def __contains__(self, server: Hashable) -> bool:
        return server in self._servers

    def add(self, server: Hashable) -> None:
        """Add *server*, and drop the one that was added longest ago if there are too many."""
        self._servers[server] = None
        self._servers.move_to_end(server)
        if len(self._servers) > _MAX_LEGACY_SERVERS:
            self._servers.popitem(last=False)

    def discard(self, server: Hashable) -> None:
        """Remove *server*."""
        self._servers.pop(server, None)


LEGACY_SERVERS: Final = LegacyServers()
