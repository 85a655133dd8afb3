"""Requests on connections of asyncio: what is written, which connection is used, and what a cancellation leaves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from mcpgen import ClientLimits, Http, RequestLost, ServerUnreachable, bearer, connect
from mcpgen.runtime.http.client import asyncio_exchange, exchange_choice, happy_eyeballs
from mcpgen.runtime.http.client.address import join_url, parse_address
from mcpgen.runtime.http.client.asyncio_exchange import AsyncioExchange
from mcpgen.runtime.http.client.exchange_choice import open_exchange
from mcpgen.runtime.http.client.http11_connection import Http11Connection
from mcpgen.runtime.http.client.http_exchange import ConnectionBroke
from tests.patience import PATIENCE_SECONDS
from tests.specification.client.scripted_server import discovered
from tests.specification.http_client.scripted_http_server import NEWEST, closed, played

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

pytestmark = pytest.mark.anyio

CERTIFICATE = Path(__file__).parent / "certificate" / "localhost.pem"
EMPTY = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
ACCEPT = [("accept", "*/*")]


@pytest.fixture(autouse=True)
def library() -> str:
    """Run each test once: httpx has no part in this."""
    return "asyncio"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Run each test on both event loops that asyncio programs use."""
    if request.param:
        pytest.importorskip("uvloop", reason="there is no uvloop for Windows")
    return "asyncio", {"use_uvloop": request.param}


class Raw:
    """A server of bytes. Each connection reads requests, and answers each with `answer`.

    Attributes:
        heads: The heads of all requests.
        connections: How many there were.
        live: How many there are.
    """

    def __init__(self, answer: Callable[[asyncio.StreamWriter, int], Awaitable[object]] | bytes) -> None:
        self.heads: list[bytes] = []
        self.connections = 0
        self.live = 0
        self._answer = answer
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.live += 1
        task = asyncio.current_task()
        assert task is not None

        self._tasks.add(task)
        expected = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError)
        with contextlib.suppress(*expected):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                length = [line for line in head.split(b"\r\n") if line.startswith(b"content-length")]
                if isinstance(self._answer, bytes):
                    await reader.readexactly(int(length[0].split(b":")[1]) if length else 0)
                    writer.write(self._answer)
                else:
                    await self._answer(writer, len(self.heads))
        writer.close()
        self.live -= 1

    def end(self) -> None:
        """End all answers."""
        for each in self._tasks:
            each.cancel()

    async def until_live(self, count: int) -> None:
        """Return when *count* connections are open."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while self.live != count:  # noqa: ASYNC110 (there is no event for it)
                await anyio.sleep(0.002)


@asynccontextmanager
async def serving(
    answer: Any, *, tls: bool = False, headers: Any = (), token: Any = None, user: str = "", **limits: Any
) -> AsyncGenerator[tuple[Raw, AsyncioExchange, Any]]:
    """Open a server and an exchange."""
    raw = Raw(answer)
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
        context.set_alpn_protocols(["h2", "http/1.1"])
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    scheme, host = ("https", "localhost") if tls else ("http", "127.0.0.1")
    address = parse_address(f"{scheme}://{user}{host}:{port}/mcp?k=%20<é>")
    exchange = AsyncioExchange(address, ClientLimits(**limits), headers, token)
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            yield raw, exchange, address
    finally:
        await exchange.close()
        server.close()
        raw.end()
        await raw.until_live(0)


async def status(exchange: AsyncioExchange, address: Any, body: bytes | None = b"{}") -> int:
    """Make a request, and return the status of its response."""
    response = await exchange.send("POST" if body is not None else "GET", address, ACCEPT, body)
    await response.close()
    return response.status


async def test_a_head_has_what_http_and_the_caller_demand() -> None:
    async with serving(EMPTY, headers=[("x-key", "1")], user="me:p%40ss@") as (raw, exchange, address):
        assert 202 == await status(exchange, address)
        assert 202 == await status(exchange, address, None)
        host = f"host: 127.0.0.1:{address.origin[2]}\r\n".encode()

    agent = asyncio_exchange.__version__.encode()
    rest = b"user-agent: mcpgen/" + agent + b"\r\nx-key: 1\r\nauthorization: Basic bWU6cEBzcw==\r\n"
    target = b" /mcp?k=%20%3C%C3%A9%3E HTTP/1.1\r\n"
    assert [
        b"POST" + target + host + rest + b"content-length: 2\r\naccept: */*\r\n\r\n",
        b"GET" + target + host + rest + b"accept: */*\r\n\r\n",
    ] == raw.heads
    assert 1 == raw.connections


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\rb", "a\0b", "a\r\n\r\nGET / HTTP/1.1"])
@pytest.mark.parametrize("part", ["name", "value"])
async def test_a_header_that_would_begin_another_is_not_sent(value: str, part: str) -> None:
    async with serving(EMPTY) as (raw, exchange, address):
        lines = [(value, "1")] if part == "name" else [("x-key", value)]
        with pytest.raises(RequestLost, match="was not sent: a header has a line break or a NUL") as refused:
            await exchange.send("POST", address, lines, b"")

        assert 0 == raw.connections
        assert "evil" not in str(refused.value)


async def test_an_idle_connection_that_the_server_has_closed_is_not_used() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(EMPTY)
        writer.close()

    async with serving(answer) as (raw, exchange, address):
        for _ in range(20):
            assert 202 == await status(exchange, address, None)
            raw_time = asyncio.get_running_loop().time()
            while asyncio.get_running_loop().time() < raw_time + 0.002:
                pass  # the loop must not see the end of the connection before the next request does

        assert 20 == len(raw.heads)


async def test_a_connection_whose_response_was_read_late_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """While an event loop is blocked, a server can close the connection of a response that waits to be read."""
    now = 0.0
    monkeypatch.setattr(asyncio_exchange, "_clock", lambda: now)

    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        nonlocal now
        now += 5
        writer.write(EMPTY)
        writer.close()

    async with serving(answer) as (raw, exchange, address):
        for _ in range(20):
            assert 202 == await status(exchange, address, None)

        assert 20 == len(raw.heads)


async def test_a_request_that_the_server_has_seen_is_not_sent_again() -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        if number > 1:
            raise ConnectionError
        writer.write(EMPTY)

    async with serving(answer) as (raw, exchange, address):
        assert 202 == await status(exchange, address, None)
        with pytest.raises(ConnectionBroke, match="the server closed the connection"):
            await status(exchange, address, None)

        assert 2 == len(raw.heads)
        assert 1 == raw.connections


async def test_connections_are_kept_for_a_while_and_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(EMPTY, max_connections=2) as (raw, exchange, address):
        responses = [await exchange.send("GET", address, ACCEPT, None) for _ in range(4)]
        for each in responses:
            await each.close()
        await raw.until_live(2)
        monkeypatch.setattr(asyncio_exchange, "IDLE_SECONDS", -1)
        await status(exchange, address, None)

        assert 5 == raw.connections
        await raw.until_live(1)


async def test_a_long_body_is_written_in_parts_each_in_time() -> None:
    async with serving(EMPTY) as (raw, exchange, address):
        for size in (0, 65_535, 65_536, 65_537, 131_072, 10_000_000):
            assert 202 == await status(exchange, address, b"x" * size)

        assert 1 == raw.connections


@pytest.mark.slow
async def test_a_server_that_does_not_read_is_noticed() -> None:
    async def answer(_: asyncio.StreamWriter, __: int) -> None:
        await asyncio.sleep(PATIENCE_SECONDS)

    async with serving(answer, open_seconds=0.5) as (_, exchange, address):
        with pytest.raises(ConnectionBroke, match=r"reads too slowly \(open_seconds=0.5\)"):
            await status(exchange, address, b"x" * 50_000_000)


async def test_a_server_that_answers_first_need_not_read_the_rest() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await asyncio.sleep(PATIENCE_SECONDS)

    async with serving(answer) as (raw, exchange, address):
        assert 413 == await status(exchange, address, b"x" * 50_000_000)
        assert [] == [*exchange._idle]
        assert 1 == raw.connections


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"])
async def test_a_request_that_is_cancelled_leaves_no_connection(sent: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(sent if number == 1 else EMPTY)

    async with serving(answer) as (raw, exchange, address):
        has_come = anyio.Event()

        async def ask() -> None:
            response = await exchange.send("GET", address, ACCEPT, None)
            try:
                async for _ in response.chunks():
                    has_come.set()
            finally:
                await response.close()

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await raw.until_live(1)
            while not raw.heads:
                await anyio.lowlevel.checkpoint()
            if b"abc" in sent:
                await has_come.wait()
            group.cancel_scope.cancel()
        await raw.until_live(0)

        assert 202 == await status(exchange, address, None)
        assert 2 == raw.connections


async def test_a_request_that_is_cancelled_while_it_connects_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(EMPTY, tls=True) as (raw, exchange, address):
        monkeypatch.setattr(asyncio_exchange, "trusted_certificates", trusting)
        for turns in range(25):
            async with anyio.create_task_group() as group:
                group.start_soon(exchange.send, "GET", address, ACCEPT, None)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
        await exchange.close()
        await raw.until_live(0)  # a socket that is left fails the run, as a ResourceWarning


async def test_urls_of_redirects_are_not_remembered_without_end() -> None:
    async with serving(EMPTY) as (raw, exchange, address):
        for number in range(100):
            await status(exchange, join_url(address, f"/{number}"), None)

        assert [f"GET /{number} HTTP/1.1".encode() for number in range(100)] == [
            head.split(b"\r\n")[0] for head in raw.heads
        ]
        assert len(exchange._targets) <= 16


async def test_connections_in_use_are_closed_at_the_end() -> None:
    async def answer(writer: asyncio.StreamWriter, _: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

    async with serving(answer) as (raw, exchange, address):
        response = await exchange.send("GET", address, ACCEPT, None)
        await exchange.close()

        assert [] == [part async for part in response.chunks()]

        await response.close()
        await raw.until_live(0)


# --- TLS


def trusting() -> ssl.SSLContext:
    """Return a context that knows the certificate of the tests."""
    return ssl.create_default_context(cafile=str(CERTIFICATE))


async def test_a_certificate_is_verified_and_http_1_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    asyncio_exchange.trusted_certificates.cache_clear()
    try:
        async with serving(EMPTY, tls=True) as (raw, exchange, address):
            assert [202, 202] == [await status(exchange, address) for _ in range(2)]
            (connection,) = exchange._idle
            assert "http/1.1" == connection._transport.get_extra_info("ssl_object").selected_alpn_protocol()
            assert 1 == raw.connections
            other = parse_address(address.url.replace("localhost", "127.0.0.1"))
            wrong = AsyncioExchange(other, ClientLimits(), [], None)
            with pytest.raises(ServerUnreachable, match="certificate verify failed"):
                await status(wrong, other)
            await wrong.close()
    finally:
        asyncio_exchange.trusted_certificates.cache_clear()


async def test_a_certificate_of_unknown_origin_is_refused() -> None:
    async with serving(EMPTY, tls=True) as (raw, exchange, address):
        with pytest.raises(ServerUnreachable, match="certificate verify failed"):
            await status(exchange, address)

        assert [] == raw.heads


# --- connecting


async def test_connecting_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await anyio.sleep(PATIENCE_SECONDS)

    monkeypatch.setattr(asyncio_exchange, "open_socket", never)
    async with serving(EMPTY, open_seconds=0.02) as (_, exchange, address):
        with pytest.raises(ServerUnreachable, match=r"it took longer than open_seconds=0.02"):
            await status(exchange, address)


async def test_addresses_are_tried_in_turn_and_the_first_that_answers_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    async def attempt(info: Any) -> socket.socket:
        tried.append(info[4])
        if info[4] == "silent":
            await anyio.sleep(PATIENCE_SECONDS)
        if info[4] != "good":
            raise OSError(111, f"{info[4]} refused")
        return socket.socket()

    async def resolve(*_: object, **__: object) -> list[Any]:
        return [(family, 0, 0, "", name) for family, name in addresses]

    monkeypatch.setattr(happy_eyeballs, "_connected_socket", attempt)
    monkeypatch.setattr(happy_eyeballs, "_NEXT_ADDRESS_SECONDS", 0.01)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve, raising=False)
    addresses = [(6, "silent"), (6, "also"), (4, "bad"), (4, "good"), (4, "never tried")]
    (await happy_eyeballs.open_socket("x", 1)).close()

    assert ["silent", "bad", "also", "good"] == tried

    addresses = [(6, "first"), (4, "second")]
    with pytest.raises(OSError, match="first refused"):
        await happy_eyeballs.open_socket("x", 1)


# --- the choice


class Signed(httpx.Auth):
    """Credentials of which only httpx knows what they do."""


@pytest.mark.parametrize(
    ("options", "proxies", "host", "expected"),
    [
        ({}, {}, "example.com", "asyncio"),
        ({"auth": "bearer"}, {}, "example.com", "asyncio"),
        ({"auth": Signed()}, {}, "example.com", "httpx"),
        ({"client": True}, {}, "example.com", "httpx"),
        ({}, {"all": "http://127.0.0.1:1"}, "example.com", "httpx"),
        ({}, {"all": "http://127.0.0.1:1", "no": "example.com"}, "example.com", "httpx"),
        ({}, {"no": "example.com"}, "example.com", "asyncio"),
        ({}, {}, "b\u00fccher.example", "httpx"),
    ],
)
async def test_what_needs_httpx_gets_it(
    options: dict[str, Any], proxies: dict[str, str], host: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_choice, "getproxies", lambda: proxies)
    auth = bearer("1") if options.get("auth") == "bearer" else options.get("auth")
    async with httpx.AsyncClient() as client:
        ours = client if "client" in options else None
        async with open_exchange(parse_address(f"http://{host}/"), ClientLimits(), {}, auth, ours) as exchange:
            assert expected == exchange.library


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_trio_gets_httpx() -> None:
    async with open_exchange(parse_address("http://example.com/"), ClientLimits(), {}, None, None) as exchange:
        assert "httpx" == exchange.library


async def test_a_client_shows_which_library_it_uses() -> None:
    async with played() as server:

        async def run() -> Any:
            return await connect(Http(server.url), revisions=[NEWEST])

        connecting = server.start(run())
        await (await server.hear(method="server/discover")).result(discovered())
        client = await connecting.outcome()

        assert f"<Client to {server.url!r} over asyncio: " in repr(client)

        await closed(client, server)


async def test_a_reader_is_cancelled_although_the_server_never_stops_sending() -> None:
    connection = Http11Connection(None, "http://localhost")
    turns = 0

    def arrive() -> None:
        nonlocal turns
        turns += 1
        connection._wake()
        if turns < 1000:
            asyncio.get_running_loop().call_soon(arrive)

    async def read() -> None:
        while turns < 1000:
            await connection.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await anyio.lowlevel.checkpoint()
        asyncio.get_running_loop().call_soon(arrive)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        group.cancel_scope.cancel()

    assert turns < 100


async def test_one_turn_reads_a_small_part_of_a_response() -> None:
    read: list[int] = []

    class Counted(Http11Connection):
        def buffer_updated(self, nbytes: int) -> None:
            read.append(nbytes)
            super().buffer_updated(nbytes)

    ours, theirs = socket.socketpair()
    pool = SimpleNamespace(discard=lambda _: None)
    with theirs:
        theirs.settimeout(0)
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Counted(pool, "http://localhost"), sock=ours
        )
        response = connection.start(b"GET / HTTP/1.1\r\n\r\n")
        theirs.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\n:\r\n" * 20_000)
        with anyio.fail_after(PATIENCE_SECONDS):
            await response.head()
            for _ in range(3):
                await response.__anext__()
        connection.abort()
        await connection.lost.wait()

    assert len(read) >= 3
    assert max(read) <= 32 * 1024
