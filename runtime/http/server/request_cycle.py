"""One request and its response on a connection of uvicorn, for less work than uvicorn's own class.

Theory of operation. Most requests have arrived completely when the application starts, and most responses have one
part. So this class

* holds the head of a response until the first part of its body, and writes both in one packet and one system call.
  uvicorn writes the head at once. ASGI forbids that: a server "must not start sending the response to the client until
  it has received at least one Response Body event";
* makes an event only if the application has to wait for the rest of a request, or for a disconnect;
* remembers the lines of headers that it has checked.

What the application must not send is refused as in uvicorn.

Spec:
    ASGI 3, HTTP & WebSocket, "Response Start" and "Response Body".
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpgen.runtime.http.server.responses import Header
    from mcpgen.runtime.server.quota import Entry

__all__ = ["NO_EVENT", "RequestCycle", "remembered_line"]

# Responses without a body (RFC 9110, sections 15.3.5 and 15.4.5).
_WITHOUT_BODY: Final = frozenset((204, 304))

# A client gets the same short headers with each response. They are not checked each time.
_MAX_REMEMBERED_BYTES: Final = 256

# A longer body is written apart from its head, so that it is not copied.
_COPIED_BYTES: Final = 16 * 1024


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
        entry: Counts the body while it waits for the application; None if it is not counted.
    """

    is_received: bool = False
    entry: Entry | None = None
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
        if self.flow.read_paused and not self.disconnected:
            self.flow.resume_reading()
        while not (self.body or self.disconnected or self.response_complete) and (self.more_body or self.is_received):
            await self._wait()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        self.is_received = not self.more_body  # or the next call would return an empty body
        body = self.body
        self.forget_body()  # the application counts it now
        if self.is_received and self.flow.read_paused:  # or the end of the connection would not be seen
            self.flow.resume_reading()
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    def forget_body(self) -> None:
        """Keep nothing of the body, which the application has taken, or will not take."""
        self.body = bytearray()
        if self.entry is not None:
            self.entry.release()
            self.entry = None

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
        self.forget_body()  # or an idle connection would keep that of a request that was refused
        if self.message_event is not NO_EVENT:
            self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
