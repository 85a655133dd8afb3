"""The relay of ``mcpgen serve --reload`` on stdio keeps little, whichever side does not read."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
import pytest

from mcpgen.runtime.cli.server.reloaded_server import ReloadedServer
from mcpgen.runtime.transports.spawner import open_spawner
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from mcpgen.runtime.cli.server.source_changes import SourceChanges
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.transports.interfaces import Channel, ClientEndpoint, Endpoint, Transport

pytestmark = pytest.mark.anyio


class Peer:
    """A writer to a side that may not read, and the channel to a process."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_full = False
        self.is_held = False
        self.has_room = anyio.Event()
        self.endpoint: ClientEndpoint | None = None

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


class NoChanges:
    def stop(self) -> None: ...

    async def __aiter__(self) -> AsyncIterator[str]:
        await anyio.sleep_forever()
        yield ""


@asynccontextmanager
async def relaying(host: Peer, process: Peer) -> AsyncGenerator[Endpoint]:
    server = ReloadedServer(cast("Transport", process), cast("SourceChanges", NoChanges()))
    with anyio.fail_after(PATIENCE_SECONDS):
        async with server.running(), open_spawner() as spawner:
            endpoint = server.connect(host, spawner)
            while process.endpoint is None:
                await anyio.lowlevel.checkpoint()
            yield endpoint


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
