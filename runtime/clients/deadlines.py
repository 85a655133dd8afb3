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
    from mcpgen.runtime.clients.calls import Call
    from mcpgen.runtime.clients.session import ClientSession

__all__ = ["Deadlines"]

_clock = time.monotonic


class Deadlines:
    """Fails the requests of one session that take too long."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._pauses = 0
        self._paused_at = 0.0
        self._next = float("inf")  # when the task looks next
        self._woken = anyio.Event()

    def start(self, call: Call, seconds: float, most_seconds: float) -> None:
        """Give *call* so many seconds, and with progress at most as many as the second says."""
        now = _clock()
        call.since = now
        call.seconds = seconds
        call.last_deadline = now + max(seconds, most_seconds)
        call.deadline = now + seconds
        if call.deadline < self._next:
            self._next = call.deadline
            self._woken.set()

    def extend(self, call: Call) -> None:
        """Give *call* its time anew, since there was progress."""
        if call.deadline is not None:
            call.deadline = min(_clock() + call.seconds, call.last_deadline)

    def pause(self) -> None:
        """Stop the clock: a handler of ours runs, and the server waits for it."""
        if not self._pauses:
            self._paused_at = _clock()
        self._pauses += 1

    def resume(self) -> None:
        """Let the clock go on, once this was called as often as `pause`."""
        self._pauses -= 1
        if self._pauses:
            return
        now = _clock()
        for call in self._session.calls.values():
            if call.deadline is not None:
                waited = now - max(self._paused_at, call.since)
                call.deadline += waited
                call.last_deadline += waited
        self._next = now
        self._woken.set()

    async def run(self) -> None:
        """Look after the requests, until cancelled."""
        while True:
            with anyio.move_on_after(self._next - _clock()):
                await self._woken.wait()
            self._woken = anyio.Event()
            self._expire()

    def _expire(self) -> None:
        now = _clock()
        self._next = float("inf")
        if self._pauses:
            return
        for call in list(self._session.calls.values()):
            if call.deadline is None:
                continue
            if call.deadline <= now:
                self._session.cancel(call, f"it was not answered within {call.seconds:g} seconds")
                call.fail(RequestTimedOut(call.method, call.seconds))
            else:
                self._next = min(self._next, call.deadline)
