"""One connection to one server: the endpoint of its channel, and the shell that runs its session and its handlers."""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, UnsetType

from mcpgen.runtime.client.client_session import ClientSession
from mcpgen.runtime.client.deadlines import Deadlines
from mcpgen.runtime.client.dispatcher import MessageDispatcher
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestLost, TransportClosed
from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent, auto_reset_event_factory, same_loop_check
from mcpgen.runtime.transports.event_loops import next_turn
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from contextlib import AbstractContextManager

    from mcpgen.runtime.client.client_features import ClientFeatures, NotificationHandler
    from mcpgen.runtime.client.incoming_requests import IncomingRequest, IncomingRequests
    from mcpgen.runtime.client.pending_request import PendingRequest
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.capabilities import ServerPeer
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
    from mcpgen.runtime.transports.interfaces import Channel
    from mcpgen.runtime.transports.spawner import Spawner

__all__ = ["ClientConnection", "current_connection"]

_LOG = traceback_logger("mcpgen.session")

# The notifications that are handled in one turn of the event loop: a hundred small ones. One of 14 KB takes up to 60 ms
# to decode, and a thousand of them can wait.
_MAX_TURN_BYTES: Final = 16 * 1024
_NOTIFICATION_BYTES: Final = 128  # what each costs besides its params

# Set in handlers. A handler that closes its own client must not wait for its own end.
current_connection: Final[ContextVar[ClientConnection | None]] = ContextVar("mcpgen.connection", default=None)


class ClientConnection:
    """One connection to one server: a `ClientEndpoint` of its channel, and the `SessionOutput` of its session.

    Attributes:
        session: The state of the connection.
        requests: The open requests of the server.
        deadlines: The timeouts of the client's requests.
        channel: Where messages are written.
        write: Sends a message.
        new_event: Makes the event that a caller waits for.
        runs_here: Returns whether the current event loop is the one that the connection was made in.
    """

    def __init__(  # noqa: PLR0913 (the parts that a connection is made of)
        self,
        features: ClientFeatures,
        limits: ClientLimits,
        channel: Channel,
        spawner: Spawner,
        *,
        make_context: Callable[[ClientConnection, ServerPeer, str], Any],
        reading: ReadingPolicy,
    ) -> None:
        self.channel: Channel = channel
        self.write: Callable[[bytes], None] = channel.write
        self.session: ClientSession = ClientSession(features, limits, self, reading)
        self.deadlines: Deadlines = Deadlines(self.session)
        self.new_event: Callable[[], AutoResetEvent] = auto_reset_event_factory()
        self.runs_here: Callable[[], bool] = same_loop_check()
        self._dispatcher = MessageDispatcher(self.session, self._start_handler)
        self.requests: IncomingRequests = self._dispatcher.requests
        self._spawner = spawner
        self._make_context = make_context
        self._notifications: deque[tuple[NotificationHandler, Raw | UnsetType]] = deque()
        self._notifications_bytes = 0
        self._is_notifying = False
        self._unsent: list[bytes] = []
        self._is_connected = True

    def context(self, method: str) -> Any:
        """Return the context of a handler of *method*."""
        return None if self.session.server is None else self._make_context(self, self.session.server, method)

    # --- as the endpoint of the channel

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Dispatch *frames*."""
        dispatch = self._dispatcher.dispatch
        self._spawner.hold()  # a request gets no response if the notification that cancels it came with it
        try:
            for each in frames:
                try:
                    dispatch(each)
                except Exception:  # noqa: BLE001 (the boundary: one frame must not affect the others)
                    _LOG.exception("processing a message of the server failed; the message is dropped")
        finally:
            self._spawner.release()

    def request_lost(self, request_id: RequestId, failure: Exception) -> None:
        """Fail one request. The connection continues."""
        self.session.request_lost(request_id, failure)

    def awaits(self, request_id: RequestId) -> bool:
        """Return whether a caller waits for the response to a request."""
        return request_id in self.session.pending

    def session_renewed(self) -> None:
        """Forget the tools of the server."""
        self.session.tools_changed()

    def paused(self) -> AbstractContextManager[None]:
        """Stop the clocks of the client's requests within the block."""
        return self.deadlines.paused()

    async def ready(self) -> None:
        """Return at once: `ClientLimits` bound what is kept, and the rest is dropped."""

    def end_of_input(self) -> None:
        """Do nothing: `end` is called with the reason."""

    async def wait_finished(self) -> None:
        """Return at once: after the end, the server reads no response of a handler."""

    def close(self) -> None:
        """End the connection: the client was closed."""
        self.end(TransportClosed("the client was closed"))

    def end(self, failure: Exception) -> None:
        """Fail all pending requests with *failure*, and cancel the handlers of the server's requests."""
        if self.session.failure is None:
            self.session.fail(failure)
            self.requests.cancel_all()

    def disconnect(self, reason: str) -> None:
        """Fail all pending requests: the server is started again. Keep what is written until `reconnect`."""
        self.write = self._unsent.append
        self._is_connected = False
        for each in list(self.session.pending):
            self.session.request_lost(each, RequestLost(reason))
        self.requests.cancel_all()

    def reconnect(self, channel: Channel, spawner: Spawner) -> None:
        """Use *channel*, and write what was kept."""
        self.channel, self.write, self._spawner = channel, channel.write, spawner
        self._is_connected = True
        unsent, self._unsent = self._unsent, []
        for each in unsent:
            channel.write(each)
        self._start_notifying()

    # --- as the output of the session

    @property
    def is_full(self) -> bool:
        """Whether the server reads too slowly."""
        return self.channel.is_full

    def revision_agreed(self) -> None:
        """Handle the notifications that came before the revision was agreed."""
        self._dispatcher.replay_early_notifications()

    def extend_deadline(self, request: PendingRequest) -> None:
        """Give *request* its full time again."""
        self.deadlines.extend(request)

    def queue_notification(self, handler: NotificationHandler, params: Raw | UnsetType) -> None:
        """Run the handler of a notification, after those of the earlier notifications."""
        limits = self.session.limits
        size = _size(params)
        if (
            len(self._notifications) >= limits.max_notices
            or self._notifications_bytes + size > limits.max_notices_bytes
        ):
            self.session.warn(
                "a notification is dropped: with it, too many notifications or bytes would wait for their handlers "
                "(max_notices, max_notices_bytes)"
            )
            return
        if not isinstance(params, UnsetType):
            params = Raw(bytes(params))  # a copy: the view would keep the whole frame alive
        self._notifications.append((handler, params))
        self._notifications_bytes += size
        self._start_notifying()

    def start(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run *function* beside the handlers. Do nothing while the server is started again."""
        if self._is_connected:
            self._spawner.start(function)

    # --- handlers

    def _start_handler(self, request: IncomingRequest) -> None:
        self.deadlines.pause()
        request.task = self._spawner.start(self._run_handler, request)

    async def _run_handler(self, request: IncomingRequest) -> None:
        current_connection.set(self)
        try:
            result = await request.handler.call(request.params, self.context(request.method))
            self.requests.complete(request, result)
        except BaseException as failure:
            # The boundary: a failure becomes an error response, also a cancellation that is not ours.
            self.requests.fail(request, failure)
            if not isinstance(failure, Exception):
                raise
        finally:
            self.requests.running -= 1
            self.requests.held_bytes -= request.size
            self.deadlines.resume()

    def _start_notifying(self) -> None:
        """Run the handlers of what waits, unless they run. While the server is started again, `reconnect` will."""
        if self._notifications and not self._is_notifying and self._is_connected:
            self._is_notifying = True
            self._spawner.start(self._run_notification_handlers)

    async def _run_notification_handlers(self) -> None:
        """Run the handlers one after the other: the notifications of a server have an order."""
        current_connection.set(self)
        try:
            handled = 0
            while self._notifications:
                handler, params = self._notifications.popleft()
                size = _size(params)
                self._notifications_bytes -= size
                await self._run_notification_handler(handler, params)
                handled += _NOTIFICATION_BYTES + size
                if handled > _MAX_TURN_BYTES:  # the handlers may not have waited for anything
                    handled = 0
                    await next_turn()
        finally:
            self._is_notifying = False
            if self.session.failure is None:
                self._start_notifying()  # a handler raised a BaseException

    async def _run_notification_handler(self, handler: NotificationHandler, params: Raw | UnsetType) -> None:
        method, session = handler.codec.method, self.session
        try:
            value = handler.codec.params(params)
        except (InvalidPayload, AdaptationError) as error:
            normalized = session.reading.payload(session.revision, method, "notification", "server", params)
            if normalized is not None:
                await self._run_notification_handler(handler, normalized)
                return
            self.session.warn("the notification %s is ignored: %s", method, error)
            return
        try:
            await handler.call(value, self.context(method))
        except Exception:  # noqa: BLE001 (the boundary: a notification has no response)
            _LOG.exception("the handler of %s failed", method)


def _size(params: Raw | UnsetType) -> int:
    return 0 if isinstance(params, UnsetType) else len(memoryview(params))
