"""What a client holds for its server has bounds in bytes, which errors name."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, Context, RequestRefused, Server, connect
from mcpgen.runtime.client.subscriptions import Change, ChangeStream
from mcpgen.runtime.http.client.http_session import HttpSession
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.anyio
async def test_requests_of_a_server_that_are_too_large_together_are_refused() -> None:
    server = Server("own")
    refused: list[str] = []

    @server.tool
    async def ask(context: Context) -> str:
        async def sample(text: str) -> None:
            try:
                await context.sample(text, max_tokens=1)
            except RequestRefused as error:
                refused.append(error.message)

        for _ in range(2):  # what was answered counts no more
            async with anyio.create_task_group() as group:
                for size in (6000, 6000, 1000):
                    group.start_soon(sample, "x" * size)
        return str(len(refused))

    async def sample(params: object, context: object) -> models.CreateMessageResult:
        await anyio.sleep(0.05)
        text = models.TextContent(text="a")
        return models.CreateMessageResult(role="assistant", content=text, model="m")

    limits = ClientLimits(max_in_flight_bytes=10_000)
    async with connect(server, revisions=["2025-11-25"], limits=limits, sample=sample) as client:
        await client.call_tool("ask")

    assert 2 == len(refused)
    assert all("max_in_flight_bytes" in each for each in refused)


def taken(stream: ChangeStream) -> Sequence[Any]:
    found = []
    while (change := stream.take()) is not None:
        found.append(change)
    return found


@pytest.mark.anyio
async def test_a_change_with_a_long_uri_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    stream = ChangeStream(SubscriptionFilter(), auto_reset_event(), 10)
    with caplog.at_level(logging.WARNING):
        for size in (8192, 8193, 8193):
            stream.put(Change("resource", "x" * size))

    assert [8192] == [len(each.uri) for each in taken(stream)]
    assert 1 == len(caplog.records)
    assert "8192 characters" in caplog.text


def test_a_long_id_of_a_server_is_not_kept() -> None:
    session = HttpSession()
    for size in (1000, 1001):
        session.add_server_request("x" * size)

    assert ["x" * 1000] == list(session.server_requests)
