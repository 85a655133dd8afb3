"""One HTTP/1.1 connection of asyncio: it writes a request, and reads its response with httptools.

Theory of operation. A connection serves one request at a time: `start` writes the head and makes an `Http11Response`,
which the parser fills and a task reads. A task that waits for more is woken through a future. If no task reads a long
body, the transport is paused, so a response buffers at most `_MAX_BUFFERED_BYTES` in `_MAX_BUFFERED_PARTS` parts, and
one read of the socket.

The parser is llhttp, which Node.js uses. In its strict mode it refuses a response with two lengths, with a length and
chunks, with a line that is folded or ends without CR, and with a chunk that is longer than it says. It sets no limit
on lengths, so three are set here:

* The heads before a body, those with a status of 1xx included, have at most `MAX_HEAD_BYTES` and `_MAX_HEADERS`.
* Between two parts of a body there are at most as many bytes: lengths of chunks, their extensions, and trailers.
* The reader of a body limits its length.

A connection is used again only if the whole request was written, the whole response has arrived, nothing came behind
it, and both sides keep the connection. Everything else closes it. Bytes on an idle connection close it, too.

Spec:
    RFC 9112, sections 6.3 (length of a body), 9.3 (persistence) and 11.2 (request smuggling).
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import httptools
from anyio.lowlevel import checkpoint_if_cancelled

from mcpgen.runtime.http.client.http_exchange import ConnectionBroke, system_message

if TYPE_CHECKING:
    from typing import Self

__all__ = ["MAX_HEAD_BYTES", "Http11Connection", "Http11Response"]

# As h11 has it in uvicorn. Servers of MCP send less than 1 KiB.
MAX_HEAD_BYTES: Final = 64 * 1024

# Each takes about 1 µs. The heads of a hundred responses can arrive in one turn of the event loop.
_MAX_HEADERS: Final = 1000

# What one turn of the event loop reads from a connection; asyncio itself reads 256 KiB. That can be 40,000 chunks of a
# byte, of which each takes about 1 µs, and the chunks of many responses can arrive in one turn.
_READ_BYTES: Final = 32 * 1024

# More than one read has, so that a body of usual length never pauses the transport.
_MAX_BUFFERED_BYTES: Final = 512 * 1024

# A part takes about 60 bytes more than its content. Without a limit, chunks of 2 bytes would take 15 MB.
_MAX_BUFFERED_PARTS: Final = 4096

_HEADER_OVERHEAD_BYTES: Final = 4  # a colon, a space, CR and LF

_SWITCHING_PROTOCOLS: Final = 101
_FIRST_FINAL_STATUS: Final = 200
_LEAST_STATUS: Final = 100


class _Refused(Exception):  # noqa: N818 (not an error of ours: it stops the parser)
    """The response is not acceptable."""


class Http11Response:
    """The response to one request, as it arrives; an `HttpResponse`.

    Attributes:
        status: The status; 0 before the head has arrived.
        headers: The headers by name, in lower case.
    """

    __slots__ = ("_buffered", "_connection", "_failure", "_is_complete", "_parts", "_was_read", "headers", "status")

    def __init__(self, connection: Http11Connection) -> None:
        self.status: int = 0
        self.headers: dict[str, str] = {}
        self._connection = connection
        self._parts: deque[bytes] = deque()
        self._buffered = 0
        self._was_read = False
        self._is_complete = False
        self._failure: str | None = None

    @property
    def whole_body(self) -> bytes | None:
        """The body, if all of it has arrived and none was read."""
        if not self._is_complete or self._was_read:
            return None
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will arrive."""
        return self._is_complete or self._failure is not None

    async def head(self) -> Self:
        """Return this response when its head has arrived.

        Raises:
            ConnectionBroke: It will not arrive.
        """
        while not self.status:
            if self._failure is not None:
                raise ConnectionBroke(self._connection.shown, self._failure)
            await self._connection.wait()
        return self

    def chunks(self) -> Self:
        """Iterate over the body; see `HttpResponse.chunks`."""
        return self

    def __aiter__(self) -> Self:
        """Iterate over the body."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next part of the body when it has arrived.

        Raises:
            ConnectionBroke: The body is incomplete, or not valid.
        """
        self._was_read = True
        while not self._parts:
            if self._is_complete:
                raise StopAsyncIteration
            if self._failure is not None:
                raise ConnectionBroke(self._connection.shown, self._failure)
            await self._connection.wait()
        part = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)  # a chunk can be of one byte
        self._parts.clear()
        self._buffered = 0
        self._connection.resume_reading()
        return part

    async def close(self) -> None:
        """End the exchange; see `HttpResponse.close`."""
        self._connection.finish(self)

    # --- for the connection

    def add(self, part: bytes) -> bool:
        """Add a part of the body, and return whether too much is buffered."""
        self._parts.append(part)
        self._buffered += len(part)
        return self._is_full

    @property
    def _is_full(self) -> bool:
        return self._buffered > _MAX_BUFFERED_BYTES or len(self._parts) > _MAX_BUFFERED_PARTS

    def end(self, failure: str | None) -> None:
        """Note that nothing more will arrive: the response is complete, or incomplete because of *failure*."""
        if not self.is_over:
            self._is_complete = failure is None
            self._failure = failure


class Http11Connection(asyncio.BufferedProtocol):
    """One connection.

    Args:
        pool: Takes the connection back when its response is over.
        shown: The URL of the server, for messages.

    Attributes:
        used_since: When its last request began, on the clock of the pool.
        idle_since: When it became idle, on the same clock.
        shown: The URL of the server, for messages.
        is_paused: Whether the peer does not read what was written.
        is_written: Whether all of the request was written.
        lost: Set when the connection is closed.
    """

    def __init__(self, pool: Any, shown: str) -> None:  # noqa: ANN401 (a pool, which imports this module)
        self.used_since: float = 0.0
        self.idle_since: float = 0.0
        self.shown: str = shown
        self.is_paused: bool = False
        self.is_written: bool = True
        self.lost: asyncio.Event = asyncio.Event()
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._poll: select.poll | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._waiter: asyncio.Future[None] | None = None
        self._response: Http11Response | None = None
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._head_fields = 0
        self._bare_bytes = 0  # that are not part of a body, since the last part of one
        self._is_kept = True
        self._has_length = False
        self._has_ended = False  # whether the message that the parser reads is complete

    # --- for the exchange

    def is_usable(self, *, is_checked: bool) -> bool:
        """Return whether an idle connection can be used again: it is open, and nothing has arrived on it.

        Args:
            is_checked: Whether to ask the system for what the event loop has not seen yet.
        """
        if self._transport.is_closing():
            return False
        if not is_checked:
            return True
        if self._poll is None:
            return not select.select([self._transport.get_extra_info("socket")], [], [], 0)[0]
        return not self._poll.poll(0)

    def start(self, data: bytes) -> Http11Response:
        """Write the beginning of a request, and return its response."""
        response = self._response = Http11Response(self)
        self._headers = response.headers
        self._head_bytes = self._head_fields = self._bare_bytes = 0
        self._has_ended = False
        self._transport.write(data)
        return response

    def write(self, data: bytes) -> None:
        """Write more of the request."""
        self._transport.write(data)

    @property
    def awaits_request(self) -> bool:
        """Whether no response has begun yet, so that the rest of the request is of use."""
        return self._response is not None and not (self._response.status or self._response.is_over)

    async def drain(self) -> None:
        """Return when what was written is sent, or when the response makes that unnecessary."""
        while self.is_paused and self.awaits_request:
            await self.wait()

    async def wait(self) -> None:
        """Return when something has happened to the connection or its response."""
        # anyio cancels no task whose future is done: a server that never stops sending would keep its reader running.
        await checkpoint_if_cancelled()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def finish(self, response: Http11Response) -> None:
        """End the exchange of *response*: keep the connection for another request, or close it."""
        if response is not self._response:
            return
        self._response = None
        is_clean = self._is_kept and self._has_ended and self.is_written and not self.is_paused
        if is_clean and not self._transport.is_closing():
            self.resume_reading()  # a long body that was not read in parts has paused it
            self._pool.put_back(self)
        else:
            self.abort()

    def resume_reading(self) -> None:
        """Read on, after a pause."""
        if not self._transport.is_reading() and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection, and end TLS in order."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    # --- as a protocol of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport
        # `is_paused` then tells whether all was sent. With 0, asyncio's TLS would pause when there is nothing to send.
        self._transport.set_write_buffer_limits(high=1)
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the place for what is read next."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what has arrived. The parser copies what it hands over."""
        data = self._buffer[:nbytes]
        response = self._response
        if response is None or self._has_ended:  # no request asked for it
            self._is_kept = False
            self._transport.abort()
            return
        self._bare_bytes += nbytes
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            refused = error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else None
            problem = "is not valid HTTP" if refused is None else "was refused"  # such as for its length
            self._refuse(response, f"the response {problem}: {refused or error}")
        if self._bare_bytes > MAX_HEAD_BYTES:
            heads = "its status lines, headers and chunk headers"
            self._refuse(response, f"the response was refused: {heads} have more than {MAX_HEAD_BYTES} bytes")
        self._wake()

    def _refuse(self, response: Http11Response, reason: str) -> None:
        self._is_kept = False
        response.end(reason)  # no change if it is complete
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response."""
        if self._response is not None:
            is_complete = exc is None and self._response.status and not self._has_length
            reason = "the server closed the connection" if exc is None else system_message(exc)
            self._response.end(None if is_complete else reason)
        self._pool.discard(self)
        self.lost.set()
        self._wake()

    def pause_writing(self) -> None:
        """Note that the peer does not read."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """Note that all was sent."""
        self.is_paused = False
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- as the listener of the parser

    def on_message_begin(self) -> None:
        """Begin a head."""
        if self._has_ended:
            raise _Refused("there is more than one response")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; drop a trailer."""
        self._head_bytes += len(name) + len(value) + _HEADER_OVERHEAD_BYTES
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _Refused(f"the headers are longer than {MAX_HEAD_BYTES} bytes")
        self._head_fields += 1
        if self._head_fields > _MAX_HEADERS:
            raise _Refused(f"there are more than {_MAX_HEADERS} headers")
        if self._response is None or self._response.status:
            return
        key, text = name.decode("latin-1").lower(), _text(value)
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Hand over the head, unless it is an interim one."""
        status = self._parser.get_status_code()
        if status == _SWITCHING_PROTOCOLS or status < _LEAST_STATUS:
            raise _Refused(f"the status is {status}")
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise _Refused(f"the version of HTTP is {version}")
        if status < _FIRST_FINAL_STATUS:
            self._headers.clear()
            return
        coding = self._headers.get("transfer-encoding")
        if coding is not None and coding.strip().lower() != "chunked":
            raise _Refused("the transfer encoding is not chunked")
        self._has_length = coding is not None or "content-length" in self._headers
        # RFC 9112, section 6.1: HTTP/1.0 has no chunks, so a proxy may disagree about the end of the response.
        self._is_kept = self._parser.should_keep_alive() and (coding is None or version == "1.1")
        if self._response is not None:
            self._response.status = status

    def on_body(self, part: bytes) -> None:
        """Store a part of the body."""
        self._bare_bytes = 0
        if self._response is not None and self._response.add(part):
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """End the response, unless it is an interim one."""
        if self._response is not None and self._response.status:
            self._has_ended = True
            self._response.end(None)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
