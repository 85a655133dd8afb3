"""One request and its response on a connection of uvicorn, for less work than uvicorn's own class.

Theory of operation. Most requests have arrived completely when the application starts, and most responses have one
part. So this class

* holds the head of a response until the first part of its body, and writes both in one packet and one system call.
  uvicorn writes the head at once. ASGI forbids that: a server "must not start sending the response to the client until
  it has received at least one Response Body event";
* makes an event only if the application has to wait for the rest of a request, or for a disconnect;
* remembers the lines of headers that it has checked.

uvicorn starts a timer after each response, which closes the connection if it stays idle. Here a connection has one such
timer, which looks at the time of the last response. And uvicorn makes a task for each request, where here requests that
arrive together share one as long as none of them waits.

What the application must not send is refused as in uvicorn.

Spec:
    ASGI 3, HTTP & WebSocket, "Response Start" and "Response Body".
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from mcpgen.runtime.http.server.client_address import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpgen.runtime.http.server.read_turns import ReadTurns
    from mcpgen.runtime.http.server.responses import Header
    from mcpgen.runtime.http.server.shared_task import SharedTask

__all__ = ["NO_EVENT", "CycleProtocol", "remembered_line"]

# Responses without a body (RFC 9110, sections 15.3.5 and 15.4.5).
_WITHOUT_BODY: Final = frozenset((204, 304))

# A client sends its requests to one short URL, and gets the same short headers. They are not parsed each time.
_MAX_REMEMBERED_BYTES: Final = 256

# A longer path is not decoded, and nothing is served at it. 64 KiB of escapes, the most that a head can have, take
# 40 ms, and many connections can send them in one turn of the event loop.
_MAX_DECODED_BYTES: Final = 1024

# A longer body is written apart from its head, so that it is not copied.
_COPIED_BYTES: Final = 16 * 1024


# Of a connection without a request.
_NO_SCOPE: Final[Any] = {}


class _NoEvent:
    """The event of a request that nothing waits for."""

    def set(self) -> None:
        """Wake nothing."""


NO_EVENT: Final[Any] = _NoEvent()


def _checked_line(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return the name of a header in lower case, and its line.

    Raises:
        RuntimeError: It has characters that HTTP does not allow.
    """
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise RuntimeError(f"the response header {name!r} has characters that HTTP does not allow")
    name = name.lower()
    return name, b"%b: %b\r\n" % (name, value)


remembered_line: Final = lru_cache(maxsize=512)(_checked_line)


class RequestCycle(RequestResponseCycle):
    """One request and its response.

    Attributes:
        is_received: Whether the application has received the whole request.
        ends_with_connection: Whether the response has neither a length nor chunks.
        written: A future that is done, which takes less than a coroutine.
    """

    is_received: bool = False
    ends_with_connection: bool = False
    body: bytes | bytearray  # type: ignore[assignment] # bytes if all of it has arrived
    message_event: Any
    written: asyncio.Future[None]
    waiting_for_100_continue: bool
    chunked_encoding: bool | None
    expected_content_length: int
    _head = b""  # of the response, until the first part of its body

    async def receive(self) -> Any:  # noqa: ANN401 (as uvicorn has it)
        """Return the body, or wait for the rest of it, or for a disconnect."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if self.flow.write_paused and not (self.is_received or self.disconnected):
            await self.flow.drain()  # the answer would wait, and the request with it, until the one before is read
        if self.flow.read_paused and not self.disconnected:
            self.flow.resume_reading()
        while not (self.body or self.disconnected or self.response_complete) and (self.more_body or self.is_received):
            await self._wait()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        self.is_received = not self.more_body  # or the next call would return an empty body
        body, self.body = self.body, bytearray()
        if self.is_received and self.flow.read_paused:  # or the end of the connection would not be seen
            self.flow.resume_reading()
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    async def _wait(self) -> None:
        """Return when a part of the request, its end, or that of the response or the connection has come."""
        if self.message_event is NO_EVENT:
            self.message_event = asyncio.Event()
        self.message_event.clear()
        await self.message_event.wait()

    def send(self, message: Any) -> Any:  # noqa: ANN401 (as uvicorn has it)
        """Write a part of the response, now if the client reads; return what to await."""
        if self.flow.write_paused and not self.disconnected:
            return self._send_later(message)
        self._send(message)
        return self.written

    async def _send_later(self, message: Any) -> None:  # noqa: ANN401 (as uvicorn has it)
        await self.flow.drain()
        self._send(message)

    def _send(self, message: Any) -> None:  # noqa: ANN401 (as uvicorn has it)
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if message["type"] != expected or self.response_complete:
            raise RuntimeError(f"the application sent {message['type']!r}, which ASGI does not allow now")
        if not self.response_started:
            self._start(message["status"], message.get("headers", ()))
        else:
            self._write(message.get("body", b""), message.get("more_body", False))

    def _start(self, status: int, headers: Iterable[Header]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = [STATUS_LINE[status]]
        says_close = False
        for pair in (*self.default_headers, *headers):
            # A client may choose a long value, such as that of `Access-Control-Allow-Headers`.
            is_short = len(pair[1]) <= _MAX_REMEMBERED_BYTES
            name, line = remembered_line(*pair) if is_short else _checked_line(*pair)
            lines.append(line)
            if name == b"content-length" and self.chunked_encoding is None:
                self.expected_content_length = int(pair[1])
                self.chunked_encoding = False
            elif name == b"transfer-encoding" and pair[1].lower() == b"chunked":
                self.expected_content_length = 0
                self.chunked_encoding = True
            elif name == b"connection" and b"close" in [each.strip() for each in pair[1].lower().split(b",")]:
                self.keep_alive = False
                says_close = True
        if not self.keep_alive and not says_close:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY:
            # RFC 9112, 6.1: a client of HTTP/1.0 does not know chunks. The end of the connection ends its response.
            self.ends_with_connection = self.scope["http_version"] != "1.1"
            if not self.ends_with_connection:
                self.chunked_encoding = True
                lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        self._head = b"".join(lines)

    def _write(self, body: bytes, more_body: bool) -> None:  # noqa: FBT001 (as ASGI has it)
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            body = b""
        elif self.chunked_encoding:
            framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = framed if more_body else framed + b"0\r\n\r\n"
        elif not self.ends_with_connection:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0:
                raise RuntimeError("the body of a response is longer than its Content-Length")
        head, self._head = self._head, b""
        if len(body) > _COPIED_BYTES:
            if head:
                self.transport.write(head)
            self.transport.write(body)
        elif head or body:
            self.transport.write(head + body)
        if not more_body:
            self._end()

    def _end(self) -> None:
        if self.expected_content_length:
            raise RuntimeError("the body of a response is shorter than its Content-Length")
        self.response_complete = True
        if self.message_event is not NO_EVENT:
            self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class CycleProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a `RequestCycle` for each request, and one timer for each connection.

    Args:
        requests: Runs the requests of all connections.
        reads: Says whose data is parsed in a turn of the event loop.
        **options: The arguments that uvicorn passes.

    Attributes:
        owner: The address of the client.
        reads: As above.
        delayed: How many pieces of data wait for their turn.
    """

    app: Any
    cycle: RequestResponseCycle
    scope: Any
    url: bytes

    def __init__(self, *, requests: SharedTask, reads: ReadTurns, **options: Any) -> None:  # noqa: ANN401 (as uvicorn's are)
        super().__init__(**options)
        self._requests = requests
        self._written = self.loop.create_future()
        self._written.set_result(None)
        self.owner: str = ""
        self.reads: ReadTurns = reads
        self.delayed: int = 0
        self._idle_since: float | None = None  # by the clock of the event loop; None while it is in use

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Note whose connection it is."""
        super().connection_made(transport)
        self.owner = site_of(self.client[0]) if self.client else ""

    def data_received(self, data: bytes) -> None:
        """Parse *data* in this turn of the event loop, or in a later one."""
        if self.reads.is_turn_of(self.owner, len(data), self.delayed > 0, self._parse_delayed, data):
            self.parse(data)
        else:
            self.delayed += 1
            self._unset_keepalive_if_required()
            self.flow.pause_reading()

    def _parse_delayed(self, data: bytes) -> None:
        self.delayed -= 1
        if not self.transport.is_closing():
            if not self.pipeline:  # else it goes on after the request that is answered
                self.flow.resume_reading()
            self.parse(data)

    def parse(self, data: bytes) -> None:
        """Parse *data*, and start the requests in it."""
        HttpToolsProtocol.data_received(self, data)

    def begin_request(self) -> None:
        """Call the application, as uvicorn does; without WebSockets and `limit_concurrency`, which are not used."""
        parser: Any = self.parser
        version = parser.get_http_version()
        is_current = version == "1.1"
        split = _remembered_target if len(self.url) <= _MAX_REMEMBERED_BYTES else _target
        path, raw_path, query = split(self.url)
        scope: Any = self.scope
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"], scope["raw_path"], scope["query_string"] = path, raw_path, query
        expects = is_current and self.expect_100_continue  # RFC 9110, 10.1.1: ignored before HTTP/1.1
        self.start_request(scope, None, expects, is_current and parser.should_keep_alive())

    def start_request(
        self,
        scope: Any,  # noqa: ANN401 (as uvicorn has it)
        body: bytes | None,
        expects_100_continue: bool = False,  # noqa: FBT001, FBT002 (CPython 3.11 makes a dict of named arguments)
        keep_alive: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        """Call the application for a request, now or after those before it.

        Args:
            scope: The ASGI scope.
            body: The body, if it has arrived, and None if it is to come.
            expects_100_continue: Whether the client waits before it sends the body.
            keep_alive: Whether the connection may be used again.
        """
        before: Any = self.cycle  # None before the first request
        self.cycle = cycle = RequestCycle(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,  # noqa: FBT003 (access_log)
            self.server_state.default_headers,
            NO_EVENT,
            expects_100_continue,
            keep_alive,
            self.on_response_complete,
        )
        cycle.written = self._written
        if body is not None:
            cycle.body = body
            cycle.more_body = False
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def end_request(self) -> None:
        """Start the request that waits, or else the time in which the connection may be idle."""
        self.server_state.total_requests += 1
        cycle = self.cycle
        if cycle.response_complete:  # else it waits behind the one that has ended
            # A head may have 64 KiB, and there may be 10,000 idle connections.
            if self.scope is cycle.scope:  # else the next head has begun
                self.scope, self.url = _NO_SCOPE, b""
            cycle.scope = _NO_SCOPE
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self._check_idle)

    def _check_idle(self) -> None:
        """Close the connection if it was idle for long enough; or look at it again when it may be."""
        self.timeout_keep_alive_task = None
        if self._idle_since is None:  # the next response starts the timer again
            return
        rest = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if rest > 0:
            self.timeout_keep_alive_task = self.loop.call_later(rest, self._check_idle)
        else:
            self.timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        """Note that the connection is in use: uvicorn calls this when data arrives."""
        self._idle_since = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401, ARG002 (as uvicorn has it)
        self._requests.start(self, cycle)

    def on_failed_response(self) -> None:
        """Handle that the application has ended in the middle of its response, and the connection is closed."""


def _target(url: bytes) -> tuple[str, bytes, bytes]:
    """Return the path of a request's target, decoded and as it is, and the query."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if len(path) <= _MAX_DECODED_BYTES else path, parsed.path, parsed.query or b""


_remembered_target: Final = lru_cache(maxsize=64)(_target)
