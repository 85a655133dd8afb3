"""Share the event loop's time among clients, by the bytes that are decoded and encoded for them.

Theory of operation. One large message occupies the loop for at most 100 ms; the limits see to that. But a client that
opens 200 connections can have 200 such messages ready in one turn of the loop, and a request of 200 bytes can ask for
a result of 4 MB. So the bytes of large messages are counted for each turn. A turn that has had enough is used up, and
other work waits: requests that have arrived, handlers that start, and results that are ready to be encoded. The next
turn takes one small request in any case, and more if it has time. Then it takes one large request or, every other
turn, work of handlers, again one piece in any case. In each of these queues, the owners take turns, and so do the
sessions of each owner. Small messages are not counted, and cost one comparison.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Iterator

__all__ = ["LARGE_BYTES", "FairTurns"]

# Shorter messages are not counted.
LARGE_BYTES: Final = 16 * 1024

# What one turn decodes and encodes before other work waits. The last message of a turn may be of 4 MiB.
_MAX_TURN_BYTES: Final = 256 * 1024

# How many results and handlers may wait before the threads of plain functions wait, too.
_MAX_WAITING_WORK: Final = 64

# How many that wait try a turn. Those that find it used up wait on, which costs some microseconds each.
_MAX_TRIES: Final = 64


class FairTurns:
    """Count the bytes of large messages for each turn of the event loop, and let other work wait for the next turn.

    It does nothing on other event loops than asyncio's.
    """

    def __init__(self) -> None:
        self._spent = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._small_requests = _Queue()
        self._large_requests = _Queue()
        self._work = _Queue()
        self._threads = _Queue()
        self._is_for_work = False

    @property
    def is_used_up(self) -> bool:
        """Whether more work has to wait."""
        return self._spent > _MAX_TURN_BYTES

    def spend(self, size: int) -> None:
        """Count *size* bytes that are decoded or encoded in this turn of the loop."""
        if self._loop is None:
            from asyncio import get_running_loop  # noqa: PLC0415 (it takes 15 ms to import, and runs already or never)

            try:
                self._loop = get_running_loop()
            except RuntimeError:
                return
            self._loop.call_soon(self._next_turn)
        self._spent += size

    async def wait_to_decode(self, owner: str, size: int) -> None:
        """Return when a request of *size* bytes may be decoded."""
        await self._wait(self._small_requests if size <= LARGE_BYTES else self._large_requests, owner, "")

    async def wait_to_work(self, owner: str, session: str) -> None:
        """Return when a handler may start, or its result may be encoded."""
        await self._wait(self._work, owner, session)

    async def wait_to_run(self, owner: str) -> None:
        """Return when a thread may run a function: its result would be kept until it can be encoded."""
        if self._work.count >= _MAX_WAITING_WORK:
            await self._wait(self._threads, owner, "")

    async def _wait(self, queue: _Queue, owner: str, session: str) -> None:
        place = queue.add(owner, session)
        try:
            while self._loop is not None and self.is_used_up:
                place.woken = self._loop.create_future()
                if await place.woken:
                    return
        finally:
            queue.remove(place)

    def _next_turn(self) -> None:
        self._spent = 0
        self._small_requests.wake(_MAX_TRIES, granted=1)
        self._is_for_work = bool(self._work) and not (self._is_for_work and self._large_requests)
        if self._is_for_work:
            self._work.wake(_MAX_TRIES, granted=1)
        else:
            self._large_requests.wake(1, granted=1)
        free = max(1, _MAX_WAITING_WORK - self._work.count)
        self._threads.wake(free, granted=free)
        if self._loop is not None and (self._large_requests or self._small_requests or self._work or self._threads):
            self._loop.call_soon(self._next_turn)
        else:
            self._loop = None


class _Place:
    """A place in a queue.

    Attributes:
        woken: Its result says whether the place has the turn in any case, or only if the turn is not used up.
    """

    __slots__ = ("owner", "session", "woken")

    def __init__(self, owner: str, session: str) -> None:
        self.owner = owner
        self.session = session
        self.woken: asyncio.Future[bool] | None = None


class _Queue:
    """The places of those that wait, by owner and session; whose turn is next comes first. It is true if there are any.

    A place that had its turn leaves the queue, and the places of its session and owner follow those of others.

    Attributes:
        count: How many there are.
    """

    def __init__(self) -> None:
        self.count = 0
        self._owners: dict[str, dict[str, dict[_Place, None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._owners)

    def add(self, owner: str, session: str) -> _Place:
        """Return a new place, the last of its session."""
        place = _Place(owner, session)
        self.count += 1
        self._owners.setdefault(owner, {}).setdefault(session, {})[place] = None
        return place

    def remove(self, place: _Place) -> None:
        """Remove *place*, and put the others of its session and owner behind those of others."""
        sessions = self._owners.pop(place.owner)
        places = sessions.pop(place.session)
        del places[place]
        self.count -= 1
        if places:
            sessions[place.session] = places
        if sessions:
            self._owners[place.owner] = sessions

    def wake(self, tries: int, granted: int) -> None:
        """Wake the first *tries* places; *granted* of them have the turn in any case."""
        owners = islice(self._owners.values(), tries)
        for place in islice(_alternating(_alternating(map(iter, each.values())) for each in owners), tries):
            if place.woken is not None and not place.woken.done():  # else it is about to leave
                place.woken.set_result(granted > 0)
                granted -= 1


def _alternating(iterators: Iterable[Iterator[_Place]]) -> Iterator[_Place]:
    """Yield one place of each of *iterators* in turn, until all have ended."""
    rest = deque(iterators)
    while rest:
        for place in rest[0]:
            yield place
            rest.rotate(-1)
            break
        else:
            rest.popleft()
