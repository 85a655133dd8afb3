"""``mcpgen serve --verbose``: a line for each request, and a line for its response."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx
import pytest

from mcpgen import Server, ToolError, connect
from mcpgen.runtime.cli.server.request_log import LoggedApplication, LoggedServer, messages_of
from mcpgen.runtime.transports import memory
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

DURATION: Final = re.compile(r"\d+ ms|[\d.]+ s")
TIME: Final = re.compile(r"^\d\d:\d\d:\d\d ", re.MULTILINE)

server = Server("logged")


@server.tool
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool
def fail() -> str:
    raise ToolError("no\x1b[31m luck")


@server.resource("note:today")
def today() -> str:
    return "rain"


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    def read() -> list[str]:
        text = capsys.readouterr().err
        assert len(text.splitlines()) == len(TIME.findall(text))
        return [DURATION.sub("0 ms", line) for line in TIME.sub("", text).splitlines()]

    return read


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_requests_and_their_responses_are_shown(lines: Callable[[], list[str]]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(LoggedServer(server), revisions=["2025-11-25"]) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
            await client.call_tool("fail")
            await client.read_resource("note:today")

    assert [
        "→ initialize #1",
        "← initialize #1  ok, 0 ms",
        "→ notifications/initialized",
        "→ tools/call add #2",
        "← tools/call add #2  ok, 0 ms",
        "→ tools/call fail #3",
        "← tools/call fail #3  failed: no\\x1b[31m luck, 0 ms",
        "→ resources/read note:today #4",
        "← resources/read note:today #4  ok, 0 ms",
    ] == lines()


def initialize() -> dict[str, Any]:
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "me", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


@pytest.mark.slow
def test_messages_of_any_kind_are_shown_or_left_to_the_server(tmp_path: Path) -> None:
    program = tmp_path / "logged.py"
    program.write_text("from mcpgen import Server\nserver = Server('logged')\n", encoding="utf-8")
    batch = [{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "id": "b", "method": "x" * 999}]
    sent = [initialize(), batch, {"jsonrpc": "2.0", "id": 9, "result": {}}]
    command = [sys.executable, "-m", "mcpgen", "serve", "-v", str(program)]
    done = subprocess.run(
        command,
        input=b"\n".join([*(json.dumps(each).encode() for each in sent), b"no JSON", b""]),
        capture_output=True,
        check=True,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    said = [DURATION.sub("0 ms", line) for line in TIME.sub("", done.stderr.decode("ascii")).splitlines()]

    long = "x" * 200 + "~ #b"
    assert ["> initialize #0", "> ping #a", f"> {long}"] == [each for each in said if each.startswith(">")]
    answers = [each for each in said if each.startswith("<")]
    assert ["< initialize #0  ok, 0 ms", "< ping #a  ok, 0 ms"] == answers[:2]
    assert answers[2].startswith(f"< {long}  error -32601: ")
    assert ["the client sent an invalid message: the message is not JSON"] == [
        each for each in said if each[0] not in "<>"
    ]


def app_client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")


HEADERS: Final = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_http_requests_are_shown_with_their_status(lines: Callable[[], list[str]]) -> None:
    app = server.asgi(bound_to="127.0.0.1")
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "fail",
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    said = {**HEADERS, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "fail"}
    async with app.running(), app_client(LoggedApplication(app)) as client:
        await client.post("/mcp", headers=HEADERS, json=initialize())
        await client.post("/mcp", headers=said, json=call)
        await client.post("/mcp", headers={**HEADERS, "Content-Type": "application/json"}, content=b"{")
        await client.post("/mcp", headers={**HEADERS, "Origin": "http://elsewhere"}, json=initialize())
        await client.get("/else%1b[31m")

    shown = lines()
    assert [
        "→ initialize #0",
        "← initialize #0  200, 0 ms",
        "→ tools/call fail #1",
        "← tools/call fail #1  200, failed: no\\x1b[31m luck, 0 ms",
        "→ POST /mcp",
        "← POST /mcp  400, error -32700: the message is not JSON, 0 ms",
    ] == shown[:6]
    assert shown[7].startswith("← POST /mcp  403, error -32600: the Origin 'http://elsewhere' is not allowed")
    assert "→ GET /else\\x1b[31m" == shown[8]
    assert shown[9].startswith("← GET /else\\x1b[31m  404, error -32600: ")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_failure_in_a_stream_of_events_is_shown(lines: Callable[[], list[str]]) -> None:
    streaming = Server("streaming")

    @streaming.tool
    async def slow() -> str:
        await anyio.sleep(0.2)
        raise ToolError("late")

    from mcpgen import HttpLimits

    app = streaming.asgi(bound_to="127.0.0.1", limits=HttpLimits(stream_after_seconds=0.01))
    async with app.running(), app_client(LoggedApplication(app)) as client:
        begun = await client.post("/mcp", headers=HEADERS, json=initialize())
        session = {**HEADERS, "Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}}
        answer = await client.post("/mcp", headers=session, json=call)

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "← tools/call slow #1  200, failed: late, 0 ms" == lines()[-1]


async def test_of_open_streams_the_requests_and_the_messages_are_not_kept(lines: Callable[[], list[str]]) -> None:
    kept: list[int] = []
    request = json.dumps({"id": 1, "method": "tools/call", "params": {"name": "slow", "filler": "x" * 500_000}})
    event = b'event: message\r\ndata: {"method":"notifications/progress","params":"%s"}\r\n\r\n' % (b"x" * 5_000)
    events = [event[:100], event[100:]] * 100
    failed = b'\ndata: {"id":1,"result":{"isError":true,"content":[{"text":"late"}]}}\n\n'

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for each in events:
            await send({"type": "http.response.body", "body": each, "more_body": True})
        kept.append(tracemalloc.get_traced_memory()[0])
        await send({"type": "http.response.body", "body": failed, "more_body": False})

    async def receive() -> Any:
        return {"type": "http.request", "body": request.encode(), "more_body": False}

    async def send(_: object) -> None: ...

    tracemalloc.start()
    try:
        await LoggedApplication(app)({"type": "http", "method": "POST", "path": "/mcp"}, receive, send)
    finally:
        tracemalloc.stop()

    assert kept[0] < 100_000
    assert lines() == ["→ tools/call slow #1", "← tools/call slow #1  200, failed: late, 0 ms"]


async def test_requests_whose_ids_have_one_hash_are_told_apart(lines: Callable[[], list[str]]) -> None:
    async with memory.wire(LoggedServer(server)) as wire:
        await wire.send_all(
            {"jsonrpc": "2.0", "id": -1, "method": "ping"}, {"jsonrpc": "2.0", "id": -2, "method": "tools/list"}
        )
        await wire.receive()
        await wire.receive()

    assert {"ping #-1", "tools/list #-2"} == {each[2:].partition("  ")[0] for each in lines() if each[0] == "←"}


async def test_long_ids_are_not_kept(lines: Callable[[], list[str]]) -> None:
    async with memory.wire(LoggedServer(server)) as wire:
        tracemalloc.start()
        try:
            for number in range(20):
                identity = f"{number}{'x' * 100_000}".encode()
                # It is not UTF-8, so it is refused without its id.
                await wire.send(b'{"jsonrpc":"2.0","id":"%s","method":"ping","params":{"a":"\xff"}}' % identity)
                await wire.receive()
            kept = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    assert kept < 1_000_000
    assert len(lines()) == 20


def test_a_batch_of_millions_of_messages_is_not_decoded() -> None:
    tracemalloc.start()
    try:
        found = messages_of(b"[" + b"{}," * 600_000 + b"{}]")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert found == []
    assert peak < 10_000_000


async def test_a_batch_that_is_far_too_long_has_no_lines(lines: Callable[[], list[str]]) -> None:
    async with memory.wire(LoggedServer(server)) as wire:
        await wire.send([{"method": "ping"}] * 20_000)
        await wire.receive()

    assert lines() == []


@pytest.mark.parametrize(("method", "parts"), [("GET", [4_000] * 200), ("POST", [900_000, 200_000])])
async def test_of_long_streams_nothing_is_kept(method: str, parts: list[int]) -> None:
    kept: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for each in parts:
            await send({"type": "http.response.body", "body": bytes(each), "more_body": True})
        kept.append(tracemalloc.get_traced_memory()[0])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: object) -> None: ...

    tracemalloc.start()
    try:
        await LoggedApplication(app)({"type": "http", "method": method, "path": "/mcp"}, receive, send)
    finally:
        tracemalloc.stop()

    assert kept[0] < 100_000
