"""Pings, in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.generated import registry
from tests.specification.citation import HOMES, LABELS, from_every_home, spec, with_handshakes, without_handshakes
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio


@spec("2024-11-05", "basic/utilities/ping#behavior-requirements")
@spec("2025-03-26", "basic/utilities/ping#behavior-requirements")
@spec("2025-06-18", "basic/utilities/ping#behavior-requirements")
@spec("2025-11-25", "basic/utilities/ping#behavior-requirements", "efd69d27")
@with_handshakes
@from_every_home
async def test_a_ping_is_answered_at_once_with_an_empty_result(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        said = await peer.wire.say(b'{"jsonrpc":"2.0","id":"123","method":"ping"}')

    assert [{"jsonrpc": "2.0", "id": "123", "result": {}}] == said


@spec("2025-11-25", "basic/utilities/ping#behavior-requirements")
@with_handshakes
async def test_a_ping_is_answered_while_a_handler_runs(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        await peer.call("wait")
        said = await peer.wire.say(b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}')

    assert [{"jsonrpc": "2.0", "id": 2, "result": {}}] == said


@spec("2025-11-25", "basic/utilities/ping#behavior-requirements")
@with_handshakes
@pytest.mark.parametrize("native_revision", HOMES[:2])
async def test_a_handler_may_ping_its_client(native_revision: str, revision: str) -> None:
    async def ping(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        await context.request(registry.revision(own.native_revision).bindings().methods.PING)
        return own.text("alive")

    async with client(server(native_revision, tools={"ping": ping}), revision) as peer:
        (asked,) = await peer.call("ping")
        assert {"jsonrpc": "2.0", "id": asked["id"], "method": "ping"} == asked

        (said,) = await peer.answer(asked, "{}")

    assert [{"type": "text", "text": "alive"}] == said["result"]["content"]


@spec("2026-07-28", "basic/patterns/index", "ebc4a5b1")
@spec("2026-07-28", "basic/transports/stdio#receiving-messages", "0ed00df8")
@without_handshakes
@pytest.mark.parametrize("native_revision", HOMES[:2])
async def test_a_client_that_can_be_sent_no_requests_is_not_pinged(native_revision: str, revision: str) -> None:
    async def ping(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        await context.request(registry.revision(own.native_revision).bindings().methods.PING)

    async with client(server(native_revision, tools={"ping": ping}), revision) as peer:
        (said,) = await peer.call("ping")

    assert -32603 == said["error"]["code"]
