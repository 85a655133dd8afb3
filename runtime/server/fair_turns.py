"""Share the event loop's time among clients, by the bytes that are decoded and encoded for them.

Theory of operation. One large message occupies the loop for at most 100 ms; the limits see to that. But a client that
opens 200 connections can have 200 such messages ready in one turn of the loop, and a request of 200 bytes can ask for a
result of 4 MB. So the bytes of large messages are counted for each turn. A turn that has had enough is used up, and
other work waits: requests that have arrived, handlers that start, and results that are ready to be encoded. A client
may also send a small request on each of thousands of connections. So each request counts as 2 KiB at least, each value
in it as 128 bytes more, and a request that arrives while small ones wait joins them. The next turn takes as many small
requests as it has time for, with those of their results that are encoded at once. Then it takes one large request or,
every other turn, work of handlers for 20 ms, one piece in any case; but none in the four turns after a long one. A part
of a batch is such a piece. In each of these queues, the owners take turns, and so do the sessions of each owner. Small
results are not counted, and cost one comparison.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["LARGE_BYTES", "REQUEST_COST_BYTES", "FairTurns", "is_large", "request_cost"]

# Shorter results are not counted, and shorter requests pass longer ones.
LARGE_BYTES: Final = 16 * 1024

# What a request costs of a turn at least: a turn takes 128 small ones.
REQUEST_COST_BYTES: Final = 2048

# What each value of a request costs beside its bytes. An answer to a question of the server takes 7 µs, a plain
# argument 1 µs. So the small requests of one turn take 15 ms at most; their bytes alone would allow 70 ms and more.
_VALUE_COST_BYTES: Final = 128

# A short request of so many values takes longer to decode than most long ones: 2,300 numbers with exponents take 80 ms.
# So short requests of few values pass it.
_LARGE_COST_BYTES: Final = 64 * 1024

# What one turn decodes and encodes before other work waits. The last message of a turn may be of 4 MiB.
_MAX_TURN_BYTES: Final = 256 * 1024

# After this time, a turn takes no further small requests, and the next one fewer. Those that a turn takes by their
# bytes need 15 ms at most if their handlers do little, so the time decides only where they do more. The work of
# handlers has as much time. Handlers that start in one turn are not counted before: after three times as much, others
# wait.
_MAX_TURN_SECONDS: Final = 0.02
_MAX_STARTS_SECONDS: Final = 3 * _MAX_TURN_SECONDS

# A request needs some turns from its arrival to its answer. After a piece that takes so long that others notice, the
# next turns take small requests alone, so that those of others do not wait for a long piece in each of their turns.
_LONG_PIECE_BYTES: Final = 1024 * 1024
_REST_TURNS: Final = 4

# Few bytes can take as long: numbers with exponents, and objects that are tried as each type of a union. So the same
# holds after a turn that took longer than usual pieces of a turn take together.
_LONG_TURN_SECONDS: Final = 4 * _MAX_TURN_SECONDS

# How many results and handlers may wait before the threads of plain functions wait, too.
_MAX_WAITING_WORK: Final = 64

# How many pieces of work that wait try a turn. Those that find it used up wait on, which costs some microseconds each.
_MAX_TRIES: Final = 64


def request_cost(body: bytes | bytearray) -> int:
    """Return what the request in *body* costs of a turn.

    Only the commas are counted, also those in texts: that takes microseconds, and a text of commas only waits longer.
    """
    cost = len(body) + _VALUE_COST_BYTES * body.count(b",")
    return cost if cost > REQUEST_COST_BYTES else REQUEST_COST_BYTES  # noqa: FURB136 (`max` takes longer)


def is_large(size: int, cost: int) -> bool:
    """Return whether shorter requests pass a request of *size* bytes, which costs *cost* (see `request_cost`)."""
    return size > LARGE_BYTES or cost > _LARGE_COST_BYTES


class FairTurns:
    """Count the bytes of large messages for each turn of the event loop, and let other work wait for the next turn.

    It does nothing on other event loops than asyncio's.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._spent = 0
        self._began = 0.0  # when the turn did
        self._until = 0.0  # when small requests have had their time of the turn
        self._work_until = 0.0  # when work has
        self._small_bytes = _MAX_TURN_BYTES  # the part of small requests
        self._small_until = _MAX_TURN_BYTES  # what is spent when small requests have had their part of the turn
        self._had_long_piece = False
        self._rest = 0  # the turns that take small requests alone
        self._loop: asyncio.AbstractEventLoop | None = None
        self._small_requests = _Queue()
        self._large_requests = _Queue()
        self._work = _Queue()
        self._threads = _Queue()
        self._waiting = 0
        self._is_for_work = False

    @property
    def is_used_up(self) -> bool:
        """Whether large requests, and work, have to wait."""
        if self._spent > _MAX_TURN_BYTES or self._rest > 0:
            return True
        return self._loop is not None and self._clock() > self._began + _MAX_STARTS_SECONDS

    def must_wait(self) -> bool:
        """Return whether a small request has to wait. One that does not while others do would keep them waiting."""
        if self._loop is None:
            return False
        return self._spent > self._small_bytes or self._small_requests.count > 0 or self._clock() > self._until

    def must_wait_if_large(self, size: int) -> bool:
        """Return whether a large request of *size* bytes has to wait. A long piece does not pass those that wait."""
        return self.is_used_up or (size > _LONG_PIECE_BYTES and self._large_requests.count > 0)

    def spend(self, size: int) -> None:
        """Count *size* bytes that are decoded or encoded in this turn of the loop."""
        if self._loop is None:
            from asyncio import get_running_loop  # noqa: PLC0415 (it takes 15 ms to import, and runs already or never)

            try:
                self._loop = get_running_loop()
            except RuntimeError:
                return
            self._loop.call_soon(self._next_turn)
            self._begin_turn()
        self._spent += size
        if size > _LONG_PIECE_BYTES:
            self._had_long_piece = True

    async def wait_to_decode(self, owner: str, size: int, cost: int = REQUEST_COST_BYTES) -> None:
        """Return when a request of *size* bytes may be decoded, which costs *cost* (see `request_cost`)."""
        if is_large(size, cost):
            await self._wait(self._large_requests, _Place(owner, ""))
        else:
            await self._wait(self._small_requests, _Place(owner, "", max(size, cost)))

    async def wait_to_work(self, owner: str, session: str) -> None:
        """Return when a handler may start, or its result may be encoded."""
        await self._wait(self._work, _Place(owner, session))

    async def wait_to_run(self, owner: str) -> None:
        """Return when a thread may run a function: its result would be kept until it can be encoded."""
        if self._work.count >= _MAX_WAITING_WORK and self.is_used_up:
            await self._wait(self._threads, _Place(owner, ""))

    async def _wait(self, queue: _Queue, place: _Place) -> None:
        loop = self._loop
        if loop is None:
            return
        queue.add(place)
        self._waiting += 1
        try:
            is_granted = False
            while not is_granted:
                place.woken = loop.create_future()
                is_first = await place.woken
                if is_first and queue is self._small_requests:
                    self._small_until = self._spent + self._small_bytes
                    self._until = self._clock() + _MAX_TURN_SECONDS
                elif is_first and queue is self._work:
                    self._work_until = self._clock() + _MAX_TURN_SECONDS
                is_granted = is_first or not self._is_used_up_for(queue)
        finally:
            self._waiting -= 1
            queue.remove(place)

    def _is_used_up_for(self, queue: _Queue) -> bool:
        # A small request may have had a large result. Those that were woken behind it wait for the next turn.
        if queue is self._small_requests:
            return self._spent > self._small_until or self._clock() > self._until
        return self.is_used_up or (queue is self._work and self._clock() > self._work_until)

    def _next_turn(self) -> None:
        seconds = self._clock() - self._began
        if self._rest:  # it does not begin again, so that large requests and work get each fifth turn at least
            self._rest -= 1
        elif self._had_long_piece or seconds > _LONG_TURN_SECONDS:
            self._rest = _REST_TURNS
        took_long = seconds > _MAX_TURN_SECONDS
        wanted = self._small_bytes // 2 if took_long else self._small_bytes * 2
        self._small_bytes = min(max(wanted, REQUEST_COST_BYTES), _MAX_TURN_BYTES)
        self._had_long_piece = False
        self._begin_turn()
        if self._loop is None or not (self._waiting or self._rest):
            self._loop = None
            return
        self._small_requests.wake(self._small_bytes // REQUEST_COST_BYTES, 1)
        if not self._rest:
            self._wake_large_request_or_work()
        free = max(1, _MAX_WAITING_WORK - self._work.count)
        self._threads.wake(free, free)
        self._loop.call_soon(self._next_turn)  # after those that were woken

    def _begin_turn(self) -> None:
        self._spent = 0
        self._small_until = self._small_bytes
        self._began = self._clock()
        self._until = self._began + _MAX_TURN_SECONDS

    def _wake_large_request_or_work(self) -> None:
        self._is_for_work = bool(self._work) and not (self._is_for_work and self._large_requests)
        if self._is_for_work:
            self._work.wake(_MAX_TRIES, 1)
        else:
            self._large_requests.wake(1, 1)


class _Place:
    """A place in a queue.

    Args:
        owner: Who waits.
        session: The session of the owner.
        cost: What it takes of a turn.

    Attributes:
        woken: Its result says whether the place has the turn in any case, or only if the turn is not used up.
    """

    __slots__ = ("cost", "owner", "session", "woken")

    def __init__(self, owner: str, session: str, cost: int = 1) -> None:
        self.owner = owner
        self.session = session
        self.cost = cost
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

    def add(self, place: _Place) -> None:
        """Add *place* as the last of its session."""
        self.count += 1
        self._owners.setdefault(place.owner, {}).setdefault(place.session, {})[place] = None

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
        """Wake the first *tries* places. Those that cost *granted* together have the turn in any case."""
        owners = islice(self._owners.values(), tries)
        for place in islice(_alternating(_alternating(map(iter, each.values())) for each in owners), tries):
            if place.woken is not None and not place.woken.done():  # else it is about to leave
                place.woken.set_result(granted > 0)
                granted -= place.cost


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
