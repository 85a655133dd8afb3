"""The client's channel to a server over HTTP, which turns each message into an HTTP request.

Theory of operation. Requests run concurrently, each in its own task, up to a limit; streams of changes do not count
towards it, since they may stay open as long as the client. Other messages are sent one after the other, since the order
of notifications matters. They never wait for requests: a server may need an answer from the client before it can answer
a request.

If an HTTP request fails, only its message is lost. A request of a stateless revision is cancelled by closing its
response. In a session, the server is sent the cancellation first, and then the response is closed: at the latest a few
seconds later, since a server may not accept the cancellation. A request that the client does not wait for any more has
the same time for its response: one that was to become a task, or the cancellation of a task.

Spec:
    2024-11-05 to 2025-11-25, basic/transports; 2026-07-28, basic/transports/streamable-http, "Cancellation".
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Struct

from mcpgen.runtime.errors import McpgenError, RequestLost, TransportClosed
from mcpgen.runtime.http.client.http_protocol import HttpProtocol
from mcpgen.runtime.http.client.outgoing_messages import (
    INITIALIZE,
    LISTEN,
    OutgoingMessage,
    cancelled_id,
    parse_message,
)
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Hashable
    from contextlib import AbstractContextManager

    from mcpgen.runtime.http.client.http_requests import HttpRequests
    from mcpgen.runtime.http.client.http_session import HttpSession
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import ClientEndpoint
    from mcpgen.runtime.transports.spawner import Group, Spawner

__all__ = ["HttpChannel"]

_LOG = traceback_logger("mcpgen.client")

# How long the server may take to accept a message that is not a request; only later messages wait for it.
_SEND_SECONDS: Final = 30.0

# How long the response to a request that the client does not wait for any more stays open; at most twice as long. A
# response takes as much memory as a message, and a server need not end it.
_FORGOTTEN_SECONDS: Final = 2.0

# How many such responses stay open: a server can answer calls on the streams of others, a hundred in that time. They
# are looked for after as many requests, since there can be a hundred.
_MAX_FORGOTTEN: Final = 16


class _PendingRequest(Struct, eq=False):
    """A request that is waiting to be sent or answered.

    Attributes:
        message: The request.
        sending: The `StartedFunction` that sends it. Its cancellation closes the response. None before it has started.
        is_queued: Whether it has not been sent yet.
    """

    message: OutgoingMessage
    sending: Any = None
    is_queued: bool = True

    def cancel(self) -> None:
        """Close its response, or do not send it."""
        self.message.is_cancelled = True
        if self.sending is not None:
            self.sending.cancel()


class HttpChannel:
    """A channel to one server; a `mcpgen.runtime.transports.interfaces.Channel`.

    Attributes:
        library: The library that makes the HTTP requests, for `repr`.

    Args:
        requests: Makes the HTTP requests.
        limits: The limits of the client.
        group: Runs the channel's tasks until it is closed.
        spawner: Runs the requests until it is closed.
        identity: The `Http.identity` of the server.
    """

    def __init__(
        self, requests: HttpRequests, limits: ClientLimits, group: Group, spawner: Spawner, identity: Hashable
    ) -> None:
        self.library: str = requests.library
        self._limits = limits
        self._group = group
        self._spawner = spawner
        self._is_watching = False  # whether `_close_forgotten` runs
        self._protocol = HttpProtocol(requests, limits, group, identity)
        self._slots = anyio.Semaphore(limits.max_connections)
        self._pending: dict[RequestId, _PendingRequest] = {}
        self._sent: dict[_PendingRequest, None] = {}  # those that have a slot, the oldest first
        self._sent_count = 0  # of all requests that were sent
        self._queue: deque[tuple[OutgoingMessage, HttpSession | None]] = deque()  # messages that are not requests
        self._queued = anyio.Event()  # set when a message was added to the queue, and then replaced
        self._queued_bytes = 0  # of all messages that were not sent yet
        self._drained: anyio.Event | None = None  # None if no task waits for it
        group.start_soon(self._send_queue)

    @property
    def is_full(self) -> bool:
        """Whether too many bytes wait to be sent."""
        return self._queued_bytes >= self._limits.max_buffered_bytes and not self._protocol.ended.is_set()

    @property
    def stderr(self) -> str:
        """Empty: a client cannot see the standard error of such a server."""
        return ""

    def write(self, message: bytes) -> None:
        """Send *message* now, or after those before it."""
        if self._protocol.ended.is_set():
            return
        outgoing, session = parse_message(message), self._protocol.incoming.session
        self._protocol.start_sending(outgoing)
        if outgoing.kind == "request" and outgoing.id is not None:
            pending = self._pending[outgoing.id] = _PendingRequest(outgoing)
            self._queued_bytes += len(message)
            pending.sending = self._spawner.start(self._run_request, pending)
            if not self._is_watching:
                self._is_watching = True
                self._group.start_soon(self._close_forgotten)
            return
        cancelled = cancelled_id(outgoing)
        if cancelled is not None and not self._announces_cancellation(cancelled, session):
            self._close_response(cancelled)
            return
        if outgoing.kind == "answer" and outgoing.id is not None and session is not None:
            session.server_requests.pop(outgoing.id, None)
        self._queued_bytes += len(message)
        self._queue.append((outgoing, session))
        self._queued.set()

    async def drain(self) -> None:
        """Return when the channel is no longer full, or has ended."""
        while self.is_full:
            if self._drained is None:
                self._drained = anyio.Event()
            await self._drained.wait()

    def paused(self) -> AbstractContextManager[object]:
        """Stop the clocks of the client's requests within the block: a person is asked to log in."""
        return self._protocol.incoming.paused()

    async def run(self, endpoint: ClientEndpoint, /) -> None:
        """Deliver the server's messages to *endpoint* until the channel has ended."""
        self._protocol.incoming.start(endpoint)
        await self._protocol.ended.wait()
        self._release(0)

    async def close_reason(self) -> TransportClosed:
        """Return why the channel has ended."""
        return self._protocol.failure or TransportClosed("the client was closed")

    def close(self) -> None:
        """Send no more messages."""
        self._protocol.ended.set()
        self._release(0)

    async def end_session(self) -> None:
        """Tell the server to end the session, after all other requests."""
        await self._protocol.end_session()

    def _release(self, size: int) -> None:
        self._queued_bytes -= size
        if self._drained is not None and not self.is_full:
            self._drained.set()
            self._drained = None

    # --- requests

    async def _run_request(self, pending: _PendingRequest) -> None:
        message = pending.message
        try:
            if not message.is_cancelled:
                await self._send_request(pending)
        except McpgenError as failure:
            self._fail(message, failure.with_traceback(None))  # its frames have the message, and what was read
        except Exception as failure:  # noqa: BLE001 (the boundary: a user's `httpx.Auth`, or a bug)
            _LOG.exception("%s could not be sent", message.method)
            lost = RequestLost(f"{message.method} could not be sent: {failure!r}")
            lost.__cause__ = failure
            self._fail(message, lost)
        finally:
            self._leave_queue(pending)
            self._protocol.end_sending(message)
            if message.id is not None and self._pending.get(message.id) is pending:
                del self._pending[message.id]

    async def _send_request(self, pending: _PendingRequest) -> None:
        message, protocol = pending.message, self._protocol
        if message.method == LISTEN and protocol.is_stateless(message):
            self._leave_queue(pending)
            await protocol.send_request(message)
            return
        await protocol.wait_for_handshake(message)
        if self._slots.value:
            self._slots.acquire_nowait()  # a tenth of what `acquire` takes
        else:
            await self._slots.acquire()
        self._sent[pending] = None
        self._sent_count += 1
        try:
            self._leave_queue(pending)
            if self._sent_count % _MAX_FORGOTTEN == 0:
                self._close_oldest_forgotten()
            await protocol.send_request(message)
        finally:
            del self._sent[pending]
            self._slots.release()
        if message.method == INITIALIZE and protocol.incoming.session is not None:
            self._close_probes()

    def _leave_queue(self, pending: _PendingRequest) -> None:
        """Count a request as sent, once."""
        if pending.is_queued:
            pending.is_queued = False
            self._release(len(pending.message.body))

    def _fail(self, message: OutgoingMessage, failure: McpgenError) -> None:
        if message.id is not None:
            self._protocol.incoming.fail(message.id, failure)

    def _announces_cancellation(self, request_id: RequestId, session: HttpSession | None) -> bool:
        """Return whether a notification cancels a request: in a session, if the server has the request in it.

        Spec:
            2025-11-25, basic/utilities/cancellation, "Behavior Requirements": only requests that were issued before and
            are believed to be in progress. 2026-07-28, basic/transports/streamable-http, "Cancellation".
        """
        pending = self._pending.get(request_id)
        if session is None or pending is None:  # with HTTP+SSE, a request is not pending here once it was sent
            return session is not None
        if pending.message.session is not session or session.is_lost:
            return False
        pending.message.is_cancelled = True
        return True

    def _close_response(self, request_id: RequestId) -> None:
        """Close the response to a cancelled request."""
        pending = self._pending.get(request_id)
        if pending is not None:
            pending.cancel()

    async def _close_forgotten(self) -> None:
        """Close the responses that the client does not wait for any more, for as long as there are requests."""
        before: set[_PendingRequest] = set()
        while self._pending:
            await anyio.sleep(_FORGOTTEN_SECONDS)
            found = {each for each in self._pending.values() if self._is_forgotten(each)}
            for each in found & before:
                each.cancel()
            before = found
        self._is_watching = False

    def _close_oldest_forgotten(self) -> None:
        found = [each for each in self._sent if self._is_forgotten(each)]
        for each in found[:-_MAX_FORGOTTEN]:
            each.cancel()

    def _is_forgotten(self, pending: _PendingRequest) -> bool:
        message = pending.message
        is_awaited = message.id is not None and self._protocol.incoming.awaits(message.id)
        return not pending.is_queued and (message.is_cancelled or not is_awaited)

    def _close_probes(self) -> None:
        """Close the responses to requests of a stateless revision, since the server uses sessions."""
        for pending in list(self._pending.values()):
            if pending.message.revision is not None:
                pending.cancel()

    # --- other messages

    async def _send_queue(self) -> None:
        while True:
            while self._queue:
                message, session = self._queue.popleft()
                await self._send_message(message, session)
                self._release(len(message.body))
                await checkpoint()  # else dropping the answers of a lost session would take one long turn
            self._queued = anyio.Event()
            await self._queued.wait()

    async def _send_message(self, message: OutgoingMessage, session: HttpSession | None) -> None:
        # A batch of answers has no id here, nor has an invalid message, which only `mcpgen trace` sends.
        name = message.method or ("a message" if message.id is None else "an answer")
        try:
            with anyio.move_on_after(_SEND_SECONDS) as scope:
                await self._protocol.send_message(message, session)
            if scope.cancelled_caught:
                _LOG.warning("the server did not accept %s within %g seconds", name, _SEND_SECONDS)
        except McpgenError as error:
            _LOG.warning("the server did not accept %s: %s", name, error)
        except Exception:  # noqa: BLE001 (the boundary: a user's `httpx.Auth`, or a bug)
            _LOG.exception("%s could not be sent", name)
        self._protocol.end_sending(message)
        cancelled = cancelled_id(message)
        if cancelled is not None:
            self._close_response(cancelled)
