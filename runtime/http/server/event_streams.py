"""A stream of a session: messages that a client gets over one connection after the other, and none twice.

Theory of operation. A stream outlives its connections. While it has one, a message goes there and into the store; while
it has none, into the store alone. Events are numbered, so that a client which comes back says what it has seen, and
gets the rest: from the store what it missed, then what comes. Before a first event told it a number, there is nothing
that it could come back with.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcpgen.runtime.http.server.event_store import event_id
from mcpgen.runtime.http.sse import encode_event

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.event_store import EventStore
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer

__all__ = ["EventStream"]

_LOG = logging.getLogger("mcpgen.http")


class EventStream:
    """Messages to one client.

    Args:
        name: Names it among all streams of all sessions, and cannot be guessed.
        store: Keeps its messages.
        most_waiting: How many different messages wait before it is opened for the first time.

    Attributes:
        outlet: Its connection; None if it has none.
        is_over: Whether there will be no more messages.
        is_numbered: Whether events were sent, so that a client can come back.
        is_broken: Whether something is not in the store that should be.
    """

    __slots__ = (
        "_most_waiting",
        "_number",
        "_store",
        "_waiting",
        "is_broken",
        "is_numbered",
        "is_over",
        "name",
        "outlet",
    )

    def __init__(
        self, name: str, store: EventStore, outlet: ResponseBuffer | None = None, most_waiting: int = 0
    ) -> None:
        self.name: str = name
        self.outlet: ResponseBuffer | None = outlet
        self.is_over: bool = False
        self.is_numbered: bool = False
        self.is_broken: bool = False
        self._store = store
        self._number = 0
        self._most_waiting = most_waiting
        self._waiting: dict[bytes, None] | None = None

    @property
    def is_reachable(self) -> bool:
        """Whether what is written has a chance to arrive."""
        return not self.is_over and (self._is_connected or self.is_numbered)

    @property
    def _is_connected(self) -> bool:
        """Whether it has a connection that takes messages: a lost one takes none, some turns before it is left."""
        return self.outlet is not None and not self.outlet.is_over

    @property
    def is_full(self) -> bool:
        """Whether the client reads too slowly."""
        return self.outlet is not None and self.outlet.is_full

    def write(self, message: bytes) -> None:
        """Send *message*, now or when the client comes back."""
        if self.is_over:
            return
        if self.outlet is not None and self._is_connected:
            self.outlet.write(message)
        elif self.is_numbered:
            self._event(message)
        elif self._most_waiting:
            waiting = self._waiting = self._waiting or {}
            waiting[message] = None  # that something changed is told once, however often it did
            if len(waiting) > self._most_waiting:
                del waiting[next(iter(waiting))]

    async def drain(self) -> None:
        """Return when the client has read most of it, or is gone."""
        if self.outlet is not None:
            await self.outlet.drain()

    def begin(self, *, retry_ms: int | None) -> None:
        """Make a stream of events of what goes over the connection.

        Args:
            retry_ms: Given: an event without data comes first, which tells the client a number, and when to come back.

        Spec:
            2025-11-25, basic/transports, "Sending Messages to the Server": the server SHOULD immediately send one.
        """
        if self.outlet is None:
            return
        self.is_numbered = True
        first = b"" if retry_ms is None else self._event(b"", retry_ms)
        self.outlet.begin(self._event, first)
        waiting, self._waiting = self._waiting, None
        for each in waiting or ():
            self.outlet.write(each)

    def open(self, outlet: ResponseBuffer, *, retry_ms: int | None) -> None:
        """Go on over *outlet* with whatever is written from now on, and what waited; any other connection is ended."""
        self.detach()
        self.outlet = outlet
        self.begin(retry_ms=retry_ms)

    async def resume(self, outlet: ResponseBuffer, number: int) -> bool:
        """Go on over *outlet*, behind the message of that *number*; return False if what came there is not known.

        Another connection that it had is ended; what has not gone out there goes out here alone.
        """
        missed: list[bytes] = []
        seen = number
        while True:
            if self.is_broken:
                return False
            sent = self._number
            found = await self._store.after(self.name, seen)
            if found is None:
                return False
            missed += [self._rendered(each, message) for each, message in found if message]
            seen = max([seen, *(each for each, _ in found)])
            if seen < sent:
                return False  # the store does not have what it should have
            if seen >= self._number:  # nothing came while the store was asked
                break
        if self.outlet is not None:
            self.outlet.drop()  # it is among what was missed
        self.detach()
        self.outlet = outlet
        outlet.begin(self._event)
        for each in missed:
            outlet.push(each)
        if self.is_over:
            outlet.end()
        return True

    def detach(self, outlet: ResponseBuffer | None = None, *, retry_ms: int | None = None) -> None:
        """Leave the connection; what has been written still goes there.

        Args:
            outlet: Given: only if it is the connection.
            retry_ms: Given: the client is told when to come back.
        """
        if self.outlet is None or outlet not in (None, self.outlet):
            return
        if retry_ms is not None:
            self.outlet.push(self._event(b"", retry_ms))
        self.outlet.end()
        self.outlet = None

    def end(self, *, has_answer: bool = False) -> None:
        """Take it that there will be no more messages; what has been written still goes over its connection.

        Args:
            has_answer: Whether the last of them is the answer.
        """
        self.is_over = True
        if self.outlet is not None:
            self.outlet.end(has_answer=has_answer)

    def _event(self, message: bytes, retry_ms: int | None = None) -> bytes:
        self._number += 1
        if not self.is_broken:
            try:
                self._store.append(self.name, self._number, message)
            except Exception:  # noqa: BLE001 (the boundary: a store that fails must not cost the client its answer)
                _LOG.exception("a message cannot be kept, so that its stream cannot be resumed")
                self.is_broken = True
        return self._rendered(self._number, message, retry_ms)

    def _rendered(self, number: int, message: bytes, retry_ms: int | None = None) -> bytes:
        return encode_event(message, event_id=event_id(self.name, number), retry_ms=retry_ms)
