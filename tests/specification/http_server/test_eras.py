"""One endpoint for both eras, and servers that serve fewer revisions than there are."""

from __future__ import annotations

import json

import pytest

from tests.specification.citation import HANDSHAKES, since
from tests.specification.http_server.http_clients import (
    BOTH,
    INITIALIZED,
    JSON,
    META,
    STATELESS,
    STREAM,
    Caller,
    caller,
    initialize,
    joined,
)
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import (
    NEWEST,
    SESSIONS,
    STREAMABLE,
    on_both_loops,
    spec,
    with_sessions,
)
from tests.specification.http_server.stream_tools import behaviour, demo

pytestmark = pytest.mark.anyio


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@on_both_loops
async def test_clients_of_all_revisions_are_served_at_once() -> None:
    own = behaviour()
    async with site(demo(own)) as web:
        peers = [await joined(web, each) for each in STREAMABLE]
        calls = [each.call("steps", f'{{"say":"{each.revision}"}}', '"progressToken":1', identity=1) for each in peers]
        for each in calls:
            await each.message()
        own.gate.set()
        said = [(await each.messages())[-1] for each in calls]

    assert STREAMABLE == [each["result"]["content"][0]["text"] for each in said]
    assert [None, None, None, "complete"] == [each["result"].get("resultType") for each in said]


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
@with_sessions
async def test_metadata_makes_a_request_stateless_whatever_session_it_comes_with(revision: str) -> None:
    async with caller(demo(), revision) as session:
        peer = Caller(session.web, STATELESS)
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, [*peer.lines(body), ("Mcp-Session-Id", session.session or "")]).complete()

        assert "resultType" not in await session.result("tools/list")

    assert "complete" == answer.json["result"]["resultType"]


@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_initialize_with_metadata_is_a_request_of_the_modern_era() -> None:
    async with site(demo()) as web:
        peer = Caller(web, STATELESS)
        params = '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}'
        answer = await peer.send("initialize", params).complete()

    assert (404, -32601) == (answer.status, answer.json["error"]["code"])
    assert None is answer.header("mcp-session-id")


@spec("2026-07-28", "basic/versioning#compatibility-matrix")
@spec("2026-07-28", "basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_initialize_without_metadata_selects_the_old_era_whatever_the_header_says() -> None:
    """So a client that falls back, and leaves its header as it was, can shake hands."""
    async with site(demo()) as web:
        lines = [JSON, BOTH, ("MCP-Protocol-Version", STATELESS)]
        answer = await web.ask("POST", "/mcp", lines, initialize("2025-11-25"))

    assert (200, "2025-11-25") == (answer.status, answer.json.get("result", {}).get("protocolVersion"))
    assert answer.header("mcp-session-id")


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header")
async def test_a_request_that_names_no_version_at_all_is_taken_for_one_of_the_old_era() -> None:
    """It has no session, so that it is refused, but not in terms that only a modern client could know."""
    async with site(demo()) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')

    assert 400 == answer.status
    assert answer.json["error"]["code"] not in (-32020, -32021, -32022)


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "d3beb112")
@pytest.mark.parametrize("older", since("2025-06-18", "2026-07-28"))
async def test_if_every_client_has_to_name_its_version_a_request_without_the_header_is_a_mismatch(older: str) -> None:
    async with site(demo(revisions=[older, NEWEST])) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        begun = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(older))

    assert (400, 1, -32020) == (answer.status, answer.json["id"], answer.json["error"]["code"])
    assert 200 == begun.status  # the header comes after the handshake


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header")
@spec("2026-07-28", "basic/versioning#compatibility-matrix")
@on_both_loops
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_server_of_the_stateless_era_refuses_a_handshake_and_names_what_it_speaks(revision: str) -> None:
    async with site(demo(revisions=[NEWEST])) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(revision, identity="i"))

    assert 400 == answer.status
    assert NEWEST in json.dumps(answer.json["error"])
    assert "i" == answer.json["id"]
    assert None is answer.header("mcp-session-id")


@spec("2026-07-28", "basic/transports/streamable-http#protocol-version-header", "d3beb112")
@spec("2026-07-28", "basic/transports/streamable-http#server-validation")
@pytest.mark.parametrize(
    "lines", [[], [("Mcp-Session-Id", "abc")], [("Mcp-Session-Id", "abc"), ("MCP-Protocol-Version", "2025-11-25")]]
)
async def test_a_server_of_the_stateless_era_refuses_requests_of_a_session(lines: list[tuple[str, str]]) -> None:
    async with site(demo(revisions=[NEWEST])) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH, *lines], b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        told = await web.ask("POST", "/mcp", [JSON, BOTH, *lines], INITIALIZED)

    assert (400, 1) == (answer.status, answer.json["id"])
    assert answer.json["error"]["code"] in (-32020, -32022, -32602)
    assert told.status in (202, 400)  # which headers a notification has to have is not defined


@spec("2026-07-28", "basic/transports/streamable-http#http-sse-transport-2024-11-05")
@pytest.mark.parametrize("revisions", [[NEWEST], ["2025-11-25"], ["2025-03-26", NEWEST]])
@pytest.mark.parametrize(("method", "path"), [("GET", "/sse"), ("POST", "/messages"), ("POST", "/messages?session=1")])
async def test_without_2024_11_05_its_endpoints_are_not_there(method: str, path: str, revisions: list[str]) -> None:
    async with site(demo(revisions=revisions)) as web:
        answer = await web.ask(method, path, [JSON, STREAM], b"{}" if method == "POST" else b"")

    assert 404 == answer.status


@spec("2024-11-05", "basic/transports#http-with-sse")
async def test_a_server_of_2024_11_05_alone_agrees_on_nothing_else_wherever_it_is_asked() -> None:
    """Whether it has an endpoint of a later transport at all, no text of its revision says."""
    async with site(demo(revisions=["2024-11-05"])) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize("2025-03-26"))
        stream = await web.ask("GET", "/mcp", [STREAM])

    assert answer.status in (404, 405) or "2024-11-05" == answer.json["result"]["protocolVersion"]
    assert stream.status in (400, 404, 405)


@spec("2025-11-25", "basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("served", SESSIONS)
@pytest.mark.parametrize("offered", [*HANDSHAKES, "1900-01-01"])
async def test_a_server_of_one_revision_answers_with_that(served: str, offered: str) -> None:
    async with site(demo(revisions=[served])) as web:
        answer = await web.ask("POST", "/mcp", [JSON, BOTH], initialize(offered))

    assert (200, served) == (answer.status, answer.json["result"]["protocolVersion"])


@spec("2024-11-05", "basic/lifecycle#version-negotiation")
async def test_the_oldest_revision_can_be_agreed_on_over_the_newer_transport_too() -> None:
    """A server MUST answer with what was asked for if it supports it, and the text does not tie it to a transport."""
    async with caller(demo(), "2024-11-05") as peer:
        found = await peer.result("tools/list")

    assert "2024-11-05" == peer.initialized["protocolVersion"]
    assert "tools" in found


@spec("2026-07-28", "basic/versioning#compatibility-matrix")
@spec("2026-07-28", "basic/transports/streamable-http#backward-compatibility")
@pytest.mark.parametrize("served", SESSIONS)
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_a_server_of_the_old_era_sends_a_modern_client_back_to_the_handshake(method: str, served: str) -> None:
    """Status 400, and no error that a modern server would send: then the client falls back."""
    async with site(demo(revisions=[served])) as web:
        answer = await Caller(web, STATELESS).send(method, identity="p").complete()

        assert "tools" in await (await joined(web, served)).result("tools/list")

    assert 400 == answer.status
    assert answer.json["error"]["code"] not in (-32020, -32021, -32022)


@spec("2026-07-28", "basic/transports/streamable-http#earlier-streamable-http-revisions", "272d9457", "e872480b")
@pytest.mark.parametrize("header", [("Mcp-Session-Id", "abc"), ("Last-Event-ID", "abc:1")])
async def test_a_server_of_the_stateless_era_ignores_headers_of_the_old_one(header: tuple[str, str]) -> None:
    async with site(demo(revisions=[NEWEST])) as web:
        peer = Caller(web, STATELESS)
        body = peer.request(1, "tools/list")
        answer = await peer.post(body, [*peer.lines(body), header]).complete()

    assert 200 == answer.status
    assert None is answer.header("mcp-session-id")


@spec("2026-07-28", "basic/index#statelessness")
async def test_what_a_session_declared_says_nothing_about_stateless_requests() -> None:
    async with caller(demo(), "2025-11-25", '{"roots":{}}') as session:
        peer = Caller(session.web, STATELESS)
        body = peer.request(1, "tools/call", '"name":"roots","arguments":{}')
        answer = await peer.post(body, [*peer.lines(body), ("Mcp-Session-Id", session.session or "")]).complete()

    assert (400, -32021) == (answer.status, answer.json["error"]["code"])


@spec("2026-07-28", "server/discover#response")
async def test_discover_needs_no_session_and_begins_none() -> None:
    async with site(demo()) as web:
        answer = await Caller(web, STATELESS).send("server/discover").complete()

    assert META + "serverInfo" in answer.json["result"]["_meta"]
    assert None is answer.header("mcp-session-id")
