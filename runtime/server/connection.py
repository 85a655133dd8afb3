"""One connection of a server: runs the handlers of its session, and writes to a transport."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import UNSET

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol.exception_groups import forget_frames
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.spans import has_opentelemetry
from mcpgen.runtime.server import dispatcher, input_required
from mcpgen.runtime.server.context import Context
from mcpgen.runtime.server.failure_log import log_failure
from mcpgen.runtime.server.fair_turns import LARGE_BYTES
from mcpgen.runtime.server.ledger import change_bytes, request_bytes
from mcpgen.runtime.server.notification_run import NotificationRun
from mcpgen.runtime.server.request_results import collect_input, wait_for_client, wait_for_requests
from mcpgen.runtime.server.request_spans import with_span
from mcpgen.runtime.server.server_session import ServerSession
from mcpgen.runtime.server.session_output import SessionOutput
from mcpgen.runtime.server.subscriptions import all_changes, end_stream, extension_messages, notify_change, wants_change
from mcpgen.runtime.transports.event_loops import is_cancellation
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.extension_codec import ExtensionNotification
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.server.engine import Engine
    from mcpgen.runtime.server.exchange import Call, Exchange, OpenRequest, ResponseBody
    from mcpgen.runtime.transports.interfaces import MessageWriter
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["Connection"]

_LOG = traceback_logger("mcpgen.handlers")

# `_requires_input` looks at each result, so it calls no function. Pyright does not know the values after `isinstance`.
_DICTS: Final = (dict,)


class Connection(SessionOutput):
    """One connection of a server, which a transport drives: an `Endpoint`.

    Attributes:
        session: Its state.
    """

    __slots__ = (
        "_delayed_changes",
        "_engine",
        "_has_spans",
        "_idle",
        "_messages",
        "_response_count",
        "_running",
        "_running_notifications",
        "_spawner",
        "_writer",
        "session",
    )

    is_only_client = True

    def __init__(self, engine: Engine, writer: MessageWriter, spawner: Spawner) -> None:
        self.session: ServerSession = ServerSession(engine, self, engine.new_principal())
        self._engine = engine
        self._writer = writer
        self._spawner = spawner
        self._running = 0
        self._running_notifications = 0
        self._response_count = 0
        self._delayed_changes: dict[tuple[str, str | None], None] = {}
        self._messages = engine.ledger.account("messages")
        self._idle: anyio.Event | None = None
        self._has_spans = has_opentelemetry()

    def __repr__(self) -> str:
        session = self.session
        state = "closed" if session.is_closed else f"{session.revision or 'no handshake'}, {session.running} running"
        return f"<{type(self).__name__} of {self._engine.name!r}: {state}>"

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Act on *frames*: start handlers, and answer requests that need none."""
        session = self.session
        self._spawner.hold()  # a request is not answered if the notification that cancels it came with it
        try:
            for each in frames:
                try:
                    dispatcher.receive(session, each)
                except Exception:  # noqa: BLE001 (the boundary: one frame must not cost the peer the others)
                    _LOG.exception("processing a message of the client failed; the message is dropped")
        finally:
            self._spawner.release()

    def end_of_input(self) -> None:
        """Handle the end of input: end open streams, and fail the requests to the client."""
        for stream in list(self.session.subscriptions.streams.values()):
            end_stream(self.session, stream)
        self.session.disconnect_requests()

    async def wait_finished(self) -> None:
        """Wait until no handler runs."""
        while self._running:
            if self._idle is None or self._idle.is_set():
                self._idle = anyio.Event()
            await self._idle.wait()

    def close(self) -> None:
        """Cancel all handlers, and end the session."""
        self.session.close()
        self._engine.remove(self)

    # This connection has one stream: its messages are written alike, whatever they are about, and `drop` has nothing to
    # end. Its client cannot reconnect, so `disconnect` does nothing either.

    def send(self, message: bytes, _about: Exchange | OpenRequest | None, /) -> None:
        """Write *message*."""
        self._writer.write(message)

    def respond(self, message: bytes, _request: OpenRequest | None, /) -> None:
        """Write a response."""
        self._response_count += 1
        self._writer.write(message)

    def batch_charge(self) -> Callable[[int], bool]:
        """Return what charges bytes for the responses to the batch that is being read: see `BatchResponse`."""
        return self._charge_batch

    def _charge_batch(self, size: int) -> bool:
        has_room = size < 0 or self.session.held_bytes + size <= self.session.limits.max_in_flight_bytes
        if has_room:
            self.session.charge(size)
        return has_room

    def reply_in_turn(self, request: OpenRequest, body: Callable[[], ResponseBody], /) -> None:
        """Answer *request*, which has no handler, with what *body* returns; wait while the client does not read."""
        if self.is_congested:  # or the answers to all requests that came at once would wait to be written
            self._running += 1
            self._spawner.start(self._reply_later, request, body)
        else:
            self.session.reply(request, body())

    async def _reply_later(self, request: OpenRequest, body: Callable[[], ResponseBody]) -> None:
        try:
            await self.drain(request)
            if self.session.exchanges.get(request.id) is request:  # not cancelled in the meantime
                self.session.reply(request, body())
        finally:
            self._handler_ended()

    @property
    def is_congested(self) -> bool:
        """Whether a handler has to `drain` before it starts."""
        return self._writer.is_full

    async def drain(self, _about: Exchange | OpenRequest | None, /) -> None:
        """Wait until the peer has read most of what was written."""
        while self._writer.is_full:
            responses = self._response_count
            await wait_for_client(self._writer.drain)
            if self._response_count == responses:  # else another request that waited has filled it again
                return

    async def wait_turn(self) -> None:
        """Wait for a turn of the event loop that has time to encode more; this connection has one client."""

    def start(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*."""
        self.handler_started(exchange)
        exchange.handle = self._spawner.start(self.serve, exchange)

    def handler_started(self, exchange: Exchange) -> None:
        """Count the handler of *exchange* as running; `serve` then runs it."""
        session, request = self.session, exchange.request
        self._running += 1
        session.running += 1
        exchange.session = session
        size = exchange.size if request is None else request.size
        exchange.size = size = size or request_bytes(exchange.raw, 0, session.handlers.json_costs)
        session.held_bytes += size
        session.open_requests.bytes += size

    def notify_change(self, method: str, uri: str | None) -> None:
        """Send the notification of a change; if the peer does not read, send it once when it reads again."""
        if not self._writer.is_full:
            notify_change(self.session, method, uri)
        elif (method, uri) not in self._delayed_changes and wants_change(self.session, method, uri):
            # At most as many as there are subscriptions, and as long as their URIs, which are bounded.
            self._messages.bytes += change_bytes(uri)
            self._delayed_changes[method, uri] = None
            if len(self._delayed_changes) == 1:
                self._spawner.start(self._send_delayed_changes)

    def notify_all_changes(self) -> None:
        """Send the notifications of all changes that the client is subscribed to, because some may have been lost."""
        for method, uri in all_changes(self.session):
            self.notify_change(method, uri)

    def notify_extension(self, notification: ExtensionNotification, /) -> None:
        """Send *notification* if the client is subscribed to it, and reads."""
        if not self._writer.is_full:
            for send in extension_messages(self.session, notification):
                send()
                if self._writer.is_full:
                    return

    async def deliver_extension(self, notification: ExtensionNotification, /) -> None:
        """Send *notification* if the client is subscribed to it, as the client reads."""
        for send in extension_messages(self.session, notification):
            await self.drain(None)
            send()

    def context(self, peer: Peer, /) -> Context[Any]:
        """Return a context for *peer* that belongs to no request."""
        return Context(self._engine, self.session, None, peer, None)

    async def _send_delayed_changes(self) -> None:
        try:
            while self._delayed_changes:
                await self._writer.drain()
                method, uri = next(iter(self._delayed_changes))
                self._forget_change(method, uri)
                notify_change(self.session, method, uri)
        finally:
            for method, uri in list(self._delayed_changes):  # the connection ends
                self._forget_change(method, uri)

    def _forget_change(self, method: str, uri: str | None) -> None:
        del self._delayed_changes[method, uri]
        self._messages.bytes -= change_bytes(uri)

    def start_notification_handler(self, call: Call, params: object, peer: Peer, size: int) -> None:
        """Run a handler whose result *peer* does not wait for, and whose *params* cost *size* bytes."""
        session, limits = self.session, self._engine.limits
        is_full = self._running_notifications >= limits.max_in_flight
        if is_full or (session.held_bytes and session.held_bytes + size > limits.max_in_flight_bytes):
            _LOG.warning(
                "a notification is dropped, because %d handlers of notifications are running (max_in_flight), or the "
                "pending requests and notifications keep too many bytes (max_in_flight_bytes)",
                self._running_notifications,
            )
            return
        self._running_notifications += 1
        self._running += 1
        session.charge(size)
        self._spawner.start(self._charge_notification, call, params, peer, NotificationRun(session, size))

    async def _charge_notification(self, call: Call, params: object, peer: Peer, run: NotificationRun) -> None:
        try:
            await self._handle_notification(call, params, peer, run)
        finally:
            run.end()

    async def _handle_notification(self, call: Call, params: object, peer: Peer, run: NotificationRun) -> None:
        try:
            await call(params, Context(self._engine, self.session, None, peer, run))
        except BaseException as failure:  # the boundary: a notification has no response
            if is_cancellation(failure):
                raise
            log_failure(_LOG, failure, "the notification handler %s failed", getattr(call, "__qualname__", call))
            forget_frames(failure)
        finally:
            self._running_notifications -= 1
            self._handler_ended()

    async def serve(self, exchange: Exchange) -> None:
        """Run the handler of *exchange*, which `handler_started` has counted, and answer it."""
        session, call = self.session, exchange.handler.call
        if self._has_spans:
            call = partial(with_span, self._engine.clock, exchange, call)
        try:
            context = Context(self._engine, session, exchange, exchange.peer, None)
            if self.is_congested and not exchange.handler.has_begun:  # or the results of all requests would wait
                await self.drain(exchange)
            result = await call(exchange.params, context)
            if _requires_input(result) and (exchange.task is not None or exchange.peer.era == "handshake"):
                result = await self._call_with_input(exchange, context, result)
            if exchange.request is None:  # or the results of all tasks that end together would be encoded in one turn
                await self.wait_turn()
            else:  # or thousands of responses would pile up for a client that does not read
                await exchange.request.session.output.drain(exchange)
            dispatcher.complete(session, exchange, result)
        except BaseException as failure:  # the boundary: a handler's failure becomes an error response
            if is_cancellation(failure):
                forget_frames(failure)  # asyncio's task groups keep it in a frame
                raise
            dispatcher.fail(session, exchange, failure)
            forget_frames(failure)
        finally:
            task = exchange.task
            if task is None and exchange.request is None and exchange.unsent_response is None:  # stopped while parked
                input_required.forget_parked(self._engine, exchange)
            if not exchange.has_ended and (task is None or not task.leave()):
                # It was cancelled, but not by us: the request must not stay unanswered.
                reason = "the handler was cancelled before it returned"
                dispatcher.fail(session, exchange, RequestError(ErrorCode.INTERNAL_ERROR, reason))
            if task is not None:
                task.close()
            session.running -= 1
            self._handler_ended(exchange)

    async def _call_with_input(self, exchange: Exchange, context: Context, result: Any) -> Any:
        """Call the handler again with the input that *result* requires, until it requires none; return its result.

        Raises:
            RequestError: The handler asks too often.
        """
        limit = self._engine.limits.max_rounds
        for _ in range(limit):
            call = self._use_slow_path(exchange)
            exchange.params = await collect_input(self.session, exchange, result)
            result = await call(exchange.params, context)
            if not _requires_input(result):
                return result
        raise RequestError(
            ErrorCode.INTERNAL_ERROR, f"the handler asked for input too often; the limit is {limit} (max_rounds)"
        )

    def _use_slow_path(self, exchange: Exchange) -> Call:
        """Switch *exchange* to the slow path, whose params can hold the client's responses; return its handler."""
        slow_path = exchange.handler.slow_path
        if slow_path is not None:
            exchange.handler = slow_path
            exchange.params = slow_path.codec.params(exchange.raw, self.session.meta)
        return exchange.handler.call

    def _handler_ended(self, exchange: Exchange | None = None) -> None:
        """Count the handler of *exchange*, or else of a notification, no longer."""
        if exchange is not None:
            self.session.held_bytes -= exchange.size
            self.session.open_requests.bytes -= exchange.size
            if exchange.size > LARGE_BYTES:
                self._engine.ledger.count_freed(exchange.size)
            exchange.size = 0
            if exchange.input_round is not None:  # which is kept for a while
                exchange.params, exchange.raw = None, UNSET
        self._running -= 1
        if not self._running and self._idle is not None:
            self._idle.set()

    def flush_soon(self, exchange: Exchange) -> None:
        """Send the requests of a handler to a stateless client, when it had time to make all of them."""
        self._spawner.start(self._flush, exchange)

    async def _flush(self, exchange: Exchange) -> None:
        await wait_for_requests(exchange)
        input_required.flush_requests(self.session, exchange)

    def expire_later(self) -> None:
        """Expire parked requests and tasks from now on, unless another connection does."""
        if not self._engine.is_expiring:
            self._engine.is_expiring = True
            self._spawner.start(self._expire)

    async def _expire(self) -> None:
        seconds = input_required.expire_parked(self._engine)
        try:
            while seconds is not None:
                earlier = self._engine.set_expiry_timer(seconds)
                with anyio.move_on_after(seconds):
                    await earlier.wait()
                seconds = input_required.expire_parked(self._engine)
        finally:
            self._engine.is_expiring = False
            if seconds is not None:  # this connection ends, but the server still has requests or tasks to expire
                self._engine.expire_elsewhere(self)


def _requires_input(result: Any) -> bool:
    """Return whether the *result* of a handler is an ``InputRequiredResult``.

    Raises:
        RequestError: It is a dict that looks like one. Its state would not be signed, and its requests not be checked.
    """
    if type(result) in _DICTS and result.get("resultType") == "input_required":
        reason = "the handler returned a dict that asks for input; return an InputRequiredResult"
        raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
    return getattr(result, "result_type", "complete") == "input_required"
