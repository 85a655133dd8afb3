"""One run of a client command: connect to the server, do the work, disconnect, and report errors."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final, Unpack
from urllib.parse import urlsplit

import anyio
import click
import msgspec
from msgspec import UNSET

from mcpgen.runtime.api.connect import connect
from mcpgen.runtime.cli.client.recording_transport import RecordingTransport
from mcpgen.runtime.cli.client.terminal import Keyboard, on_signal
from mcpgen.runtime.cli.terminal_text import as_json, error_text, escaped_line, escaped_text, sentence
from mcpgen.runtime.client.connection_task import SLOW_START
from mcpgen.runtime.errors import (
    InvalidPayload,
    McpgenError,
    NoCommonRevision,
    RequestRefused,
    RequestTimedOut,
    UnknownRevision,
    UnsupportedByPeer,
    UsageError,
)
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.transports.errors import ServerExited

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.api.connect_options import Options
    from mcpgen.runtime.cli.client.terminal import Screen
    from mcpgen.runtime.cli.target import Target

__all__ = ["ClientRun", "missing_feature"]

# What programs print when they miss an environment variable.
_MISSING_VARIABLE: Final = re.compile(r"environ|KeyError: '[A-Z][A-Z0-9_]+'")

# The error of mcpgen's servers. A path that begins with two slashes could name another host.
_ENDPOINT: Final = re.compile(r"nothing is served at this path; the endpoint is (/(?!/)[!-~]*)")

_PROBE: Final = "server/discover"

# In place of the client's warning, which names an option of `connect`.
_SLOW_START: Final = "the server has not answered for %g seconds. Some older servers need `--revision 2025-11-25`."

_INTERRUPTED: Final = 130  # 128 + SIGINT, as in shells

# How many characters of an error's data are shown; some servers send a stack trace.
_MAX_DATA: Final = 2000


# A user who waits this long is told for what. It is looked at in short steps.
_WAIT_SECONDS: Final = 5.0
_STEP_SECONDS: Final = 0.25


# The capabilities without which these requests are not sent.
_CAPABILITIES: Final = {"tools/list": "tools", "prompts/list": "prompts", "resources/read": "resources"}


# A server names the method of the request that it cannot send.
_FEATURES: Final = {
    "roots/list": "The server asks for roots. Offer them with `--root PATH`.",
    "sampling/createMessage": "The server asks for an answer of a language model, which this command does not have.",
}
_NEEDS_TERMINAL: Final = (
    "The server asks the user for input. That needs a terminal, and revision 2025-06-18 or later for a form, or "
    "2025-11-25 or later for a URL."
)


def missing_feature(message: str) -> list[str]:
    """Return a line for each request that the client does not support, if the server's *message* names it."""
    if "cannot be sent to this client" not in message:
        return []
    features = _FEATURES if Keyboard.is_there() else {**_FEATURES, "elicitation/create": _NEEDS_TERMINAL}
    return [line for method, line in features.items() if method in message]


class ClientRun:
    """One run of a client command.

    Args:
        target: The server.
        screen: The screen for error messages.
        note: Called with each warning of the client.
        revision: The only revision to use; None for all.
        seconds: The time limit for the start, and for each request; None for the defaults.
        **options: The other options of `connect`.

    Raises:
        click.UsageError: The revision or the time limit is not valid.
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
        self._note = note
        self._log_handler = _NoteHandler(note)
        self._recorder = RecordingTransport(target.transport)
        self._is_connected = False
        try:
            self._limits = ClientLimits() if seconds is None else _limits(seconds)
            revisions = None if revision is None else [revision]
            settings: Options = {**options, "revisions": revisions, "limits": self._limits}
            self._connection = connect(self._recorder, **settings)
        except UnknownRevision as error:
            raise click.BadParameter(sentence(error), param_hint="'--revision'") from None
        except UsageError as error:
            raise click.UsageError(sentence(error)) from None

    def result(self, method: str) -> Any:  # noqa: ANN401 (any JSON value)
        """Return the last result of *method* as the server sent it; None if there is none.

        Raises:
            InvalidPayload: It has a number or a text that Python does not read, in a key that the client ignores.
        """
        try:
            return self._recorder.result(method)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = f"the result of {method}"
            raise InvalidPayload(revision="", pointer="", what=what, reason=str(error)) from None

    def result_size(self, method: str) -> tuple[int, int]:
        """Return the bytes of the last result of *method*, and about the memory of its values."""
        return self._recorder.result_size(method)

    def run(self, work: Callable[[Client], Awaitable[int]]) -> int:
        """Return the exit status: that of *work*, 1 if the server failed, or 128 plus the number of a signal."""
        log = logging.getLogger("mcpgen")
        log.addHandler(self._log_handler)
        try:
            return anyio.run(self._run, work)
        except KeyboardInterrupt:  # on Windows, or at the second Ctrl-C
            self._screen.clear_status()
            return _INTERRUPTED
        finally:
            log.removeHandler(self._log_handler)

    async def _run(self, work: Callable[[Client], Awaitable[int]]) -> int:
        signals: list[int] = []
        outcome: int | Exception = 1
        async with anyio.create_task_group() as group:
            group.start_soon(on_signal, group.cancel_scope.cancel, signals)
            group.start_soon(self._note_waits)
            outcome = await self._outcome(work)
            group.cancel_scope.cancel()
        self._screen.clear_status()
        if signals:
            return 128 + signals[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _note_waits(self) -> None:
        """Note once for each wait of some seconds what is awaited, unless messages pass meanwhile."""
        frames, begin = self._recorder.frames, anyio.current_time()
        is_noted = False
        while True:
            await anyio.sleep(_STEP_SECONDS)
            method, now = self._recorder.awaited, anyio.current_time()
            if method is None or frames != self._recorder.frames:
                frames, begin, is_noted = self._recorder.frames, now, False
            elif now - begin >= _WAIT_SECONDS and not is_noted:
                is_noted = True
                self._note(
                    f"the server has not answered {method} for {_WAIT_SECONDS:g} seconds; still waiting. "
                    "`--timeout SECONDS` sets a limit, and Ctrl-C cancels."
                )

    async def _outcome(self, work: Callable[[Client], Awaitable[int]]) -> int | Exception:
        try:
            async with self._connection as client:
                if client.era == "handshake" and _PROBE in self._recorder.sent:
                    self.target.stderr.forget()  # it may have printed that it does not know the probe
                self.target.stderr.connected()
                self._is_connected = True
                return await work(client)
        except McpgenError as error:
            self._screen.clear_status()
            self._report(error)
            if isinstance(error, NoCommonRevision) and not error.supported:
                await self._report_revision()
            return 1
        except Exception as error:  # noqa: BLE001 (raised again outside of the task group, which would wrap it)
            return error

    async def _report_revision(self) -> None:
        """Find out which revision the server speaks: connect again, to a new process, with all revisions."""
        try:
            async with connect(self.target.transport, limits=self._limits) as client:
                self._screen.line(f"The server speaks {client.revision}.")
        except NoCommonRevision:
            self._screen.line("The server speaks no revision that mcpgen knows.")
        except McpgenError as error:  # of another kind: the second process may not get a lock, for example
            self._screen.line("To find out which revision the server speaks, mcpgen connected again. This failed:")
            self._report(error)

    def _report(self, error: McpgenError) -> None:
        if isinstance(error, ServerExited):
            error.command = self.target.name
        if isinstance(error, RequestTimedOut) and error.server is not None:
            error.server = self.target.name
        message = _message(error)
        if isinstance(error, ServerExited) and self.target.stderr.is_shown and error.stderr.strip():
            message = f"{error.summary}; its standard error is above"
        lines = [self._screen.paint("Error:", "bad") + " " + escaped_text(message)]
        if isinstance(error, ServerExited) and self.target.is_file and "There is no server in" in error.stderr:
            file = escaped_line(self.target.name.removeprefix("mcpgen serve "))
            lines.append(f'If {file} starts its server itself, give its command as TARGET: "python {file}".')
        lines += missing_feature(message)
        may_ask = isinstance(error, InvalidPayload | RequestRefused) and "elicitation" in message
        if may_ask and not Keyboard.is_there() and _NEEDS_TERMINAL not in lines:
            lines.append(_NEEDS_TERMINAL)
        if isinstance(error, ServerExited) and _MISSING_VARIABLE.search(error.stderr):
            # `--env` and `--config` exclude each other.
            is_of_config = self.target.kind == "server"
            how = "in the configuration, under the key `env` of the server" if is_of_config else "with --env KEY=VALUE"
            lines.append(f"The server gets only basic environment variables. Add others {how}.")
        is_unexplained = isinstance(error, RequestTimedOut) or not (
            self._is_connected or isinstance(error, ServerExited)
        )
        if is_unexplained and self.target.stderr.last_lines:
            lines.append("The last lines of its standard error:")
            lines += [f"    {escaped_line(line)}" for line in self.target.stderr.last_lines]
        if isinstance(error, RequestRefused) and self.target.kind == "url":
            lines += _right_url(self.target.name, error.message)
        if isinstance(error, UsageError) and self.target.hint and "cannot be started" in message:
            lines.append(self.target.hint)
        self._screen.lines(lines)


class _NoteHandler(logging.Handler):
    """Pass on warnings of the client, without tracebacks: what a server does wrong is not a bug in mcpgen."""

    def __init__(self, note: Callable[[str], object]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == SLOW_START:
            record = logging.makeLogRecord({"msg": _SLOW_START, "args": record.args})
        self._note(record.getMessage())


def _right_url(url: str, message: str) -> list[str]:
    """Return a line with the URL of the endpoint, if *message* is of a server of mcpgen at another path."""
    found = _ENDPOINT.fullmatch(message)
    return [] if found is None else [f"Use {escaped_line(urlsplit(url)._replace(path=found[1], query='').geturl())}"]


def _message(error: McpgenError) -> str:
    if isinstance(error, UnsupportedByPeer) and error.what in _CAPABILITIES:
        kind = _CAPABILITIES[error.what]
        return f"The server has no {kind}: it has not declared the capability `{kind}`."
    if not isinstance(error, RequestRefused):
        return error_text(error)
    message = f"The server answered {error.method} with error {error.code}: {error.message}"
    if error.data is UNSET or error.data is None:
        return message
    data = error.data if isinstance(error.data, str) else as_json(error.data, is_pretty=False)
    return f"{message}\n    {data if len(data) <= _MAX_DATA else data[:_MAX_DATA] + ' …'}"


def _limits(seconds: float) -> ClientLimits:
    return ClientLimits(call_seconds=seconds, connect_seconds=seconds, max_call_seconds=seconds)
