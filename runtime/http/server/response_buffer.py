"""What goes back over one HTTP response, until there will be no more.

Theory of operation. Whether a response is one JSON document or a stream of events is not known when its request comes:
it depends on whether anything has to be said before the answer. So messages wait here as they are, and become events
from the moment on that somebody decides for a stream.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.transports.auto_reset_event import auto_reset_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent

__all__ = ["ResponseBuffer"]


class ResponseBuffer:
    """Messages on their way to one response; a `Writer`.

    Args:
        most_bytes: How much waits before it is full.

    Attributes:
        is_over: Whether there will be no more.
        is_stream: Whether it has been decided that the response is a stream of events.
        is_lost: Whether nobody reads any more.
        has_answer: Whether what came last is the answer; without it, what came before is none.
    """

    __slots__ = (
        "_chunks",
        "_most",
        "_render",
        "_room",
        "_size",
        "_waker",
        "has_answer",
        "is_lost",
        "is_over",
        "is_stream",
    )

    def __init__(self, most_bytes: int) -> None:
        self.is_over: bool = False
        self.is_stream: bool = False
        self.is_lost: bool = False
        self.has_answer: bool = False
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._most = most_bytes
        self._render: Callable[[bytes], bytes] | None = None
        self._waker: AutoResetEvent | None = None
        self._room: anyio.Event | None = None

    @property
    def is_full(self) -> bool:
        """Whether the client reads too slowly."""
        return self._size >= self._most

    @property
    def is_ready(self) -> bool:
        """Whether there is something to do: to take, to begin a stream, or to end."""
        return bool(self._chunks) or self.is_over

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._chunks

    def write(self, message: bytes) -> None:
        """Send *message*; after the end nothing happens."""
        if self.is_over:
            return
        if self._render is not None:
            message = self._render(message)
        self._chunks.append(message)
        self._size += len(message)
        self._wake()

    def begin(self, render: Callable[[bytes], bytes], first: bytes = b"") -> None:
        """Make it a stream of events.

        Args:
            render: Makes an event of a message; of those that wait, too.
            first: What comes before all of them.
        """
        self.is_stream = True
        self._render = render
        waiting = [render(each) for each in self._chunks]
        self._chunks = deque([first, *waiting] if first else waiting)
        self._size = sum(map(len, self._chunks))
        self._wake()

    def push(self, chunk: bytes) -> None:
        """Send *chunk* of a stream as it is."""
        if not self.is_over:
            self._chunks.append(chunk)
            self._size += len(chunk)
            self._wake()

    def end(self, *, has_answer: bool = False) -> None:
        """Take it that there will be no more; what waits is still sent."""
        self.has_answer = self.has_answer or has_answer
        self.is_over = True
        self._wake()
        self._make_room()

    def lose(self) -> None:
        """Take it that nobody reads any more."""
        self.is_lost = True
        self.drop()
        self.end()

    def drop(self) -> None:
        """Send nothing of what waits."""
        self._chunks.clear()
        self._size = 0

    def only(self) -> bytes | None:
        """Return the answer, if it is the one message that there is and no stream has begun."""
        if self.is_stream or not self.has_answer or len(self._chunks) != 1:
            return None
        return self._chunks[0]

    def take(self) -> bytes:
        """Return what there is, oldest first."""
        chunks, self._chunks, self._size = self._chunks, deque(), 0
        self._make_room()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def ready(self) -> None:
        """Return when there is something to do; one task waits at a time."""
        while not self.is_ready:
            if self._waker is None:
                self._waker = auto_reset_event()
            await self._waker.wait()

    async def drain(self) -> None:
        """Return when the client has read most of it, or nobody will."""
        while self.is_full and not self.is_over:
            if self._room is None:
                self._room = anyio.Event()
            await self._room.wait()

    def _wake(self) -> None:
        if self._waker is not None:
            self._waker.wake()

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = None
