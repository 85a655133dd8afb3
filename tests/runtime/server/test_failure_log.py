"""Many calls fail in one turn of the event loop."""

from __future__ import annotations

import logging

import anyio
import pytest

from mcpgen import Server
from mcpgen.runtime.server.failure_log import MAX_TRACEBACKS
from mcpgen.runtime.transports import memory
from mcpgen.runtime.transports.tracebacks import MAX_TRACEBACK_CHARS

pytestmark = pytest.mark.anyio

CALLS = 5 * MAX_TRACEBACKS


async def test_of_many_calls_that_fail_together_only_some_are_logged_with_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, end = Server("failing", version="1"), anyio.Event()

    @server.tool
    async def fail() -> None:
        await end.wait()
        raise RuntimeError("burnt")

    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with memory.wire(server) as wire:
        for number in range(CALLS + 1):
            params = {"name": "fail", "arguments": {}, "_meta": meta}
            await wire.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            if number == CALLS - 1:
                end.set()
                for _ in range(CALLS):
                    await wire.receive()
        await wire.receive()

    failed = [record for record in caplog.records if "test_failure_log" in record.getMessage()]
    assert len(failed) == CALLS + 1
    assert len([record for record in failed if record.exc_info]) == MAX_TRACEBACKS + 1  # one of them in a later turn
    assert "RuntimeError: burnt (without a traceback" in failed[CALLS - 1].getMessage()


async def test_a_logged_traceback_is_bounded_and_cannot_control_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("failing", version="1")

    @server.tool
    async def find(city: str) -> None:
        raise RuntimeError("no such place") from ValueError(f"unknown city {city}")

    params = {
        "name": "find",
        "arguments": {"city": "\x1b]0;evil\x07\r\x9b31m" + "x" * 1_000_000},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }
    async with memory.wire(server) as wire:
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        await wire.receive()

    (record,) = (each for each in caplog.records if each.exc_info)
    logged = logging.Formatter().format(record)
    assert "ValueError: unknown city \\x1b]0;evil\\x07\\r\\x9b31mxxx" in logged
    assert not set(logged) & {"\x1b", "\x07", "\r", "\x9b"}
    assert logged.endswith("RuntimeError: no such place")
    assert len(logged) < MAX_TRACEBACK_CHARS + 1000
