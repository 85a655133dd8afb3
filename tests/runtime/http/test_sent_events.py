"""A stream of events keeps nothing of what it has sent, however long it waits for the next event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.responses import send_events_until_disconnect
from mcpgen.runtime.limits import HttpLimits
from mcpgen.runtime.transports.spawner import open_spawner

if TYPE_CHECKING:
    from collections.abc import MutableMapping


class Event(bytes):
    """An event that notes when it is freed."""

    freed: int = 0

    def __del__(self) -> None:
        Event.freed += 1


async def receive() -> MutableMapping[str, Any]:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.anyio
async def test_a_stream_that_waits_does_not_keep_what_it_has_sent() -> None:
    response, sent = ResponseBuffer(1000), 0

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal sent
        sent += len(message.get("body", b""))

    async with open_spawner() as spawner:
        writing = spawner.start(send_events_until_disconnect, response, receive, send, HttpLimits(), spawner)
        for each in (b"short", b"long" * 100_000):
            before, Event.freed = sent, 0
            response.write_event(Event(each))
            await anyio.wait_all_tasks_blocked()
            assert sent == before + len(each)
            assert Event.freed == 1
        writing.cancel()
