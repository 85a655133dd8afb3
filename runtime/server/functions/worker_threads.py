"""Worker threads for plain functions, bounded in number.

Theory of operation. A thread cannot be stopped, so a function whose request was cancelled goes on in its thread. The
call keeps its slot until then: the thread itself releases it. (The limiter of anyio releases it when the call is
cancelled, so that abandoned threads would not count.) A call without a slot waits for one; a call that is cancelled
before its thread has begun never begins.

Over HTTP, users take turns: one that calls a slow function a thousand times does not keep the others waiting. And a
call that has a slot waits as long as many results cannot be encoded yet, or they would pile up.

At the end of a server, functions whose calls were cancelled have a moment to notice it, while the lifespan is open.

A function that waits for its client keeps its thread. If a user's call waits for a slot, and another user has more
functions that wait for their client than the first one has slots, one of these functions gives way: its wait ends with
an error. Its slot goes to the user that needs it, and counts for that user from then on.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread
from msgspec import Struct

from mcpgen.runtime.limits import MAX_THREADS
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.transports.event_loops import call_soon, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["CALLER", "WORK", "Caller", "Work", "WorkerThreads"]


# At the end of a server; the end of its lifespan needs some of the time that a host allows, too.
_END_SECONDS: Final = 0.1
_CHECK_SECONDS: Final = 0.005


class Caller(Struct, frozen=True):
    """For whom a request is served, among many.

    Attributes:
        owner: Whom limits are shared among.
        turns: The turns of the event loop.
    """

    owner: str
    turns: FairTurns


CALLER: Final[ContextVar[Caller | None]] = ContextVar("mcpgen.caller", default=None)
"""The caller of the request that is being served; None if a server has one client."""


class WorkerThreads:
    """Runs functions in worker threads.

    Args:
        max_threads: The most functions that run at once, including those whose calls were cancelled.

    Attributes:
        is_ending: Whether the server ends.
    """

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self.is_ending: bool = False
        self._max_threads: Final = max_threads
        self._lock = threading.Lock()
        self._works: set[Work] = set()  # those that have a slot
        self._waiting: dict[str, dict[Work, _Waiter]] = {}  # by owner; whose turn is next comes first
        self._asking: dict[Work, _ClientWait] = {}  # those of `_works` that can give way; longest wait first

    @property
    def running(self) -> int:
        """How many functions run, or are about to."""
        return len(self._works)

    async def run(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """Return the result of *function*, which runs in a thread; wait for a thread if all are in use.

        If it is cancelled, the function goes on, and its result is ignored.
        """
        caller = CALLER.get()
        work = Work(self, "" if caller is None else caller.owner, function, argument)
        await self._acquire(work)
        try:
            if caller is not None:
                await caller.turns.wait_to_run(caller.owner)
            # A limiter of its own, because the number of threads is limited here.
            result = await to_thread.run_sync(work.run, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)
            if work.failures:
                raise work.failures.pop()
            return result
        finally:
            work.abandon()

    async def wait_at_end(self) -> None:
        """End all waits for a client, and return when no function runs any more, or after a tenth of a second."""
        self.is_ending = True
        with self._lock:
            waits = list(self._asking.values())
        for each in waits:
            each.end_soon()
        try:
            with anyio.move_on_after(_END_SECONDS, shield=True):
                while self._works:  # noqa: ASYNC110 (threads change it)
                    await anyio.sleep(_CHECK_SECONDS)
        finally:
            self.is_ending = False  # the server may run again

    async def _acquire(self, work: Work) -> None:
        with self._lock:
            if len(self._works) < self._max_threads:
                self._works.add(work)
                return
            waiter = _Waiter()
            self._waiting.setdefault(work.owner, {})[work] = waiter
            self._make_room()
        try:
            await waiter.event.wait()
        except BaseException:
            with self._lock:
                waiting = self._waiting.get(work.owner, {})
                is_waiting = work in waiting
                if is_waiting:
                    del waiting[work]
                    if not waiting:
                        del self._waiting[work.owner]
            if not is_waiting:  # it got a slot in the meantime
                self.release(work)
            raise

    def release(self, work: Work) -> None:
        """Give the slot of *work* to the owner for which it gave way, or else to the one that has waited longest.

        It is called in any thread.
        """
        while True:
            with self._lock:
                self._works.discard(work)
                self._asking.pop(work, None)  # a task that it has started may still wait
                if not self._waiting:
                    return
                owner = work.heir if work.heir in self._waiting else next(iter(self._waiting))
                waiting = self._waiting.pop(owner)
                work = next(iter(waiting))
                waiter = waiting.pop(work)
                if waiting:
                    self._waiting[owner] = waiting  # behind the others
                self._works.add(work)
                self._make_room()
            if waiter.wake():
                return

    def _make_room(self) -> None:
        """Let functions that wait for their client give way to owners that have fewer slots. The lock is held."""
        for owner, calls in self._waiting.items():
            if not self._asking:
                return
            expected = sum(each.heir == owner for each in self._works)
            slots = expected + sum(each.owner == owner and each.heir is None for each in self._works)
            while self._asking and expected < len(calls):
                # If several have the most, the first one has the longest wait.
                ((most, count),) = Counter(each.owner for each in self._asking).most_common(1)
                if count <= slots:
                    break
                work = next(each for each in self._asking if each.owner == most)
                work.heir = owner
                self._asking.pop(work).end_soon()
                expected += 1
                slots += 1

    @contextmanager
    def asking(self, work: Work, give_way: Callable[[], object]) -> Generator[None]:
        """Note within the block, in an event loop, that *work* waits for its client; *give_way* ends the block."""
        wait = _ClientWait(give_way)
        with self._lock:
            gives_way_again = work.heir in self._waiting
            if work in self._works and not gives_way_again:
                work.heir = None
                self._asking[work] = wait
                self._make_room()
        if gives_way_again:
            wait.end()
        try:
            yield
        finally:
            wait.is_over = True
            with self._lock:
                if self._asking.get(work) is wait:
                    del self._asking[work]
                elif not wait.gave_way:  # the client was faster
                    work.heir = None
                    self._make_room()


class _Waiter:
    """A call that waits for a slot."""

    __slots__ = ("_loop", "event")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self._loop = running_loop()

    def wake(self) -> bool:
        """Let it go on, from any thread; return False if its event loop has ended."""
        return call_soon(self._loop, self.event.set)


class _ClientWait:
    """A wait for a client, in the event loop, that keeps a thread.

    Attributes:
        is_over: Whether it has ended.
        gave_way: Whether it was ended early.
    """

    __slots__ = ("_give_way", "_loop", "gave_way", "is_over")

    def __init__(self, give_way: Callable[[], object]) -> None:
        self.is_over = False
        self.gave_way = False
        self._give_way = give_way
        self._loop = running_loop()

    def end_soon(self) -> None:
        """End it early, from any thread."""
        call_soon(self._loop, self.end)

    def end(self) -> None:
        """End it early, in its event loop; do nothing if it has ended."""
        if not self.is_over:
            self.gave_way = True
            self._give_way()


class Work:
    """One function that is to run in a thread.

    Attributes:
        threads: What runs it.
        owner: For whom it runs.
        heir: The owner that gets its slot, because it gave way; None for the next one.
        failures: What the function raised, if the call still waits for it.
    """

    __slots__ = ("_argument", "_begun", "_function", "_is_over", "failures", "heir", "owner", "threads")

    def __init__(self, threads: WorkerThreads, owner: str, function: Callable[[Any], Any], argument: Any) -> None:
        self.threads: WorkerThreads = threads
        self.owner: str = owner
        self.heir: str | None = None
        self.failures: list[BaseException] = []
        self._function = function
        self._argument = argument
        self._is_over = False
        self._begun = threading.Lock()  # acquired once, by the thread that begins or by the call that ends before

    def run(self) -> Any:
        """Run the function, in the thread; do nothing if the call was cancelled before."""
        if not self._begun.acquire(blocking=False):
            return None
        WORK.set(self)  # of the thread: anyio runs each function in a context of its own
        try:
            return self._function(self._argument)
        except BaseException as error:  # noqa: BLE001 (anyio would keep what is raised, and so the call, in a cycle)
            if not self._is_over:
                self.failures.append(error)
            return None
        finally:
            self.threads.release(self)

    def abandon(self) -> None:
        """End the call; release the slot if the thread has not begun, and will not."""
        self._is_over = True
        if self._begun.acquire(blocking=False):
            self.threads.release(self)


WORK: Final[ContextVar[Work | None]] = ContextVar("mcpgen.work", default=None)
"""The function in whose thread this runs, or for which this runs in the event loop while its thread waits."""
