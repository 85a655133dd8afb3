"""A descriptor that people read, written to without ever waiting for them."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.transports.descriptors import open_sink

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Printer"]

# How much may wait to be read: whoever reads must not hold up what is printed, nor may it fill our memory.
_MOST_BYTES: Final = 16 * 1024 * 1024
_FEW_BYTES: Final = 64 * 1024

_USUAL_COLUMNS: Final = 80
_FILE_COLUMNS: Final = 200


class Printer:
    """Writes to a descriptor what it takes, and keeps the rest for later; if that gets too much, skips some.

    Attributes:
        is_terminal: Whether it leads to a terminal.

    Args:
        descriptor: Where to write; it stays open.
        skipped: Returns what to write in place of so many texts that were skipped.
    """

    def __init__(self, descriptor: int, skipped: Callable[[int], bytes]) -> None:
        self.is_terminal: bool = os.isatty(descriptor)
        self._descriptor = descriptor
        self._sink = open_sink(descriptor)
        self._skipped = skipped
        self._waiting: deque[memoryview] = deque()
        self._size = 0
        self._count_skipped = 0
        self._is_lost = False
        self._filled = anyio.Event()
        self._moved: anyio.Event | None = None  # if somebody waits for the size to shrink

    @property
    def columns(self) -> int:
        """The columns of a line: of the terminal as it is now; many if there is none."""
        if not self.is_terminal:
            return _FILE_COLUMNS
        try:
            return os.get_terminal_size(self._descriptor).columns or _USUAL_COLUMNS
        except OSError:
            return _USUAL_COLUMNS

    def write(self, data: bytes) -> None:
        """Write *data*, now or later."""
        if self._is_lost or not data:
            return
        if self._size > _MOST_BYTES:
            self._count_skipped += 1
            return
        if self._count_skipped:
            data, self._count_skipped = self._skipped(self._count_skipped) + data, 0
        self._waiting.append(memoryview(data))
        self._size += len(data)
        if len(self._waiting) == 1:
            self._flush()

    async def run(self) -> None:
        """Write what has to wait, until cancelled."""
        while True:
            await self._filled.wait()
            await anyio.wait_writable(self._sink.fd)
            self._flush()

    async def drain(self) -> None:
        """Return when little waits to be written."""
        await self._shrunk(_FEW_BYTES)

    async def flushed(self) -> None:
        """Return when all is written."""
        await self._shrunk(0)

    def close(self) -> None:
        """Give up what was opened here."""
        self._sink.close()

    async def _shrunk(self, size: int) -> None:
        while self._size > size:
            if self._moved is None:
                self._moved = anyio.Event()
            await self._moved.wait()

    def _flush(self) -> None:
        while self._waiting:
            data = self._waiting[0]
            try:
                sent = self._sink.write(data)
            except BlockingIOError:
                break
            except OSError:  # nobody reads it any more, or the disk is full
                self._is_lost = True
                self._waiting.clear()
                self._size = 0
                break
            self._size -= sent
            if sent == len(data):
                self._waiting.popleft()
            else:
                self._waiting[0] = data[sent:]
        if self._waiting:
            self._filled.set()
        elif self._filled.is_set():
            self._filled = anyio.Event()
        if self._moved is not None:
            self._moved.set()
            self._moved = None
