"""Requests that another worker has to answer, and its responses on their way back.

Theory of operation. The worker with the client sends the request as one message. The other worker serves it as if it
had arrived there: to its code, a relay is an ASGI server. Each part of the response is a message, and the next part is
sent when the client has got the one before. So a slow client slows the handler down, and at most one part waits. It
counts where the client is: the other worker may have ended the response already, and many workers may send parts.

A request is sent once only, because its function may have begun even if no response comes. If a message may have been
lost, both sides end the relay.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
from msgspec import Struct, field

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.response_buffer import SMALL_BYTES, ResponseBuffer
from mcpgen.runtime.http.server.timeouts import with_timeout
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.worker_messages import RelayedRequest, RelayEnded, RelayPart, RelayWritten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.responses import Receive, Send
    from mcpgen.runtime.server.cluster.worker import ClusterWorker

__all__ = ["RelayClient", "RelayLost", "RequestRelay"]

# Redis closes the connection of a listener that has 32 MiB to read, so one message is far smaller.
_PART_BYTES: Final = 512 * 1024

# How often a side that waits looks whether the other worker lives, and how often that may fail.
_LOOK_SECONDS: Final = 2.0
_MAX_FAILURES: Final = 3

_LOG = logging.getLogger("mcpgen.cluster")


class RelayLost(Exception):  # noqa: N818 (not an error of the caller)
    """The other worker took the request, and ended before it sent a response."""


class RelayClient(NamedTuple):
    """The client of a request that is relayed, where it is connected.

    Attributes:
        receive: Of ASGI; None if a disconnect changes nothing.
        send: Of ASGI.
        on_abort: Closes the connection without sending what waits, if the ASGI server can.
    """

    receive: Receive | None
    send: Send
    on_abort: Callable[[], object] | None


class _Side(Struct, eq=False):
    """One side of a relay.

    Attributes:
        other: The number of the other worker.
        parts: What has arrived.
        response: Counts the part that the client has not read, where the client is; None at the other worker.
        is_written: Whether the client has got the last part that was sent.
        has_ended: Whether nothing more will arrive, or be read.
        arrived: Set when any of these has changed.
    """

    other: int
    response: ResponseBuffer | None = None
    parts: list[RelayPart] = []
    is_written: bool = False
    has_ended: bool = False
    arrived: anyio.Event = field(default_factory=anyio.Event)

    def wake(self) -> None:
        """Let both tasks that may wait look again."""
        self.arrived.set()
        self.arrived = anyio.Event()

    def end(self) -> None:
        """Note that nothing more will arrive."""
        self.has_ended = True
        self.wake()


class RequestRelay:
    """The relays of one worker, in both directions.

    Args:
        state: The state of the application.
        worker: This worker.
        serve: Serves the request of another worker.
    """

    def __init__(
        self,
        state: AppState,
        worker: ClusterWorker,
        serve: Callable[[RelayedRequest, Receive, Send], Awaitable[None]],
    ) -> None:
        self._state = state
        self._worker = worker
        self._serve = serve
        self._count = 0
        self._sent: dict[int, _Side] = {}
        self._served: dict[tuple[int, int], _Side] = {}
        worker.on(RelayedRequest, self._request_arrived)
        worker.on(RelayPart, self._part_arrived)
        worker.on(RelayWritten, self._written)
        worker.on(RelayEnded, self._ended)

    def end_all(self) -> None:
        """End all relays, since messages may have been lost."""
        for each in (*self._sent.values(), *self._served.values()):
            each.end()

    def end(self, relay: int) -> None:
        """End the relay of a request that was sent from here; if its client does not read, close the connection."""
        side = self._sent.get(relay)
        if side is not None and side.response is not None:
            side.response.give_way()
            side.end()

    def new_number(self) -> int:
        """Return the number of a new relay."""
        self._count += 1
        return self._count

    async def forward(self, target: int, request: RelayedRequest, client: RelayClient) -> bool:
        """Have *target* answer *request*; return False if that worker does not listen.

        Raises:
            RelayLost: It ended before it sent a response.
            ClusterUnavailable: The request could not be sent, or there is no room for its response.
            ClientDisconnected: The client has disconnected, or the worker ended before its response was complete.
        """
        _, owner, _ = request.client
        response = ResponseBuffer(_PART_BYTES, unread=self._state.unread, owner=owner)
        side = self._sent[request.relay] = _Side(target, response)
        watch = None
        try:
            if not await self._worker.send(target, request):
                return False
            if client.receive is not None:
                spawner = await self._state.open()
                watch = spawner.start(_watch_for_disconnect, client.receive, side)
            await self._pass_on(side, response, request.relay, client)
        except BaseException:  # also if the ASGI server cancels this
            self._worker.send_later(target, RelayEnded(self._worker.number, request.relay))
            raise
        finally:
            del self._sent[request.relay]
            response.close()
            if watch is not None:
                watch.cancel()
        return True

    async def _pass_on(self, side: _Side, response: ResponseBuffer, relay: int, client: RelayClient) -> None:
        """Send the parts of the response until the last one."""
        has_begun = False
        while True:
            await self._wait(side, lambda: bool(side.parts))
            if not side.parts or response.has_ended:
                if has_begun:
                    raise responses.ClientDisconnected("a relayed response is cut off: its worker or client is gone")
                raise RelayLost
            part = side.parts.pop(0)
            if not part.status and not has_begun:
                raise RelayLost
            response.write(part.body)
            if response.is_disconnected and not has_begun:
                raise ClusterUnavailable("clients leave too many bytes unread (max_unread_bytes)")
            response.on_abort = client.on_abort
            try:
                if not has_begun:
                    await client.send({"type": "http.response.start", "status": part.status, "headers": part.headers})
                    has_begun = True
                more = part.more
                del part  # or each of thousands of streams would keep its last part until the next one
                await self._send(response, client.send, more=more)
            except (OSError, TimeoutError) as error:
                raise responses.ClientDisconnected("a client disconnected from a relayed response") from error
            if not more:
                return
            await self._worker.send(side.other, RelayWritten(self._worker.number, relay))

    async def _send(self, response: ResponseBuffer, send: Send, *, more: bool) -> None:
        """Send what *response* holds; return when the client has read nearly all of it, if it is large.

        Raises:
            OSError: There is no room for it any more.
            TimeoutError: The client does not read.
        """
        seconds, is_large = self._state.limits.write_seconds, response.waiting_bytes > SMALL_BYTES
        if not response.is_disconnected:
            response.is_sending = True
            await with_timeout(seconds, send(_part(response.take(), more=more or is_large)))
            if is_large:
                await with_timeout(seconds, send(_part(b"", more=more)))  # returns when nearly all was read
        if response.is_disconnected:
            raise OSError("the client of a relayed request left too many bytes unread")
        response.is_sending = False
        response.sent()

    async def _wait(self, side: _Side, is_done: Callable[[], bool]) -> None:
        """Return when *is_done*, when the relay has ended, or when the other worker has."""
        failures = 0
        while not is_done() and not side.has_ended:
            with anyio.move_on_after(_LOOK_SECONDS) as scope:
                await side.arrived.wait()
            if scope.cancelled_caught:
                try:
                    if not await self._worker.is_alive(side.other):
                        side.end()
                    failures = 0
                except ClusterUnavailable:
                    failures += 1
                    if failures >= _MAX_FAILURES:
                        side.end()

    def _part_arrived(self, part: RelayPart) -> None:
        side = self._sent.get(part.relay)
        if side is not None and side.other == part.worker:
            side.parts.append(part)
            side.wake()

    # The other side: requests that this worker serves for another.

    def _request_arrived(self, request: RelayedRequest) -> None:
        spawner = self._state.spawner
        if spawner is not None:
            spawner.start(self._serve_relayed, request)

    def _written(self, message: RelayWritten) -> None:
        side = self._served.get((message.worker, message.relay))
        if side is not None:
            side.is_written = True
            side.wake()

    def _ended(self, message: RelayEnded) -> None:
        side = self._served.get((message.worker, message.relay))
        if side is not None:
            side.end()

    async def _serve_relayed(self, request: RelayedRequest) -> None:
        key = request.worker, request.relay
        side = self._served[key] = _Side(request.worker)
        response = _RelayedResponse(self._worker, request, side, partial(self._wait, side))
        try:
            await self._serve(request, response.receive, response.send)
        except responses.ClientDisconnected as disconnected:
            _LOG.debug("%s", disconnected)
        finally:
            del self._served[key]
            if not response.is_complete:
                self._worker.send_later(request.worker, RelayPart(self._worker.number, request.relay))


class _RelayedResponse:
    """The ASGI callables of a request that another worker has relayed.

    Attributes:
        is_complete: Whether the last part was sent.
    """

    def __init__(
        self,
        worker: ClusterWorker,
        request: RelayedRequest,
        side: _Side,
        wait: Callable[[Callable[[], bool]], Awaitable[None]],
    ) -> None:
        self.is_complete: bool = False
        self._worker = worker
        self._request = request
        self._side = side
        self._wait = wait
        self._start: MutableMapping[str, Any] | None = None
        self._has_ended = anyio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        """Return, when the client has disconnected, the event of ASGI that says so."""
        await self._wait(lambda: False)
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send a part of the response to the worker that has the client, and wait until the client has got it.

        Raises:
            OSError: The client has disconnected, or its worker has ended.
        """
        if message["type"] == "http.response.start":
            self._start = message
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        while len(body) > _PART_BYTES:
            await self._send_part(body[:_PART_BYTES], more=True)
            body = body[_PART_BYTES:]
        await self._send_part(body, more=more)

    async def _send_part(self, body: bytes, *, more: bool) -> None:
        side, request = self._side, self._request
        part = RelayPart(self._worker.number, request.relay, body, more)
        if self._start is not None:
            part.status, part.headers = self._start["status"], [(bytes(a), bytes(b)) for a, b in self._start["headers"]]
        side.is_written = False
        try:
            is_there = not side.has_ended and await self._worker.send(request.worker, part)
        except ClusterUnavailable as error:
            raise OSError("a relayed response cannot be sent") from error
        if not is_there:
            raise OSError("the client of a relayed request has disconnected")
        self._start = None
        self.is_complete = not more
        if more:
            await self._wait(lambda: side.is_written)
            if not side.is_written:
                raise OSError("the client of a relayed request has disconnected")


async def _watch_for_disconnect(receive: Receive, side: _Side) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    side.end()


def _part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}
