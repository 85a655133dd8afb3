"""Requests and responses on a connection of uvicorn, as bytes."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
import uvicorn
from uvicorn.server import ServerState

from mcpgen.runtime.http.server import request_cycle
from mcpgen.runtime.http.server.read_turns import ReadTurns
from mcpgen.runtime.http.server.repeating_protocol import RepeatingProtocol
from mcpgen.runtime.http.server.shared_task import SharedTask
from mcpgen.runtime.server.quota import Quota
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

pytestmark = pytest.mark.anyio

ASKED = b"POST /mcp?a=b HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody"
JSON = (b"content-type", b"application/json")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Wire(asyncio.Transport):
    """The other side of a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = anyio.Event()
        self.aborted = anyio.Event()
        self.unread_bytes = 1000
        self.is_paused = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed.set()

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def abort(self) -> None:
        self.aborted.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def resume_reading(self) -> None:
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True


class Connection:
    """A connection to an application, which answers with *events*."""

    def __init__(
        self,
        *events: dict[str, Any],
        idle_seconds: float = 10,
        write_seconds: float = 10,
        requests: SharedTask | None = None,
        unread: Quota | None = None,
        is_made: bool = True,
    ) -> None:
        self.bodies = Quota(100, 250_000)
        self.heads = Quota(10**6, 10**6)
        self.events = events
        self.received: list[Any] = []
        self.failure: BaseException | None = None
        self.answered = anyio.Event()
        config = uvicorn.Config(
            self._app, interface="asgi3", lifespan="off", ws="none", log_config=None, timeout_keep_alive=1
        )
        self.state = ServerState()
        self.reads = ReadTurns()
        self.protocol = RepeatingProtocol(
            write_seconds=write_seconds,
            heads=self.heads,
            bodies=self.bodies,
            unread=unread or Quota(100, 10**6),
            repeated=Quota(10**6, 10**6),
            requests=requests or SharedTask(),
            reads=self.reads,
            config=config,
            server_state=self.state,
            app_state={},
        )
        self.protocol.timeout_keep_alive = idle_seconds  # type: ignore[assignment] # uvicorn takes whole seconds only
        self.wire = Wire()
        if is_made:
            self.protocol.connection_made(self.wire)

    async def _app(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        self.received.append(scope)
        self.received.append(await receive())
        try:
            for each in self.events:
                await send(each)
        except RuntimeError as error:
            self.failure = error
            raise
        finally:
            self.answered.set()

    async def ask(self, *pieces: bytes) -> None:
        """Send a request, and return when the application has ended."""
        self.answered = anyio.Event()
        for each in pieces:
            self.protocol.data_received(each)
        await self.answered.wait()
        while self.state.tasks:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0)


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def part(body: bytes, *, more_body: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more_body}


@asynccontextmanager
async def opened(
    *events: dict[str, Any], idle_seconds: float = 10, write_seconds: float = 10
) -> AsyncGenerator[Connection]:
    connection = Connection(*events, idle_seconds=idle_seconds, write_seconds=write_seconds)
    with anyio.fail_after(PATIENCE_SECONDS):
        yield connection
    connection.protocol.connection_lost(None)


async def answer(*events: dict[str, Any], asked: bytes = ASKED) -> list[bytes]:
    """Return what is written to a client."""
    async with opened(*events) as connection:
        await connection.ask(asked)
        return connection.wire.writes


async def test_an_idle_connection_keeps_no_head() -> None:
    async with opened(start(JSON, (b"Content-Length", b"2")), part(b"{}")) as connection:
        protocol = connection.protocol
        await connection.ask(ASKED)
        assert (protocol.scope, protocol.cycle.scope, protocol.url) == ({}, {}, b"")
        await connection.ask(ASKED[:-4], b"body", b"GET /next HTTP/1.1\r\nhost: x\r\n")
        assert (protocol.cycle.scope, protocol.url) == ({}, b"/next")
        await connection.ask(b"\r\n")
        assert connection.received[-2]["path"] == "/next"


async def test_a_small_response_is_one_write() -> None:
    written = await answer(start(JSON, (b"Content-Length", b"2")), part(b"{}"))

    assert [b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"] == written


async def test_the_parts_of_a_large_response_are_not_copied() -> None:
    large = b"x" * 20_000
    written = await answer(start((b"content-length", b"20000")), part(large))

    assert [b"HTTP/1.1 200 OK\r\ncontent-length: 20000\r\n\r\n", large] == written


async def test_a_response_of_unknown_length_is_chunked() -> None:
    written = await answer(start(), part(b"", more_body=True), part(b"ab", more_body=True), part(b"c"))

    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    assert [head, b"2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n"] == written


async def test_an_empty_response_has_no_chunks() -> None:
    assert [b"HTTP/1.1 204 No Content\r\n\r\n"] == await answer(start(status=204), part(b""))


async def test_a_response_to_head_has_no_body() -> None:
    written = await answer(start((b"content-length", b"2")), part(b"{}"), asked=b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")

    assert [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"] == written


@pytest.mark.parametrize("closes", ["server", "client", "old client"])
async def test_a_connection_is_closed_after_the_response_if_a_side_says_so(closes: str) -> None:
    headers = [(b"connection", b"Keep, Close")] if closes == "server" else []
    asked = {
        "server": ASKED,
        "client": ASKED.replace(b"host: x", b"host: x\r\nconnection: close"),
        "old client": ASKED.replace(b"HTTP/1.1", b"HTTP/1.0"),
    }[closes]
    async with opened(start((b"content-length", b"2"), *headers), part(b"{}")) as connection:
        await connection.ask(asked)

        assert connection.wire.is_closing()
        assert 1 == b"".join(connection.wire.writes).lower().count(b"connection: ")


async def test_a_client_of_http_1_0_gets_no_chunks_but_the_end_of_the_connection() -> None:
    asked = ASKED.replace(b"HTTP/1.1", b"HTTP/1.0\r\nconnection: keep-alive")
    async with opened(start(), part(b"ab", more_body=True), part(b"c")) as connection:
        await connection.ask(asked)

        assert b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc" == b"".join(connection.wire.writes)
        assert connection.wire.is_closing()


@pytest.mark.parametrize(("version", "count"), [(b"HTTP/1.1", 1), (b"HTTP/1.0", 0)])
async def test_only_clients_of_http_1_1_are_told_to_continue(version: bytes, count: int) -> None:
    head, _, body = ASKED.replace(b"HTTP/1.1", version + b"\r\nexpect: 100-continue").partition(b"body")
    async with opened(start((b"content-length", b"0")), part(body)) as connection:
        connection.protocol.data_received(head)
        await asyncio.sleep(0)
        await connection.ask(b"body")

        assert count == b"".join(connection.wire.writes).count(b"100 Continue")
        assert {"type": "http.request", "body": b"body", "more_body": False} == connection.received[1]


async def test_a_connection_is_aborted_if_its_client_does_not_read_a_response_that_failed() -> None:
    async with opened(start(), part(b"ab", more_body=True), start(), write_seconds=0.1) as connection:
        await connection.ask(ASKED)
        assert connection.wire.is_closing()
        connection.protocol.pause_writing()
        connection.protocol.resume_writing()
        for _ in range(3):  # it reads, if slowly
            connection.wire.unread_bytes -= 1
            await asyncio.sleep(0.04)
        assert not connection.wire.aborted.is_set()
        await connection.wire.aborted.wait()


async def test_long_headers_are_not_remembered() -> None:
    name, value = b"access-control-allow-headers", b"a" * 10_000
    request_cycle.remembered_line.cache_clear()
    written = await answer(start((name, value), (b"content-length", b"0")), part(b""))

    assert value in written[0]
    assert 1 == request_cycle.remembered_line.cache_info().currsize  # that of `Content-Length`


@pytest.mark.parametrize(
    "events",
    [
        [part(b"")],
        [start(), start()],
        [start(), part(b""), part(b"")],
        [start((b"content-length", b"1")), part(b"ab")],
        [start((b"content-length", b"3")), part(b"ab")],
        [start((b"a\r\nb", b"c"))],
        [start((b"a", b"b\r\nc: d"))],
    ],
    ids=["no start", "two starts", "after the end", "too long", "too short", "name", "value"],
)
async def test_what_asgi_and_http_do_not_allow_is_not_sent(events: list[dict[str, Any]]) -> None:
    async with opened(*events) as connection:
        await connection.ask(ASKED)

        assert connection.failure is not None
        assert b"\r\nc: d" not in b"".join(connection.wire.writes)


async def test_a_connection_is_read_when_its_request_has_arrived_so_that_its_end_is_seen() -> None:
    connection = Connection()
    body = b"x" * 200_000
    connection.protocol.data_received(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n")
    while not connection.received:  # noqa: ASYNC110 (until the application waits for the body)
        await asyncio.sleep(0)
    connection.protocol.data_received(body)
    was_paused = connection.wire.is_paused
    await connection.answered.wait()

    assert (True, body) == (was_paused, connection.received[1]["body"])
    assert not connection.wire.is_paused


@pytest.mark.parametrize("repeats", [False, True], ids=["first", "repeated"])
async def test_a_request_has_no_task_while_the_client_does_not_read_the_answer_before(*, repeats: bool) -> None:
    async with opened(start(), part(b"")) as connection:
        for _ in range(3 if repeats else 0):
            await connection.ask(ASKED)
        connection.received.clear()
        connection.protocol.pause_writing()
        connection.protocol.data_received(ASKED)
        connection.protocol.data_received(ASKED)
        tasks = len(connection.state.tasks)
        connection.protocol.resume_writing()
        while len(connection.received) < 4 or connection.state.tasks:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0)

        assert 0 == tasks
        assert [b"body"] * 2 == [each["body"] for each in connection.received[1::2]]
        assert (False, 0) == (connection.wire.is_paused, connection.heads.bytes)


async def test_each_request_that_waits_counts_with_its_objects() -> None:
    async with opened() as connection:
        connection.protocol.pause_writing()
        connection.protocol.data_received(ASKED)
        one = connection.heads.bytes
        connection.protocol.data_received(ASKED * 2)

        assert connection.heads.bytes - one > 2 * 1280


def asked(size: int) -> bytes:
    return b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size


async def test_an_idle_connection_keeps_no_body_of_a_request_that_was_refused() -> None:
    async with opened() as connection:

        async def refuse(scope: Any, receive: Any, send: Any) -> None:
            del scope, receive
            await send(start(status=404))
            await send(part(b""))
            connection.answered.set()

        connection.protocol.app = refuse
        await connection.ask(asked(50_000))

        assert (b"", 0) == (connection.protocol.cycle.body, connection.bodies.bytes)


@pytest.mark.parametrize("repeats", [False, True], ids=["first", "repeated"])
async def test_a_body_counts_while_it_waits_for_the_application(*, repeats: bool) -> None:
    async with opened(start(), part(b"")) as connection:
        for _ in range(3 if repeats else 0):
            await connection.ask(asked(100))
        connection.protocol.pause_writing()
        connection.protocol.data_received(asked(50_000))
        for _ in range(20):
            await asyncio.sleep(0)
        connection.protocol.data_received(asked(60))  # behind it
        waiting = connection.bodies.bytes
        connection.protocol.resume_writing()
        while connection.state.tasks:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0)

        assert 50_060 == waiting
        assert 0 == connection.bodies.bytes
        assert [50_000, 60] == [len(each["body"]) for each in connection.received[-3::2]]


async def test_a_body_for_which_there_is_no_room_is_refused() -> None:
    async with opened(start(), part(b"")) as connection:
        connection.protocol.pause_writing()
        connection.protocol.data_received(asked(150_000) + asked(150_000))

        head, _, body = connection.wire.writes[0].partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in head.splitlines()
        assert "max_open_bytes" in json.loads(body)["error"]["message"]
        assert connection.wire.is_closing()
        assert 0 == connection.bodies.bytes


async def test_a_request_for_whose_body_there_is_no_room_is_refused_with_its_id() -> None:
    asked = b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"%b"}}' % (b"x" * 250_000)
    async with opened(start(), part(b"")) as connection:
        connection.protocol.data_received(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(asked), asked))

        assert 7 == json.loads(connection.wire.writes[0].partition(b"\r\n\r\n")[2])["id"]


async def test_little_waits_for_a_client_that_does_not_read_many_small_responses() -> None:
    response = b"x" * 16_000
    connection = Connection(start((b"content-length", b"16000")), part(response), is_made=False)
    ours, theirs = socket.socketpair()
    with ours, anyio.fail_after(PATIENCE_SECONDS):
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        theirs.setblocking(False)  # noqa: FBT003 (of the standard library)
        loop, protocol = asyncio.get_running_loop(), connection.protocol
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, theirs)
        while not (protocol.flow.write_paused or transport.get_write_buffer_size() > 5 * len(response)):
            ours.send(ASKED)
            connection.answered = anyio.Event()
            await connection.answered.wait()
        waiting = transport.get_write_buffer_size()
        transport.abort()
        while connection.state.connections:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0)

    assert waiting < 2 * len(response)


async def test_small_responses_that_clients_do_not_read_count_as_unread() -> None:
    unread = Quota(100, 40_000)
    connections = [Connection(unread=unread) for _ in range(4)]
    counts: list[int] = []
    for each in connections:
        each.wire.unread_bytes = 15_000
        each.protocol.pause_writing()
        counts.append(unread.bytes)
    connections[0].protocol.resume_writing()
    counts.append(unread.bytes)
    for each in connections:
        each.protocol.connection_lost(None)

    assert [15_000, 30_000, 30_000, 30_000, 15_000] == counts
    assert [False, False, True, True] == [each.wire.aborted.is_set() for each in connections]
    assert 0 == unread.kept_bytes


async def test_the_application_gets_the_request() -> None:
    async with opened(start(), part(b"")) as connection:
        await connection.ask(ASKED[:-3], ASKED[-3:])
        await connection.ask(ASKED.replace(b"/mcp?a=b", b"/%61"))
        scope, body, other, _ = connection.received

    assert ("POST", "/mcp", b"/mcp", b"a=b") == tuple(scope[k] for k in ("method", "path", "raw_path", "query_string"))
    assert ("/a", b"/%61", b"") == tuple(other[key] for key in ("path", "raw_path", "query_string"))
    assert {"type": "http.request", "body": b"body", "more_body": False} == body


@pytest.mark.parametrize("pieces", [[ASKED], [ASKED[:-4], b"body"], [ASKED[:-2], b"dy"]])
async def test_an_application_that_waits_for_more_hears_of_the_disconnect(pieces: list[bytes]) -> None:
    heard: list[Any] = []
    ended = anyio.Event()
    async with opened() as connection:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            del scope, send
            while not heard or heard[-1]["type"] != "http.disconnect":
                heard.append(await receive())
            ended.set()

        connection.protocol.app = app
        for each in pieces:
            connection.protocol.data_received(each)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        connection.protocol.connection_lost(ConnectionResetError())
        await ended.wait()

    assert [*[True] * (len(heard) - 2), False] == [each["more_body"] for each in heard[:-1]]
    assert b"body" == b"".join(each["body"] for each in heard[:-1])


async def test_an_idle_connection_is_closed_some_time_after_its_last_response(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    real, skipped = loop.time, 0
    monkeypatch.setattr(loop, "time", lambda: real() + skipped)
    is_closed = []
    async with opened(start((b"content-length", b"0")), part(b""), idle_seconds=20) as connection:
        for asked, seconds in ((True, 14), (True, 14), (False, 10)):
            if asked:
                await connection.ask(ASKED)
            skipped += seconds
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            is_closed.append(connection.wire.closed.is_set())
        assert 2 == len(connection.wire.writes)

    assert [False, False, True] == is_closed


class Noting(Connection):
    """A connection whose application notes its task, and does *first* before it answers."""

    def __init__(self, requests: SharedTask, first: Callable[[], Awaitable[object]]) -> None:
        super().__init__(start((b"content-length", b"0")), part(b""), requests=requests)
        self.first = first
        self.task: object = None

    async def _app(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        self.task = asyncio.current_task()
        await self.first()
        await super()._app(scope, receive, send)


async def nothing() -> None: ...


async def tasks_of(*first: Callable[[], Awaitable[object]]) -> list[object]:
    """Return the tasks of requests that arrive together; each waits until all of them have been answered."""
    requests = SharedTask()
    connections = [Noting(requests, each) for each in first]
    with anyio.fail_after(PATIENCE_SECONDS):
        for each in connections:
            each.protocol.data_received(ASKED)
        for each in connections:
            await each.answered.wait()
    return [each.task for each in connections]


async def test_requests_that_arrive_together_share_a_task() -> None:
    assert 1 == len(set(await tasks_of(nothing, nothing, nothing)))


async def test_a_request_that_arrives_while_another_one_runs_waits_for_the_next_turn() -> None:
    requests = SharedTask()
    later = Noting(requests, nothing)

    async def ask() -> None:
        later.protocol.data_received(ASKED)

    first = Noting(requests, ask)
    with anyio.fail_after(PATIENCE_SECONDS):
        await first.ask(ASKED)
        await later.answered.wait()

    assert first.task is not later.task


async def test_each_request_has_a_task_of_its_own_if_the_program_has_a_task_factory() -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, work, **more: asyncio.Task(work, loop=loop, **more))
    try:
        assert 3 == len(set(await tasks_of(nothing, nothing, nothing)))
    finally:
        loop.set_task_factory(None)


async def test_a_request_that_waits_does_not_delay_those_that_share_its_task() -> None:
    last_has_run = asyncio.Event()

    async def note() -> None:
        last_has_run.set()

    first, second, third, last = await tasks_of(nothing, last_has_run.wait, nothing, note)

    assert first is second
    assert 3 == len({second, third, last})


async def test_a_request_does_not_see_what_another_one_has_left_in_their_task() -> None:
    left: ContextVar[str] = ContextVar("left", default="")
    found: list[str] = []

    async def leave() -> None:
        left.set("something")

    async def look() -> None:
        found.append(left.get())
        await asyncio.sleep(0)

    async def cancel() -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr] # it has one

    await tasks_of(leave, look)
    await tasks_of(cancel, look)

    assert ["", ""] == found
