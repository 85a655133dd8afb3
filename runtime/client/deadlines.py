"""The timeouts of open requests. One task watches all of them.

Theory of operation. A request that is answered in time costs one look at the clock. The task sleeps until the first
deadline; a request with an earlier deadline wakes it. Progress moves the deadline of its request, up to a final one.
The clock stops while a handler runs that the server waits for: the handler may be asking a person. A server could send
such requests without end. So each request of the client moves to a clock that does not stop when `max_pauses` of them
have come since it was sent.

Spec:
    2025-11-25, basic/lifecycle, "Timeouts"; 2026-07-28, basic/patterns/cancellation, "Timeouts".
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import RequestTimedOut, seconds_text

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.pending_request import PendingRequest

__all__ = ["Deadlines", "TimeLimit"]

_clock = time.monotonic

# A person logs in within some minutes. More than this in one hour is the work of a server that demands one login after
# the other.
_MAX_LOGIN_SECONDS = 900.0
_HOUR_SECONDS = 3600.0


class Deadlines:
    """Fails the requests of one session that take too long."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._pauses = 0
        self._paused_at = 0.0
        self._paused_seconds = 0.0  # of all pauses that are over
        self._next_check = float("inf")
        self._next_check_of_moved = float("inf")  # of the requests on the clock that does not stop
        self._wakeup = anyio.Event()
        self._limits: list[TimeLimit] = []
        self._stops = 0  # of the blocks of `paused`
        self._hour_began = self._login_began = float("-inf")
        self._login_seconds = 0.0  # of the logins of this hour that are over
        self._count = 0  # of all pauses
        self._next_move = float("inf")  # the count at which a request moves to the clock that does not stop

    @property
    def is_paused(self) -> bool:
        """Whether a person is asked something."""
        return self._stops > 0

    def start(
        self,
        request: PendingRequest,
        timeout_seconds: float,
        max_seconds: float,
        used_seconds: float = 0.0,
        waited_seconds: float = 0.0,
    ) -> None:
        """Set the deadline of *request*. Progress can extend it, to *max_seconds* in all, less *used_seconds*.

        The first deadline is earlier by *waited_seconds*, which the request has waited before it was sent.
        """
        now = self.now()
        request.first_pause = self._count
        self._next_move = min(self._next_move, self._count + self._session.limits.max_pauses)
        request.timeout_seconds = timeout_seconds
        request.max_seconds = max(timeout_seconds, max_seconds)
        request.final_deadline = now + request.max_seconds - used_seconds
        request.deadline = min(now + timeout_seconds - waited_seconds, request.final_deadline)
        if request.deadline < self._next_check:
            self._next_check = request.deadline
            self._wakeup.set()

    def used_seconds(self, request: PendingRequest) -> float:
        """Return how much of its time in all *request* has used, with what was used before it."""
        now = self.now() if request.first_pause is not None else _clock()
        return request.max_seconds - (request.final_deadline - now)

    def extend(self, request: PendingRequest) -> None:
        """Give *request* its full time again, since there was progress."""
        if request.deadline is not None:
            now = self.now() if request.first_pause is not None else _clock()
            request.deadline = min(now + request.timeout_seconds, request.final_deadline)

    def pause(self) -> None:
        """Stop the clock: the server waits for a handler of the client."""
        if not self._pauses:
            self._paused_at = _clock()
        self._pauses += 1
        self._count += 1
        if self._count > self._next_move:
            self._move_requests()

    def resume(self) -> None:
        """Undo one `pause`. The clock runs again when all are undone."""
        self._pauses -= 1
        if not self._pauses:
            self._paused_seconds += _clock() - self._paused_at
            self._wakeup.set()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock within the block of a login, also that of `limit`, unless logins have stopped it for long."""
        if self._has_long_logins():
            yield
            return
        self.pause()
        for each in self._limits:
            each.stop()
        self._stops += 1
        try:
            yield
        finally:
            self._stops -= 1
            self.resume()
            if not self._stops:
                self._login_seconds += _clock() - self._login_began
                for each in self._limits:
                    each.start()

    def _has_long_logins(self) -> bool:
        now = _clock()
        if self._stops:  # the next login may begin before all that waited for the last one have noticed its end
            return self._login_seconds + now - self._login_began > _MAX_LOGIN_SECONDS
        self._login_began = now
        if now - self._hour_began > _HOUR_SECONDS:
            self._hour_began, self._login_seconds = now, 0.0
        return self._login_seconds > _MAX_LOGIN_SECONDS

    def limit(self, seconds: float) -> TimeLimit:
        """Return a block that is cancelled after *seconds*, in which blocks of `paused` do not count."""
        return TimeLimit(self, seconds)

    def watch(self, limit: TimeLimit) -> None:
        """Stop *limit* during blocks of `paused`."""
        self._limits.append(limit)
        if self._stops:
            limit.stop()

    def forget(self, limit: TimeLimit) -> None:
        """Undo `watch`."""
        self._limits.remove(limit)

    async def run(self) -> None:
        """Watch the deadlines until cancelled."""
        while True:
            with anyio.move_on_after(self._seconds_to_next_check()):
                await self._wakeup.wait()
            self._wakeup = anyio.Event()
            self._expire()

    def now(self) -> float:
        """Return the time on the clock that stops during pauses."""
        return (self._paused_at if self._pauses else _clock()) - self._paused_seconds

    def _seconds_to_next_check(self) -> float:
        stopping = float("inf") if self._pauses else self._next_check - self.now()
        return min(stopping, self._next_check_of_moved - _clock())

    def _move_requests(self) -> None:
        """Move requests to the clock that does not stop, if there were `max_pauses` since they were sent."""
        now, real = self.now(), _clock()
        self._next_move = float("inf")
        for each in self._session.pending.values():
            if each.deadline is None or each.first_pause is None:
                continue
            last_pause = each.first_pause + self._session.limits.max_pauses
            if self._count <= last_pause:
                self._next_move = min(self._next_move, last_pause)
                continue
            each.first_pause = None
            each.deadline += real - now
            each.final_deadline += real - now
            self._next_check_of_moved = min(self._next_check_of_moved, each.deadline)
            self._wakeup.set()

    def _expire(self) -> None:
        stopping, real = self.now(), _clock()
        self._next_check = self._next_check_of_moved = float("inf")
        for each in list(self._session.pending.values()):
            if each.deadline is None:
                continue
            is_moved = each.first_pause is None
            if each.deadline <= (real if is_moved else stopping):
                is_final = each.deadline >= each.final_deadline
                seconds = each.max_seconds if is_final else each.timeout_seconds
                self._session.cancel(each, f"it was not answered within {seconds_text(seconds)}")
                each.fail(RequestTimedOut(each.method, seconds))
            elif is_moved:
                self._next_check_of_moved = min(self._next_check_of_moved, each.deadline)
            else:
                self._next_check = min(self._next_check, each.deadline)


class TimeLimit:
    """A block that is cancelled after a time, and whose time can be stopped."""

    def __init__(self, clock: Deadlines, seconds: float) -> None:
        self._clock = clock
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        self._left: float | None = None  # None while the time runs

    def __enter__(self) -> anyio.CancelScope:
        """Start the time."""
        self._clock.watch(self)
        return self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Return whether the time was over."""
        self._clock.forget(self)
        return bool(self._scope.__exit__(kind, error, traceback))

    def stop(self) -> None:
        """Stop the time."""
        if self._left is None:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = float("inf")

    def start(self) -> None:
        """Let the time run again."""
        if self._left is not None:
            self._scope.deadline = anyio.current_time() + self._left
            self._left = None
