"""Delivery of a change to all connections of a server, to some of them in each turn of the event loop.

Theory of operation. A change costs about 10 µs for each session and stream that it is sent to, and one client can open
thousands of them. So a turn of the event loop sends changes to a limited number of connections, and other work runs
between two turns. The clients whose calls have made the changes take turns, and each has its changes sent one after
another. If a client makes a change while an equal one of it waits, both are sent once, as the later one.

The connections of one server may belong to several event loops, since each blocking client has one. Each loop sends a
change to its own connections. A caller can wait for those of its own loop, but the delivery does not stop if the caller
is cancelled: other clients need the change.

No caller here waits for the changes of other workers. So their number is limited: at the limit, the client that has the
most of them loses its oldest one.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.lowlevel

from mcpgen.runtime.server.functions.worker_threads import CALLER
from mcpgen.runtime.transports.event_loops import call_soon, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.server.session_output import SessionOutput
    from mcpgen.runtime.transports.event_loops import EventLoop

    SendChange: TypeAlias = Callable[[SessionOutput], int | None]  # returns the bytes that it has sent, if many

__all__ = ["MAX_OF_WORKERS", "MAX_PER_TURN", "ChangeDelivery"]

# How many connections one turn of the event loop sends changes to.
MAX_PER_TURN: Final = 512

# How many bytes count as one more connection: a turn sends 256 KiB, and one message more.
_CONNECTION_BYTES: Final = 512

# How many changes of other workers wait. Each has a URI, of some kilobytes at most.
MAX_OF_WORKERS: Final = 1000

# With fewer connections than this, a change is sent at once.
_FEW: Final = 32

_LOG = logging.getLogger("mcpgen.cluster")


class _Change:
    """A change that waits.

    Args:
        send: Sends it to one connection.
        begin: Called before it is sent to the first one.

    Attributes:
        connections: Those that have not got it; None before it has begun.
        failure: Why it was not sent to all of them.
        ended: Set when it is sent.
    """

    __slots__ = ("begin", "connections", "ended", "failure", "send")

    def __init__(self, send: SendChange, begin: Callable[[], object] | None) -> None:
        self.send = send
        self.begin = begin
        self.connections: deque[SessionOutput] | None = None
        self.failure: Exception | None = None
        self.ended = anyio.Event()


class _Owner:
    """The changes that one owner has made: the one that is being sent, and those that wait by their keys."""

    __slots__ = ("current", "waiting")

    def __init__(self) -> None:
        self.current: _Change | None = None
        self.waiting: dict[object, _Change] = {}


class ChangeDelivery:
    """Sends changes to all connections of a server.

    Args:
        connections: The connections, each with its event loop.
    """

    def __init__(self, connections: Mapping[SessionOutput, EventLoop]) -> None:
        self._connections = connections
        # Of each event loop: who has made changes, and whether another worker has sent them.
        self._owners: dict[EventLoop, dict[tuple[str, bool], _Owner]] = {}

    async def deliver(self, send: SendChange, key: object, begin: Callable[[], object] | None = None) -> None:
        """Send a change to all connections, and return when those of this event loop have it.

        Args:
            send: Sends it to one connection.
            key: Equal for equal changes.
            begin: Called before it is sent to the first one of this event loop.
        """
        loop, caller = running_loop(), CALLER.get()
        owner = "" if caller is None else caller.owner
        self._deliver_elsewhere(loop, send, key, owner)
        if self._is_now(loop):
            self._send_now(loop, send, begin)
            await anyio.lowlevel.checkpoint()  # so that a loop of changes lets them be written
            return
        change = self._add(loop, _Change(send, begin), key, (owner, False))
        await change.ended.wait()
        if change.failure is not None:
            raise change.failure

    def deliver_soon(self, send: SendChange, key: object, owner: str = "", *, is_of_worker: bool = False) -> None:
        """Send a change to all connections, without letting other tasks run.

        Args:
            send: Sends it to one connection.
            key: Equal for equal changes.
            owner: Who has made it.
            is_of_worker: Whether another worker has sent it.
        """
        here = running_loop()
        self._deliver_elsewhere(here, send, key, owner, is_of_worker=is_of_worker)
        self.deliver_in(here, send, key, owner, is_of_worker=is_of_worker)

    def deliver_in(
        self, loop: EventLoop, send: SendChange, key: object, owner: str = "", *, is_of_worker: bool = False
    ) -> None:
        """Send a change to the connections of *loop*, which runs in this thread; see `deliver_soon`."""
        if self._is_now(loop):
            self._send_now(loop, send, None)
            return
        if is_of_worker:
            self._make_room(loop)
        self._add(loop, _Change(send, None), key, (owner, is_of_worker))

    def _deliver_elsewhere(
        self, here: EventLoop, send: SendChange, key: object, owner: str, *, is_of_worker: bool = False
    ) -> None:
        for loop in set(self._connections.values()):
            if loop is not here:
                call_soon(loop, partial(self.deliver_in, loop, send, key, owner, is_of_worker=is_of_worker))

    def _is_now(self, loop: EventLoop) -> bool:
        return loop is None or (len(self._connections) < _FEW and loop not in self._owners)

    def _send_now(self, loop: EventLoop, send: SendChange, begin: Callable[[], object] | None) -> None:
        if begin is not None:
            begin()
        for each in self._connections_of(loop):
            send(each)

    def _connections_of(self, loop: EventLoop) -> list[SessionOutput]:
        copied = list(self._connections.items())  # other threads may add some
        return [each for each, its_loop in copied if its_loop is loop]

    def _make_room(self, loop: EventLoop) -> None:
        found = [each.waiting for (_, is_of_worker), each in self._owners.get(loop, {}).items() if is_of_worker]
        if sum(map(len, found)) >= MAX_OF_WORKERS:
            most = max(found, key=len)
            key = next(iter(most))
            del most[key]
            reason = "another worker reported it, and too many such changes wait"
            _LOG.debug("the change %r is not sent to clients: %s", key, reason)

    def _add(self, loop: EventLoop, change: _Change, key: object, whose: tuple[str, bool]) -> _Change:
        """Let *change* wait, and return the change that will have been sent."""
        owners = self._owners.get(loop)
        if owners is None:
            owners = self._owners[loop] = {}
            call_soon(loop, partial(self._send_some, loop))
        waiting = owners.setdefault(whose, _Owner()).waiting
        found = waiting.setdefault(key, change)
        found.send = change.send
        return found

    def _send_some(self, loop: EventLoop) -> None:
        owners = self._owners[loop]
        room = MAX_PER_TURN
        while owners and room > 0:
            whose = next(iter(owners))
            owner = owners.pop(whose)
            room -= self._send(loop, owner, room)
            if owner.current is not None or owner.waiting:
                owners[whose] = owner  # behind the others
        if owners:
            call_soon(loop, partial(self._send_some, loop))
        else:
            del self._owners[loop]

    def _send(self, loop: EventLoop, owner: _Owner, room: int) -> int:
        """Send the first change of *owner* to at most *room* connections, and return what that counts, or 1."""
        if owner.current is None:
            if not owner.waiting:  # it was dropped
                return 0
            owner.current = owner.waiting.pop(next(iter(owner.waiting)))
        change, sent = owner.current, 0
        try:
            if change.connections is None:
                change.connections = deque(self._connections_of(loop))
                if change.begin is not None:
                    change.begin()
            while change.connections and sent < room:
                connection = change.connections.popleft()
                if connection in self._connections:  # it may have ended
                    sent += 1 + (change.send(connection) or 0) // _CONNECTION_BYTES
        except Exception as error:  # noqa: BLE001 (the caller gets it; other changes are sent)
            change.failure = error
            change.connections = None
        if not change.connections:
            owner.current = None
            change.ended.set()
        return max(1, sent)
