"""The relay of ``mcpgen serve --reload`` on stdio keeps little, whichever side does not read, and loses no message."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
import pytest

from mcpgen import Context, Server
from mcpgen.runtime.cli.server.continued_ids import LAST_ASKED, with_continued_ids
from mcpgen.runtime.cli.server.reloaded_server import ReloadedServer
from mcpgen.runtime.protocol.framing import OversizedLine
from mcpgen.runtime.transports import memory
from mcpgen.runtime.transports.spawner import open_spawner
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from mcpgen.runtime.cli.server.source_changes import SourceChanges
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel, ClientEndpoint, Endpoint, Transport

pytestmark = pytest.mark.anyio

OFFER = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "host", "version": "1"},
}


class Peer:
    """A writer to a side that may not read, and the channel to a process."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_full = False
        self.is_held = False
        self.has_room = anyio.Event()
        self.endpoint: ClientEndpoint | None = None
        self.last_asked = 0

    def write(self, message: bytes) -> None:
        self.written.append(message)

    async def drain(self) -> None:
        while self.is_full:
            await self.has_room.wait()

    def read(self) -> None:
        self.is_full = False
        self.has_room.set()

    async def run(self, endpoint: ClientEndpoint) -> None:
        self.endpoint = endpoint
        await anyio.sleep_forever()

    def hold(self) -> None:
        self.is_held = True

    def unhold(self) -> None:
        self.is_held = False

    @asynccontextmanager
    async def open(self, _: ClientLimits) -> AsyncGenerator[Channel]:
        yield cast("Channel", self)


class Changes:
    """A file that changes when it is told to."""

    def __init__(self) -> None:
        self.change = anyio.Event()
        self.is_watched = False

    def stop(self) -> None: ...

    async def __aiter__(self) -> AsyncIterator[str]:
        await anyio.lowlevel.checkpoint()
        self.is_watched = True
        yield ""
        while True:
            await self.change.wait()
            self.change = anyio.Event()
            yield "server.py"


@asynccontextmanager
async def relaying(host: Peer, *processes: Peer, changes: Changes | None = None) -> AsyncGenerator[Endpoint]:
    later, files = iter(processes), changes or Changes()

    def start(last_asked: int) -> Transport:
        assert files.is_watched, "a change that comes now would not be noticed"
        process = next(later)
        process.last_asked = last_asked
        return cast("Transport", process)

    server = ReloadedServer(start, cast("SourceChanges", files))
    with anyio.fail_after(PATIENCE_SECONDS):
        async with server.running(), open_spawner() as spawner:
            endpoint = server.connect(host, spawner)
            await started(processes[0])
            yield endpoint


async def started(process: Peer) -> ClientEndpoint:
    while process.endpoint is None:
        await anyio.lowlevel.checkpoint()
    return process.endpoint


def ask(number: int, size: int = 0) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping", "params": {"x": "x" * size}}).encode()


def answers(host: Peer) -> list[dict[str, Any]]:
    return [json.loads(each) for each in host.written]


async def test_the_process_is_not_read_from_while_the_host_does_not_read() -> None:
    host, process = Peer(), Peer()
    async with relaying(host, process) as endpoint:
        endpoint.receive([ask(1)])
        host.is_full = True
        assert process.endpoint is not None
        process.endpoint.receive([b'{"jsonrpc":"2.0","id":1,"result":{}}'])

        assert process.is_held

        host.read()
        while process.is_held:
            await anyio.lowlevel.checkpoint()


@pytest.mark.slow
async def test_only_16_mib_wait_for_a_process_that_does_not_read() -> None:
    host, process = Peer(), Peer()
    async with relaying(host, process) as endpoint:
        process.is_full = True
        for number in range(100):
            endpoint.receive([ask(number, 1 << 20)])

        assert not process.written
        assert len(answers(host)) == 85
        assert "the server restarts, or reads its messages too slowly" in answers(host)[0]["error"]["message"]

        process.read()
        while len(process.written) < 15:
            await anyio.lowlevel.checkpoint()
        endpoint.receive([ask(100)])

        assert [*range(15), 100] == [json.loads(each)["id"] for each in process.written]


@pytest.mark.parametrize("other", [b"1e999", b'"\xff"'], ids=["a number of any size", "a text that is not UTF-8"])
async def test_a_cancellation_whose_other_keys_cannot_be_decoded_loses_no_message(other: bytes) -> None:
    host, process = Peer(), Peer()
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"x":' + other + b"}}"
    async with relaying(host, process) as endpoint:
        endpoint.receive([ask(1), cancel, ask(2)])

        assert process.written == [ask(1), cancel, ask(2)]


@pytest.mark.parametrize(
    "request_",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},17]',
        b" " * 100 + b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    ],
)
async def test_the_responses_to_messages_that_are_not_valid_are_passed_on(request_: bytes) -> None:
    host, process = Peer(), Peer()
    response = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    error = b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"not JSON"}}'
    async with relaying(host, process) as endpoint:
        endpoint.receive([request_])
        (await started(process)).receive([response, error])

        assert host.written == [response, error]


async def test_an_open_request_that_is_not_valid_gets_an_error_at_a_restart() -> None:
    host, processes, changes = Peer(), (Peer(), Peer()), Changes()
    async with relaying(host, *processes, changes=changes) as endpoint:
        endpoint.receive([b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}'])
        changes.change.set()
        await started(processes[1])

        assert [1] == [each["id"] for each in answers(host)]


async def test_a_message_that_is_too_long_gets_an_error_in_both_directions() -> None:
    host, process = Peer(), Peer()
    head = b'{"jsonrpc":"2.0","id":1,'
    async with relaying(host, process) as endpoint:
        endpoint.receive([OversizedLine(1 << 30, 1 << 24, head + b'"method":"ping","params":{"x":"', b'"}}')])
        endpoint.receive([OversizedLine(1 << 30, 1 << 24, head + b'"result":{"x":"', b'"}}')])
        endpoint.receive([ask(1)])
        (await started(process)).receive([OversizedLine(1 << 30, 1 << 26, head + b'"result":{"x":"', b'"}}')])

        refused, failed = answers(host)
        assert (1, "the message is longer than 16777216 bytes (max_frame_bytes)") == (
            refused["id"],
            refused["error"]["message"],
        )
        assert 1 == failed["id"]
        assert "the result is longer than 67108864 bytes" in failed["error"]["message"]
        assert 1 == json.loads(process.written[0])["id"]
        assert "max_frame_bytes" in json.loads(process.written[0])["error"]["message"]


async def test_a_batch_is_not_sent_again_to_the_next_process() -> None:
    level = b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}'
    host, processes, changes = Peer(), (Peer(), Peer()), Changes()
    async with relaying(host, *processes, changes=changes) as endpoint:
        endpoint.receive([b"[" + level + b"," + ask(2) + b"]"])
        first = await started(processes[0])
        first.receive([b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]'])
        changes.change.set()
        second = await started(processes[1])
        second.receive([b'{"jsonrpc":"2.0","id":1,"result":{}}'])

        assert processes[1].written == [level]
        assert 1 == len(host.written)


async def test_the_next_process_gets_no_id_of_a_question_that_the_host_may_still_answer() -> None:
    host, processes, changes = Peer(), (Peer(), Peer()), Changes()
    async with relaying(host, *processes, changes=changes) as endpoint:
        first = await started(processes[0])
        first.receive(
            [b'{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{}}' % each for each in (1, 2)]
        )
        endpoint.receive([b'{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}'])
        changes.change.set()
        await started(processes[1])

        assert 2 == processes[1].last_asked
        assert [2] == [each["params"]["requestId"] for each in answers(host)[2:]]


async def test_a_server_continues_the_ids_of_earlier_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("asking")

    @server.tool
    async def ask_host(ctx: Context) -> str:
        return str(await ctx.roots())

    monkeypatch.setenv(LAST_ASKED, "7")
    async with memory.wire(cast("Server", with_continued_ids(server))) as wire:
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OFFER})
        await wire.receive()
        await wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await wire.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ask_host"}})

        assert (8, "roots/list") == itemgetter("id", "method")(await wire.receive())
    assert LAST_ASKED not in os.environ
