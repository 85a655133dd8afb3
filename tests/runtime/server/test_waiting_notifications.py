"""Notifications of extensions for a client whose buffer is full: it reads, or it does not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen import Extension, Limits, Server, connect
from mcpgen.runtime.transports import memory
from tests.harness.rooms_extension import IDENTIFIER, rooms
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {IDENTIFIER: {}}},
}


LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {"notifications": {"rooms": ["5"]}, "_meta": META},
}


def room_server() -> tuple[Server[Any], Any]:
    """Return a server, each of whose messages fills the buffer, and its extension."""
    server = Server("rooms", limits=Limits(max_buffered_bytes=100))
    return server, server.extend(rooms(), rooms().ServerHandlers())


async def free(extension: Any, room: str) -> None:
    await extension.notify(rooms().methods.ROOM_FREED, rooms().RoomFreedNotificationParams(room=room))


class Heard:
    """The rooms of the notifications that a client has got."""

    def __init__(self) -> None:
        self.rooms: list[str] = []
        self._changed = anyio.Event()

    def extension(self) -> Extension:
        heard = self

        class Handlers(rooms().ClientHandlers[Any]):  # type: ignore[misc]  # built for this test
            async def room_freed(self, params: Any, _context: Any) -> None:
                heard.rooms.append(params.room)
                heard._changed.set()

        return Extension(rooms(), handlers=Handlers())

    async def wait(self, count: int) -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(self.rooms) < count:
                self._changed = anyio.Event()
                await self._changed.wait()


@asynccontextmanager
async def listening() -> AsyncGenerator[tuple[memory.Wire, Any]]:
    """Yield a client that listens, and reads when the test says so, with the extension of its server."""
    server, extension = room_server()
    async with memory.wire(server) as wire:
        await wire.send(LISTEN)
        await wire.receive()
        yield wire, extension


async def received(wire: memory.Wire) -> str:
    return str((await wire.receive())["params"]["room"])


async def test_each_stream_of_a_client_that_reads_gets_each_notification() -> None:
    (server, extension), heard = room_server(), Heard()
    wanted = rooms().SubscriptionFilter(rooms=["5"])
    async with (
        connect(server, extensions=[heard.extension()]) as client,
        client.listen(wanted),
        client.listen(wanted),
        client.listen(wanted),
    ):
        for room in ("a", "b", "c"):
            await free(extension, room)
        await heard.wait(9)

    assert list("aaabbbccc") == heard.rooms


async def test_a_notification_waits_until_the_only_client_reads() -> None:
    async with listening() as (wire, extension):
        await free(extension, "a")
        with anyio.move_on_after(0.1):
            await free(extension, "cancelled")
        rooms_read = [await received(wire)]
        async with anyio.create_task_group() as tasks:
            await free(extension, "b")
            tasks.start_soon(free, extension, "c")
            rooms_read += [await received(wire), await received(wire)]

    assert ["a", "b", "c"] == rooms_read


async def test_a_loop_of_notifications_lets_other_tasks_run() -> None:
    (server, extension), turns = room_server(), 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with connect(server, extensions=[Heard().extension()]), anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        for _ in range(10):
            await free(extension, "a")
        tasks.cancel_scope.cancel()

    assert turns >= 5


async def test_other_clients_do_not_wait_for_one_that_does_not_read() -> None:
    (server, extension), heard = room_server(), Heard()
    async with (
        memory.wire(server) as wire,
        connect(server, extensions=[heard.extension()]) as client,
        client.listen(rooms().SubscriptionFilter(rooms=["5"])),
    ):
        await wire.send(LISTEN)
        await wire.receive()
        with anyio.fail_after(PATIENCE_SECONDS):
            for room in "abc":
                await free(extension, room)
                await heard.wait(len(heard.rooms) + 1)
        rooms_read = [await received(wire)]

    assert (["a"], ["a", "b", "c"]) == (rooms_read, heard.rooms)
