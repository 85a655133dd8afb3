"""The log of ``mcpgen serve --verbose``: a line for each request, and a line for its response."""

from __future__ import annotations

import sys
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.cli.client.terminal import Screen
from mcpgen.runtime.cli.server.wrapped_server import WrappedServer
from mcpgen.runtime.cli.terminal_text import escaped_line
from mcpgen.runtime.limits import MAX_VALUES
from mcpgen.runtime.protocol.message_size import too_many_values

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence

    from mcpgen.runtime.protocol.framing import Frame, OversizedLine
    from mcpgen.runtime.transports.interfaces import Endpoint, MessageWriter
    from mcpgen.runtime.transports.spawner import Spawner

    Event = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Event]]
    Send = Callable[[Event], Awaitable[None]]

__all__ = ["LoggedApplication", "LoggedServer", "messages_of"]

# A longer text says no more in one line of a log.
_MAX_TEXT: Final = 200

# Larger bodies are not decoded a second time for the log.
_MAX_BODY_BYTES: Final = 1 << 20

# A client that never gets an answer must not fill our memory.
_MAX_PENDING: Final = 10_000

# Ten times as many as a server accepts in one batch by default. 4 MiB can hold 200,000, whose lines take a second.
_MAX_BATCH_LENGTH: Final = 10_000

# Ten times as many as a client accepts in one message. 16 MiB can hold five million messages, each
# of which takes 100 bytes of memory.
_MAX_BATCH_VALUES: Final = 10 * MAX_VALUES


class _Params(Struct):
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET


class _Error(Struct):
    code: int
    message: str = ""


class _Block(Struct):
    text: str = ""


class _Result(Struct, rename="camel"):
    is_error: bool = False
    content: Raw | UnsetType = UNSET


class Message(Struct):
    """What the log shows of a JSON-RPC message."""

    id: str | int | float | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


def messages_of(frame: Frame | OversizedLine) -> list[Message]:
    """Return the messages in *frame*; none if it is not valid, or a batch that is far too long.

    The server itself reports both.
    """
    if not isinstance(frame, bytes):
        return []
    try:
        if frame[:64].lstrip().startswith(b"["):
            if too_many_values(frame, _MAX_BATCH_VALUES):
                return []
            found = msgspec.json.decode(frame, type=list[Message])
            return found if len(found) <= _MAX_BATCH_LENGTH else []
        return [msgspec.json.decode(frame, type=Message)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


class _Log:
    """Write lines about the requests of one connection."""

    def __init__(self) -> None:
        self._pending: dict[object, tuple[str, float]] = {}

    def came(self, message: Message) -> None:
        """Write that a request or a notification of the client came."""
        if isinstance(message.method, UnsetType):
            return
        label = _label(message)
        _write(f"→ {label}")
        if not isinstance(message.id, UnsetType) and len(self._pending) < _MAX_PENDING:
            self._pending[_key(message)] = (label, time.monotonic())

    def went(self, message: Message) -> None:
        """Write that a response was sent."""
        if message.method is UNSET and _key(message) in self._pending:
            label, begin = self._pending.pop(_key(message))
            _write(f"← {label}  {_outcome(message)}, {_duration(begin)}")


def _key(message: Message) -> object:
    """Return what stands for the id of *message*: of a text, which can have megabytes, the hash.

    Numbers stand for themselves: -1 and -2 have one hash.
    """
    return ("text", hash(message.id)) if isinstance(message.id, str) else message.id


def _write(line: str) -> None:
    Screen(sys.stderr).line(f"{time.strftime('%H:%M:%S')} {line}")


def _label(message: Message) -> str:
    params = _decoded(message.params, _Params)
    subject = "" if params is None else params.name or params.uri or ""
    number = "" if isinstance(message.id, UnsetType) else f"#{message.id}"
    return " ".join(_short(each) for each in (message.method, subject, number) if each)


def _outcome(message: Message) -> str:
    error = _decoded(message.error, _Error)
    if error is not None:
        return f"error {error.code}: {_short(error.message)}"
    result = _decoded(message.result, _Result)
    if result is None or not result.is_error:
        return "ok"
    blocks: list[_Block] = _decoded(result.content, list[_Block]) or []
    return f"failed: {_short(' '.join(each.text for each in blocks))}"


def _decoded(data: Raw | UnsetType, kind: Any) -> Any:  # noqa: ANN401 (any type; None if it does not fit)
    try:
        return None if isinstance(data, UnsetType) else msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _short(text: object) -> str:
    whole = str(text)
    return escaped_line(whole if len(whole) <= _MAX_TEXT else f"{whole[:_MAX_TEXT]}…")


def _duration(begin: float) -> str:
    seconds = time.monotonic() - begin
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


class LoggedServer(WrappedServer):
    """A server on stdio whose requests are logged. It is a `ServerInterface`."""

    def connect(self, writer: MessageWriter, spawner: Spawner, /) -> Endpoint:
        """Return a new connection of the server, which is logged."""
        log = _Log()
        return _LoggedEndpoint(self._server.connect(_LoggedWriter(writer, log), spawner), log)


class _LoggedWriter:
    def __init__(self, writer: MessageWriter, log: _Log) -> None:
        self._writer = writer
        self._log = log
        self.drain = writer.drain

    @property
    def is_full(self) -> bool:
        return self._writer.is_full

    def write(self, message: bytes) -> None:
        self._writer.write(message)
        for each in messages_of(message):
            self._log.went(each)


class _LoggedEndpoint:
    def __init__(self, endpoint: Endpoint, log: _Log) -> None:
        self._endpoint = endpoint
        self._log = log
        self.end_of_input = endpoint.end_of_input
        self.wait_finished = endpoint.wait_finished
        self.close = endpoint.close

    def receive(self, frames: Sequence[Frame | OversizedLine]) -> None:
        for frame in frames:
            for each in messages_of(frame):
                self._log.came(each)
        self._endpoint.receive(frames)


class LoggedApplication:
    """An ASGI application whose HTTP requests are logged."""

    def __init__(self, app: Callable[[Event, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _LoggedExchange(scope, receive, send)
        await self._app(scope, exchange.receive, exchange.send)


class _LoggedExchange:
    """One HTTP request, and its response."""

    def __init__(self, scope: Event, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._begin = time.monotonic()
        self._label = f"{scope['method']} {_short(scope['path'])}"
        self._request: bytearray | None = bytearray()  # None if it is not decoded
        self._response: bytearray | None = bytearray()  # what is not read yet
        self._outcomes: list[str] = []
        self._is_stream = False
        self._is_get = scope["method"] == "GET"
        self._status = 0
        self._is_read = False

    async def receive(self) -> Event:
        """Return the next part of the request. Log the request when it is complete."""
        event = await self._receive()
        if event["type"] == "http.request" and not self._is_read:
            self._request = _extended(self._request, event.get("body", b""))
            if not event.get("more_body", False):
                self._came()
        return event

    def _came(self) -> None:
        self._is_read = True
        labels = [_label(each) for each in _messages(self._request) if each.method is not UNSET]
        self._request = None  # a handler can wait for an hour
        if labels:
            self._label = ", ".join(labels)
        _write(f"→ {self._label}")

    async def send(self, event: Event) -> None:
        """Send a part of the response. Log the response when it is complete."""
        if event["type"] == "http.response.start":
            self._status = event["status"]
            if self._is_get and self._status == HTTPStatus.OK:  # a stream, whose messages are not shown
                self._response = None
            types = [value for name, value in event.get("headers", ()) if name.lower() == b"content-type"]
            self._is_stream = any(each.startswith(b"text/event-stream") for each in types)
        elif event["type"] == "http.response.body":
            self._response = _extended(self._response, event.get("body", b""))
            if self._is_stream and self._response is not None:
                # A stream stays open for hours, and can have a megabyte of messages: only their outcomes are kept.
                lines, newline, rest = self._response.rpartition(b"\n")
                self._response = rest
                self._read(lines + newline)
            if not event.get("more_body", False):
                self._went()
        await self._send(event)

    def _read(self, part: bytearray | None) -> None:
        found = _messages(part, is_stream=self._is_stream)
        self._outcomes += [_outcome(each) for each in found if each.method is UNSET]

    def _went(self) -> None:
        if not self._is_read:  # refused because of its headers
            self._came()
        self._read(self._response)
        self._response = None  # the client may not read it for a minute
        found = ", ".join(each for each in self._outcomes if each != "ok")
        _write(f"← {self._label}  {self._status}{f', {found}' if found else ''}, {_duration(self._begin)}")


def _messages(body: bytearray | None, *, is_stream: bool = False) -> Iterator[Message]:
    """Yield the messages in *body*: JSON, or lines of a stream."""
    if body and not is_stream:
        yield from messages_of(bytes(body))
    for each in bytes(body).splitlines() if body and is_stream else ():
        if each.startswith(b"data:"):
            yield from messages_of(each.removeprefix(b"data:").strip())


def _extended(body: bytearray | None, part: bytes) -> bytearray | None:
    """Return *body* with *part*; None if it is not decoded, because it is too large."""
    if body is None or len(body) + len(part) > _MAX_BODY_BYTES:
        return None
    body += part
    return body
