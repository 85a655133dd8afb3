"""The sessions of an application by id, and their expiry.

Theory of operation. There are two tables, each in order of last use. One holds the sessions whose client has not sent a
second request after `initialize`; when the limit is reached, the oldest of these makes room, so a client that starts
sessions and abandons them displaces only such sessions. The other holds those in use. Expiry looks only at the first
entries of each.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.limits import HttpLimits

__all__ = ["SessionTable", "random_id"]


def random_id() -> str:
    """Return an id of 192 random bits in visible ASCII, for a session or its streams.

    Spec:
        2025-11-25, basic/transports, "Session Management".
    """
    return secrets.token_urlsafe(24)


class SessionTable:
    """The sessions of one application.

    Args:
        limits: Bounds of the application.
        clock: Returns monotonic seconds.
    """

    def __init__(self, limits: HttpLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._half_open: OrderedDict[str, HttpSession] = OrderedDict()
        self._in_use: OrderedDict[str, HttpSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._half_open) + len(self._in_use)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter([*self._half_open.values(), *self._in_use.values()])

    def make_room(self) -> bool:
        """Return whether there is room for another session, after ending a half-open one if necessary."""
        if len(self) < self._limits.max_sessions:
            return True
        for each in self._half_open.values():
            if not each.open_requests:
                self.end(each)
                return True
        return False

    def add(self, session: HttpSession) -> None:
        """Add a session that has just started."""
        session.last_used = self._clock()
        self._half_open[session.id] = session

    def find(self, session_id: str, user: str) -> HttpSession | None:
        """Return the session with that id if it belongs to *user*, and record its use."""
        found = self._in_use.get(session_id) or self._half_open.get(session_id)
        if found is None or found.user != user:
            return None
        found.last_used = self._clock()
        self._half_open.pop(session_id, None)
        self._in_use[session_id] = found
        self._in_use.move_to_end(session_id)
        return found

    def hold(self, session: HttpSession) -> None:
        """Keep *session* from expiring while a request in it is open."""
        session.open_requests += 1

    def release(self, session: HttpSession) -> None:
        """Record that a request in *session* is no longer open."""
        session.open_requests -= 1
        session.last_used = self._clock()
        if session.id in self._in_use:
            self._in_use.move_to_end(session.id)

    def end(self, session: HttpSession) -> None:
        """Remove a session, and cancel its handlers."""
        self._half_open.pop(session.id, None)
        self._in_use.pop(session.id, None)
        session.close()

    def expire(self) -> float:
        """End the sessions that were idle for too long, and return in how many seconds to call this again."""
        limits, now = self._limits, self._clock()
        next_seconds = min(limits.idle_seconds, limits.handshake_seconds)
        for table, seconds in ((self._half_open, limits.handshake_seconds), (self._in_use, limits.idle_seconds)):
            while table:
                oldest = next(iter(table.values()))
                if oldest.last_used + seconds > now:
                    next_seconds = min(next_seconds, oldest.last_used + seconds - now)
                    break
                if oldest.open_requests:  # it is in use now
                    oldest.last_used = now
                    table.move_to_end(oldest.id)
                else:
                    self.end(oldest)
        return next_seconds
