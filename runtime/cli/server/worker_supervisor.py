"""``mcpgen serve --workers``: processes that serve one address, and their replacement if one ends.

Theory of operation. This process binds the address, and serves nothing itself. Its children inherit the sockets, so
that the system gives each connection to one that accepts it. A child that ends is replaced. If the first child fails as
it starts, the file or an option is wrong, and another one would fail, too: then all end.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

import anyio
import click

from mcpgen.runtime.cli.client.terminal import on_signal

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from anyio.abc import Process

__all__ = ["supervise"]

# A worker that has lived for so long has loaded its file, and served.
_STARTED_SECONDS: Final = 5.0

# How long to wait before a worker is replaced, so that workers that end at once do not take a whole processor.
_REPLACE_SECONDS: Final = 0.5


def supervise(command: Callable[[Sequence[int]], Sequence[str]], sockets: Sequence[socket.socket], workers: int) -> int:
    """Keep *workers* processes running until a signal comes; return the status to exit with.

    At a second signal, do not wait for the workers to finish.

    Args:
        command: Returns the command of a worker that serves the sockets with these descriptors, and that ends when its
            standard input does.
        sockets: What they listen on, bound.
        workers: How many there are.
    """
    with ExitStack() as stack:
        for each in sockets:
            stack.enter_context(each)
        descriptors = [each.fileno() for each in sockets]
        return anyio.run(_Supervisor(command(descriptors), descriptors).run, workers)


class _Supervisor:
    def __init__(self, command: Sequence[str], descriptors: Sequence[int]) -> None:
        self._command = command
        self._descriptors = descriptors
        self._workers: dict[Process, None] = {}
        self._serving: anyio.CancelScope | None = None
        self._is_stopping = False
        self._status = 0
        self._received: list[int] = []

    async def run(self, count: int) -> int:
        """Keep *count* workers running until a signal comes, or one ends as it starts."""
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as self._serving:
                group.start_soon(on_signal, self._signal_arrived, self._received)
                async with anyio.create_task_group() as places:
                    for _ in range(count):
                        places.start_soon(self._keep_one)
            for each in self._workers:
                with suppress(ProcessLookupError):
                    each.terminate()
            for each in self._workers:
                await each.wait()
            group.cancel_scope.cancel()
        return self._status

    def _signal_arrived(self) -> None:
        if self._is_stopping:
            for each in self._workers:
                with suppress(ProcessLookupError):  # it has ended already
                    each.kill()
        self._stop()

    def _stop(self) -> None:
        self._is_stopping = True
        if self._serving is not None:
            self._serving.cancel()

    async def _keep_one(self) -> None:
        is_first = True
        while True:
            started = time.monotonic()
            with anyio.CancelScope(shield=True) as scope:  # a process that is started is known
                worker = await self._start()
                self._workers[worker] = None
                scope.shield = False
                status = await worker.wait()
                del self._workers[worker]
                if is_first and status > 0 and time.monotonic() - started < _STARTED_SECONDS:
                    self._status = status
                    self._stop()
                    return
                is_first = False
                click.echo(f"mcpgen: a worker has ended with status {status}; another one replaces it", err=True)
                await anyio.sleep(_REPLACE_SECONDS)

    async def _start(self) -> Process:
        # In a session of its own, so that Ctrl-C reaches only this process. If this process is killed, the system
        # closes the pipe, and `graceful_shutdown.end_with_parent` ends the worker.
        return await anyio.open_process(
            self._command,
            stdin=subprocess.PIPE,
            stdout=None,
            stderr=None,
            start_new_session=True,
            pass_fds=self._descriptors,
        )
