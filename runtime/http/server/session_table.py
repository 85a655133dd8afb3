"""The sessions of an application, by id: begun, found, and ended when nobody uses them any more.

Theory of operation. Two lists, each with those used longest ago first. One has the sessions whose client has not come
back after `initialize`, and gives room when there is none; so whoever begins sessions and leaves them takes it from
others of that kind. The other has those in use. Only the first few of each have to be looked at for what has expired.
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
    """Return what names a session: 192 bits that nobody can guess, as visible ASCII.

    Spec:
        2025-11-25, basic/transports, "Session Management".
    """
    return secrets.token_urlsafe(24)


class SessionTable:
    """The sessions of one application.

    Args:
        limits: Bounds.
        clock: Seconds that only ever grow.
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
        """Return whether there is room for another, which may cost the oldest of those that nobody came back to."""
        if len(self) < self._limits.max_sessions:
            return True
        for each in self._half_open.values():
            if not each.open:
                self.end(each)
                return True
        return False

    def add(self, session: HttpSession) -> None:
        """Take a session that has just begun."""
        session.used = self._clock()
        self._half_open[session.id] = session

    def find(self, session_id: str, user: str) -> HttpSession | None:
        """Return the session of that id, if it is *user*'s, and note that it is used."""
        found = self._in_use.get(session_id) or self._half_open.get(session_id)
        if found is None or found.user != user:
            return None
        found.used = self._clock()
        self._half_open.pop(session_id, None)
        self._in_use[session_id] = found
        self._in_use.move_to_end(session_id)
        return found

    def hold(self, session: HttpSession) -> None:
        """Note that a request of *session* is being answered, so that it does not expire."""
        session.open += 1

    def release(self, session: HttpSession) -> None:
        """Note that it has been."""
        session.open -= 1
        session.used = self._clock()
        if session.id in self._in_use:
            self._in_use.move_to_end(session.id)

    def end(self, session: HttpSession) -> None:
        """Forget a session, and cancel what it has running."""
        self._half_open.pop(session.id, None)
        self._in_use.pop(session.id, None)
        session.close()

    def expire(self) -> float:
        """End the sessions that nobody has used for too long, and return in how many seconds to look again."""
        limits, now = self._limits, self._clock()
        following = min(limits.idle_seconds, limits.handshake_seconds)
        for table, seconds in ((self._half_open, limits.handshake_seconds), (self._in_use, limits.idle_seconds)):
            while table:
                oldest = next(iter(table.values()))
                if oldest.used + seconds > now:
                    following = min(following, oldest.used + seconds - now)
                    break
                if oldest.open:  # it has been used all the time
                    oldest.used = now
                    table.move_to_end(oldest.id)
                else:
                    self.end(oldest)
        return following
