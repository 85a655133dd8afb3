"""How long open requests may still take: one task looks after all of them.

Theory of operation. A request that is answered in time costs one look at the clock. The task sleeps until the first
deadline that it knows of; a request whose deadline is earlier wakes it. Progress moves the deadline of its request, up
to a last one. While a handler of ours keeps the server waiting, which may be a person who reads, the clock stands
still.

Spec:
    2025-11-25, basic/lifecycle, "Timeouts"; 2026-07-28, basic/patterns/cancellation, "Timeouts".
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.errors import RequestTimedOut

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
        self._stood_still = 0.0  # in all, before the pause that there may be
        self._next = float("inf")  # when the task looks next
        self._woken = anyio.Event()

    def start(self, call: PendingRequest, seconds: float, most_seconds: float) -> None:
        """Give *call* so many seconds, and with progress at most as many as the second says."""
        now = self._now()
        call.seconds = seconds
        call.most_seconds = max(seconds, most_seconds)
        call.last_deadline = now + call.most_seconds
        call.deadline = now + seconds
        if call.deadline < self._next:
            self._next = call.deadline
            self._woken.set()

    def extend(self, call: PendingRequest) -> None:
        """Give *call* its time anew, since there was progress."""
        if call.deadline is not None:
            call.deadline = min(self._now() + call.seconds, call.last_deadline)

    def pause(self) -> None:
        """Stop the clock: a handler of ours runs, and the server waits for it."""
        if not self._pauses:
            self._paused_at = _clock()
        self._pauses += 1

    def resume(self) -> None:
        """Let the clock go on, once this was called as often as `pause`."""
        self._pauses -= 1
        if not self._pauses:
            self._stood_still += _clock() - self._paused_at
            self._woken.set()

    async def run(self) -> None:
        """Look after the requests, until cancelled."""
        while True:
            seconds = float("inf") if self._pauses else self._next - self._now()
            with anyio.move_on_after(seconds):
                await self._woken.wait()
            self._woken = anyio.Event()
            self._expire()

    def _now(self) -> float:
        """Return the time on a clock that stands still during pauses."""
        return (self._paused_at if self._pauses else _clock()) - self._stood_still

    def _expire(self) -> None:
        now = self._now()
        self._next = float("inf")
        for call in list(self._session.calls.values()):
            if call.deadline is None:
                continue
            if call.deadline <= now:
                seconds = call.seconds if call.deadline < call.last_deadline else call.most_seconds
                self._session.cancel(call, f"it was not answered within {seconds:g} seconds")
                call.fail(RequestTimedOut(call.method, seconds))
            else:
                self._next = min(self._next, call.deadline)
