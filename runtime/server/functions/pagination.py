"""Paginated lists, in order of registration, with cursors that stay valid after additions, removals and restarts.

Each entry gets a number that is never reused, and a cursor holds the last number of a page. So the pages neither repeat
nor skip an entry that is registered all the time, and processes that register the same entries in the same order
accept each other's cursors.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.argument_checks import check_whole_numbers
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.access import NO_SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["PAGE_SIZE", "PaginatedList", "Registered"]

T = TypeVar("T")

# A page of 100 tools takes about 50 KB, far less than the message limit, and few servers have a second page.
PAGE_SIZE = 100
# Our own cursors are far shorter; a longer one is refused without decoding it.
MAX_CURSOR_CHARS = 64


class Registered(NamedTuple, Generic[T]):
    """An entry, its number, the tags that it was registered with, and the scopes that it needs."""

    number: int
    entry: T
    tags: frozenset[str]
    scopes: frozenset[str] = NO_SCOPES


class PaginatedList(Generic[T]):
    """Entries by key, in order of registration. Some may be hidden.

    Args:
        kind: What an entry is called in errors and cursors.
        page_size: The largest number of entries in a page.
        shows: Returns whether the entry with a key and tags is shown.
        is_strict: Whether an empty cursor is refused, instead of read as none.

    Attributes:
        entries: The shown entries. The dict is replaced, never changed, so that one thread may register while another
            reads. It is replaced only when other entries are shown than before.
        registered: All entries, hidden ones included; replaced likewise.
        had_any: Whether there is or was an entry; a declared capability stays declared, with an empty list if need be.
    """

    def __init__(
        self,
        kind: str,
        page_size: int = PAGE_SIZE,
        shows: Callable[[str, frozenset[str]], bool] = lambda _key, _tags: True,
        *,
        is_strict: bool = False,
    ) -> None:
        check_whole_numbers(page_size=page_size)
        if page_size < 1:
            raise UsageError(f"`page_size` is {page_size}, but a page holds at least one entry; use 1 or more")
        self.entries: Mapping[str, T] = {}
        self.registered: Mapping[str, Registered[T]] = {}
        self.had_any: bool = False
        self._kind = kind
        self._is_strict = is_strict
        self._page_size = page_size
        self._shows = shows
        self._issued = 0
        self._shown: Mapping[str, Registered[T]] = self.registered

    def get(self, key: str) -> T | None:
        """Return the entry with *key*, even a hidden one; None if there is none."""
        found = self.registered.get(key)
        return None if found is None else found.entry

    def scopes(self, key: str) -> frozenset[str]:
        """Return the scopes that the entry with *key* needs; none if there is no such entry."""
        found = self.registered.get(key)
        return NO_SCOPES if found is None else found.scopes

    @property
    def has_scopes(self) -> bool:
        """Whether an entry needs scopes."""
        return any(each.scopes for each in self.registered.values())

    def add(self, key: str, entry: T, tags: frozenset[str] = frozenset(), scopes: frozenset[str] = NO_SCOPES) -> None:
        """Append an entry under a key that is not in use."""
        self._issued += 1
        self.had_any = True
        shows_all = self._shown is self.registered  # then both stay one dict
        self.registered = {**self.registered, key: Registered(self._issued, entry, tags, scopes)}
        if self._shows(key, tags):
            self._shown = self.registered if shows_all else {**self._shown, key: self.registered[key]}
            self.entries = {**self.entries, key: entry}

    def remove(self, key: str) -> T:
        """Remove an entry and return it.

        Raises:
            UsageError: There is none.
        """
        if key not in self.registered:
            raise UsageError(
                f"there is no {self._kind} {key!r} to remove; registered: {', '.join(self.registered) or 'none'}"
            )
        removed = self.registered[key]
        self.registered = {other: each for other, each in self.registered.items() if other != key}
        self.refresh()
        return removed.entry

    def refresh(self) -> None:
        """Find again which entries are shown."""
        self._show({key: each for key, each in self.registered.items() if self._shows(key, each.tags)})

    def follow(self, base: PaginatedList[T]) -> None:
        """Take over the entries of *base*, and show those that both show."""
        self.registered, self._issued = base.registered, base._issued
        shown = {key: each for key, each in self.registered.items() if self._shows(key, each.tags)}
        self.had_any = self.had_any or bool(shown)
        self._show({key: each for key, each in shown.items() if key in base.entries})

    def _show(self, shown: Mapping[str, Registered[T]]) -> None:
        if [each.number for each in shown.values()] != [each.number for each in self._shown.values()]:
            self.entries = {key: each.entry for key, each in shown.items()}
        self._shown = self.registered if len(shown) == len(self.registered) else shown

    def page(
        self, cursor: str | UnsetType, grants: Callable[[frozenset[str]], bool] | None = None
    ) -> tuple[list[T], str | UnsetType]:
        """Return the page at *cursor*, and the cursor of the next page; UNSET if there is none.

        *grants* returns whether the client may see an entry that needs scopes; without it, the client may see all.

        An empty cursor is none of ours. Some clients send it for the first page, and all other SDKs take it, so it is
        refused only if the server is strict.

        Raises:
            RequestError: The cursor is not one of ours. Spec: 2026-07-28, server/utilities/pagination#error-handling.
        """
        shown = list(self._shown.values())
        start = 0
        if cursor is not UNSET and (cursor or self._is_strict):
            start = bisect_right(shown, self._number(cursor), key=attrgetter("number"))
        end = start + self._page_size
        granted = [each for each in shown[start:end] if grants is None or not each.scopes or grants(each.scopes)]
        entries = [each.entry for each in granted]
        return entries, self._cursor(shown[end - 1].number) if end < len(shown) else UNSET

    def _cursor(self, number: int) -> str:
        return urlsafe_b64encode(f"{self._kind} {number}".encode()).decode()

    def _number(self, cursor: str) -> int:
        """Return the number in a cursor."""
        try:
            text = urlsafe_b64decode(cursor).decode() if len(cursor) <= MAX_CURSOR_CHARS else ""
            number = int(text.rpartition(" ")[2])
        except ValueError:
            number = 0
        # The base64 decoder skips unknown characters, so compare with the cursor that we would write.
        if not 0 < number <= self._issued or self._cursor(number) != cursor:
            raise RequestError(ErrorCode.INVALID_PARAMS, "Invalid cursor")
        return number
