"""A server's process between our own standard streams and it: every byte goes through as it came, and is looked on at.

Theory of operation. One flow for each direction reads what there is and writes it, and reads no more until all is
written, so that whoever reads slowly slows the other side down as if there was nobody in between. The onlooker gets
each piece when its writing has been begun but before anything else can happen: an answer cannot be shown to it before
the question.

It is over as soon as either side is done: our input has ended, or nobody reads our output; the server has closed its
output, or reads no more, or has exited; or somebody asks to `hurry`. Then the server's input is closed and the server
ended as a client would end it (basic/lifecycle, "Shutdown"), while what it still says goes through.
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

from mcpgen.runtime.transports.child_process import ChildProcess, read_chunk
from mcpgen.runtime.transports.descriptors import READ_BYTES, Sink, Source
from mcpgen.runtime.transports.spawner import open_group

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

    from mcpgen.runtime.limits import ClientLimits

__all__ = ["TraceSink", "StdioRelay", "Streams"]

# What the server gets to end by itself when we are asked to leave: whoever asked may kill us a second or two later.
_HURRIED_SECONDS: Final = 0.5

# For what the server has started and left behind, to end when it is told to.
_LEFT_SECONDS: Final = 0.5

# To read what was left behind in a pipe takes no time, unless another process holds it open.
_LAST_WORDS_SECONDS: Final = 0.5

# The system ends what is killed at once, unless it hangs in a device.
_KILL_SECONDS: Final = 2.0

_WATCHING: Final = "thread" if sys.platform == "win32" else "loop"


class Streams(Protocol):
    """Our standard streams."""

    @property
    def source(self) -> Source:
        """What comes in."""
        ...

    @property
    def sink(self) -> Sink:
        """Where to write."""
        ...


class TraceSink(Protocol):
    """Who sees what goes through."""

    def to_server(self, data: bytes) -> None:
        """Look at what our input has brought; none at its end."""

    def to_client(self, data: bytes) -> None:
        """Look at what the server has written; none at its end."""

    async def printed(self, data: bytes) -> None:
        """Take what the server has printed as errors; none at its end. It prints no more before this returns."""


class StdioRelay:
    """Moves bytes between the standard streams and a server that it starts.

    Args:
        command: The server's program and its arguments. It gets all of our environment: it was given to us for it.
        streams: Our standard streams.
        onlooker: Who sees what goes through.
        limits: How long the server may take to end.

    Raises:
        UsageError: The server cannot be started.
    """

    def __init__(self, command: Sequence[str], streams: Streams, onlooker: TraceSink, limits: ClientLimits) -> None:
        self._child = ChildProcess(command, os.environ, None)
        self._streams = streams
        self._onlooker = onlooker
        self._limits = limits
        self._is_over = anyio.Event()
        self._outward: _Flow | None = None
        self._inward = anyio.CancelScope()
        self._has_let_in = anyio.Event()
        self._flows = 0  # of the server's output and errors, that have not ended
        self._has_ended_flows = anyio.Event()
        self._patience: anyio.CancelScope | None = None  # while we wait for the server to end
        self._haste = 0  # how often we were asked to hurry

    @property
    def status(self) -> int | None:
        """The server's exit status, negative for the signal that ended it; None if it cannot be known."""
        return self._child.status

    def hurry(self) -> None:
        """End it, soon; asked again, at once."""
        self._haste += 1
        self._is_over.set()
        if self._patience is not None:
            self._patience.deadline = min(self._patience.deadline, anyio.current_time() + self._most_patience())

    async def run(self) -> None:
        """Let everything through until it is over and the server's process has ended."""
        try:
            async with open_group() as group:
                group.start_soon(self._watch)
                group.start_soon(self._let_in)
                for flow in (self._let_out, self._let_errors_out):
                    self._flows += 1
                    group.start_soon(self._counted, flow)
                await self._is_over.wait()
                await self._end()
                await self._hear_last_words()
        finally:
            self._child.release()  # which kills what is still there

    async def _hear_last_words(self) -> None:
        """Return when all that the server has said is written, as long as somebody reads it."""
        while not self._has_ended_flows.is_set():
            with anyio.move_on_after(_LAST_WORDS_SECONDS):
                await self._has_ended_flows.wait()
            is_read_slowly = self._outward is not None and self._outward.is_stuck
            if self._haste or not is_read_slowly:
                return

    async def _watch(self) -> None:
        await self._child.watch()
        self._is_over.set()

    async def _let_in(self) -> None:
        server = Sink(self._child.stdin, partial(os.write, self._child.stdin), _WATCHING, _nothing)
        with self._inward:
            await _Flow(self._streams.source, server, self._onlooker.to_server).run()
        self._has_let_in.set()
        self._is_over.set()

    async def _let_out(self) -> None:
        server = Source(self._child.stdout, partial(os.read, self._child.stdout, READ_BYTES), _WATCHING, _nothing)
        self._outward = _Flow(server, self._streams.sink, self._onlooker.to_client)
        await self._outward.run()
        self._is_over.set()
        while await read_chunk(
            self._child.stdout, READ_BYTES
        ):  # if nobody reads it, the server need not wait to say it
            pass

    async def _let_errors_out(self) -> None:
        data = b"any"
        while data:
            data = await read_chunk(self._child.stderr, READ_BYTES)
            await self._onlooker.printed(data)

    async def _counted(self, flow: Callable[[], Awaitable[None]]) -> None:
        await flow()
        self._flows -= 1
        if not self._flows:
            self._has_ended_flows.set()

    async def _end(self) -> None:
        """End the server and what it has started, first kindly."""
        child, limits = self._child, self._limits
        self._inward.cancel()
        await self._has_let_in.wait()
        child.close_stdin()
        with self._patient(limits.stdin_seconds):
            await child.exited.wait()
        if not child.exited.is_set() or child.has_others():
            child.terminate()
            with self._patient(_LEFT_SECONDS if child.exited.is_set() else limits.term_seconds):
                await child.exited.wait()
                await child.others_ended()
        if not child.exited.is_set() or child.has_others():
            child.kill()
            with anyio.move_on_after(_KILL_SECONDS):
                await child.exited.wait()

    @contextmanager
    def _patient(self, seconds: float) -> Generator[None]:
        with anyio.move_on_after(min(seconds, self._most_patience())) as self._patience:
            yield
        self._patience = None

    def _most_patience(self) -> float:
        return (math.inf, _HURRIED_SECONDS)[self._haste] if self._haste < 2 else 0  # noqa: PLR2004 (asked again)


class _Flow:
    """Writes to a sink what a source brings.

    Attributes:
        is_stuck: Whether it waits for somebody to read.
    """

    def __init__(self, source: Source, sink: Sink, look: Callable[[bytes], None]) -> None:
        self.is_stuck = False
        self._source = source
        self._sink = sink
        self._look = look
        self._limiter = anyio.CapacityLimiter(1)  # our own: others may be taken by what hangs

    async def run(self) -> None:
        """Return when either has ended."""
        data = b"any"
        while data:
            data = await self._chunk()
            rest: memoryview | None = memoryview(data)
            if self._sink.watching != "thread":
                rest = _written(self._sink, memoryview(data))
            self._look(data)
            self.is_stuck = True
            while rest:
                rest = await self._more(rest)
            self.is_stuck = False
            if rest is None:
                return

    async def _chunk(self) -> bytes:
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

    async def _more(self, rest: memoryview) -> memoryview | None:
        if self._sink.watching == "thread":
            return await anyio.to_thread.run_sync(_written, self._sink, rest, limiter=self._limiter)
        await anyio.wait_writable(self._sink.fd)
        return _written(self._sink, rest)


def _read(source: Source) -> bytes | None:
    """Return some bytes, none at the end; or None if there is nothing yet."""
    try:
        return source.read()
    except BlockingIOError:
        return None
    except OSError:  # a terminal that was closed, a peer that reset
        return b""


def _written(sink: Sink, data: memoryview) -> memoryview | None:
    """Write some of *data* and return what is left, which may be empty; None if nobody reads it."""
    try:
        return data[sink.write(data) :] if data else data
    except BlockingIOError:
        return data
    except OSError:
        return None


def _nothing() -> None:
    pass
