"""Relay bytes between our standard streams and a server process, unchanged, and pass them to a trace.

Theory of operation. A `_Copier` for each direction reads a chunk and writes all of it before it reads again, so a slow
reader slows down the other side, as without a relay. The trace gets a chunk after its writing has begun and before
anything else can run, so it sees a request before the response.

The relay ends when our input ends, when our output has no reader, when the server closes a stream or exits, or at
`stop`. Then it closes the server's input and ends the server as a client does (basic/lifecycle, "Shutdown"), and still
relays the server's last output.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import anyio.to_thread
from anyio.lowlevel import cancel_shielded_checkpoint

from mcpgen.runtime.transports.child_process import read_chunk
from mcpgen.runtime.transports.descriptors import READ_BYTES, Sink, Source
from mcpgen.runtime.transports.spawner import open_group

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.process_transport import Process
    from mcpgen.runtime.transports.standard_streams import StandardStreams

__all__ = ["ByteReader", "ByteWriter", "StdioRelay", "TraceSink"]

# For the server to exit after `stop`: the host that stopped us may kill us a second or two later.
_STOP_SECONDS: Final = 0.5

# For processes that the server left behind, to exit after SIGTERM.
_CHILDREN_SECONDS: Final = 0.5

# To read what is left in a pipe; it takes longer only if another process holds the pipe open.
_LAST_OUTPUT_SECONDS: Final = 0.5

# A killed process ends at once, unless it hangs in a device.
_KILL_SECONDS: Final = 2.0

# What is traced in one turn of the event loop. To describe a line takes 30 µs, and one read can have 32,000 lines.
_TURN_BYTES: Final = 4096

_WATCHING: Final = "thread" if sys.platform == "win32" else "loop"


class TraceSink(Protocol):
    """The receiver of everything that a relay moves."""

    def to_server(self, data: bytes) -> None:
        """Receive a chunk of our standard input; empty at its end."""

    def to_client(self, data: bytes) -> None:
        """Receive a chunk of the server's output; empty at its end."""

    async def stderr(self, data: bytes) -> None:
        """Receive a chunk of the server's standard error; empty at its end. No more is read before this returns."""


class StdioRelay:
    """Start a server, and move bytes between it and the standard streams.

    Args:
        server: The command of the server, and its environment.
        streams: Our standard streams.
        trace_sink: The receiver of all bytes.
        limits: The time limits for the end of the server.

    Raises:
        UsageError: The server cannot be started.
    """

    def __init__(self, server: Process, streams: StandardStreams, trace_sink: TraceSink, limits: ClientLimits) -> None:
        self._child = server.spawn()
        self._streams = streams
        self._trace_sink = trace_sink
        self._limits = limits
        self._stopped = anyio.Event()
        self._output: _Copier | None = None
        self._input_scope = anyio.CancelScope()
        self._input_ended = anyio.Event()
        self._running_outputs = 0  # of the server's output and errors
        self._outputs_ended = anyio.Event()
        self._wait_scope: anyio.CancelScope | None = None  # while we wait for the server to exit
        self._stop_count = 0

    @property
    def status(self) -> int | None:
        """The server's exit status, negative for the signal that ended it; None if it is unknown."""
        return self._child.status

    def stop(self) -> None:
        """Stop soon; at the second call, at once."""
        self._stop_count += 1
        self._stopped.set()
        if self._wait_scope is not None:
            self._wait_scope.deadline = min(self._wait_scope.deadline, anyio.current_time() + self._max_wait())

    async def run(self) -> None:
        """Relay until one side ends, then end the server's process."""
        try:
            async with open_group() as group:
                group.start_soon(self._watch)
                group.start_soon(self._copy_input)
                for copy in (self._copy_output, self._copy_stderr):
                    self._running_outputs += 1
                    group.start_soon(self._counted, copy)
                await self._stopped.wait()
                await self._end()
                await self._read_last_output()
        finally:
            self._child.release()  # kills processes that are left

    async def _read_last_output(self) -> None:
        """Wait until the server's output is written, as long as the host reads it.

        A host that reads nothing has the time in which a server has to end.
        """
        written, deadline = -1, 0.0
        while not self._outputs_ended.is_set():
            if self._output is not None and self._output.written_bytes != written:
                written = self._output.written_bytes
                deadline = anyio.current_time() + self._limits.stdin_seconds + self._limits.term_seconds
            with anyio.move_on_after(_LAST_OUTPUT_SECONDS):
                await self._outputs_ended.wait()
            is_read_slowly = self._output is not None and self._output.is_blocked
            if self._stop_count or not is_read_slowly or anyio.current_time() > deadline:
                return

    async def _watch(self) -> None:
        await self._child.watch()
        self._stopped.set()

    async def _copy_input(self) -> None:
        server = Sink(self._child.stdin, partial(os.write, self._child.stdin), _WATCHING)
        with self._input_scope:
            await _Copier(self._streams.source, server, self._trace_sink.to_server).run()
        self._input_ended.set()
        self._stopped.set()

    async def _copy_output(self) -> None:
        server = Source(self._child.stdout, partial(os.read, self._child.stdout, READ_BYTES), _WATCHING)
        self._output = _Copier(server, self._streams.sink, self._trace_sink.to_client)
        await self._output.run()
        self._stopped.set()
        # If the host reads no more, discard the output, so that the server is not blocked.
        while await read_chunk(self._child.stdout, READ_BYTES):
            pass

    async def _copy_stderr(self) -> None:
        data = b"any"
        while data:
            data = await read_chunk(self._child.stderr, READ_BYTES)
            await self._trace_sink.stderr(data)

    async def _counted(self, copy: Callable[[], Awaitable[None]]) -> None:
        await copy()
        self._running_outputs -= 1
        if not self._running_outputs:
            self._outputs_ended.set()

    async def _end(self) -> None:
        """End the server and its child processes: close its input, then SIGTERM, then SIGKILL."""
        child, limits = self._child, self._limits
        self._input_scope.cancel()
        await self._input_ended.wait()
        child.close_stdin()
        with self._wait_at_most(limits.stdin_seconds):
            await child.exited.wait()
        if not child.exited.is_set() or child.has_others():
            child.terminate()
            with self._wait_at_most(_CHILDREN_SECONDS if child.exited.is_set() else limits.term_seconds):
                await child.exited.wait()
                await child.wait_others_ended()
        if not child.exited.is_set() or child.has_others():
            child.kill()
            with anyio.move_on_after(_KILL_SECONDS):
                await child.exited.wait()

    @contextmanager
    def _wait_at_most(self, seconds: float) -> Generator[None]:
        with anyio.move_on_after(min(seconds, self._max_wait())) as self._wait_scope:
            yield
        self._wait_scope = None

    def _max_wait(self) -> float:
        return (math.inf, _STOP_SECONDS)[self._stop_count] if self._stop_count < 2 else 0  # noqa: PLR2004 (second stop)


class _Copier:
    """Copy a source to a sink, and pass each chunk to *trace*.

    Attributes:
        is_blocked: Whether it waits for the reader of the sink.
    """

    def __init__(self, source: Source, sink: Sink, trace: Callable[[bytes], None]) -> None:
        self.is_blocked = False
        self._reader = ByteReader(source)
        self._writer = ByteWriter(sink)
        self._trace = trace

    @property
    def written_bytes(self) -> int:
        """How much the sink has taken."""
        return self._writer.written_bytes

    async def run(self) -> None:
        """Copy until the source ends or the sink has no reader."""
        data = b"any"
        while data:
            data = await self._reader.read()
            for start in range(0, len(data) or 1, _TURN_BYTES):
                piece = data[start : start + _TURN_BYTES]
                rest = self._writer.write_now(piece)
                self._trace(piece)
                self.is_blocked = True
                if not await self._writer.write_rest(rest):
                    return
                self.is_blocked = False
                await cancel_shielded_checkpoint()  # what was read is written, also if we are cancelled


class ByteReader:
    """Read a source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._limiter = anyio.CapacityLimiter(1)  # its own: threads that hang may use up a shared one

    async def read(self) -> bytes:
        """Return some bytes when there are any; empty at the end."""
        while True:
            if self._source.watching == "thread":
                data = await anyio.to_thread.run_sync(
                    _read, self._source, limiter=self._limiter, abandon_on_cancel=True
                )
            else:
                await anyio.wait_readable(self._source.fd)
                data = _read(self._source)
            if data is not None:
                return data


class ByteWriter:
    """Write to a sink.

    Attributes:
        written_bytes: How much the sink has taken in `write_rest`.
    """

    def __init__(self, sink: Sink) -> None:
        self.written_bytes: int = 0
        self._sink = sink
        self._limiter = anyio.CapacityLimiter(1)

    def write_now(self, data: bytes) -> memoryview | None:
        """Write what the sink takes without waiting, and return the rest; None if the sink has no reader."""
        rest = memoryview(data)
        return rest if self._sink.watching == "thread" else _write(self._sink, rest)

    async def write_rest(self, rest: memoryview | None) -> bool:
        """Write *rest*, as fast as the reader reads; return False if the sink has no reader."""
        while rest:
            before = len(rest)
            rest = await self._write_more(rest)
            self.written_bytes += before - len(rest or b"")
        return rest is not None

    async def _write_more(self, rest: memoryview) -> memoryview | None:
        if self._sink.watching == "thread":
            return await anyio.to_thread.run_sync(_write, self._sink, rest, limiter=self._limiter)
        await anyio.wait_writable(self._sink.fd)
        return _write(self._sink, rest)


def _read(source: Source) -> bytes | None:
    """Return some bytes; empty at the end; None if there are none yet."""
    try:
        return source.read()
    except BlockingIOError:
        return None
    except OSError:  # the terminal was closed, or the connection reset
        return b""


def _write(sink: Sink, data: memoryview) -> memoryview | None:
    """Write some of *data*, and return the rest; None if the sink has no reader."""
    try:
        return data[sink.write(data) :] if data else data
    except BlockingIOError:
        return data
    except OSError:
        return None
