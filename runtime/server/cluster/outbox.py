"""Messages that wait to be sent to other workers.

Theory of operation. Redis takes some thousands of messages a second. A client whose calls write faster would fill the
outbox, and messages for others would be late or dropped: a change that concerns other clients, or the end of a relayed
request. So the owners alternate, and an owner may have at most a quarter of the room that is left. One owner alone gets
a fifth of the outbox, two get a sixth each, and there is always room for messages without an owner. The messages of one
owner, and those without an owner, stay in order.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final

import anyio
from msgspec import Struct

__all__ = ["Outbox", "Waiting"]

# They are small but for those to streams of sessions, whose clients can be slow.
_MAX_WAITING: Final = 10_000
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024

# An owner may have this part of the free room.
_PART: Final = 4


class Waiting(Struct, eq=False):
    """A message that waits.

    Attributes:
        worker: The number of the worker that gets it; None for all.
        data: The message.
        owner: The client whose call has made it; empty if that is unknown.
        unheard: Called if no worker listens.
    """

    worker: int | None
    data: bytes
    owner: str = ""
    unheard: Callable[[], object] | None = None


class Outbox:
    """Messages that wait to be sent; the owners alternate.

    Attributes:
        is_full: Whether a message was refused since the outbox was empty.
    """

    def __init__(self) -> None:
        self.is_full: bool = False
        self._waiting: OrderedDict[str, deque[Waiting]] = OrderedDict()  # by owner; the next one is first
        self._sizes: Counter[str] = Counter()  # the bytes of each owner
        self._count = 0
        self._bytes = 0
        self._filled = anyio.Event()

    def add(self, message: Waiting) -> bool:
        """Add *message*, or return False if there is no room for it."""
        free, free_bytes = _MAX_WAITING - self._count, _MAX_WAITING_BYTES - self._bytes
        size, owner = len(message.data), message.owner
        has_room = free > 0 and size <= free_bytes
        if owner in self._waiting and owner:  # a single large message of an owner is taken
            count = len(self._waiting[owner]) + 1
            has_room = count * _PART <= free and (self._sizes[owner] + size) * _PART <= free_bytes
        if has_room:
            self._waiting.setdefault(owner, deque()).append(message)
            self._note(message, 1)
            self._filled.set()
        else:
            self.is_full = True
        return has_room

    def put_back(self, message: Waiting) -> None:
        """Let *message*, which was taken, be the next one again."""
        self._waiting.setdefault(message.owner, deque()).appendleft(message)
        self._waiting.move_to_end(message.owner, last=False)
        self._note(message, 1)

    async def take(self) -> Waiting:
        """Return the next message when there is one."""
        while not self._waiting:
            self.is_full = False
            self._filled = anyio.Event()
            await self._filled.wait()
        owner, messages = self._waiting.popitem(last=False)
        message = messages.popleft()
        self._note(message, -1)
        if messages:
            self._waiting[owner] = messages
        else:
            del self._sizes[owner]
        return message

    def _note(self, message: Waiting, sign: int) -> None:
        size = sign * len(message.data)
        self._count += sign
        self._bytes += size
        self._sizes[message.owner] += size
