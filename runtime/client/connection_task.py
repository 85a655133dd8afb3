"""The task that a client's conversation lives in, from the start of its server to its end.

Theory of operation. What a conversation needs (a process, a task that reads, handlers that run) has to be opened and
closed by one task. That is not the caller's: whoever opened a client may close it from another task, in any order with
others, or be cancelled in between. So a task of its own, the owner, runs all of it, and the others wait for what it
says or tell it to end. Where the event loop ends without anybody having closed the client, it cancels the owner, which
then ends its server all the same.

What goes wrong is kept and raised, plain, from whatever is called next.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import AsyncExitStack
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import Raw, UnsetType

from mcpgen.generated import registry
from mcpgen.runtime.client import incoming_requests
from mcpgen.runtime.client.client_session import ClientSession
from mcpgen.runtime.client.deadlines import Deadlines
from mcpgen.runtime.client.negotiate import RestartServer, first_plan, negotiate
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestTimedOut, TransportClosed, UsageError
from mcpgen.runtime.transports.auto_reset_event import (
    OTHER_LOOP,
    AutoResetEvent,
    auto_reset_event_factory,
    same_loop_check,
)
from mcpgen.runtime.transports.spawner import open_group, open_spawner, start_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.client.client_features import ClientFeatures, NotificationHandler
    from mcpgen.runtime.client.era_cache import EraCache
    from mcpgen.runtime.client.incoming_requests import IncomingRequest
    from mcpgen.runtime.client.negotiate import Plan
    from mcpgen.runtime.client.pending_request import PendingRequest
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.capabilities import ServerPeer
    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import Channel, Transport
    from mcpgen.runtime.transports.spawner import Handle, Spawner

__all__ = ["Conversation", "ConnectionTask"]

_LOG = logging.getLogger("mcpgen.session")

# Set in handlers: one that closes its own client would wait for its own end.
_RUNS_IN: ContextVar[Conversation | None] = ContextVar("mcpgen.conversation", default=None)


class Conversation:
    """One conversation with one server: the endpoint of its transport, and the sink of its session.

    Attributes:
        session: What was said, and what may be.
        deadlines: Fails what takes too long.
        writer: Where messages go.
        is_here: Tells whether the event loop that runs is ours.
    """

    def __init__(
        self,
        offering: ClientFeatures,
        limits: ClientLimits,
        channel: Channel,
        spawner: Spawner,
        context: Callable[[ServerPeer, str], Any],
    ) -> None:
        self.writer: Channel = channel
        self.session: ClientSession = ClientSession(offering, limits, self)
        self.deadlines: Deadlines = Deadlines(self.session)
        self._spawner = spawner
        self.waker: Callable[[], AutoResetEvent] = auto_reset_event_factory()
        self.is_here: Callable[[], bool] = same_loop_check()
        self._make_context = context
        self._notices: deque[tuple[NotificationHandler, Raw | UnsetType]] = deque()
        self._notices_bytes = 0
        self._is_telling = False

    def context(self, method: str) -> Any:
        """Return what a handler of *method* is told beside the params."""
        return None if self.session.server is None else self._make_context(self.session.server, method)

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        """Take what came; handlers are started, and whoever waits for it is woken."""
        receive = self.session.receive
        self._spawner.hold()  # a request is not answered if the notification that cancels it came with it
        try:
            for each in frames:
                try:
                    receive(each)
                except Exception:  # noqa: BLE001 (the boundary: one frame must not cost us the others)
                    _LOG.exception("a message could not be handled")
        finally:
            self._spawner.release()

    def lost(self, request_id: RequestId, failure: Exception) -> None:
        """Tell whoever waits for an answer that there will be none."""
        self.session.lost(request_id, failure)

    def end_of_input(self) -> None:
        """Take it that nothing more will come."""

    async def finished(self) -> None:
        """Return: there is no handler whose answer anybody would still read."""

    def close(self) -> None:
        """Take it that the conversation is over."""
        self.session.close(TransportClosed("the client was closed"))

    @property
    def is_full(self) -> bool:
        """Whether the server reads too slowly."""
        return self.writer.is_full

    def send(self, message: bytes) -> None:
        """Write *message*."""
        self.writer.write(message)

    def start(self, asked: IncomingRequest) -> None:
        """Run the handler of *asked*."""
        self.deadlines.pause()
        asked.handle = self._spawner.start(self._answer, asked)

    def moved(self, call: PendingRequest) -> None:
        """Give *call* its time anew."""
        self.deadlines.extend(call)

    def tell(self, hearing: NotificationHandler, params: Raw | UnsetType) -> None:
        """Run the handler of a notification, after those of the notifications before it."""
        limits = self.session.limits
        size = 0 if isinstance(params, UnsetType) else len(memoryview(params))
        if len(self._notices) >= limits.max_notices or self._notices_bytes + size > limits.max_notices_bytes:
            self.session.complain("a notification is dropped: too many wait for their handlers")
            return
        if not isinstance(params, UnsetType):
            params = Raw(bytes(params))  # the view that it is would keep all of its frame
        self._notices.append((hearing, params))
        self._notices_bytes += size
        if not self._is_telling:
            self._is_telling = True
            self._spawner.start(self._tell_all)

    async def _answer(self, asked: IncomingRequest) -> None:
        _RUNS_IN.set(self)
        try:
            result = await asked.handling.call(asked.params, self.context(asked.method))
            incoming_requests.complete(self.session, asked, result)
        except BaseException as failure:
            # The boundary: a handler's failure becomes an error response, also if it was cancelled, but not by us.
            incoming_requests.fail(self.session, asked, failure)
            if not isinstance(failure, Exception):
                raise
        finally:
            self.session.running -= 1
            self.deadlines.resume()

    async def _tell_all(self) -> None:
        """Run the handlers of notifications one after the other: what a server tells has an order."""
        _RUNS_IN.set(self)
        try:
            while self._notices:
                hearing, params = self._notices.popleft()
                self._notices_bytes -= 0 if isinstance(params, UnsetType) else len(memoryview(params))
                await self._tell(hearing, params)
        finally:
            self._is_telling = False
            if self._notices and self.session.failure is None:  # a handler raised what is no Exception
                self._is_telling = True
                self._spawner.start(self._tell_all)

    async def _tell(self, hearing: NotificationHandler, params: Raw | UnsetType) -> None:
        method = hearing.codec.method
        try:
            value = hearing.codec.incoming(params)
        except (InvalidPayload, AdaptationError) as error:
            self.session.complain("the notification %s is ignored: %s", method, error)
            return
        try:
            await hearing.call(value, self.context(method))
        except Exception:  # noqa: BLE001 (the boundary: nobody waits for an answer)
            _LOG.exception("the handler of %s failed", method)


class ConnectionTask:
    """Runs the conversation of one client.

    Args:
        transport: How its server is reached.
        offering: What the client offers.
        offered: The revisions that it would speak, oldest first.
        limits: Its bounds.
        verdicts: What is known of servers.
        context: Makes what a handler is told beside the params.

    Attributes:
        client: The client, once there is one.
        conversation: Once it is agreed what is spoken.
    """

    def __init__(  # noqa: PLR0913 (the parts that a client is put together from)
        self,
        transport: Transport,
        offering: ClientFeatures,
        *,
        offered: Sequence[str],
        limits: ClientLimits,
        verdicts: EraCache,
        context: Callable[[ConnectionTask, ServerPeer, str], Any],
    ) -> None:
        self.client: Any = None
        self.conversation: Conversation | None = None
        self._transport = transport
        self._offering = offering
        self._offered = offered
        self._limits = limits
        self._verdicts = verdicts
        self._context = partial(context, self)
        self._failure: Exception | None = None
        self._handle: Handle | None = None
        self._is_here: Callable[[], bool] | None = None
        self._closing = anyio.Event()
        self._ready = anyio.Event()
        self._over = anyio.Event()

    async def start(self) -> Conversation:
        """Start the owner, and return when it is agreed with the server what is spoken.

        Raises:
            McpgenError: That could not be done; nothing is left behind.
        """
        self._is_here = same_loop_check()
        self._handle = start_alone(self._run, self._end)
        try:
            await self._ready.wait()
        except BaseException:
            await self.close()
            raise
        if self.conversation is None:
            await self.close()
            raise self._failure or TransportClosed("the client was closed before it was connected")
        return self.conversation

    async def close(self) -> None:
        """End the conversation, and return when nothing is left of it; a handler of it is cancelled meanwhile."""
        if self._over.is_set():
            return
        if self._is_here is not None and not self._is_here():
            raise UsageError(OTHER_LOOP)
        self._closing.set()
        if self.conversation is not None and _RUNS_IN.get() is self.conversation:
            await self._over.wait()
        elif self._handle is not None:
            with anyio.CancelScope(shield=True):  # whoever is cancelled wants it to end all the more; it is bounded
                await self._over.wait()

    async def _run(self) -> None:
        try:
            await self._converse()
        except Exception as failure:  # noqa: BLE001 (raised from whatever waits for it, in the task that waits)
            self._failure = failure

    def _end(self) -> None:
        self._ready.set()
        self._over.set()

    async def _converse(self) -> None:
        identity = self._transport.identity
        plan = first_plan(self._offered, self._verdicts.of(identity))
        tried: set[Plan] = set()
        until = anyio.current_time() + self._limits.connect_seconds
        while True:
            tried.add(plan)
            try:
                await self._try(plan, until)
            except RestartServer as next_step:
                self._verdicts.forget(identity)
                if next_step.plan in tried or self._closing.is_set():
                    raise next_step.reason from None
                plan = next_step.plan
            except Exception:  # raised again: only what was known of the server, which may be why, is forgotten
                if self.conversation is None:
                    self._verdicts.forget(identity)
                raise
            else:
                return

    async def _try(self, plan: Plan, until: float) -> None:
        """Hold one conversation, to its end."""
        async with AsyncExitStack() as stack:
            channel = await stack.enter_async_context(self._transport.open(self._limits))
            spawner = await stack.enter_async_context(open_spawner())
            group = await stack.enter_async_context(open_group())  # of what is no handler
            made = Conversation(self._offering, self._limits, channel, spawner, self._context)
            stack.callback(made.close)
            over = anyio.Event()
            group.start_soon(self._read, channel, made, over)
            with anyio.CancelScope() as scope:
                group.start_soon(_when, self._closing, scope)
                with anyio.CancelScope(deadline=until) as limit:
                    await negotiate(made.session, self._offered, plan)
                if limit.cancelled_caught:
                    raise RequestTimedOut("initialize", self._limits.connect_seconds, self._transport.description)
            if scope.cancelled_caught or made.session.server is None:
                return
            if len({registry.revision(each).era for each in self._offered}) > 1:  # or it had no choice
                self._verdicts.remember(self._transport.identity, made.session.server.era)
            group.start_soon(made.deadlines.run)
            self.conversation = made
            self._ready.set()
            with anyio.CancelScope() as scope:
                group.start_soon(_when, over, scope)
                await self._closing.wait()

    async def _read(self, channel: Channel, made: Conversation, over: anyio.Event) -> None:
        try:
            await channel.run(made)
            made.session.close(await channel.ended())
        except Exception as failure:  # noqa: BLE001 (the boundary: whoever waits for an answer has to be told)
            _LOG.exception("the transport %s failed", self._transport.description)
            made.session.close(TransportClosed(f"the transport failed: {failure!r}"))
        finally:
            over.set()


async def _when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
