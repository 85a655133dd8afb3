"""What the owners of a quota have, and their sessions, and which of them has the most.

Theory of operation. A large entry may need the room of a thousand small ones. They give way one by one, each from the
share that is the largest then, and there can be thousands of shares. So the shares are ranked in a heap, until one of
them grows.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Iterable

    from mcpgen.runtime.server.quota import Entry

__all__ = ["BYTES", "COUNT", "NOTHING", "OwnerShare", "SessionShare", "Share", "Shares"]

# What is counted: things, and their bytes.
COUNT: Final = 0
BYTES: Final = 1

NOTHING: Final = (0, 0)


class Share:
    """What one owner, or one session of it, has: how many things (0), and how many bytes (1)."""

    __slots__ = ("amounts",)

    def __init__(self, count: int = 0, size: int = 0) -> None:
        self.amounts: list[int] = [count, size]

    def kept_here(self, what: int) -> int:
        """Return how much of *what* it has at this worker."""
        return self.amounts[what]


class SessionShare(Share):
    """What one session has, and its entries by rank, oldest first."""

    __slots__ = ("ranks",)

    def __init__(self) -> None:
        super().__init__()
        # OrderedDict, since a dict takes longer to find its first entry after each removal of the first.
        self.ranks: dict[int, OrderedDict[Entry, None]] = {}

    def oldest(self, what: int, ranks: Iterable[int], but: Entry | None) -> Entry | None:
        """Return the first entry of *ranks* that can end early and has some of *what*."""
        for rank in ranks:
            for each in self.ranks[rank]:
                if each.can_give_way and each is not but and (what == COUNT or each.size):
                    return each
        return None


_T = TypeVar("_T", bound=Share)


class Shares(Generic[_T]):
    """The shares of all owners, or of all sessions of one owner, by name."""

    __slots__ = ("_ranked", "by_name", "most")

    def __init__(self) -> None:
        self.by_name: dict[str, _T] = {}
        self.most: list[int] = [0, 0]  # no share has more
        # The shares as heaps, the largest first; of what has grown since, None. An amount may have fallen since.
        self._ranked: list[list[tuple[int, int, _T]] | None] = [None, None]

    def change(self, share: _T, count: int, size: int) -> None:
        """Add *count* things and *size* bytes to *share*, or take them away if they are negative."""
        amounts, most = share.amounts, self.most
        amounts[COUNT] += count
        amounts[BYTES] += size
        most[COUNT] = max(most[COUNT], amounts[COUNT])
        most[BYTES] = max(most[BYTES], amounts[BYTES])
        if count > 0:
            self._ranked[COUNT] = None
        if size > 0:
            self._ranked[BYTES] = None

    def amount(self, name: str, what: int) -> int:
        """Return how much of *what* the share *name* has."""
        found = self.by_name.get(name)
        return 0 if found is None else found.amounts[what]

    def largest(self, what: int, above: int) -> _T | None:
        """Return the largest share of which a part is here, if it is more than *above*."""
        if self.most[what] <= above:  # most often; so an owner that is refused again and again costs little
            return None
        ranked = self._ranked[what]
        if ranked is None:
            ranked = [
                (-each.amounts[what], number, each)
                for number, each in enumerate(self.by_name.values())
                if each.kept_here(what)
            ]
            heapify(ranked)
            self._ranked[what] = ranked  # a large entry may need the room of a thousand small ones, one by one
        while ranked and ranked[0][0] != -ranked[0][2].amounts[what]:
            _, number, share = ranked[0]
            if share.kept_here(what):
                heapreplace(ranked, (-share.amounts[what], number, share))
            else:
                heappop(ranked)
        self.most[what] = -ranked[0][0] if ranked else 0
        return ranked[0][2] if self.most[what] > above else None


class OwnerShare(Share):
    """What one owner has at all workers, what of it is elsewhere, and its sessions here."""

    __slots__ = ("elsewhere", "sessions")

    def __init__(self, elsewhere: tuple[int, int]) -> None:
        super().__init__(*elsewhere)
        self.elsewhere: tuple[int, int] = elsewhere
        self.sessions: Shares[SessionShare] = Shares()

    def kept_here(self, what: int) -> int:
        """Return how much of *what* it has at this worker."""
        return self.amounts[what] - self.elsewhere[what]
