"""The command ``trace``: stand between a host and a server, and tell what they say to each other."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import click

from mcpgen.runtime.cli.http_relay import HttpRelay
from mcpgen.runtime.cli.printer import Printer
from mcpgen.runtime.cli.stdio_relay import StdioRelay
from mcpgen.runtime.cli.target import at_url
from mcpgen.runtime.cli.trace import Tracer
from mcpgen.runtime.cli.trace.annotation_text import Style, as_json, as_text
from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.transports.command_line import is_url
from mcpgen.runtime.transports.spawner import open_group
from mcpgen.runtime.transports.standard_streams import StandardStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.cli.stdio_relay import TraceSink
    from mcpgen.runtime.cli.trace import Annotation

__all__ = ["trace"]

_STDERR: Final = 2

# For what was told last, if somebody reads it.
_FLUSH_SECONDS: Final = 0.5

# What a server prints comes by line, so that no message comes in between; a line that is longer comes in pieces.
_LONGEST_LINE: Final = 16 * 1024

# What is written where the encoding of the terminal lacks something: in the same width, as far as that goes.
_PLAIN: Final = str.maketrans({"→": ">", "←": "<", "✗": "x", "·": "-", "…": "~", "µ": "u", "└": "+"})

_Between: TypeAlias = "Callable[[StandardStreams, TraceSink], StdioRelay | HttpRelay]"

Form: TypeAlias = Literal["summary", "body", "json"]
"""How messages are told."""


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--json", "as_json_lines", is_flag=True, help="Write one JSON object for each message, on a line.")
@click.option("--body", is_flag=True, help="Show the messages themselves, not a summary.")
@click.option(
    "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Append to FILE; default: standard error."
)
@click.option("--strict", is_flag=True, help="Exit with status 1 if there was any violation.")
@click.option("--header", "headers", multiple=True, metavar='"NAME: VALUE"', help="Send this header; for a URL.")
@click.option("--bearer-env", metavar="VARIABLE", help="Send the token that this variable has; for a URL.")
@click.argument("target", nargs=-1, required=True, metavar="-- COMMAND...|URL")
def trace(  # noqa: PLR0913 (one parameter for each option)
    *,
    target: tuple[str, ...],
    as_json_lines: bool,
    body: bool,
    output: str | None,
    strict: bool,
    headers: tuple[str, ...],
    bearer_env: str | None,
) -> None:
    """Run a server, or connect to one, and tell what is said to it and by it.

    A host is given "mcpgen trace -- COMMAND" in place of the server's COMMAND. Everything passes unchanged, and each
    message is told on standard error: when it came, which way, what it is, which revision it belongs to, how that
    calls it, and what is wrong with it. What the server prints on its standard error comes out on ours.

    A violation (✗) is what the revision does not allow; keys and methods of other revisions count. What is merely
    odd is noted (·).

    The exit status is the server's, or 128 and the number of the signal that ended it. In front of a server at a URL,
    the host is answered with an error where HTTP has no answer, and the status is 1 if the server was lost.
    """
    if body and as_json_lines:
        raise click.UsageError("Give --json or --body, not both.")
    between = _between(target, headers, bearer_env)
    form: Form = "json" if as_json_lines else "body" if body else "summary"
    with ExitStack() as stack:
        descriptor = _STDERR if output is None else _opened(output)
        if output is not None:
            stack.callback(os.close, descriptor)
        streams = stack.enter_context(StandardStreams())
        try:
            status, violations = anyio.run(_run, between, streams, descriptor, form)
        except UsageError as error:
            raise click.UsageError(printable(str(error))) from None
    if strict and violations:
        status = 1
    if sys.platform == "win32":
        os._exit(status)  # the thread that reads our input would keep us until that ends
    raise SystemExit(status)


def _between(target: Sequence[str], headers: Sequence[str], bearer_variable: str | None) -> _Between:
    """Return what makes the one who stands between the host and the server."""
    if len(target) == 1 and is_url(target[0]):
        transport = at_url(target[0], headers, bearer_variable)
        return lambda streams, onlooker: HttpRelay(transport, streams, onlooker, ClientLimits())
    if headers or bearer_variable is not None:
        raise click.UsageError("A command is given no headers: --header and --bearer-env are for URLs.")
    command = _words(target)
    return lambda streams, onlooker: StdioRelay(command, streams, onlooker, ClientLimits())


def _words(target: Sequence[str]) -> list[str]:
    """Return the program and its arguments, which may have come as one word."""
    if len(target) > 1 or shutil.which(target[0]) is not None:
        return list(target)
    try:
        words = shlex.split(target[0], posix=sys.platform != "win32")
    except ValueError as error:
        raise click.UsageError(f"The command cannot be split into words: {error}.") from None
    if not words:
        raise click.UsageError("The command is empty.")
    return words


def _opened(output: str) -> int:
    try:
        return os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise click.UsageError(f"{printable(output)} cannot be written: {error.strerror}.") from None


async def _run(between: _Between, streams: StandardStreams, descriptor: int, form: Form) -> tuple[int, int]:
    """Return the exit status, and how many violations there were."""
    terminal = Printer(_STDERR, _skipped)
    printer = terminal if descriptor == _STDERR else Printer(descriptor, _skipped_json if form == "json" else _skipped)
    onlooker = _Onlooker(printer, terminal, form)
    relay = between(streams, onlooker)
    printers = {printer, terminal}
    try:
        async with open_group() as group:
            for each in printers:
                group.start_soon(each.run)
            group.start_soon(_heed, relay)
            try:
                await relay.run()
            finally:
                onlooker.end(_ending(relay))
                with anyio.move_on_after(_FLUSH_SECONDS, shield=True):
                    for each in printers:
                        await each.flushed()
    finally:
        for each in printers:
            each.close()
    status = 1 if relay.status is None else relay.status
    return (status if status >= 0 else 128 - status), onlooker.tracer.violations


async def _heed(relay: StdioRelay | HttpRelay) -> None:
    """Leave when a signal asks for it; those that are ignored, as SIGINT is in the background of a shell, stay so."""
    if sys.platform == "win32":  # there an interrupt cancels us
        return
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [each for each in asking if signal.getsignal(each) is not signal.SIG_IGN]
    if heeded:
        with anyio.open_signal_receiver(*heeded) as signals:
            async for _ in signals:
                relay.hurry()


class _Onlooker:
    """Tells what goes through a relay.

    Attributes:
        tracer: What it knows of it.

    Args:
        printer: Where messages are told.
        terminal: Where goes what the server prints; it may be the same.
        form: How messages are told.
    """

    def __init__(self, printer: Printer, terminal: Printer, form: Form) -> None:
        self.tracer = Tracer()
        self._printer = printer
        self._terminal = terminal
        self._form = form
        self._is_coloured = printer.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._begin = time.perf_counter()
        self._line = b""  # that the server prints, as far as it has come

    def to_server(self, data: bytes) -> None:
        now = time.perf_counter() - self._begin
        self._tell(self.tracer.feed("to server", data, now) if data else self.tracer.finish("to server", now))

    def to_client(self, data: bytes) -> None:
        now = time.perf_counter() - self._begin
        self._tell(self.tracer.feed("to client", data, now) if data else self.tracer.finish("to client", now))

    async def printed(self, data: bytes) -> None:
        lines, newline, self._line = (self._line + data).rpartition(b"\n")
        lines += newline
        if not data or len(self._line) > _LONGEST_LINE:
            lines, self._line = lines + self._line, b""
        self._terminal.write(_harmless(lines) if self._terminal.is_terminal else lines)
        await self._terminal.drain()

    def end(self, how: str) -> None:
        """Tell how it has ended."""
        if self._line:
            self._terminal.write(_harmless(self._line) if self._terminal.is_terminal else self._line)
        now = time.perf_counter() - self._begin
        self._tell(self.tracer.finish("to server", now) + self.tracer.finish("to client", now))
        if self._form != "json":
            self._printer.write(self._encoded(_closing(self.tracer, how)))

    def _tell(self, annotations: Sequence[Annotation]) -> None:
        if not annotations:
            return
        if self._form == "json":
            self._printer.write("".join(map(as_json, annotations)).encode("ascii"))
            return
        style = Style(self._printer.columns, self._is_coloured, self._form == "body")
        self._printer.write(self._encoded("".join([as_text(each, style) for each in annotations])))

    def _encoded(self, text: str) -> bytes:
        if not self._printer.is_terminal:
            return text.encode()
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        try:
            return text.encode(encoding)
        except UnicodeEncodeError:
            return text.translate(_PLAIN).encode(encoding, "backslashreplace")


def _harmless(lines: bytes) -> bytes:
    """Return what a server prints as a terminal may get it."""
    text = lines.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\r", "\n").expandtabs()
    return "\n".join(map(printable, text.split("\n"))).encode("utf-8")


def _ending(relay: StdioRelay | HttpRelay) -> str:
    if isinstance(relay, HttpRelay):
        return "the host has ended it" if relay.failure is None else printable(str(relay.failure))
    status = relay.status
    if status is None:
        return "the server has ended"
    if status < 0:
        return f"the server was ended by signal {-status}"
    return f"the server has exited with status {status}"


def _closing(tracer: Tracer, how: str) -> str:
    return f"mcpgen trace: {_counted(tracer.messages, 'message')}, {_counted(tracer.violations, 'violation')}; {how}\n"


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def _skipped(count: int) -> bytes:
    return f"(nobody read this in time: {_counted(count, 'piece')} skipped)\n".encode("ascii")


def _skipped_json(count: int) -> bytes:
    return f'{{"skipped":{count}}}\n'.encode("ascii")
