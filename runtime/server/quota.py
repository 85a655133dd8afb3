"""Quotas: bounds that the clients of one server share fairly.

Theory of operation. A quota bounds a number of entries and the bytes that they keep. An entry belongs to an owner (the
user, or else the address of the client) and to one of the owner's sessions. While there is room, one owner may use all
of it. When there is none, the owner that has the most makes room for one that will have less: its oldest entry that
can end early ends. The same holds between the sessions of one owner. So if n owners ask, each of them gets 1/n.

An entry that gives way may need time to end, because its handler is being cancelled. It keeps its memory until then,
but does not count against the limit any more. At most a quarter of the limit is used so; then newcomers are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Entry", "Quota"]

# The part of a limit that entries may keep beyond it while they end. A handler needs some turns of the event loop for
# that; with no such room, an owner below its share would be refused until the handlers of others have ended.
_MAX_LEAVING: Final = 0.25


class Entry:
    """One thing that is kept for a client; `Quota.admit` returns it.

    Attributes:
        owner: The user or the address that it counts for.
        session: The owner's session that it counts for; empty for none.
        size: The bytes that it keeps.
        is_leaving: Whether it has given way, and will be released soon.
    """

    __slots__ = ("_give_way", "_quota", "is_leaving", "owner", "session", "size")

    def __init__(self, quota: Quota, owner: str, session: str, size: int, give_way: Callable[[], None] | None) -> None:
        self.owner: str = owner
        self.session: str = session
        self.size: int = size
        self.is_leaving: bool = False
        self._quota: Quota | None = quota
        self._give_way = give_way

    @property
    def can_give_way(self) -> bool:
        """Whether it can end early."""
        return self._give_way is not None and not self.is_leaving

    def resize(self, size: int) -> bool:
        """Let it keep *size* bytes; return False, and change nothing, if there is no room for them."""
        return self._quota is not None and self._quota.resize(self, size)

    def release(self) -> None:
        """Count it no longer. Further calls do nothing."""
        quota, self._quota = self._quota, None
        if quota is not None:
            quota.remove(self)

    def give_way(self) -> None:
        """End it early: call what `Quota.admit` was given, which releases it, now or later."""
        self.is_leaving = True
        if self._give_way is not None:
            self._give_way()


class _Use:
    """What one owner, or one session of it, has."""

    __slots__ = ("bytes", "count")

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0


class _Owner(_Use):
    """What one owner has, and its entries, oldest first."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[Entry, None] = {}


class Quota:
    """A bound that the clients of one server share.

    Args:
        max_count: The largest number of entries.
        max_bytes: The largest number of bytes that they keep.

    Attributes:
        count: How many entries there are, without those that are leaving.
        bytes: The bytes that they keep.
        leaving_count: How many entries are leaving.
        leaving_bytes: The bytes that these keep.
    """

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self.count: int = 0
        self.bytes: int = 0
        self.leaving_count: int = 0
        self.leaving_bytes: int = 0
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._owners: dict[str, _Owner] = {}

    @property
    def kept_bytes(self) -> int:
        """The bytes of all entries, those that are leaving included."""
        return self.bytes + self.leaving_bytes

    def admit(
        self, owner: str, size: int, *, session: str = "", give_way: Callable[[], None] | None = None
    ) -> Entry | None:
        """Return a new entry; None if there is no room for it, although others that have more gave way.

        Args:
            owner: The user, or else the address.
            size: The bytes that it keeps.
            session: The owner's session.
            give_way: Ends the entry early, and releases it now or soon; None if it cannot end early.
        """
        if not self._make_room(owner, session, 1, size):
            return None
        entry = Entry(self, owner, session, size, give_way)
        found = self._owners.get(owner)
        if found is None:
            found = self._owners[owner] = _Owner()
        found.entries[entry] = None
        self._count(found, 1, size)
        return entry

    def resize(self, entry: Entry, size: int) -> bool:
        """Let *entry* keep *size* bytes; `Entry.resize` describes it."""
        growth = size - entry.size
        if entry.is_leaving:
            self.leaving_bytes += growth
        else:
            if growth > 0 and not self._make_room(entry.owner, entry.session, 0, growth, but=entry):
                return False
            self._count(self._owners[entry.owner], 0, growth)
        entry.size = size
        return True

    def remove(self, entry: Entry) -> None:
        """Count *entry* no longer; called by `Entry.release`."""
        if entry.is_leaving:
            self.leaving_count -= 1
            self.leaving_bytes -= entry.size
            return
        self._forget(entry)

    def _forget(self, entry: Entry) -> None:
        owner = self._owners[entry.owner]
        del owner.entries[entry]
        self._count(owner, -1, -entry.size)
        if not owner.entries:
            del self._owners[entry.owner]

    def _count(self, owner: _Owner, count: int, size: int) -> None:
        owner.count += count
        owner.bytes += size
        self.count += count
        self.bytes += size

    def _make_room(self, owner: str, session: str, count: int, size: int, but: Entry | None = None) -> bool:
        """Let others give way until *count* entries and *size* bytes more fit; return whether they fit."""
        while self.count + count > self._max_count or self.bytes + size > self._max_bytes:
            by_count = self.count + count > self._max_count
            victim = self._victim(owner, session, count if by_count else size, by_count=by_count, but=but)
            if victim is None or not self._may_leave(victim):
                return False
            self._forget(victim)
            self.leaving_count += 1
            self.leaving_bytes += victim.size
            victim.give_way()
        return True

    def _may_leave(self, victim: Entry) -> bool:
        return not self.leaving_count or (  # one may always leave, however large it is
            self.leaving_count < self._max_count * _MAX_LEAVING
            and self.leaving_bytes + victim.size <= self._max_bytes * _MAX_LEAVING
        )

    def _victim(self, owner: str, session: str, more: int, *, by_count: bool, but: Entry | None) -> Entry | None:
        """Return the entry that has to give way to *more* of *owner* and *session*; None if they have the most."""
        asking = self._owners.get(owner)
        limit = (0 if asking is None else _amount(asking, by_count)) + more
        richest = max(self._owners.items(), key=lambda item: _amount(item[1], by_count), default=None)
        if richest is None:
            return None
        name, found = richest
        if name != owner and _amount(found, by_count) > limit:
            return next((each for each in found.entries if each.can_give_way), None)
        if asking is None:
            return None
        return _victim_among(asking.entries, session, more, by_count=by_count, but=but)


def _victim_among(
    entries: Iterable[Entry], session: str, more: int, *, by_count: bool, but: Entry | None
) -> Entry | None:
    """Return the entry that has to give way to *more* of *session* among those of one owner."""
    sessions: dict[str, _Use] = {}
    for each in entries:
        use = sessions.setdefault(each.session, _Use())
        use.count += 1
        use.bytes += each.size
    asking = sessions.get(session)
    limit = (0 if asking is None else _amount(asking, by_count)) + more
    name, richest = max(sessions.items(), key=lambda item: _amount(item[1], by_count))
    if name == session or _amount(richest, by_count) <= limit:
        return None
    return next((each for each in entries if each.session == name and each.can_give_way and each is not but), None)


def _amount(use: _Use, by_count: bool) -> int:  # noqa: FBT001 (of `Quota._victim`)
    return use.count if by_count else use.bytes
