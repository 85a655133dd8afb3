"""Pings that a client sends by itself, to notice that a server is gone."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpgen import ClientLimits, TransportClosed, UsageError, connect
from tests.specification.citation import spec, with_handshakes, without_handshakes
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio


@spec("2025-11-25", "basic/utilities/ping#implementation-considerations", "784679fe", "ab732bff")
@with_handshakes
@on_both_loops
async def test_pings_are_sent_as_often_as_the_option_says(revision: str) -> None:
    async with opened(revision, ping_seconds=0.01) as own:
        first = await own.wire.hear("ping")
        own.wire.result(first, {})
        second = await own.wire.hear("ping")
        own.wire.error(second, -32601, "no ping")  # this, too, is a sign of life
        third = await own.wire.hear("ping")
        own.wire.result(third, {})

    assert "params" not in first


@spec("2025-11-25", "basic/utilities/ping#error-handling", "a7fb526b", "fd841514")
@with_handshakes
@on_both_loops
async def test_a_ping_without_an_answer_is_logged_and_ends_the_connection(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcpgen.client")
    async with opened(revision, ping_seconds=0.01, limits=ClientLimits(call_seconds=0.1)) as own:
        calling = own.start(own.client.call_tool("x", timeout_seconds=60))
        with pytest.raises(TransportClosed, match=r"has not answered a ping within 0\.1 seconds"):
            await calling.outcome()
        with pytest.raises(TransportClosed):
            await own.client.call_tool("x")

    assert ["the connection is closed"] == [each.getMessage().partition("; ")[2] for each in caplog.records]


@spec("2025-11-25", "basic/utilities/ping#implementation-considerations")
@with_handshakes
async def test_no_ping_is_sent_by_default(revision: str) -> None:
    async with opened(revision) as own:
        await anyio.sleep(0.05)

        assert [] == await own.wire.rest()


@spec("2026-07-28", "changelog#major-changes")
@without_handshakes
async def test_a_stateless_server_gets_no_pings(revision: str) -> None:
    async with opened(revision, ping_seconds=0.01) as own:
        await anyio.sleep(0.05)

        assert [] == (await own.answered(own.client.call_tool("x"), complete(revision, content=[]))).content


@spec("2025-11-25", "basic/utilities/ping#implementation-considerations", "ab732bff")
@pytest.mark.parametrize("value", [0, -1, True, "5", float("nan")])
async def test_the_interval_is_a_positive_number(value: Any) -> None:
    with pytest.raises(UsageError, match="`ping_seconds` must be a number greater than 0"):
        connect("server", ping_seconds=value)
