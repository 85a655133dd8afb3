"""Share the event loop's time among connections that have sent something at the same time.

Theory of operation. A client may open thousands of connections, and send a request on all of them at once. To parse a
request and to start its application takes some tenths of a millisecond, so that all of them would take seconds in one
turn of the event loop. So a turn parses what some connections have sent. What others have sent waits for the next turn,
in which the addresses alternate. A connection whose data waits is not read. The end of a connection, which wakes its
requests, is such a piece, too.

`FairTurns` does the same for messages; it knows of a message only when its body has been read.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ReadTurns"]

_T = TypeVar("_T")

# What one turn parses. A request takes 0.1 to 0.4 ms until its application waits.
_MAX_READS: Final = 64

# What may wait. Event loops read up to 256 KiB at once. With more, data is parsed at once, and then counted by others.
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024


class ReadTurns:
    """Says for all connections of a process whose data is parsed in this turn of the event loop."""

    def __init__(self) -> None:
        self._rest = _MAX_READS
        self._is_running = False
        self._waiting: dict[str, deque[tuple[int, Callable[[], None]]]] = {}
        self._waiting_bytes = 0

    def is_turn_of(
        self,
        owner: str,
        size: int,
        is_behind: bool,  # noqa: FBT001
        parse: Callable[[_T], None],
        data: _T,
    ) -> bool:
        """Return whether data may be parsed now. If not, *parse* is called with it in a later turn.

        Args:
            owner: The address of the client.
            size: The length of the data.
            is_behind: Whether other data of the connection waits.
            parse: Parses it.
            data: The data.
        """
        if not self._is_running:
            self._is_running = True
            get_running_loop().call_soon(self._next_turn)
        is_now = self._rest > 0 and not self._waiting
        if is_now or (not is_behind and self._waiting_bytes + size > _MAX_WAITING_BYTES):
            self._rest -= 1
            return True
        self._waiting.setdefault(owner, deque()).append((size, partial(parse, data)))
        self._waiting_bytes += size
        return False

    def _next_turn(self) -> None:
        self._is_running = bool(self._waiting) or self._rest < _MAX_READS
        self._rest = _MAX_READS
        if self._is_running:
            get_running_loop().call_soon(self._next_turn)
        while self._waiting and self._rest > 0:
            owner = next(iter(self._waiting))
            places = self._waiting.pop(owner)
            size, parse = places.popleft()
            if places:
                self._waiting[owner] = places  # behind the others
            self._waiting_bytes -= size
            self._rest -= 1
            parse()
