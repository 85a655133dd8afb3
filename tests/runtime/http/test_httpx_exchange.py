"""Exchanges through httpx: a server cannot occupy the event loop of its client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import httpx
from anyio.lowlevel import checkpoint

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
