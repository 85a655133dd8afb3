"""A server that runs as a child process of its client, and is spoken to over its standard streams.

Theory of operation. One task owns the process, from its start to its end: whatever is cancelled meanwhile, it goes on
until the process is gone and all is closed, and each of its steps takes a bounded time. What the process prints is read
all that time, so that it does not wait for us when we wait for it.

A conversation is over when the server has closed its output. But other processes may hold that open (whatever the
server has started and left behind), so that it is over, too, when the process has ended, and when nobody reads its
input any more. In both cases it may have said something before, which is in the pipe and still handed over. That is why
a failed write is not shown to the pump, which would stop reading.

To end a server (basic/lifecycle, "Shutdown"): its input is closed; after a while it is told to terminate; after another
it is killed. The last two go to all processes of its group (`mcpgen.runtime.transports.child_process`), and what is
left of those when the server itself has ended is told, and killed, likewise.
"""

from __future__ import annotations

import logging
import os
import select
import sys
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.errors import ServerExited
from mcpgen.runtime.transports.child_process import ChildProcess, read_chunk
from mcpgen.runtime.transports.child_stderr import ChildStderr
from mcpgen.runtime.transports.command_line import join_command, split_command
from mcpgen.runtime.transports.descriptors import READ_BYTES, Sink, Source
from mcpgen.runtime.transports.environment import checked, environment_of
from mcpgen.runtime.transports.spawner import open_group
from mcpgen.runtime.transports.stdio import Pump, open_pump

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel, Endpoint
    from mcpgen.runtime.transports.spawner import Handle

__all__ = ["Process"]

# To read what a process has left behind in a pipe takes no time, unless another goes on filling it.
_LAST_WORDS_SECONDS: Final = 0.5

# A process that has closed its output is about to exit, and says how in a moment.
_STATUS_SECONDS: Final = 0.5

# For what was written last, such as a cancellation; a server that reads takes it at once.
_FLUSH_SECONDS: Final = 0.5

# For what a server has started and left behind, to end when it is told to.
_LEFT_SECONDS: Final = 0.5

# The system ends what is killed at once, unless it hangs in a device.
_KILL_SECONDS: Final = 2.0

# So that nobody can find out by trying what a digest was made of.
_SECRET: Final = os.urandom(32)

_LOG = logging.getLogger("mcpgen.client")


class Process:
    """A server that is started by a command, afresh for each conversation, and ended with it.

    It gets what any program needs of our environment (its user, paths, language), and *environment*. It is the leader
    of a session of its own: an interrupt from the keyboard does not reach it, and at the end all that it has started
    is ended with it, except what has left its process group on purpose.

    Args:
        command: The program and its arguments; one string is split as a shell would, but nothing in it is expanded.
        environment: What is set in its environment.
        directory: Where it runs; where we do if None.
        inherit_environment: Whether it gets all of our environment.
        on_stderr: Is told each line that it prints as errors. All of them are logged for ``mcpgen.server``, too.

    Raises:
        UsageError: No process can be started so.
    """

    def __init__(
        self,
        command: str | Sequence[str | os.PathLike[str]],
        *,
        environment: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        inherit_environment: bool = False,
        on_stderr: Callable[[str], None] | None = None,
    ) -> None:
        self._command = split_command(command)
        self._environment = checked(environment or {})
        self._directory = None if directory is None else os.fspath(directory)
        self._inherits_all = inherit_environment
        self._on_stderr = on_stderr

    def __repr__(self) -> str:
        return f"Process({self.description!r})"  # not the environment: it may hold secrets

    @property
    def identity(self) -> Hashable:
        """Equal for what starts the same; a digest, since the environment may hold secrets, and this is kept."""
        told = (self._command, self._directory, sorted(self._environment.items()), self._inherits_all)
        return blake2b(repr(told).encode("utf-8", "surrogatepass"), key=_SECRET).digest()

    @property
    def description(self) -> str:
        """The command, quoted as for a shell."""
        return join_command(self._command)

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        """Start the process, and end it with the block, within a few seconds, even if that is cancelled.

        Raises:
            UsageError: It cannot be started.
        """
        environment = environment_of(self._environment, inherits_all=self._inherits_all)
        # Nothing can be cancelled between the start of the process and that of the task that ends it.
        child = ChildProcess(self._command, environment, self._directory)
        conversation = _Conversation(child, self.description, limits, self._on_stderr)
        try:
            async with open_group() as group:
                group.start_soon(conversation.own)
                try:
                    yield await conversation.begun()
                finally:
                    conversation.close()
        finally:
            conversation.abandon()


class _Conversation:
    """What is said to a child and what it answers; a `Channel`."""

    def __init__(
        self, child: ChildProcess, description: str, limits: ClientLimits, on_stderr: Callable[[str], None] | None
    ) -> None:
        self._child = child
        self._description = description
        self._limits = limits
        self._stderr = ChildStderr(child.stderr, limits.max_stderr_bytes, on_stderr)
        self._pump: Pump  # when it has begun
        self._has_begun = anyio.Event()
        self._is_over = anyio.Event()  # nobody is there any more who answers, or reads
        self._is_closing = anyio.Event()
        self._is_released = False
        self._moved: anyio.Event | None = None  # if somebody waits until something was read
        self._run: anyio.CancelScope | None = None  # while it runs
        self._has_run: anyio.Event | None = None  # if somebody waits for its end

    # --- as a channel

    @property
    def is_full(self) -> bool:
        return self._pump.is_full

    @property
    def stderr(self) -> str:
        return self._stderr.last

    def write(self, message: bytes) -> None:
        self._pump.write(message)

    async def drain(self) -> None:
        await self._pump.drain()

    async def run(self, endpoint: Endpoint, /) -> None:
        if self._is_closing.is_set():
            return
        try:
            with anyio.CancelScope() as self._run:
                async with open_group() as group:
                    group.start_soon(self._hear_last_words, group.cancel_scope)
                    await self._pump.run(endpoint)
        finally:
            self._run = None
            if self._has_run is not None:
                self._has_run.set()
        if not self._is_closing.is_set():
            self._pump.lose()  # so that nobody waits until there is room

    async def ended(self) -> ServerExited:
        if not self._is_released:
            with anyio.move_on_after(_STATUS_SECONDS):
                await self._child.exited.wait()
            self._read_rest()
        return ServerExited(command=self._description, status=self._child.status, stderr=self._stderr.last)

    # --- from its start to its end

    async def begun(self) -> Channel:
        """Return the channel when it can be used."""
        await self._has_begun.wait()
        return self

    def close(self) -> None:
        """Have the process ended; `own` returns when that is done."""
        self._is_closing.set()

    async def own(self) -> None:
        """See the process through, whatever is cancelled."""
        with anyio.CancelScope(shield=True):
            try:
                async with open_group() as group:
                    group.start_soon(self._watch)
                    group.start_soon(self._stderr.read_all)
                    try:
                        await self._talk()
                    finally:
                        self._child.close_stdin()
                        group.start_soon(self._discard)
                        await self._end()
            finally:
                # asyncio may cancel tasks past any shield; then this is all that is done.
                if not self._is_released and not self._release():
                    _LOG.error("the server %r was killed, but does not end", self._description)

    def abandon(self) -> None:
        """End the process if nobody has: asyncio may cancel a task before it is entered, and then `own` never ran."""
        if not self._is_released:
            self._release()

    async def _watch(self) -> None:
        await self._child.watch()
        self._is_over.set()

    async def _talk(self) -> None:
        source = Source(self._child.stdout, self._read, _WATCHING, _nothing)
        sink = Sink(self._child.stdin, self._write, _WATCHING, _nothing)
        frames, buffered = self._limits.max_frame_bytes, self._limits.max_buffered_bytes
        async with open_pump(
            source, sink, max_frame_bytes=frames, max_buffered_bytes=buffered, side="client"
        ) as self._pump:
            self._has_begun.set()
            try:
                await self._is_closing.wait()
            finally:
                await self._finish_talking()

    async def _finish_talking(self) -> None:
        """Write what is still to be written, if somebody reads it."""
        self._is_closing.set()
        with anyio.move_on_after(_FLUSH_SECONDS):
            if self._run is not None:
                self._has_run = anyio.Event()
                self._run.cancel()
                await self._has_run.wait()
            async with open_group() as group:
                group.start_soon(self._discard)  # a server may read only when it could write
                group.start_soon(self._lose_if_over)
                await self._pump.flushed()

    async def _lose_if_over(self) -> None:
        await self._is_over.wait()
        self._pump.lose()

    async def _end(self) -> None:
        """End all of the process's group, first kindly; see the theory of operation."""
        child, limits = self._child, self._limits
        with anyio.move_on_after(limits.stdin_seconds):
            await child.exited.wait()
        seconds = min(_LEFT_SECONDS, limits.term_seconds)
        if not child.exited.is_set():
            _LOG.debug("the server %r is told to terminate", self._description)
            seconds = limits.term_seconds
        if not child.exited.is_set() or child.has_others():
            await self._terminate(seconds)
        if not child.exited.is_set() or child.has_others():
            _LOG.warning("the server %r does not end when told to, and is killed", self._description)
            child.kill()
            with anyio.move_on_after(_KILL_SECONDS):
                await child.exited.wait()
            with anyio.move_on_after(_LEFT_SECONDS):
                await child.others_ended()

    async def _terminate(self, seconds: float) -> None:
        self._child.terminate()
        with anyio.move_on_after(seconds):
            await self._child.exited.wait()
            await self._child.others_ended()

    def _release(self) -> bool:
        self._read_rest()
        self._stderr.end()
        self._is_released = True
        return self._child.release()

    def _read_rest(self) -> None:
        if not self._is_released:
            self._stderr.read_rest()

    async def _discard(self) -> None:
        """Read what nobody will hear, so that the process need not wait to say it."""
        while await read_chunk(self._child.stdout, READ_BYTES):
            pass

    # --- what the pump reads and writes

    def _read(self) -> bytes:
        data = os.read(self._child.stdout, READ_BYTES)
        if sys.platform != "win32" and self._moved is not None:
            self._moved.set()
        return data

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._child.stdin, data)
        except BlockingIOError:
            raise
        except OSError as error:
            if sys.platform == "win32":  # we are in a thread, where nobody can be told
                raise
            _LOG.debug("the server %r does not read any more: %s", self._description, error)
            self._is_over.set()
            return len(data)

    async def _hear_last_words(self, scope: Handle) -> None:
        """Stop reading when the process is over and all was read that it had written."""
        await self._is_over.wait()
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            while _is_readable(self._child.stdout):
                self._moved = anyio.Event()
                await self._moved.wait()
        scope.cancel()


_WATCHING: Final = "thread" if sys.platform == "win32" else "loop"


def _nothing() -> None:
    pass


def _is_readable(fd: int) -> bool:
    """Whether there is something to read, or an end."""
    if sys.platform == "win32":
        return True
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
