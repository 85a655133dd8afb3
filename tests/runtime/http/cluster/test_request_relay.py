"""What a relay keeps of a response: nothing that it has passed on, and nothing unread that does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import HttpLimits
from mcpgen.runtime.http.server.cluster.request_relay import RelayClient, RequestRelay
from mcpgen.runtime.http.server.responses import ClientDisconnected
from mcpgen.runtime.server.cluster.worker_messages import RelayedRequest, RelayPart
from mcpgen.runtime.server.quota import Quota

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

HERE, HOME, RELAY = 1, 2, 7
REQUEST = RelayedRequest(HERE, RELAY, "get", {}, ("", "", False))


class Body(bytes):
    """A part of a body that notes when it is freed."""

    freed: int = 0

    def __del__(self) -> None:
        Body.freed += 1


class State:
    limits = HttpLimits()

    def __init__(self) -> None:
        self.unread = Quota(10, 10_000_000)


class Worker:
    number = HERE

    def __init__(self) -> None:
        self.receivers: dict[type, Callable[[Any], None]] = {}

    def on(self, kind: type, receive: Callable[[Any], None]) -> None:
        self.receivers[kind] = receive

    async def send(self, _worker: int, _message: object) -> bool:
        return True

    def send_later(self, _worker: int, _message: object) -> None: ...


@pytest.mark.anyio
async def test_a_relay_that_waits_does_not_keep_what_it_has_passed_on() -> None:
    worker, sent = Worker(), 0
    state: Any = State()
    other: Any = worker
    relay = RequestRelay(state, other, serve=other.send)

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal sent
        sent += len(message.get("body", b""))

    async with anyio.create_task_group() as group:
        group.start_soon(relay.forward, HOME, REQUEST, RelayClient(None, send, None))
        for text in (b"first", b"second"):
            await anyio.wait_all_tasks_blocked()
            before, Body.freed = sent, 0
            worker.receivers[RelayPart](RelayPart(HOME, RELAY, Body(text), more=True, status=200))
            await anyio.wait_all_tasks_blocked()
            assert sent == before + len(text)
            assert Body.freed == 1
        group.cancel_scope.cancel()


@pytest.mark.anyio
async def test_the_last_part_counts_until_the_client_has_read_it_or_its_connection_is_closed() -> None:
    """The worker that has sent it counts it no longer."""
    worker, closed = Worker(), anyio.Event()
    state: Any = State()
    other: Any = worker
    relay = RequestRelay(state, other, serve=other.send)

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message["body"]:  # waits until those before are read
            await closed.wait()

    async def forward() -> None:
        with pytest.raises(ClientDisconnected):
            await relay.forward(HOME, REQUEST, RelayClient(None, send, closed.set))

    async with anyio.create_task_group() as group:
        group.start_soon(forward)
        await anyio.wait_all_tasks_blocked()
        worker.receivers[RelayPart](RelayPart(HOME, RELAY, bytes(100_000), status=200))
        await anyio.wait_all_tasks_blocked()
        assert state.unread.kept_bytes == 100_000
        relay.end(RELAY)
        await anyio.wait_all_tasks_blocked()
        assert state.unread.kept_bytes == 0
