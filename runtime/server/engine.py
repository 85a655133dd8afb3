"""What all connections of one server share: its handlers, its limits, its lifespan, and the requests that are parked.

`mcpgen.runtime.api.server.Server` is the public face of it. Sessions, connections and transports use the engine.
"""

from __future__ import annotations

import logging
import os
import time
from base64 import urlsafe_b64encode
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
from msgspec import structs

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import MAX_RESPONSE_VALUES
from mcpgen.runtime.protocol.argument_checks import check_texts
from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
from mcpgen.runtime.protocol.subscriptions import RESOURCE_UPDATED
from mcpgen.runtime.server.change_delivery import ChangeDelivery
from mcpgen.runtime.server.elicitation_ids import ElicitationIds
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.server.functions.worker_threads import CALLER
from mcpgen.runtime.server.interfaces import NOT_DEFERRED
from mcpgen.runtime.server.ledger import HANDLER_BYTES, Ledger
from mcpgen.runtime.server.list_changes import ListChanges
from mcpgen.runtime.server.parked_requests import ParkedRequests
from mcpgen.runtime.server.request_state import RequestStateSealer
from mcpgen.runtime.transports.event_loops import call_soon, running_loop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from mcpgen.runtime.limits import Limits
    from mcpgen.runtime.protocol.extension_codec import ExtensionNotification
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.handler_table import HandlerTable
    from mcpgen.runtime.server.interfaces import EngineTasks
    from mcpgen.runtime.server.session_output import SessionOutput
    from mcpgen.runtime.transports.event_loops import EventLoop

__all__ = ["ChangeNotifier", "Engine"]

_HANDLERS_LOG: Final = logging.getLogger("mcpgen.handlers")

# 2026-07-28, deprecated: by the method that a handler sends, the feature and what to use instead.
_DEPRECATED: Final = {
    "roots/list": (
        "roots (`Context.roots`)",
        "take paths as arguments of tools, as resource URIs or from the server's configuration",
    ),
    "sampling/createMessage": ("sampling (`Context.sample`)", "call the API of a model provider"),
    "notifications/message": ("log entries to clients (`Context.log`)", "log to standard error, or use OpenTelemetry"),
}


class ChangeNotifier:
    """Notifies clients of changes: a base of `Server` and `Context`."""

    __slots__ = ()
    _engine: Engine

    async def resource_updated(self, uri: str) -> None:
        """Report a change of the resource *uri* to every client that is subscribed to the resource."""
        check_texts(uri=uri)
        await self._engine.notify_change(RESOURCE_UPDATED, uri)

    async def tools_changed(self) -> None:
        """Report a change of the list of tools to every client that is subscribed to the list."""
        await self._engine.notify_change("notifications/tools/list_changed")

    async def prompts_changed(self) -> None:
        """Report a change of the list of prompts to every client that is subscribed to the list."""
        await self._engine.notify_change("notifications/prompts/list_changed")

    async def resources_changed(self) -> None:
        """Report a change of the list of resources to every client that is subscribed to the list."""
        await self._engine.notify_change("notifications/resources/list_changed")


class Engine:
    """What all connections of one server share.

    Args:
        name: The server's name.
        handlers: Its methods.
        limits: Bounds on what peers may ask for.
        lifespan: Returns the context manager that is open while the server runs; None if there is none.
        state_keys: Seal the states that stateless clients send back; None for a key of this process.
        state_audience: Servers with another audience refuse these states, even if they have the same keys; None for the
            name of the server.
        tasks: Runs tool calls as tasks; None if the server has none.
        is_strict: Whether nothing is read that the specification does not allow.

    Attributes:
        small_bytes: No part of a request that costs this much is too large.
        reading: How the messages of clients are read.
        state: The value that the lifespan yielded, while it is open.
        ledger: Counts the bytes that the server keeps for its clients.
        turns: Shares the time of the event loop among the clients of HTTP.
        connections: The connections that get notifications of changes, each with its event loop.
        parked: The exchanges that wait for a stateless client's retry.
        sealer: Seals the states of those.
        elicitation_ids: Which clients got which id of an elicitation by URL.
        process: Names this engine in them.
        view_name: Tells the view of a server that this engine serves from other views; empty for the server itself.
        is_expiring: Whether a connection already expires parked requests and tasks.
        expiry_timer: What ends its wait for the next expiry, when the wait ends by itself, and its event loop; None
            before the first wait.
        on_change: Tells the other workers of a change, and of whose call has made it; None if there are none.
        wait_for_threads: Waits a moment for plain functions at the end, while the lifespan is open; None for no wait.
    """

    def __init__(  # noqa: PLR0913 (the parts that a server is made of)
        self,
        name: str,
        handlers: HandlerTable,
        *,
        limits: Limits,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        state_keys: Sequence[bytes] | None = None,
        state_audience: str | None = None,
        tasks: EngineTasks | None = None,
        is_strict: bool = False,
    ) -> None:
        self.name: str = name
        self.handlers: HandlerTable = handlers
        self.limits: Limits = limits
        self.ledger: Ledger = Ledger()
        self.turns: FairTurns = FairTurns()
        self.tasks: EngineTasks | None = tasks
        limits_of_parts = (limits.max_id_chars, limits.max_meta_bytes, limits.max_completion_bytes, MAX_RESPONSE_VALUES)
        self.small_bytes: int = HANDLER_BYTES + min(limits_of_parts)
        self.reading: ReadingPolicy = ReadingPolicy("a client", is_strict=is_strict)
        self.sealer: RequestStateSealer = RequestStateSealer(
            state_keys,
            audience=name if state_audience is None else state_audience,
            lifetime_seconds=limits.waiting_seconds,
            clock=time.time,
        )
        self.process: str = self.new_token()
        self.clock: Callable[[], float] = time.monotonic
        self.parked: ParkedRequests = ParkedRequests(limits, self.clock, self.ledger)
        self.elicitation_ids: ElicitationIds = ElicitationIds()
        self.state: Any = None
        self.view_name: str = ""
        self._viewed: Engine | None = None
        self._debug: bool | None = None
        self._deprecations: set[str] = set()
        self.is_expiring: bool = False
        self.expiry_timer: tuple[anyio.Event, float, EventLoop] | None = None
        self.on_change: Callable[[str, str | None, str], object] | None = None
        self.wait_for_threads: Callable[[], Awaitable[None]] | None = None
        self.connections: dict[SessionOutput, EventLoop] = {}
        self._changes = ChangeDelivery(self.connections)
        self._list_changes = ListChanges(self.connections, self._changes)
        self._lifespan = lifespan
        self._running = 0
        self._principals = 0
        self._stack = AsyncExitStack()
        self._opened = anyio.Event()

    @property
    def debug(self) -> bool:
        """Whether errors tell clients which exception a handler raised; never, unless the author asks for it.

        A view follows its server, unless it was set for the view.
        """
        if self._debug is not None:
            return self._debug
        return self._viewed is not None and self._viewed.debug

    @debug.setter
    def debug(self, value: bool) -> None:
        self._debug = value

    def warn_deprecated(self, method: str) -> None:
        """Warn the author once, in debug mode, if the newest revision deprecates the feature of *method*.

        Spec:
            2026-07-28, client/roots, client/sampling, server/utilities/logging (SEP-2577; SEP-2596, "Deprecated").
        """
        if self.debug and method in _DEPRECATED and method not in self._deprecations:
            self._deprecations.add(method)
            feature, replacement = _DEPRECATED[method]
            _HANDLERS_LOG.warning("2026-07-28 deprecates %s; %s", feature, replacement)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep the lifespan open within the block; all connections of the process share it."""
        self._running += 1
        try:
            if self._running > 1:
                await self._opened.wait()  # the first to enter may still be opening it
            else:
                await self._open()
            if self.tasks is not None:
                await self.tasks.open(self)
            yield
        finally:
            self._running -= 1
            if not self._running:
                if self.tasks is not None:
                    await self.tasks.close()
                if self.wait_for_threads is not None:
                    await self.wait_for_threads()
                self.state = None
                await self._stack.aclose()

    async def _open(self) -> None:
        opened = self._opened = anyio.Event()
        try:
            if self.debug:
                # A server in production has no such thread, and need not import its module.
                from mcpgen.runtime.server.loop_watchdog import watching  # noqa: PLC0415

                self._stack.enter_context(watching())
            if self._lifespan is not None:
                self.state = await self._enter(self._lifespan())
        finally:
            opened.set()

    async def _enter(self, lifespan: AbstractAsyncContextManager[Any]) -> Any:
        name = getattr(getattr(lifespan, "func", None), "__name__", "")  # `contextlib` deletes it
        try:
            return await self._stack.enter_async_context(lifespan)
        except RuntimeError as error:
            if str(error) != "generator didn't yield":  # as `contextlib` says it, without a name
                raise
            raise UsageError(f"the lifespan {name}() did not yield; yield one value") from error

    def add(self, connection: SessionOutput) -> None:
        """Send changes to *connection* from now on, until it is removed."""
        self.connections[connection] = running_loop()

    def remove(self, connection: SessionOutput) -> None:
        """Forget a connection."""
        self.connections.pop(connection, None)

    def new_principal(self) -> str:
        """Return a label for the client of a new connection."""
        self._principals += 1
        return f"connection {self._principals} of {self.process}"

    def new_token(self) -> str:
        """Return a text that cannot be guessed."""
        return urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()  # `secrets` takes a millisecond to import

    def set_expiry_timer(self, seconds: float) -> anyio.Event:
        """Return what ends a wait of *seconds* earlier, if a task is created that expires before its end."""
        earlier = anyio.Event()
        self.expiry_timer = earlier, self.clock() + seconds, running_loop()
        return earlier

    def expire_within(self, seconds: float) -> None:
        """End the wait for the next expiry if it is longer than *seconds*."""
        if self.expiry_timer is not None:
            earlier, end, loop = self.expiry_timer
            if self.clock() + seconds < end:
                call_soon(loop, earlier.set)

    def expire_elsewhere(self, connection: SessionOutput) -> None:
        """Let another connection expire parked requests and tasks, since *connection* ends."""
        for each in self.connections:
            if each is not connection:
                each.expire_later()
                return

    def defer(self, session: Any, exchange: Exchange) -> bool:
        """Make a task of a call whose function runs already; return whether the call is a task.

        Raises:
            RequestError: There is no room for another task.
            UsageError: The call is not of a tool that may be a task.
        """
        if self.tasks is None:
            raise UsageError(NOT_DEFERRED)
        return self.tasks.defer(session, exchange)

    def functions_changed(self, notifications: tuple[str, ...]) -> None:
        """Read the handlers again, and send *notifications* soon to the clients that are subscribed to them.

        Functions may change in any thread.
        """
        self.handlers.refresh()
        self._list_changes.announce(notifications)

    def view(self, handlers: object, label: str) -> Engine:
        """Return an engine that serves other *handlers* under the same name, while the same lifespan is open.

        Args:
            handlers: Of the same class.
            label: What tells it from other views. The request states and tasks of one are not valid in another.
        """
        view = Engine(
            self.name,
            self.handlers.over(handlers),
            limits=self.limits,
            lifespan=self._shared_lifespan,
            is_strict=self.reading.is_strict,
        )
        view.view_name = f"{self.view_name}\n{label}"
        view._viewed = self
        view.sealer = self.sealer.for_another_audience(label)
        view.elicitation_ids = self.elicitation_ids.of_view()
        return view

    @asynccontextmanager
    async def _shared_lifespan(self) -> AsyncGenerator[Any]:
        async with self.running():
            yield self.state

    async def notify_extension(self, notification: ExtensionNotification) -> None:
        """Send *notification* to every client that is subscribed to it.

        Over stdio and in memory, wait while the only client does not read.

        Raises:
            UsageError: The server is one of several workers.
        """
        if self.on_change is not None:
            raise UsageError("notify() does not reach the clients of other workers; serve without `cluster` (--redis)")
        output = next(iter(self.connections), None)
        if output is not None and output.is_only_client and self.connections == {output: running_loop()}:
            await output.deliver_extension(notification)
            await anyio.lowlevel.checkpoint()  # so that a loop of notifications lets them be written
        else:
            await self._changes.deliver(lambda each: each.notify_extension(notification), notification)

    def send_extension(self, notification: ExtensionNotification, key: object, owner: str) -> None:
        """Send *notification* soon to the subscribed clients of this process.

        Args:
            notification: The notification. If one with this *key* waits, this one takes its place.
            key: What it is about.
            owner: Whose notification it is: the clients take turns.
        """
        sent = 0

        def encode(meta: Mapping[str, object] | None) -> bytes:
            nonlocal sent
            message = notification.encode(meta)
            sent += len(message)
            return message

        counted = structs.replace(notification, encode=encode)

        def send(output: SessionOutput) -> int:
            nonlocal sent
            sent = 0
            output.notify_extension(counted)
            return sent

        self._changes.deliver_soon(send, key, owner)

    async def notify_change(self, method: str, uri: str | None = None) -> None:
        """Send the notification *method* to every client that is subscribed to it."""
        caller = CALLER.get()
        owner = "" if caller is None else caller.owner

        def tell_workers() -> None:
            if self.on_change is not None:
                self.on_change(method, uri, owner)

        self._list_changes.forget(method)
        await self._changes.deliver(partial(_notify_change, method, uri), (method, uri), tell_workers)

    async def notify_all_changes(self) -> None:
        """Notify the clients of this process of all that they are subscribed to, as if all had changed.

        Changes of which other workers have told may have been lost.
        """
        for each in list(self.connections):
            if each.is_listening:
                each.notify_all_changes()
                await anyio.lowlevel.checkpoint()  # each can have a thousand subscriptions

    def deliver_change(self, method: str, uri: str | None, owner: str) -> None:
        """Send the notification *method* soon to the subscribed clients of this process.

        Another worker has told of the change, which a call of *owner* has made.
        """
        self._list_changes.forget(method)
        send = partial(_notify_change, method, uri)
        self._changes.deliver_soon(send, (method, uri), owner, is_of_worker=True)


def _notify_change(method: str, uri: str | None, connection: SessionOutput) -> None:
    connection.notify_change(method, uri)
