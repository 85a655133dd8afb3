"""A relayed stream keeps nothing of what it has passed on, however long it waits for the next part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import HttpLimits
from mcpgen.runtime.http.server.cluster.request_relay import RequestRelay
from mcpgen.runtime.server.cluster.worker_messages import RelayedRequest, RelayPart

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

HERE, HOME, RELAY = 1, 2, 7


class Body(bytes):
    """A part of a body that notes when it is freed."""

    freed: int = 0

    def __del__(self) -> None:
        Body.freed += 1


class State:
    limits = HttpLimits()


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
        request = RelayedRequest(HERE, RELAY, "get", {}, ("", "", False))
        group.start_soon(relay.forward, HOME, request, None, send)
        for text in (b"first", b"second"):
            await anyio.wait_all_tasks_blocked()
            before, Body.freed = sent, 0
            worker.receivers[RelayPart](RelayPart(HOME, RELAY, Body(text), more=True, status=200))
            await anyio.wait_all_tasks_blocked()
            assert sent == before + len(text)
            assert Body.freed == 1
        group.cancel_scope.cancel()
