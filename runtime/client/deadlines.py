"""The timeouts of open requests. One task watches all of them.

Theory of operation. A request that is answered in time costs one look at the clock. The task sleeps until the first
deadline; a request with an earlier deadline wakes it. Progress moves the deadline of its request, up to a final one.
The clock stops while a handler runs that the server waits for: the handler may be asking a person.

Spec:
    2025-11-25, basic/lifecycle, "Timeouts"; 2026-07-28, basic/patterns/cancellation, "Timeouts".
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import RequestTimedOut, seconds_text

if TYPE_CHECKING:
    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.pending_request import PendingRequest

__all__ = ["Deadlines"]

_clock = time.monotonic


class Deadlines:
    """Fails the requests of one session that take too long."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._pauses = 0
        self._paused_at = 0.0
        self._paused_seconds = 0.0  # of all pauses that are over
        self._next_check = float("inf")
        self._wakeup = anyio.Event()

    def start(self, request: PendingRequest, timeout_seconds: float, max_seconds: float) -> None:
        """Set the deadline of *request*. Progress can extend it, to *max_seconds* in all."""
        now = self._now()
        request.timeout_seconds = timeout_seconds
        request.max_seconds = max(timeout_seconds, max_seconds)
        request.final_deadline = now + request.max_seconds
        request.deadline = now + timeout_seconds
        if request.deadline < self._next_check:
            self._next_check = request.deadline
            self._wakeup.set()

    def extend(self, request: PendingRequest) -> None:
        """Give *request* its full time again, since there was progress."""
        if request.deadline is not None:
            request.deadline = min(self._now() + request.timeout_seconds, request.final_deadline)

    def pause(self) -> None:
        """Stop the clock: the server waits for a handler of the client."""
        if not self._pauses:
            self._paused_at = _clock()
        self._pauses += 1

    def resume(self) -> None:
        """Undo one `pause`. The clock runs again when all are undone."""
        self._pauses -= 1
        if not self._pauses:
            self._paused_seconds += _clock() - self._paused_at
            self._wakeup.set()

    async def run(self) -> None:
        """Watch the deadlines until cancelled."""
        while True:
            seconds = float("inf") if self._pauses else self._next_check - self._now()
            with anyio.move_on_after(seconds):
                await self._wakeup.wait()
            self._wakeup = anyio.Event()
            self._expire()

    def _now(self) -> float:
        """Return the time on the clock that stops during pauses."""
        return (self._paused_at if self._pauses else _clock()) - self._paused_seconds

    def _expire(self) -> None:
        now = self._now()
        self._next_check = float("inf")
        for each in list(self._session.pending.values()):
            if each.deadline is None:
                continue
            if each.deadline <= now:
                is_final = each.deadline >= each.final_deadline
                seconds = each.max_seconds if is_final else each.timeout_seconds
                self._session.cancel(each, f"it was not answered within {seconds_text(seconds)}")
                each.fail(RequestTimedOut(each.method, seconds))
            else:
                self._next_check = min(self._next_check, each.deadline)
