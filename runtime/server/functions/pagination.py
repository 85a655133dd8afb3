"""Paginated lists, in order of registration, with cursors that stay valid after additions, removals and restarts.

Each entry gets a number that is never reused, and a cursor holds the last number of a page. So the pages neither repeat
nor skip an entry that is registered all the time, and processes that register the same entries in the same order
accept each other's cursors.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from operator import itemgetter
from typing import Generic, TypeVar

from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.newest import ErrorCode

__all__ = ["PAGE_SIZE", "PaginatedList"]

T = TypeVar("T")

# A page of 100 tools takes about 50 KB, far less than the message limit, and few servers have a second page.
PAGE_SIZE = 100
# Our own cursors are far shorter; a longer one is refused without decoding it.
MAX_CURSOR_CHARS = 64


class PaginatedList(Generic[T]):
    """Entries by key, in order of registration.

    Attributes:
        entries: The registered entries. The dict is replaced, never changed, so that one thread may register while
            another reads.
    """

    def __init__(self, kind: str, page_size: int = PAGE_SIZE) -> None:
        if page_size < 1:
            raise UsageError(f"`page_size` is {page_size}, but a page holds at least one entry; use 1 or more")
        self.entries: dict[str, T] = {}
        self._kind = kind
        self._page_size = page_size
        self._issued = 0
        self._numbered: dict[str, tuple[int, T]] = {}

    @property
    def had_any(self) -> bool:
        """Whether there is or was an entry; a declared capability stays declared, with an empty list if need be."""
        return self._issued > 0

    def add(self, key: str, entry: T) -> None:
        """Append an entry under a key that is not in use."""
        self._issued += 1
        self._replace({**self._numbered, key: (self._issued, entry)})

    def remove(self, key: str) -> T:
        """Remove an entry and return it.

        Raises:
            UsageError: There is none.
        """
        if key not in self.entries:
            raise UsageError(
                f"there is no {self._kind} {key!r} to remove; there are {', '.join(self.entries) or 'none'}"
            )
        removed = self.entries[key]
        self._replace({other: each for other, each in self._numbered.items() if other != key})
        return removed

    def _replace(self, numbered: dict[str, tuple[int, T]]) -> None:
        self._numbered = numbered
        self.entries = {key: entry for key, (_, entry) in numbered.items()}

    def page(self, cursor: str | UnsetType) -> tuple[list[T], str | UnsetType]:
        """Return the page at *cursor*, and the cursor of the next page; UNSET if there is none.

        Raises:
            RequestError: The cursor is not one of ours. Spec: 2026-07-28, server/utilities/pagination#error-handling.
        """
        numbered = list(self._numbered.values())
        start = 0 if cursor is UNSET else bisect_right(numbered, self._number(cursor), key=itemgetter(0))
        end = start + self._page_size
        shown = [entry for _, entry in numbered[start:end]]
        return shown, self._cursor(numbered[end - 1][0]) if end < len(numbered) else UNSET

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
