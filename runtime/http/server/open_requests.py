"""What is open over HTTP, and for whom: requests, streams, and handlers that outlive them.

Theory of operation. A *ticket* counts one HTTP request, or the messages of a batch, against the limits of the
application. It is held by the response until that is sent, and by each handler until it ends: a handler in a session
goes on when its client hangs up. When there is no room, the client that has the most gives way: its oldest ticket is
asked to end. Its requests are answered with an error, and their handlers are cancelled.

Most tool calls return at once, and no ticket is made for them.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.http.server.rate_limit import Bucket
from mcpgen.runtime.http.server.response_buffer import SMALL_BYTES
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, Request
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.connection import Connection
from mcpgen.runtime.server.exchange import Exchange, ResponseBody
from mcpgen.runtime.server.session_output import SessionOutput
from mcpgen.runtime.transports.spawner import turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.messages import Malformed, Message
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Call, OpenRequest
    from mcpgen.runtime.server.notification_run import NotificationRun
    from mcpgen.runtime.server.quota import Entry, Quota
    from mcpgen.runtime.transports.interfaces import MessageWriter
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["OPEN_REQUEST_BYTES", "TOO_MANY", "CountedConnection", "Ticket", "headers_bytes", "request_count"]

# What an open request or stream takes beside its body: tasks, connection, session, response, and a part in the ASGI
# server. Measured in CPython 3.11 with uvicorn and uvloop as resident memory of thousands: 31 kB for a request whose
# client waits, 22 kB for one whose client has hung up, and 22 kB for a stream.
OPEN_REQUEST_BYTES: Final = 24 * 1024

# They are kept twice: by the ASGI server as bytes, and here as text. Without a text, each takes some 100 bytes.
_HEADER_COPIES: Final = 2
_HEADER_BYTES: Final = 100
_USUAL_HEADERS_BYTES: Final = 4096

TOO_MANY: Final = "too many requests and streams are open, or they hold too many bytes (max_open, max_open_bytes)"

_TOO_MANY_BODY: Final = ResponseBody(
    envelope.error_json(RequestError(ErrorCode.INTERNAL_ERROR, f"the request was ended: {TOO_MANY}")), is_error=True
)

_CLOSED_OUTPUT: Final = SessionOutput()

# What a notification or a small response costs of a turn, as `FairTurns` counts. A function that reports its progress
# in a loop waits for nothing else, and a thousand such functions would occupy the event loop for 20 seconds.
_NOTIFICATION_COST_BYTES: Final = 1024

# The same for each connection to which a change may be of interest. There may be 10,000.
_CHANGE_COST_BYTES: Final = 256

# How many handlers of a session that ends are cancelled in one turn. A session may have 4,096.
_STOPS_PER_TURN: Final = 64

_LOG = logging.getLogger("mcpgen.http")


class Ticket:
    """Counts one HTTP request until its response is sent and its handlers have ended.

    Attributes:
        on_give_way: Ends the request early.
        entry: What it counts for.
    """

    __slots__ = ("_holders", "entry", "on_give_way")

    def __init__(self) -> None:
        self.on_give_way: Callable[[], object] | None = None
        self.entry: Entry | None = None
        self._holders = 1

    def hold(self) -> None:
        """Note that one more handler runs."""
        self._holders += 1

    def release(self) -> None:
        """Note that the response is sent, or that a handler has ended."""
        self._holders -= 1
        if not self._holders:
            self.on_give_way = None  # it refers to this ticket, in a cycle
            if self.entry is not None:
                self.entry.release()

    def give_way(self) -> None:
        """End the request early."""
        if self.on_give_way is not None:
            self.on_give_way()


def request_count(message: Message | Batch | Malformed) -> int:
    """Return for how many requests a message counts."""
    return max(1, sum(isinstance(each, Request) for each in message.items)) if isinstance(message, Batch) else 1


def headers_bytes(headers: Mapping[str, str]) -> int:
    """Return what *headers* take in memory beyond those of a usual request, which `OPEN_REQUEST_BYTES` includes."""
    size = sum(map(len, headers)) + sum(map(len, headers.values()))
    return max(0, _HEADER_COPIES * (size + _HEADER_BYTES * len(headers)) - _USUAL_HEADERS_BYTES)


class CountedConnection(Connection):
    """A connection whose handlers are counted until they end.

    Args:
        engine: The server.
        writer: Where its messages are written.
        spawner: Starts its handlers.
        quota: What is open in the application.
        client: Who opened it.

    Attributes:
        client: Who opened it, without the token.
        access_bytes: What `session.access` takes in memory.
        bucket: Of the calls in its session.
        ticket: Of the request whose messages are being read.
    """

    __slots__ = ("_quota", "_tickets", "access_bytes", "bucket", "client", "ticket")

    is_only_client = False  # others may come, and must not wait for this one

    def __init__(self, engine: Engine, writer: MessageWriter, spawner: Spawner, quota: Quota, client: Client) -> None:
        super().__init__(engine, writer, spawner)
        self.session.user, self.session.owner = client.user, client.owner
        self.session.access, self.session.hides = client.access, client.hides
        self.client: Client = client if client.access is None else client._replace(access=None, access_bytes=0)
        self.access_bytes: int = client.access_bytes
        self.bucket: Bucket = Bucket()
        self.ticket: Ticket | None = None
        self._quota = quota
        self._tickets: dict[Exchange, Ticket] = {}

    def use_token(self, client: Client) -> bool:
        """Let what follows have the token of *client*, which may be another one than before.

        Return False if there is no room for what it says, which the session keeps.
        """
        session, more = self.session, client.access_bytes - self.access_bytes
        if more and session.entry is not None and not session.entry.resize(session.entry.size + more):
            return False
        self.access_bytes = client.access_bytes
        session.access, session.hides = client.access, client.hides
        return True

    def handler_started(self, exchange: Exchange) -> None:
        """Count the handler of *exchange* as running."""
        super().handler_started(exchange)
        if self.ticket is not None:
            self.ticket.hold()
            self._tickets[exchange] = self.ticket

    async def serve(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*, and answer it."""
        try:
            await super().serve(exchange)
        finally:
            self._release(exchange)

    def notify_change(self, method: str, uri: str | None) -> None:
        """Send the notification *method* if the client is subscribed to it."""
        self._engine.turns.spend(_CHANGE_COST_BYTES)
        super().notify_change(method, uri)

    def close(self) -> None:
        """Cancel all handlers, in several turns of the event loop if there are many, and end the session."""
        if len(self.session.exchanges) > _STOPS_PER_TURN:
            self.session.is_closed = True
            self._engine.remove(self)
            self._spawner.start(self._close_in_turns)
        else:
            super().close()
        self.session.output = _CLOSED_OUTPUT  # breaks a reference cycle between connection and session

    async def _close_in_turns(self) -> None:
        try:
            while self.session.stop_some(_STOPS_PER_TURN):
                await turn()
        finally:  # also if the server stops meanwhile
            super().close()

    def release_parked(self) -> None:
        """Stop counting the handlers that wait for a retry: the engine counts these."""
        for each in [each for each in self._tickets if each.request is None]:
            self._release(each)

    def batch_charge(self) -> Callable[[int], bool]:
        """Return what charges bytes for the responses to the batch that is being read: see `BatchResponse`."""
        return partial(self._charge_ticket, self.ticket)

    def _charge_ticket(self, ticket: Ticket | None, size: int) -> bool:
        """Charge *size* bytes to the session, and to *ticket*, which counts small responses with their requests."""
        entry = None if ticket is None or size <= SMALL_BYTES else ticket.entry
        if not self._charge_batch(size):
            return False
        if entry is None or entry.is_leaving or entry.resize(entry.size + size):
            return True
        self._charge_batch(-size)
        return False

    def keep_answer(self, exchange: Exchange, size: int, /) -> bool:
        """Count *size* bytes more with the ticket of *exchange*; return whether there is room."""
        ticket = self._tickets.get(exchange)
        entry = None if ticket is None else ticket.entry
        return entry is None or entry.resize(entry.size + size)

    @property
    def is_congested(self) -> bool:
        """Whether a handler has to `drain` before it starts."""
        return self._engine.turns.is_used_up or super().is_congested

    async def drain(self, about: Exchange | OpenRequest | None, /) -> None:
        """Wait until the client has read most of what was written, and for a turn that has time to encode more."""
        await self.wait_turn()
        while self._writer.is_full:
            responses = self._response_count
            await super().drain(about)
            if not self._engine.turns.is_used_up:
                return
            await self.wait_turn()  # many handlers may have waited for the client, which may have left
            if self._response_count == responses:  # else another of them has filled it again
                return

    async def wait_turn(self) -> None:
        """Wait for a turn of the event loop that has time to encode more."""
        turns = self._engine.turns
        turns.spend(_NOTIFICATION_COST_BYTES)
        if turns.is_used_up:
            await turns.wait_to_work(self.client.owner, self.session.principal)

    def _release(self, exchange: Exchange) -> None:
        ticket = self._tickets.pop(exchange, None)
        if ticket is not None:
            ticket.release()

    def refuse(self, ticket: Ticket) -> None:
        """Answer the requests of *ticket* with an error, and cancel their handlers."""
        for each in [each for each, found in self._tickets.items() if found is ticket]:
            self.refuse_one(each)

    def refuse_one(self, request: Exchange | OpenRequest) -> None:
        """Answer a request with an error, and cancel its handler if it has one."""
        if isinstance(request, Exchange):
            self.session.end(request, _TOO_MANY_BODY)
            if request.handle is not None:
                request.handle.cancel()
            return
        if request.on_cancel is not None:
            request.on_cancel()
        self.session.reply(request, _TOO_MANY_BODY)

    async def _charge_notification(self, call: Call, params: object, peer: Peer, run: NotificationRun) -> None:
        scope, owner, session = anyio.CancelScope(), self.client.owner, self.session.principal
        entry = self._quota.admit(owner, OPEN_REQUEST_BYTES + run.size, session=session, give_way=scope.cancel)
        if entry is None:
            _LOG.warning("a notification is dropped: %s", TOO_MANY)
            self._running_notifications -= 1
            self._handler_ended()
            run.end()
            return
        run.entry = entry
        try:
            with scope:
                await super()._charge_notification(call, params, peer, run)
        finally:
            entry.release()
        if scope.cancelled_caught:
            _LOG.info("the handler of a notification was cancelled: %s", TOO_MANY)
