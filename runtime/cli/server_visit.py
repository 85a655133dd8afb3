"""A visit: start a server or go to one, do something with it, leave; and say what went wrong if that cannot be done."""

from __future__ import annotations

import logging
import re
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, Unpack

import anyio
import click
from msgspec import UNSET

from mcpgen.runtime.api.connect import connect
from mcpgen.runtime.cli.keyboard import Keyboard
from mcpgen.runtime.cli.recording_transport import RecordingTransport
from mcpgen.runtime.cli.terminal_text import as_json, escaped_line, escaped_text
from mcpgen.runtime.errors import (
    InvalidPayload,
    McpgenError,
    NoCommonRevision,
    RequestRefused,
    RequestTimedOut,
    ServerExited,
    UsageError,
)
from mcpgen.runtime.limits import ClientLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.api.connect import Options
    from mcpgen.runtime.cli.screen import Screen
    from mcpgen.runtime.cli.target import Target

__all__ = ["ServerVisit"]

# What programs print that look for a variable that is not there.
_ENVIRONMENT: Final = re.compile(r"environ|KeyError: '[A-Z][A-Z0-9_]+'")

_INTERRUPTED: Final = 130  # 128 and SIGINT, as shells have it

# How much of the data of an error is shown; some servers send a stack trace.
_MOST_DATA: Final = 2000


class ServerVisit:
    """A visit to a server.

    Args:
        target: The server.
        screen: Where is said what goes wrong.
        note: Is told what the client notices on the way.
        revision: The only one to offer; None for all.
        seconds: How long a request may take, and the start; None for the usual.
        **options: What else is offered to the server.

    Raises:
        click.UsageError: There is no such revision, or there are no such seconds.
    """

    def __init__(
        self,
        target: Target,
        screen: Screen,
        note: Callable[[str], object],
        *,
        revision: str | None = None,
        seconds: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.target: Target = target
        self._screen = screen
        self._notes = _Notes(note)
        self._overhearing = RecordingTransport(target.transport)
        try:
            self._limits = ClientLimits() if seconds is None else _limits(seconds)
            offered = None if revision is None else [revision]
            settings: Options = {**options, "revisions": offered, "limits": self._limits}
            self._connection = connect(self._overhearing, **settings)
        except UsageError as error:
            raise click.UsageError(escaped_line(str(error))) from None

    def result(self, method: str) -> Any:  # noqa: ANN401 (any JSON value)
        """Return the last result of *method* as the server wrote it; None if there is none."""
        return self._overhearing.result(method)

    def run(self, do: Callable[[Client], Awaitable[int]]) -> int:
        """Return the exit status: that of *do*, 1 if the server failed, or what a signal makes of it."""
        log = logging.getLogger("mcpgen")
        log.addHandler(self._notes)
        try:
            return anyio.run(self._run, do)
        except KeyboardInterrupt:  # where there are no signals to receive, or at the second one
            self._screen.clear_status()
            return _INTERRUPTED
        finally:
            log.removeHandler(self._notes)

    async def _run(self, do: Callable[[Client], Awaitable[int]]) -> int:
        caught: list[int] = []
        outcome: int | Exception = 1
        async with anyio.create_task_group() as group:
            group.start_soon(_heed, group.cancel_scope, caught)
            outcome = await self._outcome(do)
            group.cancel_scope.cancel()
        self._screen.clear_status()
        if caught:
            return 128 + caught[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _outcome(self, do: Callable[[Client], Awaitable[int]]) -> int | Exception:
        try:
            async with self._connection as client:
                return await do(client)
        except McpgenError as error:
            self._screen.clear_status()
            self._tell(error)
            if isinstance(error, NoCommonRevision) and not error.supported:
                await self._tell_revision()
            return 1
        except Exception as error:  # noqa: BLE001 (raised again, outside of the task group, which would wrap it)
            return error

    async def _tell_revision(self) -> None:
        """Say what a server speaks that has only said what it does not: another one is started, and asked openly."""
        try:
            async with connect(self.target.transport, limits=self._limits) as client:
                self._screen.line(f"It speaks {client.revision}.")
        except McpgenError:
            self._screen.line("It speaks none of those that we know, either.")

    def _tell(self, error: McpgenError) -> None:
        if isinstance(error, ServerExited):
            error.command = self.target.name
        if isinstance(error, RequestTimedOut) and error.server is not None:
            error.server = self.target.name
        lines = [self._screen.paint("Error:", "bad") + " " + escaped_text(_sentence(error))]
        if isinstance(error, ServerExited) and self.target.is_file and "There is no server in" in error.stderr:
            word = self.target.name.removeprefix("mcpgen serve ")
            lines.append(
                f'If {escaped_line(word)} is a program of its own, give its command: "python {escaped_line(word)}".'
            )
        is_demand = isinstance(error, InvalidPayload | RequestRefused) and "elicitation" in _sentence(error)
        if is_demand and not Keyboard.is_there():
            lines.append("The server wants to know something first; somebody at a terminal can be asked.")
        if isinstance(error, ServerExited) and _ENVIRONMENT.search(error.stderr):
            lines.append("A server gets only part of the environment; give it what else it needs with --env KEY=VALUE.")
        if isinstance(error, RequestTimedOut) and self.target.last_words:
            lines.append("The server has printed last:")
            lines += [f"    {escaped_line(line)}" for line in self.target.last_words]
        self._screen.lines(lines)


class _Notes(logging.Handler):
    """Hands on what the client warns of, without a traceback: what a server does wrong is no defect of ours."""

    def __init__(self, note: Callable[[str], object]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        self._note(record.getMessage())


def _sentence(error: McpgenError) -> str:
    if not isinstance(error, RequestRefused):
        return str(error).replace("Http(url, auth=bearer(token)), or headers", "--bearer-env, or --header")
    sentence = f"{error.message} ({error.method} was answered with error {error.code})"
    if error.data is UNSET or error.data is None:
        return sentence
    data = error.data if isinstance(error.data, str) else as_json(error.data, is_pretty=False)
    return f"{sentence}\n    {data if len(data) <= _MOST_DATA else data[:_MOST_DATA] + ' …'}"


def _limits(seconds: float) -> ClientLimits:
    return ClientLimits(call_seconds=seconds, connect_seconds=seconds, max_call_seconds=seconds)


async def _heed(scope: anyio.CancelScope, caught: list[int]) -> None:
    """Cancel the visit when a signal asks for it; those that are ignored, as in the background of a shell, stay so."""
    if sys.platform == "win32":  # there an interrupt cancels us
        return
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [each for each in asking if signal.getsignal(each) is not signal.SIG_IGN]
    if heeded:
        with anyio.open_signal_receiver(*heeded) as signals:
            async for each in signals:
                caught.append(int(each))
                scope.cancel()
