"""Quotas: bounds that the clients of one server share fairly.

Theory of operation. A quota bounds a number of entries and the bytes that they keep. An entry belongs to an owner (the
user, or else the address of the client) and to one of the owner's sessions. While there is room, one owner may use all
of it. When there is none, the owner that has the most makes room for one that will have less: in its session that has
the most, the oldest entry that can end early ends. The same holds between the sessions of one owner. So if n owners
ask, each of them gets 1/n.

Entries have ranks, and those of a lower rank end first. A quota may call its lowest ranks idle; idle entries make room
for their own owner, too. While there are few entries of the lowest idle rank, those of the next idle rank end first.

An entry that gives way may need time to end, because its handler is being cancelled. It keeps its memory until then,
but does not count against the limit any more. At most a quarter of the limit is used so; then newcomers are refused.

Several workers of one server have a quota each. What an owner has at other workers does not count against the limit of
this one, but it counts when owners are compared.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.server.quota_shares import BYTES, COUNT, NOTHING, OwnerShare, SessionShare, Shares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Entry", "Quota"]

# The part of a limit that entries may keep beyond it while they end. A handler needs some turns of the event loop for
# that; with no such room, an owner below its share would be refused until the handlers of others have ended.
_MAX_LEAVING: Final = 0.25

# New entries may have the lowest idle rank until they are used. If so few of the limit are new, they are no flood, and
# those that are idle give way first: or else, at the limit, each newcomer would end the one before it.
_FEW: Final = 1 / 16

# Where owners should wait rather than ask for more.
_TIGHT: Final = 0.75

# Other workers are told the names of owners, and the name of a user may be long.
_MAX_NAME_CHARS: Final = 64


class Entry:
    """One thing that is kept for a client; `Quota.admit` returns it.

    Attributes:
        owner: The user or the address that it counts for; a digest of it if it is long.
        session: The owner's session that it counts for; empty for none.
        size: The bytes that it keeps.
        count: How many things it stands for.
        rank: Entries of a lower rank end first.
        is_leaving: Whether it has given way, and will be released soon.
        queue: The entries of its session and rank, oldest first; None if it is not counted.
    """

    __slots__ = ("_give_way", "_quota", "count", "is_leaving", "owner", "queue", "rank", "session", "size")

    def __init__(  # noqa: PLR0913, PLR0917 (of `Quota.admit`)
        self,
        quota: Quota,
        owner: str,
        session: str,
        size: int,
        count: int,
        rank: int,
        give_way: Callable[[], None] | None,
    ) -> None:
        self.owner: str = owner
        self.session: str = session
        self.size: int = size
        self.count: int = count
        self.rank: int = rank
        self.is_leaving: bool = False
        self.queue: OrderedDict[Entry, None] | None = None
        self._quota: Quota | None = quota
        self._give_way = give_way

    @property
    def can_give_way(self) -> bool:
        """Whether it can end early."""
        return self._give_way is not None and not self.is_leaving

    def resize(self, size: int) -> bool:
        """Let it keep *size* bytes; return False, and change nothing, if there is no room for them."""
        return self._quota is not None and self._quota.resize(self, size)

    def move(self, rank: int) -> None:
        """Make it the newest entry of *rank*."""
        if rank == self.rank and self.queue is not None:
            self.queue.move_to_end(self)
        elif self._quota is not None:
            self._quota.move(self, rank)

    def release(self) -> None:
        """Count it no longer. Further calls do nothing."""
        quota, self._quota = self._quota, None
        self._give_way = None  # it may refer to this entry, in a cycle
        if quota is not None:
            quota.remove(self)

    def give_way(self) -> None:
        """End it early: call what `Quota.admit` was given, which releases it, now or later."""
        self.is_leaving = True
        if self._give_way is not None:
            self._give_way()


class Quota:
    """A bound that the clients of one server share.

    Args:
        max_count: The largest number of entries.
        max_bytes: The largest number of bytes that they keep.
        idle_ranks: How many of the lowest ranks are idle.

    Attributes:
        count: How many entries there are, without those that are leaving.
        bytes: The bytes that they keep.
        leaving_count: How many entries are leaving.
        leaving_bytes: The bytes that these keep.
    """

    def __init__(self, max_count: int, max_bytes: int, *, idle_ranks: int = 0) -> None:
        self.count: int = 0
        self.bytes: int = 0
        self.leaving_count: int = 0
        self.leaving_bytes: int = 0
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._idle_ranks = idle_ranks
        self._owners: Shares[OwnerShare] = Shares()
        self._elsewhere: Mapping[str, tuple[int, int]] = {}

    @property
    def kept_bytes(self) -> int:
        """The bytes of all entries, those that are leaving included."""
        return self.bytes + self.leaving_bytes

    @property
    def is_tight(self) -> bool:
        """Whether most of its bytes are used."""
        return self.bytes >= self._max_bytes * _TIGHT

    def has_room(self, size: int) -> bool:
        """Return whether another entry of *size* bytes fits without others giving way."""
        return self.count < self._max_count and self.bytes + size <= self._max_bytes

    def admit(  # noqa: PLR0913 (what an entry is)
        self,
        owner: str,
        size: int,
        *,
        session: str = "",
        count: int = 1,
        rank: int = 0,
        give_way: Callable[[], None] | None = None,
    ) -> Entry | None:
        """Return a new entry; None if there is no room for it, although others that have more gave way.

        Args:
            owner: The user, or else the address.
            size: The bytes that it keeps.
            session: The owner's session.
            count: How many things it stands for.
            rank: Entries of a lower rank end first.
            give_way: Ends the entry early, and releases it now or soon; None if it cannot end early.
        """
        owner = _short(owner)
        if not self._make_room(owner, session, count, size):
            return None
        entry = Entry(self, owner, session, size, count, rank, give_way)
        found = self._owners.by_name.get(owner)
        if found is None:
            found = self._owners.by_name[owner] = OwnerShare(self._elsewhere.get(owner, NOTHING))
        kept = found.sessions.by_name.get(session)
        if kept is None:
            kept = found.sessions.by_name[session] = SessionShare()
        _add(kept, entry)
        self._change(found, kept, count, size)
        return entry

    def resize(self, entry: Entry, size: int) -> bool:
        """Let *entry* keep *size* bytes; return False if there is no room. `Entry.resize` calls this."""
        growth = size - entry.size
        if entry.is_leaving:
            self.leaving_bytes += growth
        else:
            if growth > 0 and not self._make_room(entry.owner, entry.session, 0, growth, but=entry):
                return False
            self._change(*self._shares(entry), 0, growth)
        entry.size = size
        return True

    def move(self, entry: Entry, rank: int) -> None:
        """Make *entry* the newest of *rank*, which is another one. `Entry.move` calls this."""
        if entry.is_leaving:
            return
        _, session = self._shares(entry)
        _drop(session, entry)
        entry.rank = rank
        _add(session, entry)

    def remove(self, entry: Entry) -> None:
        """Count *entry* no longer. `Entry.release` calls this."""
        if entry.is_leaving:
            self.leaving_count -= entry.count
            self.leaving_bytes -= entry.size
            return
        self._forget(entry)

    def has_owner(self, owner: str) -> bool:
        """Return whether *owner* has an entry, here or at another worker that has reported it."""
        owner = _short(owner)
        return owner in self._owners.by_name or owner in self._elsewhere

    def large_shares(self, part: float) -> dict[str, tuple[int, int]]:
        """Return how many entries and bytes each owner has here that has at least *part* of a limit."""
        count, size = self._max_count * part, self._max_bytes * part
        if self._owners.most[COUNT] < count and self._owners.most[BYTES] < size:
            return {}
        kept = {name: (each.kept_here(COUNT), each.kept_here(BYTES)) for name, each in self._owners.by_name.items()}
        return {name: each for name, each in kept.items() if each[COUNT] >= count or each[BYTES] >= size}

    def set_elsewhere(self, shares: Mapping[str, tuple[int, int]]) -> None:
        """Note how many entries and bytes owners have at other workers."""
        before, self._elsewhere = self._elsewhere, shares
        for name in before.keys() | shares.keys():
            found = self._owners.by_name.get(name)
            if found is not None:
                (old_count, old_size), found.elsewhere = found.elsewhere, shares.get(name, NOTHING)
                count, size = found.elsewhere
                self._owners.change(found, count - old_count, size - old_size)

    def _shares(self, entry: Entry) -> tuple[OwnerShare, SessionShare]:
        owner = self._owners.by_name[entry.owner]
        return owner, owner.sessions.by_name[entry.session]

    def _forget(self, entry: Entry) -> None:
        owner, session = self._shares(entry)
        _drop(session, entry)
        self._change(owner, session, -entry.count, -entry.size)
        if not session.ranks:
            del owner.sessions.by_name[entry.session]
            if not owner.sessions.by_name:
                del self._owners.by_name[entry.owner]

    def _change(self, owner: OwnerShare, session: SessionShare, count: int, size: int) -> None:
        self._owners.change(owner, count, size)
        owner.sessions.change(session, count, size)
        self.count += count
        self.bytes += size

    def _make_room(self, owner: str, session: str, count: int, size: int, but: Entry | None = None) -> bool:
        """Let others give way until *count* things and *size* bytes more fit; return whether they fit."""
        if count > self._max_count or size > self._max_bytes:
            return False
        while self.count + count > self._max_count or self.bytes + size > self._max_bytes:
            what = COUNT if self.count + count > self._max_count else BYTES
            victim = self._victim(owner, session, count if what == COUNT else size, what, but)
            if victim is None or not self._may_leave(victim):
                return False
            self._forget(victim)
            self.leaving_count += victim.count
            self.leaving_bytes += victim.size
            victim.give_way()
        return True

    def _may_leave(self, victim: Entry) -> bool:
        return not self.leaving_count or (  # one may always leave, however large it is
            self.leaving_count < self._max_count * _MAX_LEAVING
            and self.leaving_bytes + victim.size <= self._max_bytes * _MAX_LEAVING
        )

    def _victim(self, owner: str, session: str, more: int, what: int, but: Entry | None) -> Entry | None:
        """Return the entry that has to give way to *more* of *owner* and *session*; None if they have the most."""
        own = self._owners.by_name.get(owner)
        kept = self._elsewhere.get(owner, NOTHING) if own is None else own.amounts
        largest = self._owners.largest(what, kept[what] + more)
        if largest is not None:
            found = largest.sessions.largest(what, 0)
            return None if found is None else found.oldest(what, self._ranks(found), but)
        if own is None:
            return None
        found = own.sessions.largest(what, own.sessions.amount(session, what) + more)
        if found is not None:
            return found.oldest(what, self._ranks(found), but)
        for each in own.sessions.by_name.values() if self._idle_ranks else ():
            idle = each.oldest(what, self._ranks(each, only_idle=True), but)
            if idle is not None:
                return idle
        return None

    def _ranks(self, session: SessionShare, *, only_idle: bool = False) -> list[int]:
        """Return the ranks of the entries of *session* in the order in which they give way."""
        ranks = sorted(session.ranks)
        idle = [each for each in ranks if each < self._idle_ranks]
        if len(idle) > 1 and len(session.ranks[idle[0]]) <= self._max_count * _FEW:
            idle.reverse()
        return idle if only_idle else [*idle, *(each for each in ranks if each >= self._idle_ranks)]


def _short(owner: str) -> str:
    """Return the name of *owner*, or a digest of a long name."""
    if len(owner) <= _MAX_NAME_CHARS:
        return owner
    from hashlib import blake2b  # noqa: PLC0415 (it loads OpenSSL, and few names are long)

    return blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _add(session: SessionShare, entry: Entry) -> None:
    entries = session.ranks.get(entry.rank)
    if entries is None:
        entries = session.ranks[entry.rank] = OrderedDict()
    entries[entry] = None
    entry.queue = entries


def _drop(session: SessionShare, entry: Entry) -> None:
    entries = session.ranks[entry.rank]
    del entries[entry]
    entry.queue = None
    if not entries:
        del session.ranks[entry.rank]
