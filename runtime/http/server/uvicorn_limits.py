"""uvicorn's HTTP protocol, with limits on what a client may do with its connection.

Theory of operation. httptools limits neither the length of a request head nor its time. Both are counted here; a head
that arrives at once costs nothing. Six more things could make a server hold ever more memory, or hold it forever:

* A client does not read. What is written waits here, be it a stream or the rest of an answer.
* It sends bytes that are neither head nor body: trailers and chunk extensions. They are dropped, and counted.
* It sends heads that never end, over many connections, or many heads without waiting for answers (pipelining). What
  all of them keep has a bound, which addresses share.
* It sends a body as chunks of a few bytes, of which each costs as much as a long one. Such a body is refused.
* It continues a request that is already answered, such as one that was refused because of its head.
* It causes an error response in the middle of a response, where the client would read it as part of that response.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mcpgen.runtime.http.server.cycle_protocol import SMALL_BODY_BYTES, CycleProtocol
from mcpgen.runtime.http.server.declined_upgrade import without_upgrade
from mcpgen.runtime.http.server.open_requests import TOO_MANY
from mcpgen.runtime.http.server.request_cycle import NO_EVENT
from mcpgen.runtime.http.server.responses import ABORT, RETRY_AFTER, error_body
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    import asyncio

    from mcpgen.runtime.http.server.request_cycle import RequestCycle
    from mcpgen.runtime.server.quota import Entry, Quota

__all__ = ["BoundedProtocol"]

# No further response is written while more waits for the client. The default is 64 KiB, and no limit counts so little.
_WRITE_BUFFER_BYTES: Final = 1024

# How many requests may wait behind one that is being answered. Browsers and common libraries do not pipeline.
MAX_PIPELINED_REQUESTS: Final = 64

# How much of a request is read after its answer, and for how long, so that the connection can be used again.
MAX_UNREAD_BYTES: Final = 256 * 1024
_UNREAD_SECONDS: Final = 5

# A chunk of one byte has five bytes of framing; some more are allowed.
_FRAMING_FACTOR: Final = 8

# A chunk takes about 1 µs to parse, whatever its length. Programs that stream bodies write some kilobytes at once.
_MIN_CHUNK_BYTES: Final = 256
_SHORT_CHUNKS: Final = 1000  # that a body may have in any case

# The limit of h11, too. A tool's arguments may be in headers, so it cannot be small.
MAX_HEAD_BYTES: Final = 64 * 1024
_HEAD_SECONDS: Final = 10

# As in other servers, which allow 100 to 2,000. In memory, a short header takes 20 times its bytes.
MAX_HEADERS: Final = 200
_HEADER_BYTES: Final = 128

# What all heads keep that are incomplete, or wait behind a request, at most. Most heads are neither.
MAX_HEADS_BYTES: Final = 16 * 1024 * 1024
_CONNECTION_BYTES: Final = 16 * 1024
_WAITING_REQUEST_BYTES: Final = 1280  # beside its head

_FIELDS_TOO_LARGE: Final = b"431 Request Header Fields Too Large"
_HEAD_TOO_LONG: Final = _FIELDS_TOO_LARGE, b"the request head is longer than 64 KiB"
_TOO_MANY_HEADERS: Final = _FIELDS_TOO_LARGE, b"the request has more than 200 headers and trailers"
_TRAILERS_TOO_LONG: Final = _FIELDS_TOO_LARGE, b"the trailers or the chunk extensions of the body have more than 64 KiB"
_TOO_MANY_HEADS: Final = b"503 Service Unavailable", b"too many request heads are incomplete or wait for an answer"
_SHORT_CHUNKS_REFUSED: Final = b"400 Bad Request", b"the chunks of the body are too short; send at least 256 bytes each"


class BoundedProtocol(CycleProtocol):
    """uvicorn's protocol, with limits on what a client may do with its connection.

    Args:
        write_seconds: How long a client may read nothing while something waits to be read.
        heads: What the incomplete heads of all connections keep.
        **options: The arguments that uvicorn passes.

    Attributes:
        place: Where the connection is counted, if it is.
    """

    def __init__(self, *, write_seconds: float, heads: Quota, **options: Any) -> None:  # noqa: ANN401 (as uvicorn's are)
        super().__init__(**options)
        self.place: Entry | None = None
        self._asgi_version: str = self.config.asgi_version  # a property, which is slow for each request
        self._write_seconds = write_seconds
        self._heads = heads
        self._head_entry: Entry | None = None
        self._waiting_bytes = 0  # of the heads that wait behind the request that is being answered
        self._spare_chunks = _SHORT_CHUNKS
        self._is_complete = True  # whether the last request has arrived completely
        self._data = b""
        self._fields = 0  # the headers and the trailers of the request that arrives
        self._overhead_bytes = 0  # bytes that are neither head nor body
        self._unread_bytes = 0
        self._unread_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Start the time limit of the first head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        # As of any extension, the value is a dict.
        self._extensions = {ABORT: {"abort": transport.abort, "is_closing": transport.is_closing}}
        self.headers: list[
            tuple[bytes, bytes]
        ] = []  # uvicorn's own is None until a request begins; empty lines may come before it
        self._is_in_head = True
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = self.loop.call_later(_HEAD_SECONDS, self._refuse_slow_head)
        if self.place is not None and self.place.is_leaving:
            transport.abort()

    def abort(self) -> None:
        """Close the connection at once, or as soon as it is made."""
        transport = cast("asyncio.Transport | None", self.transport)
        if transport is not None:
            transport.abort()

    def parse(self, data: bytes) -> None:
        """Parse *data*. Count the bytes of a head, and those that are neither head nor body."""
        self._data = data
        self._overhead_bytes += len(data)
        self._head_bytes = max(0, self._head_bytes)
        CycleProtocol.parse(self, data)
        self._data = b""
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(*_HEAD_TOO_LONG)
            elif not self._count_heads():
                self._refuse(*_TOO_MANY_HEADS)
            elif self._head_timer is None:
                self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._refuse_slow_head)
        if self._is_complete or self._is_in_head or self.transport.is_closing():
            self._overhead_bytes = 0
        elif self.cycle.response_complete:
            self._unread_bytes += len(data)
            if self._unread_bytes > MAX_UNREAD_BYTES:
                self._close_now()
        elif self._overhead_bytes > MAX_HEAD_BYTES:
            self._refuse(*_TRAILERS_TOO_LONG)
        else:
            self._overhead_bytes = max(0, self._overhead_bytes)

    # The next methods do what uvicorn's do, without calling them: each `super()` takes 1 % of a call in CPython 3.11.

    def on_message_begin(self) -> None:
        """Note that a request starts, with its head."""
        self._is_complete = False
        self._is_in_head = True
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self._fields = 0
        self.scope: Any = {
            "type": "http",
            "asgi": {"version": self._asgi_version, "spec_version": "2.3"},
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": self.app_state.copy(),
            "extensions": self._extensions,
        }

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header and drop a trailer. Refuse too many of them before the rest of the data is parsed."""
        self._fields += 1
        if self._fields > MAX_HEADERS:
            self._refuse(*_TOO_MANY_HEADERS)
            raise OverflowError("the request has too many headers and trailers")
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Count the bytes that are not body from now on, instead of those of the head."""
        if self.parser.should_upgrade():
            return  # see `_unsupported_upgrade_warning`
        if len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
            raise OverflowError("too many pipelined requests")  # uvicorn then calls `send_400_response`
        arrived = len(self._data)
        may_be_long = arrived > MAX_HEAD_BYTES or self._head_bytes + arrived > MAX_HEAD_BYTES
        if may_be_long and self._head_size() > MAX_HEAD_BYTES:
            self._refuse(*_HEAD_TOO_LONG)
            raise OverflowError("the request head is longer than 64 KiB")
        self._is_in_head = False
        self._head_bytes, self._spare_chunks = 0, _SHORT_CHUNKS
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self.begin_request()
        if self.pipeline or self._head_entry is not None:
            self._note_waiting()
        self.headers = []  # a head may be long, and its connection idle for long
        self._overhead_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Subtract body bytes and their chunk framing from the count."""
        self._overhead_bytes -= len(body) * _FRAMING_FACTOR
        self._spare_chunks += len(body) // _MIN_CHUNK_BYTES - 1
        if self._spare_chunks < 0:
            self._refuse(*_SHORT_CHUNKS_REFUSED)
            raise OverflowError("the chunks of the body are too short")  # ends the parsing of what has arrived
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.body += body
            size = len(cycle.body)
            if size > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            if (size > SMALL_BODY_BYTES or self.pipeline) and not self.count_body(cycle):
                raise OverflowError(TOO_MANY)
            if cycle.message_event is not NO_EVENT:
                cycle.message_event.set()

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        if self.parser.should_upgrade():
            return
        self._is_complete = True
        # `data_received` then adds all of the data, of which only a part may belong to the next head.
        self._head_bytes = -len(self._data)
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            if cycle.message_event is not NO_EVENT:
                cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Limit the time for the rest of the request, or for the client to read the response."""
        self.end_request()
        if self._waiting_bytes and not self.pipeline:
            self._waiting_bytes = 0
            self._count_heads()
        if self.transport.is_closing():
            self._limit_closing()
        elif self.cycle.response_complete and not (self._is_complete or self._is_in_head):
            self._unread_bytes = 0
            self._unread_timer = self.loop.call_later(_UNREAD_SECONDS, self._close_now)

    def on_failed_response(self) -> None:
        """Watch whether the client reads what there is of the response, until the connection is closed."""
        if self._write_timer is None:
            self._watch_reading()

    def pause_writing(self) -> None:
        """Start to watch whether the client reads."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """Stop watching, since the client reads."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        if self.transport.is_closing():
            self._watch_reading()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        super().timeout_keep_alive_handler()
        self._limit_closing()

    def send_400_response(self, msg: str) -> None:
        """Refuse an invalid request, and close the connection."""
        if self.transport.is_closing():  # refused with another status
            return
        if self._is_answering:
            self._close_now()
        else:
            super().send_400_response(msg)
            self._limit_closing()
            self.disconnect_cycles()
            self.wake_cycles()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all time limits. Count the connection no longer, and wake its requests, in this turn or a later one."""
        timers = (self._head_timer, self._unread_timer, self._write_timer, self._close_timer)
        for each in (*timers, self.timeout_keep_alive_task):
            if each is not None:
                each.cancel()
        self.disconnect_cycles()  # the transport cannot be used any more
        if self.reads.is_turn_of(self.owner, 0, self.delayed > 0, self._lose, exc):
            self._lose(exc)

    def _lose(self, exc: Exception | None) -> None:
        if self.place is not None:
            self.place.release()
        if self._head_entry is not None:
            self._head_entry.release()
        self.wake_cycles()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        answered = self.answered
        return answered is not None and answered.response_started and not answered.response_complete

    def _head_size(self) -> int:
        # Colon, space and line end of each header; method, version and line ends of the first line.
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) + 16

    def _note_waiting(self) -> None:
        """Count the complete head if it waits behind another request, and its incomplete part no longer."""
        if self.pipeline:
            self._waiting_bytes += _WAITING_REQUEST_BYTES + self._head_size() + _HEADER_BYTES * len(self.headers)
        if not self._count_heads():
            self._refuse(*_TOO_MANY_HEADS)
            raise OverflowError("too many request heads wait for an answer")

    def _count_heads(self) -> bool:
        """Count what an incomplete head, and those that wait, keep; return False if there is no room for it."""
        size = self._waiting_bytes
        if self._is_in_head:
            size += self._head_bytes + _HEADER_BYTES * len(self.headers)
        entry = self._head_entry
        if not size:
            self._head_entry = None
            if entry is not None:
                entry.release()
            return True
        size += _CONNECTION_BYTES
        if entry is not None:
            return entry.resize(size)
        self._head_entry = self._heads.admit(self.owner, size, give_way=partial(self._refuse, *_TOO_MANY_HEADS))
        return self._head_entry is not None

    def refuse_body(self, cycle: RequestCycle) -> None:
        """Refuse the request *cycle*, whose body waits for the application, and close the connection."""
        error = Error(ErrorCode.INVALID_REQUEST, TOO_MANY)
        body = error_body(503, error, body=bytes(cycle.body) if cycle is self.answered else b"")
        self._refuse(b"503 Service Unavailable", body, b"application/json\r\n%b: %b" % RETRY_AFTER)

    def _refuse_slow_head(self) -> None:
        self._head_timer = None
        self._refuse(b"408 Request Timeout", b"the request head did not arrive in time")

    def _refuse(self, status: bytes, reason: bytes, content_type: bytes = b"text/plain") -> None:
        if self.transport.is_closing():  # already refused; the oldest uvloop would still write
            return
        if not self._is_answering:
            head = b"HTTP/1.1 %b\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            self.transport.write(head % (status, content_type, len(reason)) + reason)
        self._close_now()

    def _watch_reading(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self._write_seconds, self._check_reading, size)

    def _check_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:  # the client reads, if slowly
            self._watch_reading()
        else:
            self.transport.abort()

    def _close_now(self) -> None:
        self.transport.close()
        self._limit_closing()
        self.disconnect_cycles()
        self.wake_cycles()

    def _limit_closing(self) -> None:
        """Abort a closed connection whose client does not read the rest."""
        if self._close_timer is None:
            self._close_timer = self.loop.call_later(self._write_seconds, self.transport.abort)

    def _unsupported_upgrade_warning(self) -> None:
        """Decline an upgrade: parse the request, and what follows, again without the upgrade headers.

        uvicorn calls this while it handles the exception by which httptools reports where it stopped.
        """
        error = sys.exc_info()[1]
        if self.parser.get_method() == b"CONNECT" or not isinstance(error, httptools.HttpParserUpgrade):
            self.send_400_response("Invalid HTTP request received.")
            return
        version = self.parser.get_http_version().encode()
        head = without_upgrade(self.parser.get_method(), self.url, version, self.headers)
        self.parser: httptools.HttpRequestParser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self._data = head + self._data[error.args[0] :]
        HttpToolsProtocol.data_received(self, self._data)
