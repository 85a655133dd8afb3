"""Exchanges through httpx: a server cannot occupy the event loop of its client."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from anyio.lowlevel import checkpoint

from mcpgen import UsageError, connect
from mcpgen.runtime.http.client.httpx_exchange import HttpxResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Chunks(httpx.AsyncByteStream):
    """What httpx returns for one read of small chunks: it does not wait between them."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"x"


async def count_turns(turns: list[None]) -> None:
    while True:
        turns.append(None)
        await checkpoint()


def test_many_small_chunks_are_read_in_several_turns_of_the_event_loop() -> None:
    turns: list[None] = []

    async def read() -> int:
        async with anyio.create_task_group() as group:
            group.start_soon(count_turns, turns)
            response = HttpxResponse(httpx.Response(200, stream=Chunks()), "https://example.com")
            count = len([chunk async for chunk in response.chunks()])
            group.cancel_scope.cancel()
            return count

    assert 10_000 == anyio.run(read)
    assert len(turns) > 20


@pytest.mark.parametrize("proxy", ["foo://x", "socks5://127.0.0.1:1", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_an_error_of_the_environment(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setitem(sys.modules, "socksio", None)

    async def reach() -> None:
        with pytest.raises(UsageError, match="a proxy of the environment"):
            await connect("http://127.0.0.1:9/mcp")

    anyio.run(reach)
