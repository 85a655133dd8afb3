"""Large messages between workers, in pieces that the receiver acknowledges.

Theory of operation. Redis closes the connection of a listener that has 32 MiB to read, and then the streams of all
clients of that worker break. A client may send messages of megabytes, as many as it likes. So a worker has at most two
pieces on their way to each other one: a piece of a long message, and a message that is a single piece and need not wait
for the long ones. The next piece is sent when the receiver has taken the one before. Small messages are sent at once,
but a client may send thousands of them, too. So when those that were sent to a worker take too many bytes, the next one
is sent as a piece: when the receiver has taken it, it has taken those before.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import anyio

from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.worker_messages import Piece, PieceTaken, encode_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["MessagePieces"]

_SMALL_BYTES: Final = 16 * 1024

# What small messages to one worker take together before one of them is sent as a piece.
_MAX_UNCONFIRMED_BYTES: Final = 512 * 1024

# A part of a relayed response (512 KiB) and its headers are one piece.
_PIECE_BYTES: Final = 576 * 1024

# Longer than the longest message of a client, and shorter than what a worker could not hold.
_MAX_BYTES: Final = 64 * 1024 * 1024

_TAKEN_SECONDS: Final = 2.0


class MessagePieces:
    """The large messages of one worker, in both directions.

    Args:
        number: Returns the number of this worker.
        publish: Sends bytes to a worker, and returns whether it listens.
    """

    def __init__(self, number: Callable[[], int], publish: Callable[[int, bytes], Awaitable[bool]]) -> None:
        self._number = number
        self._publish = publish
        self._count = 0
        self._turns: WeakValueDictionary[tuple[int, bool], anyio.Lock] = WeakValueDictionary()
        self._sent: dict[int, anyio.Event] = {}
        self._unconfirmed: Counter[int] = Counter()  # the bytes of the small messages that were sent to each worker
        self._begun: dict[int, tuple[int, bytearray]] = {}  # by worker

    async def send(self, worker: int, data: bytes) -> bool:
        """Send a message to another worker; return False if it does not listen.

        Raises:
            ClusterUnavailable: It does not take a piece.
        """
        if self._needs_no_piece(worker, data):
            return await self._send_small(worker, data)
        place = worker, len(data) > _PIECE_BYTES
        turn = self._turns.get(place)
        if turn is None:
            turn = self._turns[place] = anyio.Lock()
        async with turn:
            if self._needs_no_piece(worker, data):  # another one was taken meanwhile
                return await self._send_small(worker, data)
            self._count += 1
            number = self._count
            for start in range(0, len(data), _PIECE_BYTES):
                end = start + _PIECE_BYTES
                piece = Piece(self._number(), number, data[start:end], start, end < len(data))
                if not await self._send_piece(worker, number, encode_message(piece)):
                    return False
        return True

    def _needs_no_piece(self, worker: int, data: bytes) -> bool:
        return len(data) <= _SMALL_BYTES and self._unconfirmed[worker] <= _MAX_UNCONFIRMED_BYTES

    async def _send_small(self, worker: int, data: bytes) -> bool:
        is_heard = await self._publish(worker, data)
        if is_heard:  # a client may name any number as that of a worker
            self._unconfirmed[worker] += len(data)
        return is_heard

    async def _send_piece(self, worker: int, number: int, piece: bytes) -> bool:
        taken = self._sent[number] = anyio.Event()
        try:
            if not await self._publish(worker, piece):
                return False
            with anyio.move_on_after(_TAKEN_SECONDS):
                await taken.wait()
        finally:
            del self._sent[number]
            # Also if it was not taken, or each of those that wait would wait as long.
            self._unconfirmed.pop(worker, None)
        if not taken.is_set():
            raise ClusterUnavailable("another worker has not confirmed in time that it received a message")
        return True

    def taken(self, message: PieceTaken) -> None:
        """Let the next piece be sent."""
        event = self._sent.get(message.message)
        if event is not None:
            event.set()

    def arrived(self, piece: Piece) -> bytes | None:
        """Return the message that *piece* completes; None if it completes none."""
        if not piece.start:
            if not piece.more:
                return piece.data
            self._begun[piece.worker] = piece.message, bytearray()  # it sends one after the other
        message, data = self._begun.get(piece.worker, (0, bytearray()))
        if message != piece.message or len(data) != piece.start or len(data) > _MAX_BYTES:
            self._begun.pop(piece.worker, None)
            return None
        data += piece.data
        if piece.more:
            return None
        del self._begun[piece.worker]
        return bytes(data)

    def forget(self) -> None:
        """Drop what has arrived of messages that are not complete: the rest may be lost."""
        self._begun.clear()
        self._unconfirmed.clear()
