"""Lists in pages: in order of registration, with cursors that outlive additions, removals and restarts.

Each entry gets a number that is never used again, and a cursor names the last number that a page showed. So a page
neither repeats nor skips what was there all the time, and every process that registers the same entries in the same
order understands the cursors of the others.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from operator import itemgetter
from typing import Generic, TypeVar

from msgspec import UNSET, UnsetType

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.messages import Code

__all__ = ["PAGE_SIZE", "PaginatedList"]

T = TypeVar("T")

# A page of a hundred tools is some 50 KB: small beside the message limit, and enough that hardly a server has a second.
PAGE_SIZE = 100
# The longest that we write is far shorter; what is longer is not decoded at all.
MAX_CURSOR_CHARS = 64


class PaginatedList(Generic[T]):
    """Entries by key, in order of registration.

    Attributes:
        entries: What is registered. It is replaced, never changed, so that a thread may register while another reads.
    """

    def __init__(self, kind: str, page_size: int = PAGE_SIZE) -> None:
        if page_size < 1:
            raise UsageError(f"page_size is {page_size}; a page holds one entry at least")
        self.entries: dict[str, T] = {}
        self._kind = kind
        self._page_size = page_size
        self._issued = 0
        self._numbered: dict[str, tuple[int, T]] = {}

    @property
    def had_any(self) -> bool:
        """Whether there is or was an entry: what was offered once stays offered, as an empty list if need be."""
        return self._issued > 0

    def add(self, key: str, entry: T) -> None:
        """Append an entry under a key that is free."""
        self._issued += 1
        self._replace({**self._numbered, key: (self._issued, entry)})

    def remove(self, key: str) -> T:
        """Take an entry out and return it.

        Raises:
            UsageError: There is none.
        """
        if key not in self.entries:
            raise UsageError(f"there is no {self._kind} {key!r} to remove")
        removed = self.entries[key]
        self._replace({other: each for other, each in self._numbered.items() if other != key})
        return removed

    def _replace(self, numbered: dict[str, tuple[int, T]]) -> None:
        self._numbered = numbered
        self.entries = {key: entry for key, (_, entry) in numbered.items()}

    def page(self, cursor: str | UnsetType) -> tuple[list[T], str | UnsetType]:
        """Return the page that *cursor* asks for, and the cursor of the next; UNSET if there is none.

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
        """Return the number that a cursor names."""
        try:
            text = urlsafe_b64decode(cursor).decode() if len(cursor) <= MAX_CURSOR_CHARS else ""
            number = int(text.rpartition(" ")[2])
        except ValueError:
            number = 0
        # A decoder skips characters that it does not know; only what we would write ourselves is ours.
        if not 0 < number <= self._issued or self._cursor(number) != cursor:
            raise RequestError(Code.INVALID_PARAMS, "Invalid cursor")
        return number
