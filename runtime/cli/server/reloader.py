"""``mcpgen serve --reload``: run the server in a process, and replace the process when a Python file changes."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import click

from mcpgen.runtime.cli.client.terminal import on_signal
from mcpgen.runtime.cli.server.continued_ids import LAST_ASKED
from mcpgen.runtime.cli.server.reloaded_server import ReloadedServer
from mcpgen.runtime.transports import stdio_server
from mcpgen.runtime.transports.process_transport import Process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import Process as ChildProcess

    from mcpgen.runtime.cli.server.source_changes import SourceChanges

__all__ = ["reload_http", "reload_stdio"]

# A server over HTTP ends within two seconds of SIGTERM.
_STOP_SECONDS: Final = 3.0


def reload_stdio(command: Sequence[str], changes: SourceChanges) -> None:
    """Serve standard input and output by *command*, which is restarted at each of *changes*.

    Args:
        command: Serves on stdio.
        changes: The changes.
    """
    show = partial(print, file=sys.stderr, flush=True)

    def start(last_asked: int) -> Process:
        environment = {LAST_ASKED: str(last_asked)}
        return Process(command, environment=environment, inherit_environment=True, on_stderr=show)

    stdio_server.run(ReloadedServer(start, changes))


def reload_http(command: Sequence[str], changes: SourceChanges) -> None:
    """Run *command*, and restart it at each of *changes*, until a signal comes.

    If the process exits by itself, it is started again at the next change.

    Args:
        command: Serves over HTTP, and ends when its standard input does.
        changes: The changes.
    """
    anyio.run(_restart, command, changes)


async def _restart(command: Sequence[str], changes: SourceChanges) -> None:
    async with anyio.create_task_group() as group:

        def end() -> None:
            changes.stop()
            group.cancel_scope.cancel()

        received: list[int] = []
        group.start_soon(on_signal, end, received)
        watched = aiter(changes)
        await anext(watched, "")
        child = await _start(command)
        group.start_soon(_report_exit, child)
        try:
            async for changed in watched:
                click.echo(f"mcpgen: {changed} changed; restarting the server", err=True)
                await _stop(child)
                child = await _start(command)
                group.start_soon(_report_exit, child)
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(child)


async def _start(command: Sequence[str]) -> ChildProcess:
    # In a session of its own, so that Ctrl-C reaches only this process, which then ends the child. If this process is
    # killed, the system closes the pipe, and `graceful_shutdown.end_with_parent` ends the child.
    return await anyio.open_process(
        command, stdin=subprocess.PIPE, stdout=None, stderr=None, start_new_session=os.name == "posix"
    )


async def _stop(child: ChildProcess) -> None:
    if child.returncode is not None:
        return
    child.terminate()
    with anyio.move_on_after(_STOP_SECONDS):
        await child.wait()
        return
    child.kill()
    await child.wait()


async def _report_exit(child: ChildProcess) -> None:
    status = await child.wait()
    if status > 0:  # 0 and signals are the end that `_stop` has asked for
        click.echo(f"mcpgen: the server has exited with status {status}; it starts again when a file changes", err=True)
