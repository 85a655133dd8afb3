"""Worker threads for plain functions, bounded in number.

Theory of operation. A thread cannot be stopped, so a function whose request was cancelled goes on in its thread. The
call keeps its slot until then: the thread itself releases it. (The limiter of anyio releases it when the call is
cancelled, so that abandoned threads would not count.) A call without a slot waits for one; a call that is cancelled
before its thread has begun never begins.

Over HTTP, users take turns: one that calls a slow function a thousand times does not keep the others waiting. And a
call that has a slot waits as long as many results cannot be encoded yet, or they would pile up.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread
from msgspec import Struct

from mcpgen.runtime.limits import MAX_THREADS
from mcpgen.runtime.server.fair_turns import FairTurns
from mcpgen.runtime.transports.event_loops import call_soon, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CALLER", "Caller", "WorkerThreads"]


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
        running: How many functions run, or are about to.
    """

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self.running: int = 0
        self._max_threads: Final = max_threads
        self._lock = threading.Lock()
        self._waiting: dict[str, dict[_Waiter, None]] = {}  # by owner; whose turn is next comes first

    async def run(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """Return the result of *function*, which runs in a thread; wait for a thread if all are in use.

        If it is cancelled, the function goes on, and its result is ignored.
        """
        caller = CALLER.get()
        await self._acquire("" if caller is None else caller.owner)
        work = _Work(self, function, argument)
        try:
            if caller is not None:
                await caller.turns.wait_to_run(caller.owner)
            # A limiter of its own, because the number of threads is limited here.
            return await to_thread.run_sync(work.run, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)
        finally:
            work.abandon()

    async def _acquire(self, owner: str) -> None:
        with self._lock:
            if self.running < self._max_threads:
                self.running += 1
                return
            waiter = _Waiter()
            self._waiting.setdefault(owner, {})[waiter] = None
        try:
            await waiter.event.wait()
        except BaseException:
            with self._lock:
                waiting = self._waiting.get(owner, {})
                is_waiting = waiter in waiting
                if is_waiting:
                    del waiting[waiter]
                    if not waiting:
                        del self._waiting[owner]
            if not is_waiting:  # it got a slot in the meantime
                self.release()
            raise

    def release(self) -> None:
        """Give a slot to the call of the next owner that has waited longest; called in any thread."""
        while True:
            with self._lock:
                if not self._waiting:
                    self.running -= 1
                    return
                owner, waiting = next(iter(self._waiting.items()))
                del self._waiting[owner]
                waiter = next(iter(waiting))
                del waiting[waiter]
                if waiting:
                    self._waiting[owner] = waiting  # behind the others
            if waiter.wake():
                return


class _Waiter:
    """A call that waits for a slot."""

    __slots__ = ("_loop", "event")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self._loop = running_loop()

    def wake(self) -> bool:
        """Let it go on, from any thread; return False if its event loop has ended."""
        return call_soon(self._loop, self.event.set)


class _Work:
    """One function that is to run in a thread, and the slot that it holds."""

    __slots__ = ("_argument", "_begun", "_function", "_threads")

    def __init__(self, threads: WorkerThreads, function: Callable[[Any], Any], argument: Any) -> None:
        self._threads = threads
        self._function = function
        self._argument = argument
        self._begun = threading.Lock()  # acquired once, by the thread that begins or by the call that ends before

    def run(self) -> Any:
        """Run the function, in the thread; do nothing if the call was cancelled before."""
        if not self._begun.acquire(blocking=False):
            return None
        try:
            return self._function(self._argument)
        finally:
            self._threads.release()

    def abandon(self) -> None:
        """Release the slot if the thread has not begun, and will not."""
        if self._begun.acquire(blocking=False):
            self._threads.release()
