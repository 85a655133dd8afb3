"""One run of a handler of a notification, and what it is charged for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpgen.runtime.server.quota import Entry
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["NotificationRun"]


class NotificationRun:
    """One run of a handler of a notification.

    Args:
        session: The session that runs it.
        size: The bytes that are charged to the session for the notification.

    Attributes:
        size: The bytes that are charged until the handler has ended, those of the client's answers included.
        entry: What counts the handler among what is open over HTTP.
    """

    __slots__ = ("_has_ended", "_session", "entry", "size")

    def __init__(self, session: ServerSession, size: int) -> None:
        self.size: int = size
        self.entry: Entry | None = None
        self._session = session
        self._has_ended = False

    def keep_answer(self, size: int) -> bool:
        """Charge an answer of *size* bytes, which the handler may keep; return whether there is room."""
        if self._has_ended:  # a task that it has left behind is the author's
            return True
        session, entry = self._session, self.entry
        if session.held_bytes + size > session.limits.max_in_flight_bytes:
            return False
        if entry is not None and not entry.resize(entry.size + size):
            return False
        self.size += size
        session.charge(size)
        return True

    def end(self) -> None:
        """Charge nothing more, because the handler has ended."""
        self._has_ended = True
        self._session.charge(-self.size)
