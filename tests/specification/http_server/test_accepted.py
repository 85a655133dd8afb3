"""Notifications and responses, which are accepted or refused, and never answered."""

from __future__ import annotations

import pytest

from tests.specification.http_server.http_clients import BOTH, JSON, STATELESS, caller, cancellation
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio

ROOTS = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-06-18", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "96246ff7")
@with_sessions
@on_both_loops
@pytest.mark.parametrize(
    "body",
    [
        ROOTS,
        cancellation(99),
        b'{"jsonrpc":"2.0","method":"notifications/no/such"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
    ],
)
async def test_a_notification_is_accepted_without_a_body(body: bytes, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        answer = await peer.post(body).complete()

    assert (202, b"") == (answer.status, answer.body)


@spec("2025-03-26", "basic/transports#sending-messages-to-the-server")
@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "96246ff7")
@with_sessions
@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"99","error":{"code":-32603,"message":"no"}}',
    ],
)
async def test_a_response_is_accepted_even_if_it_answers_nothing(body: bytes, revision: str) -> None:
    """The server has no way to refuse it that its sender could do anything with."""
    async with caller(demo(), revision) as peer:
        answer = await peer.post(body).complete()

    assert (202, b"") == (answer.status, answer.body)


@spec("2025-11-25", "basic/transports#sending-messages-to-the-server", "9b45b5d7")
@with_sessions
@pytest.mark.parametrize("body", [ROOTS, b'{"jsonrpc":"2.0","id":1,"result":{}}'])
async def test_what_no_session_takes_is_refused_with_an_error_status(body: bytes, revision: str) -> None:
    async with site(demo(revisions=[revision])) as web:
        without = await web.ask("POST", "/mcp", [JSON, BOTH], body)
        unknown = await web.ask("POST", "/mcp", [JSON, BOTH, ("Mcp-Session-Id", "nobody")], body)

    assert (400, 404) == (without.status, unknown.status)
    assert "id" not in without.json


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "c9b5937d")
@pytest.mark.parametrize("meta", ["", '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'])
@pytest.mark.parametrize("revisions", [None, [STATELESS]])
async def test_a_stateless_notification_is_accepted_without_a_body(meta: str, revisions: list[str] | None) -> None:
    """What headers it has to have is not defined; that of the revision says which rules it goes by."""
    body = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,{meta}}}}}'.replace(
        ",}", "}"
    )
    async with site(demo(revisions=revisions)) as web:
        lines = [JSON, BOTH, ("MCP-Protocol-Version", STATELESS)]
        answer = await web.ask("POST", "/mcp", lines, body.encode())

    assert (202, b"") == (answer.status, answer.body)


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages", "f886e422")
@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header")
async def test_a_notification_of_a_revision_that_is_not_served_is_refused() -> None:
    body = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    async with site(demo(revisions=[STATELESS])) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, ("MCP-Protocol-Version", "2099-01-01")], body)

    assert (400, [STATELESS]) == (answer.status, answer.json["error"]["data"]["supported"])


@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}',
        b'[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]',
        b"[]",
    ],
)
@pytest.mark.parametrize("revisions", [None, [STATELESS]])
async def test_a_stateless_body_is_a_request_or_a_notification_and_nothing_else(
    body: bytes, revisions: list[str] | None
) -> None:
    async with site(demo(revisions=revisions)) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, ("MCP-Protocol-Version", STATELESS)], body)

    assert 400 == answer.status
    assert "id" not in answer.json


@spec("2026-07-28", "basic/patterns/cancellation#transport-specific-cancellation")
async def test_a_cancellation_that_is_posted_ends_no_request_of_another_client() -> None:
    """Ids are the client's own, and nobody can tell here whose client it is that cancels."""
    own = behaviour()
    async with caller(demo(own), STATELESS) as peer:
        stream = peer.call("steps", meta='"progressToken":1', identity=5)
        assert "notifications/progress" == (await stream.message())["method"]

        lines = [JSON, BOTH, ("MCP-Protocol-Version", STATELESS)]
        answer = await peer.web.ask("POST", "/mcp", lines, cancellation(5))
        own.gate.set()
        *_, said = await stream.messages()

    assert 202 == answer.status
    assert (5, "done") == (said["id"], said["result"]["content"][0]["text"])
