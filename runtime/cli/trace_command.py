"""The command ``trace``: relay the messages between a host and a server, and describe each one."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import click

from mcpgen.runtime.adapt.extensions import register_extension
from mcpgen.runtime.adapt.registration import register_installed
from mcpgen.runtime.api.server_runner import stdin_is_terminal
from mcpgen.runtime.cli.client.terminal import encode_text, on_signal, wants_colours
from mcpgen.runtime.cli.hosts.config_option import SERVER_NAME, TRACE_CONFIG, TraceCommand, chosen_entry
from mcpgen.runtime.cli.target import check_one_url, parse_url
from mcpgen.runtime.cli.terminal_text import error_text, escaped_line, sentence
from mcpgen.runtime.cli.trace.annotation_text import Style, as_json, as_text
from mcpgen.runtime.cli.trace.http_relay import HttpRelay
from mcpgen.runtime.cli.trace.output_buffer import OutputBuffer
from mcpgen.runtime.cli.trace.stdio_relay import StdioRelay
from mcpgen.runtime.errors import UsageError, printable
from mcpgen.runtime.limits import ClientLimits
from mcpgen.runtime.protocol.trace.tracer import Tracer
from mcpgen.runtime.transports.command_line import is_url
from mcpgen.runtime.transports.process_transport import Process
from mcpgen.runtime.transports.spawner import open_group
from mcpgen.runtime.transports.standard_streams import StandardStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcpgen.runtime.cli.trace.stdio_relay import TraceSink
    from mcpgen.runtime.protocol.trace.annotations import Annotation

__all__ = ["trace"]

_STDERR: Final = 2

# To write the last annotations, if they still have a reader.
_FLUSH_SECONDS: Final = 0.5

# The server's standard error is written in whole lines, so that annotations do not split them. Longer lines are cut.
_MAX_LINE: Final = 16 * 1024

_TERMINAL_HINT: Final = (
    "mcpgen trace: waits for messages of a host on standard input. "
    "Put this command into the configuration of a host. Ctrl-C stops it."
)

_RelayFactory: TypeAlias = "Callable[[StandardStreams, TraceSink], StdioRelay | HttpRelay]"

Format: TypeAlias = Literal["summary", "body", "json"]
"""The output format."""


@click.command(cls=TraceCommand, context_settings={"allow_interspersed_args": False})
@click.option("--json", "as_json_lines", is_flag=True, help="Write one line of JSON for each message.")
@click.option("--body", is_flag=True, help="Show whole messages instead of summaries.")
@click.option(
    "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Append to FILE instead of standard error."
)
@click.option("--strict", is_flag=True, help="Exit with status 1 if there was a violation.")
@click.option(
    "--header", "headers", multiple=True, metavar='"NAME: VALUE"', help="Send this header to the URL. Repeatable."
)
@click.option(
    "--bearer-env", metavar="VARIABLE", help="Read a bearer token from this environment variable. Send it to the URL."
)
@click.option(
    "--extension",
    "extensions",
    multiple=True,
    metavar="PACKAGE",
    help="Check messages of an extension, with the package that `mcpgen build --extension` wrote. Repeatable.",
)
@TRACE_CONFIG
@SERVER_NAME
@click.argument("target", nargs=-1, required=True, metavar="-- COMMAND...|URL")
def trace(  # noqa: PLR0913 (one parameter for each option)
    *,
    target: tuple[str, ...],
    config: Path | None,
    server: str | None,
    as_json_lines: bool,
    body: bool,
    output: str | None,
    strict: bool,
    headers: tuple[str, ...],
    bearer_env: str | None,
    extensions: tuple[str, ...],
) -> None:
    """Relay the messages between a host and a server, and show each one.

    A host is a program that uses MCP servers, such as an editor. In its configuration, put "mcpgen trace --" before the
    command of the server, or before the URL of a server over HTTP. The messages are not changed. With --config, the
    server is one of a configuration, and there is no command or URL.

    Each message is shown on standard error: its time, direction, kind (such as request or response), method, id,
    revision, the name of its type (such as CallToolResult), a summary, and its violations. The server's own standard
    error passes through.

    A violation (✗) is something that the revision does not allow, such as a key or a method of another revision, or a
    message that is too large to check. A note (·) is something that is allowed but unusual.

    With a URL, the host gets an error response for each request that fails over HTTP. The messages of a batch that
    contains requests are sent to the URL one by one, so each request gets a response of its own.

    Exit status: that of the server; 128 plus the signal number if a signal ended it. With a URL: 0, or 1 if the
    connection was lost. With --strict: 1 if there was a violation. With --output: 1 instead of 0 if
    FILE could not be written.
    """
    if body and as_json_lines:
        raise click.UsageError("Give either `--json` or `--body`, not both.")
    register_installed()
    for each in extensions:
        _register(each)
    if config is not None:
        make_relay = _relay_of_config(config, server, {"headers": headers, "bearer_env": bearer_env})
    elif server is not None:
        raise click.UsageError("`--server` needs `--config`, which names the file.")
    else:
        make_relay = _relay_factory(target, headers, bearer_env)
    output_format: Format = "json" if as_json_lines else "body" if body else "summary"
    if stdin_is_terminal() and sys.stderr.isatty():
        click.echo(_TERMINAL_HINT, err=True)
    with ExitStack() as stack:
        descriptor = _STDERR if output is None else _open(output)
        if output is not None:
            stack.callback(os.close, descriptor)
        streams = stack.enter_context(StandardStreams())
        try:
            status, violations = anyio.run(_run, make_relay, streams, descriptor, output_format)
        except UsageError as error:
            raise click.UsageError(sentence(error)) from None
    if strict and violations:
        status = 1
    if sys.platform == "win32":
        os._exit(status)  # a thread that reads our input would delay the exit
    raise SystemExit(status)


def _relay_factory(target: Sequence[str], headers: Sequence[str], bearer_variable: str | None) -> _RelayFactory:
    if len(target) == 1 and is_url(target[0]):
        transport = parse_url(target[0], headers, bearer_variable, may_ask=False)
        return lambda streams, writer: HttpRelay(transport, streams, writer, ClientLimits())
    check_one_url(target)
    if headers or bearer_variable is not None:
        raise click.UsageError("`--header` and `--bearer-env` need a URL; the target is a command.")
    # The host has set the whole environment for the server.
    process = Process(_words(target), inherit_environment=True)
    return lambda streams, writer: StdioRelay(process, streams, writer, ClientLimits())


def _relay_of_config(config: Path, name: str | None, options: Mapping[str, object]) -> _RelayFactory:
    """Return what makes the relay to a server of a configuration. It is started as by the other commands."""
    entry = chosen_entry(config, name, options)
    words = [str(entry.settings.get("command", "")), *entry.settings.get("args", ())]
    is_ours = any(Path(each).stem == "mcpgen" for each in words)
    if is_ours and "trace" in words and any(each.startswith("--config") for each in words):
        raise click.UsageError(  # it would start itself without end
            f"The server {escaped_line(entry.name)!r} is itself `mcpgen trace --config`; name an entry that has the "
            "command of the server."
        )
    try:
        transport = entry.transport()
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    if isinstance(transport, Process):
        return lambda streams, writer: StdioRelay(transport, streams, writer, ClientLimits())
    return lambda streams, writer: HttpRelay(transport, streams, writer, ClientLimits())


def _register(package: str) -> None:
    """Make the messages of an extension known; a package is found as ``python`` in this folder finds it."""
    sys.path.insert(0, "")  # like "python -m"
    try:
        register_extension(import_module(package))
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"`--extension {package}` cannot be used: there is no module {error.name}. Install it, or run the command "
            "in the folder that contains it."
        ) from None
    except (ImportError, UsageError) as error:
        raise click.UsageError(f"`--extension {package}` cannot be used: {error}.") from None


def _words(target: Sequence[str]) -> list[str]:
    """Return the program and its arguments, which may be given as one word."""
    if len(target) > 1 or shutil.which(target[0]) is not None:
        return list(target)
    try:
        words = shlex.split(target[0], posix=sys.platform != "win32")
    except ValueError as error:
        raise click.UsageError(f"The command cannot be split into words: {error}.") from None
    if not words:
        raise click.UsageError("The command is empty.")
    return words


def _open(output: str) -> int:
    try:
        return os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise click.UsageError(f"Cannot write {printable(output)} (`--output`): {error.strerror}.") from None


async def _run(
    make_relay: _RelayFactory, streams: StandardStreams, descriptor: int, output_format: Format
) -> tuple[int, int]:
    """Return the exit status, and the number of violations."""
    stderr = OutputBuffer(_STDERR, _skipped)
    skipped = _skipped_json if output_format == "json" else _skipped
    output = stderr if descriptor == _STDERR else OutputBuffer(descriptor, skipped)
    writer = _TraceWriter(output, stderr, output_format)
    relay = make_relay(streams, writer)
    outputs = {output, stderr}
    try:
        async with open_group() as group:
            for each in outputs:
                group.start_soon(each.run)
            group.start_soon(on_signal, relay.stop, list[int]())
            try:
                await relay.run()
            finally:
                writer.end(_ending(relay))
                with anyio.move_on_after(_FLUSH_SECONDS, shield=True):
                    for each in outputs:
                        await each.flushed()
    finally:
        for each in outputs:
            each.close()
    status = 1 if relay.status is None else relay.status
    is_read = not isinstance(output.failure, BrokenPipeError)  # the reader of a pipe may leave when it has enough
    if output.failure is not None and is_read and output is not stderr:
        click.echo(f"Error: the trace is incomplete (`--output`): {output.failure.strerror}.", err=True)
        status = status or 1
    return (status if status >= 0 else 128 - status), writer.tracer.violations


class _TraceWriter:
    """Write the annotations of all messages that a relay moves, and the server's standard error.

    Attributes:
        tracer: The tracer of the messages.

    Args:
        output: The output for annotations.
        stderr: The output for the server's standard error; it may be the same.
        output_format: The format of annotations.
    """

    def __init__(self, output: OutputBuffer, stderr: OutputBuffer, output_format: Format) -> None:
        self.tracer = Tracer()
        self._output = output
        self._stderr = stderr
        self._format = output_format
        self._is_coloured = output.is_terminal and wants_colours()
        self._begin = time.perf_counter()
        self._line = b""  # the incomplete last line of the server's standard error

    def to_server(self, data: bytes) -> None:
        now = time.perf_counter() - self._begin
        self._write(self.tracer.feed("to server", data, now) if data else self.tracer.finish("to server", now))

    def to_client(self, data: bytes) -> None:
        now = time.perf_counter() - self._begin
        self._write(self.tracer.feed("to client", data, now) if data else self.tracer.finish("to client", now))

    async def stderr(self, data: bytes) -> None:
        lines, newline, self._line = (self._line + data).rpartition(b"\n")
        lines += newline
        if not data or len(self._line) > _MAX_LINE:
            lines, self._line = lines + self._line, b""
        self._stderr.write(_escaped(lines) if self._stderr.is_terminal else lines)
        await self._stderr.drain()

    def end(self, how: str) -> None:
        """Write the last annotations, and a line about the end."""
        if self._line:
            self._stderr.write(_escaped(self._line) if self._stderr.is_terminal else self._line)
        now = time.perf_counter() - self._begin
        self._write(self.tracer.finish("to server", now) + self.tracer.finish("to client", now))
        if self._format != "json":
            self._output.write(self._encoded(_closing(self.tracer, how)))

    def _write(self, annotations: Sequence[Annotation]) -> None:
        if not annotations:
            return
        if self._format == "json":
            self._output.write("".join(map(as_json, annotations)).encode("ascii"))
            return
        style = Style(self._output.columns, self._is_coloured, self._format == "body")
        self._output.write(self._encoded("".join([as_text(each, style) for each in annotations])))

    def _encoded(self, text: str) -> bytes:
        return encode_text(text, sys.stderr if self._output.is_terminal else None)


def _escaped(lines: bytes) -> bytes:
    """Escape the server's standard error for a terminal."""
    text = lines.decode("utf-8", "backslashreplace").replace("\r\n", "\n").replace("\r", "\n").expandtabs()
    return "\n".join(map(printable, text.split("\n"))).encode("utf-8")


def _ending(relay: StdioRelay | HttpRelay) -> str:
    if isinstance(relay, HttpRelay):
        return "the host has disconnected" if relay.failure is None else printable(error_text(relay.failure))
    status = relay.status
    if status is None:
        return "the server has ended"
    if status < 0:
        return f"signal {-status} ended the server"
    return f"the server has exited with status {status}"


def _closing(tracer: Tracer, how: str) -> str:
    return f"mcpgen trace: {_counted(tracer.messages, 'message')}, {_counted(tracer.violations, 'violation')}; {how}\n"


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def _skipped(count: int) -> bytes:
    parts = f"{_counted(count, 'part')} of the output {'is' if count == 1 else 'are'} not shown"
    what = f"{parts}; all messages were passed on"
    return f"(the terminal or pipe reads too slowly: {what})\n".encode("ascii")


def _skipped_json(count: int) -> bytes:
    return f'{{"skipped":{count}}}\n'.encode("ascii")
