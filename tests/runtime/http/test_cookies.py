"""Cookies that a server sets: a client of ours neither reads nor keeps them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.abc import SocketAttribute

from mcpgen import ClientLimits
from mcpgen.runtime.http.client.auth.address_guard import AddressGuard
from mcpgen.runtime.http.client.auth.auth_requests import AuthRequests
from mcpgen.runtime.http.client.httpx_exchange import open_client
from mcpgen.runtime.http.server.auth.issuer_metadata import fetch_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import SocketStream

pytestmark = pytest.mark.anyio

RESPONSE = b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\n{}"


@asynccontextmanager
async def cookie_server(heads: list[bytes]) -> AsyncGenerator[str]:
    async def answer(stream: SocketStream) -> None:
        async with stream:
            try:
                while True:
                    heads.append(await stream.receive())
                    await stream.send(RESPONSE)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        yield f"http://127.0.0.1:{listener.extra_attributes[SocketAttribute.local_port]()}/"
        group.cancel_scope.cancel()


async def call(url: str) -> None:
    async with open_client(ClientLimits()) as client:
        await client.get(url)
        await client.get(url)


async def call_by_proxy(url: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("http_proxy", url)
        await call("http://mcp.example.com/")


async def log_in(url: str) -> None:
    await AuthRequests(AddressGuard(url)).get(url)


async def verify(url: str) -> None:
    await fetch_json(url)


@pytest.mark.parametrize("send", [call, call_by_proxy, log_in, verify])
async def test_cookies_of_servers_are_neither_parsed_nor_kept(
    send: Callable[[str], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[object] = []
    heads: list[bytes] = []

    def make_cookies(*arguments: object) -> list[object]:
        parsed.append(arguments)
        return []

    monkeypatch.setattr(CookieJar, "make_cookies", make_cookies)
    async with cookie_server(heads) as url:
        await send(url)

    assert heads
    assert [] == parsed
