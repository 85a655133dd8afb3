"""uvicorn's protocol of a connection, with a `RequestCycle` for each request.

Theory of operation. uvicorn starts a timer after each response, which closes the connection if it stays idle. Here a
connection has one such timer, which looks at the time of the last response. And uvicorn makes a task for each request,
where here requests that arrive together share one as long as none of them waits.

A body may wait for the application: for the keys of an issuer, for the answer to the request before it, or for a client
that does not read that answer. It counts meanwhile, as it does when the application has taken it.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mcpgen.runtime.http.server.client_address import site_of
from mcpgen.runtime.http.server.request_cycle import NO_EVENT, RequestCycle
from mcpgen.runtime.http.server.response_buffer import SMALL_BYTES

if TYPE_CHECKING:
    import asyncio
    from collections import deque

    from mcpgen.runtime.http.server.read_turns import ReadTurns
    from mcpgen.runtime.http.server.shared_task import SharedTask
    from mcpgen.runtime.server.quota import Entry, Quota

__all__ = ["SMALL_BODY_BYTES", "CycleProtocol"]

# A longer body counts while it waits for the application. Most are shorter, and the application takes them at once.
SMALL_BODY_BYTES: Final = 4096

# What a client may leave unread of small responses: with more, a part is of a large one, which counts already.
_SMALL_RESPONSES_BYTES: Final = SMALL_BYTES + 2048

# The targets of requests that are remembered: a client sends its requests to one short URL.
_MAX_REMEMBERED_BYTES: Final = 256

# A longer path is not decoded, and nothing is served at it. 64 KiB of escapes, the most that a head can have, take
# 40 ms, and many connections can send them in one turn of the event loop.
_MAX_DECODED_BYTES: Final = 1024

# Of a connection without a request.
_NO_SCOPE: Final[Any] = {}


class CycleProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a `RequestCycle` for each request, and one timer for each connection.

    Args:
        requests: Runs the requests of all connections.
        reads: Says whose data is parsed in a turn of the event loop.
        bodies: What is open in the application, with the bodies that wait for it.
        unread: What was written for clients that have not read it.
        **options: The arguments that uvicorn passes.

    Attributes:
        owner: The address of the client.
        reads: As above.
        delayed: How many pieces of data wait for their turn.
        answered: The request that is being answered; later ones wait.
    """

    app: Any
    cycle: Any  # a RequestCycle; None before the first request
    pipeline: deque[tuple[Any, Any]]
    scope: Any
    url: bytes

    def __init__(
        self,
        *,
        requests: SharedTask,
        reads: ReadTurns,
        bodies: Quota,
        unread: Quota,
        **options: Any,  # noqa: ANN401 (as uvicorn's are)
    ) -> None:
        super().__init__(**options)
        self._requests = requests
        self._bodies = bodies
        self._unread = unread
        self._unread_entry: Entry | None = None
        self._written = self.loop.create_future()
        self._written.set_result(None)
        self.owner: str = ""
        self.reads: ReadTurns = reads
        self.delayed: int = 0
        self.answered: RequestCycle | None = None
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
        before = self.cycle
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
            if len(body) > SMALL_BODY_BYTES:
                self.count_body(cycle)
        # While the client does not read, the answer would wait, and a task and its frames with it.
        if (before is None or before.response_complete) and not self.flow.write_paused:
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
            self._start_next()
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self._check_idle)

    def _start_next(self) -> None:
        """Start the request that waits, unless the client does not read the answer to the one before."""
        if not self.flow.write_paused:
            self._start_asgi_task(*self.pipeline.pop())

    def pause_writing(self) -> None:
        """Count small responses that the client does not read; close the connection if there is no room for them."""
        super().pause_writing()
        size = self.transport.get_write_buffer_size()
        if size <= _SMALL_RESPONSES_BYTES and self._unread_entry is None:
            self._unread_entry = self._unread.admit(f"address {self.owner}", size, give_way=self.transport.abort)
            if self._unread_entry is None:
                self.transport.abort()

    def resume_writing(self) -> None:
        """Start the request that waits, since the client has read the answer to the one before."""
        super().resume_writing()
        self._release_unread()
        is_free = self.answered is None or self.answered.response_complete
        if self.pipeline and is_free and not self.transport.is_closing():
            self._start_next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count what was not read no longer."""
        self._release_unread()
        super().connection_lost(exc)

    def _release_unread(self) -> None:
        entry, self._unread_entry = self._unread_entry, None
        if entry is not None:
            entry.release()

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

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:  # noqa: ANN401, ARG002 (as uvicorn has it)
        self.answered = cycle
        self._requests.start(self, cycle)

    def disconnect_cycles(self) -> None:
        """Keep nothing of the requests that are open; `wake_cycles` tells them of it."""
        for cycle, _ in self.pipeline:  # uvicorn would leave them to the garbage collector, which comes late
            cycle.on_response = lambda: None
            cycle.forget_body()
        self.pipeline.clear()
        for cycle in self._open_cycles():
            cycle.disconnected = True
            cycle.forget_body()

    def wake_cycles(self) -> None:
        """Tell the request that is being answered of the disconnect; uvicorn tells only the last one that arrived."""
        for cycle in self._open_cycles():
            cycle.message_event.set()

    def _open_cycles(self) -> list[RequestCycle]:
        cycles: tuple[RequestCycle | None, ...] = (self.answered, self.cycle)
        return [each for each in cycles if each is not None and not each.response_complete]

    def count_body(self, cycle: RequestCycle) -> bool:
        """Count the body that waits for the application; refuse it and return False if there is no room for it."""
        size = len(cycle.body)
        if cycle.entry is None:
            give_way = partial(self.refuse_body, cycle)
            cycle.entry = self._bodies.admit(f"address {self.owner}", size, give_way=give_way)
            has_room = cycle.entry is not None
        else:
            has_room = cycle.entry.resize(size)
        if not has_room:
            self.refuse_body(cycle)
        return has_room

    def refuse_body(self, cycle: RequestCycle) -> None:
        """Refuse the request *cycle*, whose body waits for the application, and close the connection."""

    def on_failed_response(self) -> None:
        """Handle that the application has ended in the middle of its response, and the connection is closed."""


def _target(url: bytes) -> tuple[str, bytes, bytes]:
    """Return the path of a request's target, decoded and as it is, and the query."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if len(path) <= _MAX_DECODED_BYTES else path, parsed.path, parsed.query or b""


_remembered_target: Final = lru_cache(maxsize=64)(_target)
