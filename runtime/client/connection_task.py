"""The task that owns a connection, from the start of the server to its end.

Theory of operation. The parts of a connection (a process, a task that reads, handlers) must be opened and closed in one
task. That cannot be the caller's task: the caller may close the client from another task, close clients in any order,
or be cancelled in between. So a task of its own, the `ConnectionTask`, runs the connection. Callers wait for it, or
tell it to close. If the event loop ends before the client is closed, it cancels the task, which then ends its server.

An error is stored, and raised from the next call, without an exception group around it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import UNSET

from mcpgen.generated import registry
from mcpgen.runtime.client.connection import ClientConnection, current_connection
from mcpgen.runtime.client.era_negotiation import RestartServer, negotiate
from mcpgen.runtime.errors import McpgenError, RequestTimedOut, TransportClosed, UsageError, seconds_text
from mcpgen.runtime.transports.auto_reset_event import OTHER_LOOP, same_loop_check
from mcpgen.runtime.transports.errors import ServerExited
from mcpgen.runtime.transports.spawner import open_group, open_spawner, start_alone
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.client.client_features import ClientFeatures
    from mcpgen.runtime.client.deadlines import Deadlines
    from mcpgen.runtime.client.engine import ClientEngine
    from mcpgen.runtime.client.era_cache import Era, EraCache, Plan
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.capabilities import ServerPeer
    from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
    from mcpgen.runtime.transports.interfaces import Channel, Transport
    from mcpgen.runtime.transports.spawner import Group, Spawner, StartedFunction

__all__ = ["SLOW_START", "ConnectionTask", "offered_revisions"]

_LOG = traceback_logger("mcpgen.session")
_CLIENT_LOG = traceback_logger("mcpgen.client")

# A user who waits this long is told how to wait less.
_HINT_SECONDS: Final = 2.0
SLOW_START: Final = (
    "the server has not answered for %g seconds. A possible reason: the client asks first whether the server needs "
    "`initialize`, and some older servers do not answer this question. If you know the revision of the server, name "
    "it: `revisions=['2025-11-25']`"
)
"""The warning about a server that is slow to start. The commands show another text in its place."""


offered_revisions: Final[ContextVar[Sequence[str]]] = ContextVar("mcpgen.offered_revisions", default=())
"""The revisions that the client of the connection which is being opened can speak; empty if they are not known."""


class ConnectionTask:
    """Runs the connection of one client.

    Args:
        transport: How the server is reached.
        features: What the client offers to the server.
        offered: The revisions that the client can speak, oldest first.
        limits: The client's limits.
        eras: The known eras of servers.
        reading: How the messages of the server are read.
        make_engine: Makes the engine of a connection whose revision is agreed, with its client.
        make_context: Makes the context of a handler.
        ping_seconds: How often a server of a handshake revision gets a `ping`; None for never.
        max_restarts: How often the process of a stateless server is started again after it has exited.

    Attributes:
        connection: The connection, once a revision is agreed.
        description: The name of the server in messages.
    """

    def __init__(  # noqa: PLR0913 (the parts that a client is made of)
        self,
        transport: Transport,
        features: ClientFeatures,
        *,
        offered: Sequence[str],
        limits: ClientLimits,
        eras: EraCache,
        reading: ReadingPolicy,
        make_engine: Callable[[ConnectionTask, ClientConnection], ClientEngine],
        make_context: Callable[[ConnectionTask, ClientConnection, ServerPeer, str], Any],
        ping_seconds: float | None = None,
        max_restarts: int = 0,
    ) -> None:
        self.connection: ClientConnection | None = None
        self.description: str = transport.description
        self._transport = transport
        self._features = features
        self._offered = offered
        self._limits = limits
        self._eras = eras
        self._reading = reading
        self._make_engine = make_engine
        self._make_context = partial(make_context, self)
        self._ping_seconds = ping_seconds
        self._restarts_left = max_restarts
        self._is_restarting = False
        self._engine: ClientEngine | None = None
        self._failure: Exception | None = None
        self._is_probing = False
        self._seconds_left = limits.connect_seconds
        self._clock: Deadlines | None = None  # of the connection that is being made
        self._probe_stderr = ""  # what a server of a handshake revision printed because of the probe
        self._task: StartedFunction | None = None
        self._runs_here: Callable[[], bool] | None = None
        self._closing = anyio.Event()
        self._ready = anyio.Event()
        self._ended = anyio.Event()

    @property
    def seconds_left(self) -> float:
        """How much is left of `ClientLimits.connect_seconds`, once a revision is agreed."""
        return self._seconds_left

    async def start(self) -> ClientConnection:
        """Start the task, and return the connection when a revision is agreed.

        Raises:
            McpgenError: The connection failed. Nothing is left behind.
        """
        self._runs_here = same_loop_check()
        self._task = start_alone(self._run, self._end)
        try:
            with anyio.move_on_after(_HINT_SECONDS):
                await self._ready.wait()
            is_paused = self._clock is not None and self._clock.is_paused  # a person logs in
            if self._is_probing and not self._ready.is_set() and not is_paused:
                _CLIENT_LOG.warning(SLOW_START, _HINT_SECONDS)
            await self._ready.wait()
        except BaseException:
            await self.close()
            raise
        if self.connection is None:
            await self.close()
            raise self._failure or TransportClosed("the client was closed before it was connected")
        return self.connection

    def engine(self, connection: ClientConnection) -> ClientEngine:
        """Return the engine with its client. A handler may ask for it before `connect` does."""
        if self._engine is None:
            self._engine = self._make_engine(self, connection)
        return self._engine

    async def close(self) -> None:
        """Close the connection, and return when nothing is left of it. A handler that calls this is cancelled."""
        if self._ended.is_set():
            return
        if self._runs_here is not None and not self._runs_here():
            raise UsageError(OTHER_LOOP)
        self._closing.set()
        if self.connection is not None and current_connection.get() is self.connection:
            await self._ended.wait()
        elif self._task is not None:
            with anyio.CancelScope(shield=True):  # a cancelled caller wants the end, too, and it is bounded in time
                await self._ended.wait()

    async def _run(self) -> None:
        try:
            await self._connect()
        except Exception as failure:  # noqa: BLE001 (raised in the task that waits for the connection)
            self._failure = failure

    def _end(self) -> None:
        self._ready.set()
        self._ended.set()

    async def _connect(self) -> None:
        """Connect with one plan after the other, and keep the connection until it is closed."""
        identity = self._transport.identity
        plan = self._eras.first_plan(identity, self._offered)
        self._is_probing = plan == "probe"
        tried: set[Plan] = set()
        self._seconds_left = self._limits.connect_seconds
        while True:
            tried.add(plan)
            try:
                await self._run_connection(plan)
            except RestartServer as restart:
                self._eras.forget(identity)
                if restart.plan in tried or self._closing.is_set():
                    raise restart.reason from None
                plan = restart.plan
            except Exception:  # raised again; but the known era may be the cause
                if self.connection is None:
                    self._eras.forget(identity)
                raise
            else:
                break
        while self._is_restarting and self.connection is not None:
            await self._restart(self.connection)

    async def _open(self, stack: AsyncExitStack) -> tuple[Channel, Spawner, Group]:
        """Open a channel, a spawner for handlers, and a group for all other tasks."""
        offered_revisions.set(self._offered)
        channel = await stack.enter_async_context(self._transport.open(self._limits))
        spawner = await stack.enter_async_context(open_spawner())
        return channel, spawner, await stack.enter_async_context(open_group())

    async def _run_connection(self, plan: Plan) -> None:
        """Open one connection, and keep it until it is closed, or until its server is to be started again."""
        async with AsyncExitStack() as stack:
            channel, spawner, group = await self._open(stack)
            connection = ClientConnection(
                self._features, self._limits, channel, spawner, make_context=self._make_context, reading=self._reading
            )
            stack.callback(self._close_unless_restarting, connection)
            input_ended = anyio.Event()
            group.start_soon(self._read, channel, connection, input_ended)
            era: Era | None = None
            with anyio.CancelScope() as scope:
                group.start_soon(_cancel_on, self._closing, scope)
                with connection.deadlines.limit(self._seconds_left) as limit:
                    self._clock = connection.deadlines
                    try:
                        era = await negotiate(connection.session, self._offered, plan, connection.deadlines)
                    finally:
                        self._is_probing = (
                            False  # also if it failed: then the channel is being closed, which takes time
                        )
                        self._seconds_left = limit.deadline - anyio.current_time()
                if limit.cancelled_caught:
                    raise RequestTimedOut("initialize", self._limits.connect_seconds, self._transport.description)
            server = connection.session.server
            if server is None or era is None:
                return
            if len({registry.revision(each).era for each in self._offered}) > 1:  # otherwise the server had no choice
                self._eras.remember(self._transport.identity, era)
            if plan == "probe" and server.era == "handshake":
                self._probe_stderr = channel.stderr
            group.start_soon(connection.deadlines.run)
            if self._ping_seconds is not None and server.era == "handshake":
                group.start_soon(_send_pings, connection, self._ping_seconds)
            self.connection = connection
            self._ready.set()
            await self._wait_for_end(group, input_ended)

    async def _restart(self, connection: ClientConnection) -> None:
        """Start the server again, and keep its connection until it is closed, or ends once more.

        Spec:
            2026-07-28, basic/transports/stdio, "Unexpected Termination".
        """
        self._is_restarting = False
        async with AsyncExitStack() as stack:
            stack.callback(self._close_unless_restarting, connection)
            try:
                channel, spawner, group = await self._open(stack)
            except UsageError as failure:
                connection.end(TransportClosed(f"the server could not be started again: {failure}"))
                raise
            connection.reconnect(channel, spawner)
            input_ended = anyio.Event()
            group.start_soon(self._read, channel, connection, input_ended)
            group.start_soon(connection.deadlines.run)
            group.start_soon(self.engine(connection).translated.listen_again)
            await self._wait_for_end(group, input_ended)

    async def _wait_for_end(self, group: Group, input_ended: anyio.Event) -> None:
        with anyio.CancelScope() as scope:
            group.start_soon(_cancel_on, input_ended, scope)
            await self._closing.wait()

    def _close_unless_restarting(self, connection: ClientConnection) -> None:
        if not self._is_restarting or self._closing.is_set():
            self._is_restarting = False
            connection.close()

    async def _read(self, channel: Channel, connection: ClientConnection, input_ended: anyio.Event) -> None:
        try:
            await channel.run(connection)
            reason = await channel.close_reason()
            if isinstance(reason, ServerExited):
                reason.stderr = reason.stderr.removeprefix(self._probe_stderr)
                if self._restarts_left and connection.session.is_stateless and self.connection is connection:
                    self._restarts_left -= 1
                    self._is_restarting = True
                    _CLIENT_LOG.warning("the server is started again: %s", reason)
                    connection.disconnect(f"the request was lost, and the server is started again: {reason}")
                    return
            connection.end(reason)
        except Exception as failure:  # noqa: BLE001 (the boundary: pending requests must get an error)
            _LOG.exception("the transport %s failed", self._transport.description)
            connection.end(TransportClosed(f"the transport failed: {failure!r}"))
        finally:
            input_ended.set()


async def _send_pings(connection: ClientConnection, seconds: float) -> None:
    """Send a `ping` every so many *seconds*, and end the connection when one is not answered.

    Spec:
        2024-11-05 to 2025-11-25, basic/utilities/ping, "Implementation Considerations" and "Error Handling".
    """
    session, limit = connection.session, connection.session.limits.call_seconds
    while session.failure is None:
        await anyio.sleep(seconds)
        request = session.send("ping", UNSET)
        connection.deadlines.start(request, limit, limit)
        try:
            await request.wait()  # an error, too, is a sign of life
        except RequestTimedOut:
            failure = TransportClosed(f"the server has not answered a ping within {seconds_text(limit)}")
            _CLIENT_LOG.warning("%s; the connection is closed", failure)
            connection.end(failure)
        except McpgenError as failure:
            _CLIENT_LOG.warning("a ping failed: %s", failure)
        del request  # its response can have megabytes


async def _cancel_on(event: anyio.Event, scope: StartedFunction) -> None:
    await event.wait()
    scope.cancel()
