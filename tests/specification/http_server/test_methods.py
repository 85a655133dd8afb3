"""Which methods of HTTP there are, and where."""

from __future__ import annotations

import pytest

from tests.specification.http_server.http_clients import BOTH, JSON, STREAM, Caller, caller, initialize, joined
from tests.specification.http_server.http_site import site
from tests.specification.http_server.revision_sets import NEWEST, everywhere, on_both_loops, spec, with_sessions
from tests.specification.http_server.stream_tools import demo

pytestmark = pytest.mark.anyio


@spec("2026-07-28", "basic/transports/streamable-http", "46bd6446")
@spec("2025-03-26", "basic/transports#streamable-http")
@spec("2025-06-18", "basic/transports#streamable-http")
@spec("2025-11-25", "basic/transports#streamable-http", "664b562d")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@everywhere
@on_both_loops
async def test_one_path_takes_the_messages_of_every_revision(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        found = await peer.result("tools/list")

    assert ["echo"] == [each["name"] for each in found["tools"]]


@spec("2025-03-26", "basic/transports#streamable-http")
@spec("2025-11-25", "basic/transports#streamable-http", "664b562d")
@with_sessions
async def test_the_same_path_takes_gets(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen().begun()

    assert (200, True) == (stream.status, stream.is_stream)


@spec("2026-07-28", "basic/transports/streamable-http#earlier-streamable-http-revisions", "f172f9bd")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("lines", [[], [STREAM], [("Mcp-Session-Id", "abc")], [("Last-Event-ID", "a:1")]])
async def test_a_server_of_the_stateless_era_alone_takes_posts_only(method: str, lines: list[tuple[str, str]]) -> None:
    async with site(demo(revisions=[NEWEST])) as web:
        answer = await web.ask(method, "/mcp", lines)

    assert (405, "POST") == (answer.status, answer.header("allow"))


@spec("2026-07-28", "basic/transports/streamable-http#earlier-streamable-http-revisions")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_on_a_server_of_both_eras_a_stateless_client_cannot_get_or_delete(method: str) -> None:
    async with site(demo()) as web:
        answer = await web.ask(method, "/mcp", [STREAM, ("MCP-Protocol-Version", NEWEST)])

    assert 400 <= answer.status < 500


@spec("2025-11-25", "basic/transports#streamable-http")
@spec("2026-07-28", "basic/transports/streamable-http#sending-messages")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "post", "FOO"])
async def test_other_methods_are_not_allowed_and_the_answer_says_which_are(method: str) -> None:
    async with site(demo()) as web:
        answer = await web.ask(method, "/mcp", [JSON, BOTH], initialize("2025-11-25"))

    allowed = {each.strip() for each in (answer.header("allow") or "").split(",")}
    assert (405, {"POST", "GET", "DELETE"}) == (answer.status, allowed)


@spec("2025-11-25", "basic/transports#streamable-http")
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/mcp/x", "/MCP", "/mcpx", "/messages/", "//mcp", "/other"])
async def test_there_is_nothing_at_other_paths(path: str, method: str) -> None:
    async with site(demo()) as web:
        answer = await web.ask(method, path, [JSON, BOTH], initialize("2025-11-25") if method == "POST" else b"")

    assert 404 == answer.status


@spec("2025-11-25", "basic/transports#streamable-http")
async def test_the_path_can_be_chosen() -> None:
    async with site(demo(), path="/api/v1/tools") as web:
        peer = Caller(web, "2025-11-25", path="/api/v1/tools")
        await peer.shake_hands()
        nothing = await web.ask("POST", "/mcp", [JSON, BOTH], initialize("2025-11-25"))

    assert 404 == nothing.status


@spec("2025-11-25", "basic/transports#streamable-http")
@everywhere
async def test_a_query_does_not_make_it_another_endpoint(revision: str) -> None:
    async with caller(demo(), revision) as peer:
        peer.path = "/mcp?key=value"

        assert "tools" in await peer.result("tools/list")


@spec("2025-03-26", "basic/transports#listening-for-messages-from-the-server")
@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server", "6c9489ad")
@with_sessions
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json, text/event-stream", "*/*", "text/*"])
async def test_a_get_that_takes_streams_gets_one(accept: str, revision: str) -> None:
    async with caller(demo(), revision) as peer:
        stream = await peer.listen(lines=[("Accept", accept), *peer.own_lines]).begun()

    assert (200, "text/event-stream") == (stream.status, stream.header("content-type"))


@spec("2025-03-26", "basic/transports#listening-for-messages-from-the-server")
@spec("2025-11-25", "basic/transports#listening-for-messages-from-the-server")
@with_sessions
@pytest.mark.parametrize(
    "accept", ["application/json", "text/html", "text/event-stream;q=0", "application/event-stream", ""]
)
async def test_a_get_that_takes_no_streams_gets_none(accept: str, revision: str) -> None:
    """405 would say that there are no streams here at all, which is not so."""
    async with caller(demo(), revision) as peer:
        answer = await peer.listen(lines=[("Accept", accept), *peer.own_lines]).complete()

    assert 406 == answer.status


@spec("2025-11-25", "basic/transports#session-management")
@with_sessions
async def test_a_get_belongs_to_a_session(revision: str) -> None:
    async with site(demo()) as web:
        await joined(web, revision)
        without = await web.ask("GET", "/mcp", [STREAM])
        unknown = await web.ask("GET", "/mcp", [STREAM, ("Mcp-Session-Id", "nobody")])

    assert (400, 404) == (without.status, unknown.status)
