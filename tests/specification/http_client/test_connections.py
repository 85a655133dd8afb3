"""The connections of a client of ours: which are used again, which are not, and what is written on them at once."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import anyio
import httpcore
import httpx
import pytest

from mcpgen import ClientLimits
from mcpgen.runtime.http.client.connection_pool import ConnectionPool, _CoalescingStream
from mcpgen.runtime.http.client.httpx_exchange import open_client
from tests.patience import PATIENCE_SECONDS
from tests.specification.client.scripted_server import on_both_loops
from tests.specification.http_client.scripted_http_server import Played, played

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.anyio

NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def open_pool(size: int) -> httpx.AsyncClient:
    """Return a client that keeps at most *size* connections."""
    return httpx.AsyncClient(transport=ConnectionPool(NOBODY, size), timeout=PATIENCE_SECONDS)


async def get(client: httpx.AsyncClient, server: Played) -> int:
    """Make a request, and return how many connections the server has seen when it is over."""
    asking = server.start(client.get(server.url))
    await (await server.hear("GET")).answer(200, b"x")
    await asking.outcome()
    return server.connections


@on_both_loops
async def test_a_connection_whose_answer_was_read_is_used_again() -> None:
    async with played() as server, open_pool(5) as client:
        server.is_judged = False

        assert [1, 1, 1] == [await get(client, server) for _ in range(3)]


@on_both_loops
async def test_a_connection_whose_answer_was_not_read_is_closed() -> None:
    async with played() as server, open_pool(5) as client:
        server.is_judged = False
        asking = server.start(client.send(client.build_request("GET", server.url), stream=True))
        asked = await server.hear("GET")
        await asked.begin()
        response = await asking.outcome()
        await response.aclose()
        await asked.gone()

        assert 2 == await get(client, server)


@on_both_loops
async def test_a_connection_that_the_server_has_closed_meanwhile_is_not_used() -> None:
    async with played() as server, open_pool(5) as client:
        server.is_judged = False
        await get(client, server)
        server.stop()
        await anyio.wait_all_tasks_blocked()
        await server.listen()

        assert 2 == await get(client, server)


async def test_streams_do_not_keep_others_from_using_a_connection_again() -> None:
    async with played() as server, open_pool(5) as client:
        server.is_judged = False
        for _ in range(30):
            asking = server.start(client.send(client.build_request("GET", server.url), stream=True))
            await (await server.hear("GET")).begin()
            await asking.outcome()

        assert [31, 31] == [await get(client, server) for _ in range(2)]


async def test_only_so_many_are_kept() -> None:
    async with played() as server, open_pool(2) as client:
        server.is_judged = False
        asking = [server.start(client.get(server.url)) for _ in range(4)]
        asked = [await server.hear("GET") for _ in asking]
        for each in asked:
            await each.answer(200, b"x")
        for each in asking:
            await each.outcome()
        with anyio.fail_after(PATIENCE_SECONDS):
            while server.live > 2:  # noqa: ASYNC110 (there is no event for it)
                await anyio.sleep(0.005)


async def test_errors_have_the_names_that_httpx_has_for_them() -> None:
    async with played() as server:
        server.is_judged = False
        server.stop()
        await anyio.wait_all_tasks_blocked()
        async with open_pool(2) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(server.url)
            with pytest.raises(httpx.UnsupportedProtocol):
                await client.get("gopher://127.0.0.1/")


async def test_a_proxy_of_the_environment_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with played() as proxy:
        proxy.is_judged = False
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with open_client(ClientLimits()) as client:
            asking = proxy.start(client.get("http://mcpgen.invalid/mcp"))
            asked = await proxy.hear("GET")
            await asked.answer(200, b"x")
            await asking.outcome()

        assert "http://mcpgen.invalid/mcp" == asked.target


class Written(httpcore.AsyncNetworkStream):
    """Keeps what is written."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's)
        self.parts.append(buffer)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([b"POST / HTTP/1.1\r\n\r\n", b"{}", b""], [b"POST / HTTP/1.1\r\n\r\n{}"]),
        ([b"POST / HTTP/1.1\r\n\r\n", b""], [b"POST / HTTP/1.1\r\n\r\n"]),
        ([b"GET / HTTP/1.1\r\n\r\n", b""], [b"GET / HTTP/1.1\r\n\r\n"]),
        (
            [b"POST / HTTP/1.1\r\n\r\n", b"x" * 100_000, b""],
            [b"POST / HTTP/1.1\r\n\r\n" + b"x" * 65_517, b"x" * 34_483],
        ),
    ],
)
async def test_a_head_is_written_with_its_body_and_long_bodies_in_parts(
    written: Sequence[bytes], expected: Sequence[bytes]
) -> None:
    inner = Written()
    wire: Any = _CoalescingStream(inner)
    for each in written:
        await wire.write(each)

    assert expected == inner.parts


class Asked(httpcore.AsyncNetworkStream):
    """Gives as much as it is asked for, of interim responses."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (as httpcore says)
        return (b"HTTP/1.1 100 \r\n\r\n" * 4096)[:max_bytes]


async def test_a_read_has_few_interim_responses() -> None:
    wire: Any = _CoalescingStream(Asked())

    assert len(await wire.read(65_536)) // len(b"HTTP/1.1 100 \r\n\r\n") <= 512
