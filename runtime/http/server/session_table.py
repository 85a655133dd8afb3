"""The sessions of an application by id, and their expiry.

Theory of operation. There are two tables, each in order of last use. One holds the sessions whose client has not sent a
second request after `initialize`; the other holds those in use. Expiry looks only at the first entries of each.

When a limit is reached, a session of the client that has the most makes room: if more than a sixteenth of the limit are
sessions of this client that were never used, the oldest of these, or else the one that was idle for the longest time,
or else the one in which a request is open. If the client that starts a session has the most, only an idle one of its
own makes room. If no client has more than one, and the new one has none, the oldest of those never used makes room, if
the unused sessions of all clients are more than a sixteenth.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.http.server.http_session import BUSY, HALF_OPEN, IDLE
from mcpgen.runtime.server.quota import Quota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.limits import HttpLimits
    from mcpgen.runtime.protocol.capabilities import Peer

__all__ = ["SESSION_BYTES", "SessionTable", "random_id"]

# What a session takes beside its client's declaration. Measured as resident memory of thousands: 2 kB until it is used,
# and more when its maps have entries.
SESSION_BYTES: Final = 2 * 1024


_USE_SECONDS: Final = 1

# Thousands of addresses can start a session each; then no client has more than another. Such a flood must not lock out
# clients for `handshake_seconds`.
_FLOOD: Final = 1 / 16


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

    Attributes:
        quota: Counts them for each client.
    """

    def __init__(self, limits: HttpLimits, clock: Callable[[], float]) -> None:
        self.quota: Quota = Quota(limits.max_sessions, limits.max_sessions_bytes, idle_ranks=BUSY)
        self._limits = limits
        self._clock = clock
        # Uses that follow each other sooner count as one: recording one takes 2 % of a call.
        self._use_seconds = min(_USE_SECONDS, limits.idle_seconds / 100)
        self._half_open: OrderedDict[str, HttpSession] = OrderedDict()
        self._in_use: OrderedDict[str, HttpSession] = OrderedDict()
        self._end: Callable[[HttpSession], None] = self.end  # one object for all sessions

    def __len__(self) -> int:
        return len(self._half_open) + len(self._in_use)

    def __iter__(self) -> Iterator[HttpSession]:
        return iter([*self._half_open.values(), *self._in_use.values()])

    def add(self, session: HttpSession, peer: Peer) -> bool:
        """Add a session that *peer* has just started; return False if there is no room for it."""
        size = SESSION_BYTES + peer.memory_bytes + session.record_bytes + session.access_bytes
        session.on_give_way = self._end
        owner, give_way = session.client.owner, session.give_way
        session.entry = self.quota.admit(owner, size, rank=HALF_OPEN, give_way=give_way)
        if session.entry is None and self._end_unused(owner):
            session.entry = self.quota.admit(owner, size, rank=HALF_OPEN, give_way=give_way)
        if session.entry is None:
            return False
        session.session.entry = session.entry
        session.last_used = self._clock()
        self._half_open[session.id] = session
        return True

    def _end_unused(self, owner: str) -> bool:
        """Make room for *owner*, who has none, if there is a flood: end the oldest session that was never used.

        Return whether one was ended.
        """
        if len(self._half_open) <= self._limits.max_sessions * _FLOOD or self.quota.has_owner(owner):
            return False
        oldest = next(iter(self._half_open.values()))
        if oldest.open_requests:
            return False
        self.end(oldest)
        return True

    def peek(self, session_id: str) -> HttpSession | None:
        """Return the session with that id, whichever user owns it, without recording a use."""
        found = self._in_use.get(session_id)
        return self._half_open.get(session_id) if found is None else found

    def find(self, session_id: str, user: str) -> HttpSession | None:
        """Return the session with that id if it belongs to *user*, and record its use."""
        in_use = self._in_use
        found = in_use.get(session_id)
        if found is None:
            found = self._half_open.get(session_id)
        elif self._clock() - found.last_used < self._use_seconds and found.client.user == user:
            return found
        if found is None or found.client.user != user:
            return None
        found.last_used = self._clock()
        if found.entry is not None:
            found.entry.move(BUSY if found.is_busy else IDLE)
        if session_id in in_use:
            in_use.move_to_end(session_id)
        else:
            in_use[session_id] = self._half_open.pop(session_id)
        return found

    def hold(self, session: HttpSession) -> None:
        """Keep *session* from expiring while a request in it is open."""
        session.open_requests += 1
        if session.entry is not None:
            session.entry.move(BUSY)

    def release(self, session: HttpSession) -> None:
        """Record that a request in *session* is no longer open."""
        session.open_requests -= 1
        session.last_used = self._clock()
        if session.id in self._in_use:
            self._in_use.move_to_end(session.id)
        if session.entry is not None and not session.is_busy:
            session.entry.move(IDLE)

    def end(self, session: HttpSession) -> None:
        """Remove a session, and cancel its handlers."""
        self._half_open.pop(session.id, None)
        self._in_use.pop(session.id, None)
        session.close()
        if session.entry is not None:
            session.entry.release()
            session.session.entry = None

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
