"""A server that runs as a child process of its client, over standard input and output: the transport.

This module moves messages and decides when the process has to end. `mcpgen.runtime.transports.child_process` starts the
process, sends it signals and waits for its end.

Theory of operation. One task owns the process, from its start to its end. It cannot be cancelled; it runs until the
process has ended and all descriptors are closed, and each of its steps is bounded in time. It reads all the time what
the process prints, so the process never blocks on a full pipe.

The connection ends when the server closes its output. But processes that the server has started may keep the pipe open.
So it also ends when the server's process has ended, and when its input is closed. In both cases the pipe may still hold
messages, which are handed over. That is why the pump does not see a failed write: it would stop reading.

To end a server (basic/lifecycle, "Shutdown"), close its input; after a while send SIGTERM; after another while SIGKILL.
The signals go to its process group (`mcpgen.runtime.transports.child_process`), also if the server itself has ended.
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
from anyio.lowlevel import checkpoint

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.argument_checks import check_file_path, check_flags
from mcpgen.runtime.transports.child_process import ChildProcess, read_chunk
from mcpgen.runtime.transports.child_stderr import ChildStderr
from mcpgen.runtime.transports.command_line import hide_userinfo, join_command, split_command
from mcpgen.runtime.transports.descriptors import READ_BYTES, Sink, Source
from mcpgen.runtime.transports.environment import check_environment, child_environment
from mcpgen.runtime.transports.errors import ServerExited
from mcpgen.runtime.transports.spawner import open_group
from mcpgen.runtime.transports.stdio import open_pump

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence

    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel, Endpoint
    from mcpgen.runtime.transports.pump import Pump
    from mcpgen.runtime.transports.spawner import StartedFunction

__all__ = ["Process"]

# To read the rest of a pipe takes no time, unless another process goes on filling it.
_DRAIN_SECONDS: Final = 0.5

# A process that has closed its output is about to exit, and then has a status.
_STATUS_SECONDS: Final = 0.5

# For the last messages, such as a cancellation. A server that reads takes them at once.
_FLUSH_SECONDS: Final = 0.5

# For processes that the server has started to end after SIGTERM.
_GROUP_SECONDS: Final = 0.5

# The system ends a killed process at once, unless it hangs in a device driver.
_KILL_SECONDS: Final = 2.0

# A key, so that the secrets in an environment cannot be guessed from its digest.
_SECRET: Final = os.urandom(32)

_LOG = logging.getLogger("mcpgen.client")


class Process:
    """A transport that starts a process of the server for each connection, and ends the process with the connection.

    The process inherits the environment variables that any program needs (user, paths, language). It has a terminal
    session of its own, so Ctrl-C in the terminal does not reach it. At the end of the connection, all processes of its
    process group are ended, too.

    Args:
        command: The program and its arguments. A string is split into words as by a shell; variables and wildcards in
            it stay as they are.
        environment: Environment variables to set.
        directory: The working directory of the server; by default that of this process.
        inherit_environment: Whether the server inherits all environment variables of this process.
        on_stderr: A function that is called with each line that the process writes to standard error. The logger
            ``mcpgen.server`` gets each line, too.

    Raises:
        UsageError: An argument is wrong.
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
        self._environment = check_environment(environment or {})
        if directory is not None:
            check_file_path("directory", directory)
        check_flags(inherit_environment=inherit_environment)
        if on_stderr is not None and not callable(on_stderr):
            raise UsageError(f"`on_stderr` must be a function that takes a line, not {on_stderr!r}")
        self._directory = None if directory is None else os.fspath(directory)
        self._shown: tuple[str, str | None] | None = None  # in place of the program and the directory
        self._inherits_all = inherit_environment
        self._on_stderr = on_stderr

    def __repr__(self) -> str:
        directory = self._directory if self._shown is None else self._shown[1]
        where = "" if directory is None else f", directory={directory!r}"
        return f"Process({self.description!r}{where})"  # without the environment: it may hold secrets

    @property
    def identity(self) -> Hashable:
        """A key that is the same for all transports to the same server.

        It is stored, so it is a hash: the environment can contain secrets.
        """
        key = (self._command, self._directory, sorted(self._environment.items()), self._inherits_all)
        return blake2b(repr(key).encode("utf-8", "surrogatepass"), key=_SECRET).digest()

    @property
    def description(self) -> str:
        """The command, quoted as for a shell, without passwords in URLs."""
        return hide_userinfo(join_command(self._command))

    def spawn(self) -> ChildProcess:
        """Start the process. The caller ends it, and moves its bytes.

        Raises:
            UsageError: It cannot be started.
        """
        environment = child_environment(self._environment, inherits_all=self._inherits_all)
        return ChildProcess(self._command, environment, self._directory, shown=self._shown)

    @asynccontextmanager
    async def open(self, limits: ClientLimits, /) -> AsyncGenerator[Channel]:
        """Start the process, and end it at the end of the block, within a few seconds, even if cancelled.

        Raises:
            UsageError: It cannot be started.
        """
        # Nothing can be cancelled between the start of the process and that of the task that ends it.
        child = self.spawn()
        channel = _ProcessChannel(child, self.description, limits, self._on_stderr)
        try:
            async with open_group() as group:
                group.start_soon(channel.supervise)
                try:
                    yield await channel.wait_started()
                finally:
                    channel.close()
        finally:
            channel.release()


class _ProcessChannel:
    """The `Channel` of one process."""

    def __init__(
        self, child: ChildProcess, description: str, limits: ClientLimits, on_stderr: Callable[[str], None] | None
    ) -> None:
        self._child = child
        self._description = description
        self._limits = limits
        self._stderr = ChildStderr(child.stderr, limits.max_stderr_bytes, on_stderr)
        self._pump: Pump  # once it has started
        self._started = anyio.Event()
        self._is_over = anyio.Event()  # the process has ended, or its input is closed
        self._is_closing = anyio.Event()
        self._is_released = False
        self._was_read: anyio.Event | None = None  # set by the next read, if a task waits for it
        self._run_scope: anyio.CancelScope | None = None  # while `run` runs
        self._run_ended: anyio.Event | None = None  # set at the end of `run`, if a task waits for it

    # --- as a channel

    @property
    def is_full(self) -> bool:
        return self._pump.is_full

    @property
    def stderr(self) -> str:
        return self._stderr.last

    async def drain(self) -> None:
        await self._pump.drain()

    def hold(self) -> None:
        """Read no more messages of the server until `unhold`."""
        self._pump.hold()

    def unhold(self) -> None:
        """Read its messages again."""
        self._pump.unhold()

    async def run(self, endpoint: Endpoint, /) -> None:
        if self._is_closing.is_set():
            return
        try:
            with anyio.CancelScope() as self._run_scope:
                async with open_group() as group:
                    group.start_soon(self._cancel_when_drained, group.cancel_scope)
                    await self._pump.run(endpoint)
        finally:
            self._run_scope = None
            if self._run_ended is not None:
                self._run_ended.set()
        if not self._is_closing.is_set():
            self._pump.abandon()  # wakes the tasks that wait for room

    async def close_reason(self) -> ServerExited:
        if not self._is_released:
            with anyio.move_on_after(_STATUS_SECONDS):
                await self._child.exited.wait()
            self._child.has_ended()  # on a busy machine, this is known here before `_watch` runs
            self._stderr.read_rest()
        return ServerExited(command=self._description, status=self._child.status, stderr=self._stderr.last)

    # --- from start to end of the process

    async def wait_started(self) -> Channel:
        """Return the channel when it can be used."""
        await self._started.wait()
        return self

    def close(self) -> None:
        """Start to end the process. `supervise` returns when that is done."""
        self._is_closing.set()

    async def supervise(self) -> None:
        """Run the connection and end the process, whatever is cancelled."""
        with anyio.CancelScope(shield=True):
            try:
                async with open_group() as group:
                    group.start_soon(self._watch)
                    group.start_soon(self._stderr.read_all)
                    try:
                        await self._run_pump()
                    finally:
                        self._child.close_stdin()
                        group.start_soon(self._discard)
                        await self._end_process()
            finally:
                # asyncio may cancel tasks in spite of a shield; then this is all that is done.
                if not self.release():
                    _LOG.error("the process of the server %r does not end, although it was killed", self._description)

    def release(self) -> bool:
        """Kill the process if it runs, and close all. Return whether it has ended. Only the first call has an effect.

        `open` calls it, too, because asyncio may cancel a task before it is entered, and then `supervise` never ran.
        """
        if self._is_released:
            return True
        self._stderr.read_rest()
        self._stderr.end()
        self._is_released = True
        return self._child.release()

    async def _watch(self) -> None:
        await self._child.watch()
        self._is_over.set()

    async def _run_pump(self) -> None:
        source = Source(self._child.stdout, self._read, _WATCHING)
        sink = Sink(self._child.stdin, self._write, _WATCHING)
        frames, buffered = self._limits.max_frame_bytes, self._limits.max_buffered_bytes
        async with open_pump(
            source, sink, max_frame_bytes=frames, max_buffered_bytes=buffered, side="client"
        ) as self._pump:
            self.write = self._pump.write
            self._started.set()
            try:
                await self._is_closing.wait()
            finally:
                await self._flush()

    async def _flush(self) -> None:
        """Write the buffered messages, if the server reads them."""
        self._is_closing.set()
        with anyio.move_on_after(_FLUSH_SECONDS):
            if self._run_scope is not None:
                self._run_ended = anyio.Event()
                self._run_scope.cancel()
                await self._run_ended.wait()
            async with open_group() as group:
                group.start_soon(self._discard)  # a server may read only after it could write
                group.start_soon(self._abandon_when_over)
                await self._pump.flushed()

    async def _abandon_when_over(self) -> None:
        await self._is_over.wait()
        self._pump.abandon()

    async def _end_process(self) -> None:
        """End the process group in steps; see the theory of operation."""
        child, limits = self._child, self._limits
        with anyio.move_on_after(limits.stdin_seconds):
            await child.exited.wait()
        seconds = min(_GROUP_SECONDS, limits.term_seconds)
        if not child.exited.is_set():
            _LOG.debug("the server %r does not end after its input was closed, and gets SIGTERM", self._description)
            seconds = limits.term_seconds
        if not child.exited.is_set() or child.has_others():
            await self._terminate(seconds)
        if not child.exited.is_set() or child.has_others():
            text = "the server %r%s does not end after SIGTERM, and is killed"
            _LOG.warning(text, self._description, ", or a process that it started," if child.exited.is_set() else "")
            child.kill()
            with anyio.move_on_after(_KILL_SECONDS):
                await child.exited.wait()
            with anyio.move_on_after(_GROUP_SECONDS):
                await child.wait_others_ended()

    async def _terminate(self, seconds: float) -> None:
        self._child.terminate()
        with anyio.move_on_after(seconds):
            await self._child.exited.wait()
            await self._child.wait_others_ended()

    async def _discard(self) -> None:
        """Read and drop the output, so that the process does not block on a full pipe."""
        while await read_chunk(self._child.stdout, READ_BYTES):
            pass

    # --- as the source and the sink of the pump

    def _read(self) -> bytes:
        data = os.read(self._child.stdout, READ_BYTES)
        if sys.platform != "win32" and self._was_read is not None:
            self._was_read.set()
        return data

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._child.stdin, data)
        except BlockingIOError:
            raise
        except OSError as error:
            if sys.platform == "win32":  # in a thread, where no event may be set
                raise
            _LOG.debug("the server %r has closed its input: %s", self._description, error)
            self._is_over.set()
            return len(data)

    async def _cancel_when_drained(self, scope: StartedFunction) -> None:
        """Cancel *scope* when the connection is over and the pipe is empty."""
        await self._is_over.wait()
        with anyio.move_on_after(_DRAIN_SECONDS):
            while self._pump.is_behind or _is_readable(self._child.stdout):
                if self._pump.is_behind:
                    await checkpoint()
                    continue
                self._was_read = anyio.Event()
                await self._was_read.wait()
        scope.cancel()


_WATCHING: Final = "thread" if sys.platform == "win32" else "loop"


def _is_readable(fd: int) -> bool:
    """Whether a read would return at once."""
    if sys.platform == "win32":
        return True
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
