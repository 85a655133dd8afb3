"""Write to a descriptor without waiting for its reader, with a bounded buffer."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.transports.descriptors import open_sink

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OutputBuffer"]

# A slow reader must not hold up the traced messages, and the buffer must not fill the memory.
_MAX_BUFFERED_BYTES: Final = 16 * 1024 * 1024
_LOW_BYTES: Final = 64 * 1024

_DEFAULT_COLUMNS: Final = 80
_FILE_COLUMNS: Final = 200


class OutputBuffer:
    """Write what the descriptor accepts, and buffer the rest. When the buffer is full, skip texts.

    Attributes:
        is_terminal: Whether the descriptor is a terminal.
        failure: Why nothing is written any more: the reader is gone, or the disk is full. None while it works.

    Args:
        descriptor: The descriptor; it is not closed.
        skipped: Returns the text to write in place of a number of skipped texts.
    """

    def __init__(self, descriptor: int, skipped: Callable[[int], bytes]) -> None:
        self.is_terminal: bool = os.isatty(descriptor)
        self.failure: OSError | None = None
        self._descriptor = descriptor
        self._sink = open_sink(descriptor)
        self._skipped = skipped
        self._buffer: deque[memoryview] = deque()
        self._size = 0
        self._skipped_count = 0
        self._filled = anyio.Event()
        self._shrunk: anyio.Event | None = None  # while `drain` or `flushed` waits

    @property
    def columns(self) -> int:
        """The columns of a line: those of the terminal now, or a wide line for a file."""
        if not self.is_terminal:
            return _FILE_COLUMNS
        try:
            return os.get_terminal_size(self._descriptor).columns or _DEFAULT_COLUMNS
        except OSError:
            return _DEFAULT_COLUMNS

    def write(self, data: bytes) -> None:
        """Write *data* now, or buffer it."""
        if self.failure is not None or not data:
            return
        if self._size > _MAX_BUFFERED_BYTES:
            self._skipped_count += 1
            return
        if self._skipped_count:
            data, self._skipped_count = self._skipped(self._skipped_count) + data, 0
        self._buffer.append(memoryview(data))
        self._size += len(data)
        if len(self._buffer) == 1:
            self._flush()

    async def run(self) -> None:
        """Write the buffer whenever the descriptor accepts more; run until cancelled."""
        while True:
            await self._filled.wait()
            await anyio.wait_writable(self._sink.fd)
            self._flush()

    async def drain(self) -> None:
        """Wait until the buffer is nearly empty."""
        await self._wait_for_size(_LOW_BYTES)

    async def flushed(self) -> None:
        """Wait until the buffer is empty."""
        await self._wait_for_size(0)

    def close(self) -> None:
        """Release the resources of this object."""
        self._sink.close()

    async def _wait_for_size(self, size: int) -> None:
        while self._size > size:
            if self._shrunk is None:
                self._shrunk = anyio.Event()
            await self._shrunk.wait()

    def _flush(self) -> None:
        while self._buffer:
            data = self._buffer[0]
            try:
                sent = self._sink.write(data)
            except BlockingIOError:
                break
            except OSError as failure:
                self.failure = failure
                self._buffer.clear()
                self._size = 0
                break
            self._size -= sent
            if sent == len(data):
                self._buffer.popleft()
            else:
                self._buffer[0] = data[sent:]
        if self._buffer:
            self._filled.set()
        elif self._filled.is_set():
            self._filled = anyio.Event()
        if self._shrunk is not None:
            self._shrunk.set()
            self._shrunk = None
