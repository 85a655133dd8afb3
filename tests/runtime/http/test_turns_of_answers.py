"""The answers to the requests of a lost session are dropped in many turns of the client's event loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits
from mcpgen.runtime.http.client.channel import HttpChannel
from mcpgen.runtime.http.client.http_protocol import HttpProtocol
from tests.turns import counted_turns

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage

pytestmark = pytest.mark.anyio

ANSWERS = 500


async def test_other_tasks_run_between_answers_that_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that pings, does not read, and then loses the session leaves up to `max_buffered_bytes` of answers."""
    dropped: list[OutgoingMessage] = []
    done = anyio.Event()

    async def drop(protocol: HttpProtocol, message: OutgoingMessage, session: object) -> None:
        dropped.append(message)
        if len(dropped) == ANSWERS:
            done.set()

    monkeypatch.setattr(HttpProtocol, "send_message", drop)
    requests: Any = SimpleNamespace(library="none")
    async with anyio.create_task_group() as group:
        tasks: Any = group
        channel = HttpChannel(requests, ClientLimits(), tasks, tasks, "a server")
        for number in range(ANSWERS):
            channel.write(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number)
        async with counted_turns() as turns:
            await done.wait()
            assert turns.count >= ANSWERS / 2
        group.cancel_scope.cancel()
