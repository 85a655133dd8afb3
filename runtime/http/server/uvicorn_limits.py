"""uvicorn's protocol, with bounds on what a client may do with its connection.

Theory of operation. Heads are bounded already (`BoundedHeadProtocol`). Five things are left by which a client could make a
server hold ever more, or hold it for ever:

* It does not read. What is written waits here, be it a stream or the rest of an answer that is long given.
* It sends what is neither head nor body: trailers, and extensions of chunks. They are dropped, and counted.
* It goes on with a request that is answered already, such as one that was refused by its head.
* It asks again and again without waiting for an answer, each time with another request.
* It makes us say something in the middle of an answer, which whoever reads would take for a part of it.

And httptools takes ``Upgrade`` for the end of the request, whoever may decline it: the body would be lost. Java's own
client asks for HTTP/2 in that way with its first request.

The heads of requests and responses, where uvicorn leaves something to wish for.

Theory of operation. httptools bounds neither the length of a request's head nor the time in which it has to come. Both
are counted here; a head that comes at once costs nothing. And uvicorn writes the head of a response by itself, so that
it is a packet of its own, with a system call of its own, most often right before the body. It is held back for as long
as the event loop's turn lasts, and goes out with the body if that comes until then.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

__all__ = ["BoundedProtocol", "BoundedHeadProtocol"]

# How many requests may wait behind one that is being answered. Browsers and libraries send none.
MOST_PIPELINED: Final = 64

# What is read of a request behind its answer, so that the connection can be used again, and for how long.
MOST_UNREAD_BYTES: Final = 256 * 1024
_UNREAD_SECONDS: Final = 5

# A chunk of one byte has five bytes around it.
_FRAMING: Final = 8

_OF_UPGRADES: Final = (b"upgrade", b"http2-settings")


# What a head may take: 64 KiB is h11's limit, too. A tool's arguments may be in headers, so that it cannot be small.
MAX_HEAD_BYTES: Final = 64 * 1024
_HEAD_SECONDS: Final = 10


class BoundedHeadProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with bounds on the head of a request: its length, and how long it takes to come."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Begin to count."""
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type] # all of it that is used
        self._is_in_head = True
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = self.loop.call_later(_HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head."""
        super().data_received(data)
        if not self._is_in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large", b"the head of the request is over 64 KiB")
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._too_slow)

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._is_in_head = False
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        """Begin anew."""
        self._is_in_head = True
        super().on_message_begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(b"408 Request Timeout", b"the head of the request did not come in time")

    def _refuse(self, status: bytes, reason: bytes) -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(reason)) + reason)
        self.transport.close()


class _Joined:
    """A transport that writes the head of a response together with what follows in the same turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
            self._transport.write(data)
        elif data.startswith(b"HTTP/"):
            self._head = data
            self._loop.call_soon(self._flush)
        elif data:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever else a transport has)
        return getattr(self._transport, name)


class BoundedProtocol(BoundedHeadProtocol):
    """uvicorn's protocol, with bounds on what a client may do with its connection.

    Args:
        write_seconds: How long a client may read nothing while there is something to read.
        **given: What uvicorn gives.
    """

    def __init__(self, *, write_seconds: float, **given: Any) -> None:  # noqa: ANN401 (as uvicorn's are)
        super().__init__(**given)
        self._write_seconds = write_seconds
        self._answered: RequestResponseCycle | None = None  # others wait behind it
        self._is_whole = True  # whether the last request has come to its end
        self._data = b""
        self._beside_bytes = 0
        self._unread_bytes = 0
        self._unread_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Count what is neither head nor body."""
        self._data = data
        self._beside_bytes += len(data)
        self._head_bytes = max(0, self._head_bytes)
        super().data_received(data)
        self._data = b""
        if self._is_whole or self._is_in_head or self.transport.is_closing():
            self._beside_bytes = 0
        elif self.cycle.response_complete:
            self._unread_bytes += len(data)
            if self._unread_bytes > MOST_UNREAD_BYTES:
                self._hang_up()
        elif self._beside_bytes > MAX_HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large", b"too much of the request is neither head nor body")
        else:
            self._beside_bytes = max(0, self._beside_bytes)

    def on_message_begin(self) -> None:
        """Begin anew."""
        self._is_whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to count what is beside the body."""
        if self.parser.should_upgrade():
            return  # see `_unsupported_upgrade_warning`
        if len(self.pipeline) >= MOST_PIPELINED:
            raise OverflowError("too many requests wait behind one")  # ends in `send_400_response`
        super().on_headers_complete()
        self.headers: list[tuple[bytes, bytes]] = []  # for trailers, at which nobody looks
        self._beside_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Take that these bytes were body, with all that framed them."""
        self._beside_bytes -= len(body) * _FRAMING
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take that the request is complete."""
        if self.parser.should_upgrade():
            return
        self._is_whole = True
        self._head_bytes = -len(self._data)  # if another head begins in the same data, that is not all of it
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """See that the rest of the request comes, if there is one, or that the client reads what it was told."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._see_it_closed()
        elif self.cycle.response_complete and not (self._is_whole or self._is_in_head):
            self._unread_bytes = 0
            self._unread_timer = self.loop.call_later(_UNREAD_SECONDS, self._hang_up)

    def pause_writing(self) -> None:
        """Begin to look whether the client reads."""
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        """Stop looking: it does."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection, on which nothing was asked for long."""
        super().timeout_keep_alive_handler()
        self._see_it_closed()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and close the connection."""
        if self._is_answering:
            self._hang_up()
        else:
            super().send_400_response(msg)
            self._see_it_closed()
            self._let_go()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        for each in (self._unread_timer, self._write_timer, self._close_timer):
            if each is not None:
                each.cancel()
        self._let_go()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        answered = self._answered
        return answered is not None and answered.response_started and not answered.response_complete

    def _refuse(self, status: bytes, reason: bytes) -> None:
        if self._is_answering:
            self._hang_up()
        else:
            super()._refuse(status, reason)
            self._see_it_closed()
            self._let_go()

    def _look_again(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self._write_seconds, self._look, size)

    def _look(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:  # slowly, but it reads
            self._look_again()
        else:
            self.transport.abort()

    def _hang_up(self) -> None:
        self.transport.close()
        self._see_it_closed()
        self._let_go()

    def _let_go(self) -> None:
        """Tell what is being answered that nobody listens: of several requests, uvicorn tells the last."""
        for cycle in (self._answered, cast("RequestResponseCycle | None", self.cycle)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401 (as uvicorn has it)
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _see_it_closed(self) -> None:
        """End a connection that was closed, but whose client does not read the last of it."""
        if self._close_timer is None:
            self._close_timer = self.loop.call_later(self._write_seconds, self.transport.abort)

    def _unsupported_upgrade_warning(self) -> None:
        """Decline another protocol: take the request, and what follows, as if the client had not asked for it.

        uvicorn calls this while it handles the exception by which httptools says where its reading ends.
        """
        error = sys.exc_info()[1]
        if self.parser.get_method() == b"CONNECT" or not isinstance(error, httptools.HttpParserUpgrade):
            self.send_400_response("Invalid HTTP request received.")
            return
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                tokens = [each for each in value.split(b",") if each.strip().lower() not in _OF_UPGRADES]
                lines += [b"connection:" + b",".join(tokens)] if tokens else []
            elif name not in _OF_UPGRADES:
                lines.append(name + b":" + value)
        self.parser: httptools.HttpRequestParser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self._data = b"\r\n".join([*lines, b"", self._data[error.args[0] :]])
        HttpToolsProtocol.data_received(self, self._data)
