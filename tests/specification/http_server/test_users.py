"""Sessions, streams and state belong to whoever began them, where the application knows who that is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.specification.http_server.http_clients import (
    BOTH,
    INITIALIZED,
    JSON,
    STATELESS,
    STREAM,
    Caller,
    OldCaller,
    initialize,
)
from tests.specification.http_server.http_site import site
from tests.specification.http_server.protected_site import protected, token
from tests.specification.http_server.revision_sets import on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import behaviour, demo

if TYPE_CHECKING:
    from tests.specification.http_server.asgi_exchange import Lines

pytestmark = pytest.mark.anyio


def user(scope: Any) -> str:
    """Return who asks, as a proxy would say it."""
    found = dict(scope["headers"])
    return found.get(b"x-user", b"").decode()


def of(name: str) -> Lines:
    return [("X-User", name)]


async def session_of(web: Any, name: str, revision: str, capabilities: str = "{}") -> Lines:
    """Begin a session of *name*, and return its headers."""
    answer = await web.ask("POST", "/mcp", [JSON, BOTH, *of(name)], initialize(revision, capabilities))
    lines = [("Mcp-Session-Id", answer.header("mcp-session-id") or "")]
    assert 202 == (await web.ask("POST", "/mcp", [JSON, BOTH, *of(name), *lines], INITIALIZED)).status
    return lines


@spec("2025-11-25", "client/elicitation#statefulness", "bc9f4437")
@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
@on_both_loops
async def test_a_session_is_not_found_by_another_user(revision: str) -> None:
    async with site(demo(), user=user) as web:
        session = await session_of(web, "ann", revision)
        body = Caller(web, revision).request(1, "tools/list")
        answers = [
            await web.ask("POST", "/mcp", [JSON, BOTH, *of("bob"), *session], body),
            await web.ask("POST", "/mcp", [JSON, BOTH, *session], body),
            await web.ask("POST", "/mcp", [JSON, BOTH, *of("bob"), *session], INITIALIZED),
            await web.ask("GET", "/mcp", [STREAM, *of("bob"), *session]),
            await web.ask("DELETE", "/mcp", [*of("bob"), *session]),
        ]
        own = await web.ask("POST", "/mcp", [JSON, BOTH, *of("ann"), *session], body)

    assert [404] * 5 == [each.status for each in answers]
    assert 200 == own.status


@spec("2025-11-25", "basic/transports#resumability-and-redelivery")
@with_sessions
async def test_a_stream_is_not_resumed_by_another_user(revision: str) -> None:
    own = behaviour()
    async with site(demo(own), user=user) as web:
        session = await session_of(web, "ann", revision)
        thief = await session_of(web, "bob", revision)
        body = Caller(web, revision).request(3, "tools/call", '"name":"steps","arguments":{}', '"progressToken":"p"')
        lost = web.open("POST", "/mcp", [JSON, BOTH, *of("ann"), *session], body)
        event = await lost.seen()
        lost.leave()
        last = ("Last-Event-ID", event.event_id or "")
        stolen = await web.ask("GET", "/mcp", [STREAM, *of("bob"), *thief, last])
        own.gate.set()
        again = web.open("GET", "/mcp", [STREAM, *of("ann"), *session, last])
        *_, said = await again.messages()

    assert (400, 3) == (stolen.status, said["id"])


@spec("2026-07-28", "client/elicitation#statefulness", "8813d3ae")
@spec("2026-07-28", "client/elicitation#security-considerations", "e6c87f74")
@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "f960559d", "8d48e778")
@on_both_loops
async def test_state_that_was_given_to_another_user_is_refused() -> None:
    """Incident: a state was not bound to its user (CVE-2026-52870; python-sdk 2718)."""
    async with site(demo(), user=user) as web:
        peer = Caller(web, STATELESS, '{"elicitation":{}}')
        params = '"name":"ask","arguments":{}'
        body = peer.request(1, "tools/call", params)
        demand = (await web.ask("POST", "/mcp", [*peer.lines(body), *of("ann")], body)).json["result"]
        (key,) = demand["inputRequests"]
        answers = f'{{{json.dumps(key)}:{{"action":"accept","content":{{"name":"octocat"}}}}}}'
        state = json.dumps(demand["requestState"])
        retry = peer.request(2, "tools/call", f'{params},"requestState":{state},"inputResponses":{answers}')
        stolen = await web.ask("POST", "/mcp", [*peer.lines(retry), *of("bob")], retry)
        nobody = await web.ask("POST", "/mcp", peer.lines(retry), retry)
        own = await web.ask("POST", "/mcp", [*peer.lines(retry), *of("ann")], retry)

    assert [-32602, -32602] == [each.json["error"]["code"] for each in (stolen, nobody)]
    assert "octocat" in own.body.decode()


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_an_address_of_http_sse_is_not_found_by_another_user() -> None:
    async with site(demo(), user=user) as web:
        peer = OldCaller(web, "2024-11-05")
        peer.stream = web.open("GET", "/sse", [STREAM, *of("ann")])
        peer.target = (await peer.stream.event()).data or ""
        stolen = await peer.post(initialize("2024-11-05"), [JSON, *of("bob")]).complete()
        own = await peer.post(initialize("2024-11-05"), [JSON, *of("ann")]).complete()

    assert (404, 202) == (stolen.status, own.status)


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "f960559d", "8d48e778")
@pytest.mark.parametrize("thief", ["bob", "ann-app2", "ann-elsewhere"])
async def test_a_state_belongs_to_issuer_client_and_subject(thief: str) -> None:
    async with protected(demo()) as web:
        peer = Caller(web, STATELESS, '{"elicitation":{}}')
        params = '"name":"ask","arguments":{}'
        body = peer.request(1, "tools/call", params)
        demand = (await web.ask("POST", "/mcp", [*peer.lines(body), *token("ann")], body)).json["result"]
        (key,) = demand["inputRequests"]
        answers = f'{{{json.dumps(key)}:{{"action":"accept","content":{{"name":"octocat"}}}}}}'
        state = json.dumps(demand["requestState"])
        retry = peer.request(2, "tools/call", f'{params},"requestState":{state},"inputResponses":{answers}')
        stolen = await web.ask("POST", "/mcp", [*peer.lines(retry), *token(thief)], retry)
        renewed = await web.ask("POST", "/mcp", [*peer.lines(retry), *token("ann-writes")], retry)

    assert -32602 == stolen.json["error"]["code"]
    assert "octocat" in renewed.body.decode()
