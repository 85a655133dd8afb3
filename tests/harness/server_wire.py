"""A server in memory: bytes in, bytes out, and a `Recorder` that judges all of it.

async with connected(server) as wire:
    assert [{"jsonrpc": "2.0", "id": 1, "result": {}}] == await wire.say(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio.lowlevel import checkpoint

from mcpgen.runtime.transports.spawner import open_spawner
from tests.harness.server_recorder import Recorder
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcpgen.runtime.api.server import Server
    from mcpgen.runtime.transports.spawner import Spawner

# A handler that waits for nothing but us is through after a few turns of the event loop; this many without a new
# message mean that it is.
_QUIET_TURNS = 30


class Wire:
    """One connection of a server.

    Attributes:
        connection: The server's end.
        recorder: Hears everything.
        raw: Every message of the server, as it was written.
    """

    is_full = False

    def __init__(self, server: Server, spawner: Spawner) -> None:
        service = server._engine.handlers
        self.recorder = Recorder(service.served, service.capabilities)
        self.raw: list[bytes] = []
        self._read = 0
        self.connection = server.connect(self, spawner)

    def write(self, message: bytes) -> None:
        """Take a message of the server."""
        self.raw.append(bytes(message))
        self.recorder.said(bytes(message))

    async def drain(self) -> None:
        """Return at once: nothing is ever full here."""

    def send(self, *frames: bytes) -> None:
        """Hand *frames* to the server, all at once, and do not wait for what it says."""
        for each in frames:
            self.recorder.heard(each)
        self.connection.receive(frames)

    async def say(self, *frames: bytes) -> list[Any]:
        """Hand *frames* to the server, and return the messages that it says until it waits for something."""
        self.send(*frames)
        return await self.rest()

    async def rest(self) -> list[Any]:
        """Return the messages that nobody has read, once the server waits for something."""
        with anyio.fail_after(PATIENCE_SECONDS):
            await self._settle()
        read, self._read = self._read, len(self.raw)
        return [json.loads(each) for each in self.raw[read:]]

    async def _settle(self) -> None:
        quiet, heard = 0, len(self.raw)
        while quiet < _QUIET_TURNS:
            await checkpoint()
            quiet = quiet + 1 if heard == len(self.raw) else 0
            heard = len(self.raw)


@asynccontextmanager
async def connected(server: Server) -> AsyncGenerator[Wire]:
    """Connect to *server*; whatever it has said wrong is reported at the end of the block."""
    async with server.running(), open_spawner() as spawner:
        wire = Wire(server, spawner)
        try:
            yield wire
            await wire.rest()
            wire.connection.end_of_input()
            await wire.rest()
        finally:
            wire.connection.close()
    wire.recorder.verify()
    kept = server._engine.ledger.by_kind()
    kept.pop("parked requests", None)  # answered ones are kept for a while, for repeated retries
    if not server._engine._running:  # the last connection has ended
        assert not any(kept.values()), f"still kept: {kept}"
