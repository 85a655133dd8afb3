"""Connections of our own, with literal bytes: what is a response, what is none, and which connection is used again."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen.runtime.http.client.http11_connection import MAX_HEAD_BYTES, Http11Connection, Http11Response
from mcpgen.runtime.http.client.http_exchange import ConnectionBroke
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def library() -> str:
    """Run each test once: httpx has no part in this."""
    return "asyncio"


class Wire:
    """A transport that keeps what is written, and a pool."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.kept: list[Http11Connection] = []
        self.is_aborted = False
        self.is_paused = False
        self._socket, self._peer = socket.socketpair()
        self.connection = Http11Connection(self, "http://example.com/mcp")
        transport: Any = self
        self.connection.connection_made(transport)

    def start(self) -> Http11Response:
        """Make a request."""
        return self.connection.start(b"POST / HTTP/1.1\r\n\r\n")

    def arrive(self, data: bytes) -> None:
        """Hand *data* to the connection as an event loop does, in parts that fit into its buffer."""
        rest = memoryview(data)
        while rest:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            self.connection.buffer_updated(count)
            rest = rest[count:]

    def end(self) -> None:
        """Close the sockets."""
        self._socket.close()
        self._peer.close()

    # --- as a pool

    def put_back(self, connection: Http11Connection) -> None:
        self.kept.append(connection)

    def discard(self, connection: Http11Connection) -> None:
        self.kept = [each for each in self.kept if each is not connection]

    # --- as a transport

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            self.connection.connection_lost(None)

    close = abort

    def is_closing(self) -> bool:
        return self.is_aborted

    def is_reading(self) -> bool:
        return not self.is_paused

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def set_write_buffer_limits(self, high: int) -> None:
        assert 1 == high

    def get_extra_info(self, name: str) -> socket.socket:
        assert "socket" == name

        return self._socket


@pytest.fixture
async def wire() -> Any:
    """Open a connection."""
    found = Wire()
    yield found
    found.end()


async def read(response: Http11Response) -> tuple[int, bytes]:
    """Return the status and the body."""
    with anyio.fail_after(PATIENCE_SECONDS):
        await response.head()
        return response.status, b"".join([part async for part in response.chunks()])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (OK + b"content-length: 2\r\n\r\nab", (200, b"ab")),
        (
            OK + b"Transfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\nx-trailer: 1\r\n\r\n",
            (200, b"abcde"),
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 0\r\n\r\n", (200, b"")),
        (b"HTTP/1.1 103 Early\r\nlink: x\r\ncontent-type: a\r\n\r\n" + OK + b"content-length: 1\r\n\r\na", (200, b"a")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", (304, b"")),
        (OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b", (200, b"\x1f\x8b")),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_response_is_read_however_it_arrives_and_its_connection_is_kept(
    wire: Wire, data: bytes, expected: tuple[int, bytes], size: int
) -> None:
    for _ in range(2):
        response = wire.start()
        for at in range(0, len(data), size):
            wire.arrive(data[at : at + size])

        assert expected == (response.status, response.whole_body)
        assert expected == await read(response)
        assert "link" not in response.headers

        await response.close()
        assert wire.kept == [wire.connection]
        wire.kept.clear()
    assert not wire.is_aborted


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab", (200, b"ab")),
        (
            b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            (200, b"ab"),
        ),
        (OK + b"connection: close\r\ncontent-length: 2\r\n\r\nab", (200, b"ab")),
        (OK + b"content-length: 2\r\n\r\nabHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", (200, b"ab")),
        (OK + b"content-length: 2\r\n\r\nabc", (200, b"ab")),
        (OK + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n2\r\n", (200, b"ab")),
        (b"HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nab", (204, b"")),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
async def test_a_connection_that_is_not_at_a_clean_end_is_closed(
    wire: Wire, data: bytes, expected: tuple[int, bytes], size: int
) -> None:
    response = wire.start()
    for at in range(0, len(data), size):
        wire.arrive(data[at : at + size])

    assert expected == await read(response)

    await response.close()
    assert wire.is_aborted
    assert [] == wire.kept


async def test_a_body_without_a_length_ends_with_the_connection(wire: Wire) -> None:
    response = wire.start()
    wire.arrive(OK + b"\r\nab")

    assert response.whole_body is None

    wire.connection.connection_lost(None)

    assert (200, b"ab") == await read(response)


LONG = b"x" * MAX_HEAD_BYTES


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GARBAGE\r\n\r\n", "Expected HTTP/"),
        (b"\x16\x03\x01\x02", "Expected HTTP/"),
        (b"HTTP/9.9 200 OK\r\n\r\n", "Invalid HTTP version"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "the version of HTTP is 2.0"),
        (b"HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n", "the status is 99"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "the status is 101"),
        (b"HTTP/1.1 200 OK\ncontent-length: 0\n\n", "Missing expected CR"),
        (OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nab", "Duplicate Content-Length"),
        (OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n", "Transfer-Encoding can't be present"),
        (OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n", "Content-Length can't be present"),
        (OK + b"transfer-encoding: gzip\r\n\r\nab", "the transfer encoding is not chunked"),
        (OK + b"transfer-encoding: gzip, chunked\r\n\r\n", "the transfer encoding is not chunked"),
        (OK + b"content-length: -1\r\n\r\n", "Invalid character in Content-Length"),
        (OK + b"content-length: 1, 1\r\n\r\n", "Invalid character in Content-Length"),
        (OK + b"content-length: 99999999999999999999999\r\n\r\n", "Content-Length overflow"),
        (OK + b"a: b\r\n c: d\r\n\r\n", "whitespace"),
        (OK + b"a : b\r\n\r\n", "Invalid header token"),
        (OK + b"a: b\0c\r\n\r\n", "Invalid header value char"),
        (OK + b"a: b\rc: d\r\n\r\n", "Missing expected LF"),
        (OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n", "Invalid character in chunk size"),
        (OK + b"transfer-encoding: chunked\r\n\r\n2\r\nabc\r\n", "after chunk data"),
        (OK + b"transfer-encoding: chunked\r\n\r\n2\nab\n", "Missing expected CR"),
        (OK + b"a: " + LONG + b"\r\n\r\n", "the headers are longer than 65536 bytes"),
        (OK + b"a: " + LONG, "status lines, headers and chunk headers have more than 65536 bytes"),
        (OK + b"a: %b\r\n" % (b"x" * 100) * 700, "the headers are longer than 65536 bytes"),
        (OK + b"a: b\r\n" * 20_000, "there are more than 1000 headers"),
        (b"HTTP/1.1 103 E\r\na: b\r\n\r\n" * 20_000, "there are more than 1000 headers"),
        (b"HTTP/1.1 103 E\r\n\r\n" * 20_000, "status lines, headers and chunk headers have more than 65536 bytes"),
        (b"HTTP/1.1 200 " + LONG, "status lines, headers and chunk headers have more than 65536 bytes"),
        (
            OK + b"transfer-encoding: chunked\r\n\r\n2;" + LONG,
            "status lines, headers and chunk headers have more than 65536 bytes",
        ),
        (
            OK + b"transfer-encoding: chunked\r\n\r\n0\r\na: " + LONG,
            "status lines, headers and chunk headers have more than 65536 bytes",
        ),
        (OK + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 20_000, "more than 1000 headers"),
    ],
)
@pytest.mark.parametrize("size", [1000, 200_000])
async def test_anything_else_breaks_the_connection(wire: Wire, data: bytes, reason: str, size: int) -> None:
    response = wire.start()
    for at in range(0, len(data), size):
        if not wire.is_aborted:
            wire.arrive(data[at : at + size])

    with pytest.raises(ConnectionBroke, match=r"the response (is not valid HTTP|was refused): ") as broken:
        await read(response)
    assert reason in broken.value.reason

    await response.close()
    assert wire.is_aborted
    assert [] == wire.kept


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 2",
        OK + b"content-le",
        OK + b"content-length: 5\r\n\r\n",
        OK + b"content-length: 5\r\n\r\nab",
        OK + b"transfer-encoding: chunked\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n5\r\nab",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "reset")])
async def test_a_response_that_is_cut_is_none(wire: Wire, data: bytes, error: Exception | None) -> None:
    response = wire.start()
    if data:
        wire.arrive(data)
    wire.connection.connection_lost(error)

    with pytest.raises(ConnectionBroke, match="closed the connection" if error is None else "reset"):
        await read(response)


async def test_a_body_whose_end_is_lost_with_an_error_is_none(wire: Wire) -> None:
    response = wire.start()
    wire.arrive(OK + b"\r\nab")
    wire.connection.connection_lost(ConnectionResetError(104, "reset"))

    with pytest.raises(ConnectionBroke, match="reset"):
        await read(response)


@pytest.mark.parametrize("data", [OK + b"content-length: 0\r\n\r\n", b"x"])
async def test_bytes_that_no_request_asked_for_close_the_connection(wire: Wire, data: bytes) -> None:
    response = wire.start()
    wire.arrive(OK + b"content-length: 0\r\n\r\n")
    await response.close()
    wire.arrive(data)

    assert wire.is_aborted


async def test_a_stream_may_be_longer_than_any_head(wire: Wire) -> None:
    response = wire.start()
    wire.arrive(OK + b"transfer-encoding: chunked\r\n\r\n")
    for _ in range(30_000):
        wire.arrive(b"1\r\nx\r\n")

        assert b"x" == await anext(response)
    wire.arrive(b"0\r\n\r\n")

    assert (200, b"") == await read(response)


async def test_a_body_that_is_not_read_is_not_buffered_without_end(wire: Wire) -> None:
    response = wire.start()
    wire.arrive(OK + b"content-length: 10000000\r\n\r\n")
    sent = 0
    while not wire.is_paused:
        wire.arrive(b"x" * 100_000)
        sent += 100_000

    assert 600_000 == sent
    assert 600_000 == len(await anext(response))
    assert not wire.is_paused


async def test_a_body_of_many_small_parts_is_not_buffered_without_end(wire: Wire) -> None:
    response = wire.start()
    wire.arrive(OK + b"transfer-encoding: chunked\r\n\r\n")
    sent = 0
    while not wire.is_paused:
        wire.arrive(b"2\r\nab\r\n")
        sent += 1

    assert 4097 == sent
    assert b"ab" * 4097 == await anext(response)
    assert not wire.is_paused


async def test_a_connection_that_a_long_body_has_paused_reads_the_next_response(wire: Wire) -> None:
    response = wire.start()
    wire.arrive(OK + b"content-length: 600000\r\n\r\n" + b"x" * 600_000)

    assert b"x" * 600_000 == response.whole_body
    assert wire.is_paused

    await response.close()
    assert wire.kept == [wire.connection]
    assert not wire.is_paused


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_response_before_the_end_of_the_request_is_read_and_its_connection_closed(
    wire: Wire, *, is_sent: bool
) -> None:
    response = wire.start()
    wire.connection.is_written = is_sent
    if is_sent:
        wire.connection.pause_writing()  # the system has not taken all
    wire.arrive(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")

    assert (413, b"") == await read(response)

    await response.close()
    assert wire.is_aborted


@pytest.mark.parametrize("data", [b"", OK, OK + b"content-length: 3\r\n\r\na"])
async def test_whoever_stops_reading_closes_the_connection(wire: Wire, data: bytes) -> None:
    response = wire.start()
    if data:
        wire.arrive(data)
    with anyio.move_on_after(0.01):
        await read(response)
    await response.close()
    await response.close()

    assert wire.is_aborted
    assert [] == wire.kept


async def test_headers_of_the_same_name_are_joined(wire: Wire) -> None:
    response = wire.start()
    names: Sequence[bytes] = (b"A: 1", b"a: 2", "b: \u00e4".encode(), b"c: \xe4", b"content-length: 0")
    wire.arrive(OK + b"\r\n".join(names) + b"\r\n\r\n")

    assert {"a": "1, 2", "b": "\u00e4", "c": "\u00e4", "content-length": "0"} == response.headers
